// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/watch.h"

enum {
	KEY_FIND = 0x100,
	KEY_PROBES,
	KEY_PROFILE,
	KEY_RECORD,
	KEY_KEEP,
	KEY_ONLY,
	KEY_ENABLE,
	KEY_DISABLE,
	KEY_ALERTS,
	KEY_MIN,
	KEY_STUCK,
	KEY_FOR,
	KEY_NO_PYTHON,
	KEY_PYTHON_EVERY,
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "What to watch (one of):", 1},
	{"pid", 'p', "PID[,PID...]", 0, "Running processes", 1},
	{"find", KEY_FIND, NULL, 0, "Every process that the profile's match fits, also later ones",
	 1},
	{NULL, 0, NULL, 0, "How to watch:", 2},
	{"probes", KEY_PROBES, "FILE", 0, "Probes file (default: the installed probes.yaml)", 2},
	{"profile", KEY_PROFILE, "NAME", 0, "Profile of it (default: the one that fits the target)",
	 2},
	{"only", KEY_ONLY, "SOURCE", 0,
	 "Use one source of events only: uprobes (the transport's calls), sockets (its messages "
	 "and "
	 "the HTTP front's requests) or python (the server's own queues and status table; needs no "
	 "BPF)",
	 2},
	{"enable", KEY_ENABLE, "NAME[,NAME...]", 0,
	 "Turn on probes, or groups of them, that are off by default (`silentpin check --summary` "
	 "lists "
	 "them)",
	 2},
	{"disable", KEY_DISABLE, "NAME[,NAME...]", 0, "Turn off probes, or groups of them", 2},
	{"no-python", KEY_NO_PYTHON, NULL, 0, "Do not read the server's Python state", 2},
	{"python-every", KEY_PYTHON_EVERY, "DUR", 0,
	 "How often to read it, 50ms to 60s (default 500ms)", 2},
	{"stuck-after", KEY_STUCK, "STAGE=DUR", 0,
	 "Deadline of a stage (bootstrap, ready, inflight, releasing), e.g. inflight=30s; may be "
	 "repeated",
	 2},
	{"for", KEY_FOR, "DUR", 0, "Stop after this long, e.g. 10m (exit code 3: a room is stuck)",
	 2},
	{NULL, 0, NULL, 0, "What to say:", 3},
	{"alerts", KEY_ALERTS, "text|json", 0, "Form of the alert lines on stdout (default text)",
	 3},
	{"min-confidence", KEY_MIN, "LEVEL", 0,
	 "Alert from this confidence on: possible, likely (default), certain", 3},
	{"verbose", 'v', NULL, 0, "Also tell each room that ends, and what the tracer itself does",
	 3},
	{NULL, 0, NULL, 0, "What to keep:", 4},
	{"output", 'o', "FILE.db", 0, "Recording (default silentpin.db; runs append)", 4},
	{"record", KEY_RECORD, "auto|all", 0,
	 "Full timelines of unhealthy rooms only (auto, default), or of all", 4},
	{"keep-mb", KEY_KEEP, "N", 0,
	 "Bound the recording to N MB, oldest healthy rooms first (default 512)", 4},
	{0},
};

static int parse_pids(struct watch_opts *o, const char *arg)
{
	const char *p = arg;

	do {
		char *end;
		long pid;

		errno = 0;
		pid = strtol(p, &end, 10);
		if (end == p || errno || pid <= 0 || pid > INT32_MAX ||
		    (*end && (*end != ',' || !end[1])))
			return cli_usage(
				"-p %s: not a process id: for example -p 4242 or -p 4242,4243",
				arg);
		if (o->npids == WATCH_MAX_PIDS)
			return cli_usage("-p %s: more than %d processes", arg, WATCH_MAX_PIDS);
		for (int i = 0; i < o->npids; i++)
			if (o->pids[i] == pid)
				return cli_usage("-p %s: %ld is named twice", arg, pid);
		o->pids[o->npids++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	} while (*p);
	return 0;
}

static int parse_keep(struct watch_opts *o, const char *arg)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (end == arg || *end || errno || arg[0] == '-' || n < 1 || n > 1000000)
		return cli_usage("--keep-mb %s: not a number of megabytes from 1 to 1000000", arg);
	o->keep_mb = n;
	return 0;
}

static int parse_only(struct watch_opts *o, const char *arg)
{
	bool uprobes = !strcmp(arg, "uprobes"), sockets = !strcmp(arg, "sockets");

	if (!uprobes && !sockets && strcmp(arg, "python"))
		return cli_usage("--only %s: no such source: use uprobes, sockets or python", arg);
	o->only = arg;
	o->no_uprobes = !uprobes;
	o->no_sockets = !sockets;
	return 0;
}

static int parse_switch(struct watch_opts *o, char *arg, bool on)
{
	char *rest = arg;

	for (char *name; (name = strsep(&rest, ","));) {
		if (!name[0])
			return cli_usage("--%s: an empty name: say which probe or group",
					 on ? "enable" : "disable");
		if (o->nswitched == WATCH_MAX_SWITCHED)
			return cli_usage("--enable and --disable: more than %d names",
					 WATCH_MAX_SWITCHED);
		o->switched_on[o->nswitched] = on;
		o->switched[o->nswitched++] = name;
	}
	return 0;
}

static int parse_every(struct watch_opts *o, const char *arg)
{
	if (duration_parse(arg, &o->python_every_ns))
		return cli_usage("--python-every %s: not a duration: for example 500ms, 2s", arg);
	if (o->python_every_ns < PYTHON_EVERY_MIN_NS || o->python_every_ns > PYTHON_EVERY_MAX_NS)
		return cli_usage("--python-every %s: out of range: say 50ms to 60s", arg);
	return 0;
}

static int parse_word(struct watch_opts *o, int key, const char *arg)
{
	switch (key) {
	case KEY_RECORD:
		if (strcmp(arg, "auto") && strcmp(arg, "all"))
			return cli_usage("--record %s: say auto or all", arg);
		o->record_all = !strcmp(arg, "all");
		return 0;
	case KEY_ALERTS:
		if (strcmp(arg, "text") && strcmp(arg, "json"))
			return cli_usage("--alerts %s: say text or json", arg);
		o->json = !strcmp(arg, "json");
		return 0;
	case KEY_MIN:
		o->min_confidence = sp_confidence_parse(arg);
		if (o->min_confidence == CONF_NONE)
			return cli_usage("--min-confidence %s: say possible, likely or certain",
					 arg);
		return 0;
	case KEY_ONLY:
		return parse_only(o, arg);
	case KEY_FOR:
		if (duration_parse(arg, &o->for_ns) || !o->for_ns)
			return cli_usage("--for %s: not a duration: for example 30s, 10m, 1h", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int check_targets(const struct watch_opts *o)
{
	int ways = (o->npids > 0) + o->find + (o->command != NULL);

	if (!ways)
		return cli_usage("watch what? say -p PID, --find, or -- COMMAND: see "
				 "`silentpin watch --help`");
	if (o->only && o->only[0] == 'p' && o->no_python)
		return cli_usage(
			"--only python and --no-python exclude each other: say one of them");
	if (ways > 1)
		return cli_usage("-p, --find and -- COMMAND exclude each other: say one of them");
	return 0;
}

static error_t parser(int key, char *arg, struct argp_state *state)
{
	struct watch_opts *o = state->input;

	switch (key) {
	case 'p':
		return parse_pids(o, arg);
	case KEY_FIND:
		o->find = true;
		return 0;
	case KEY_PROBES:
		o->probes = arg;
		return 0;
	case KEY_PROFILE:
		o->profile = arg;
		return 0;
	case KEY_ENABLE:
	case KEY_DISABLE:
		return parse_switch(o, arg, key == KEY_ENABLE);
	case KEY_KEEP:
		return parse_keep(o, arg);
	case KEY_STUCK:
		return cli_stuck_after(arg, o->stage_ns);
	case KEY_NO_PYTHON:
		o->no_python = true;
		return 0;
	case KEY_PYTHON_EVERY:
		return parse_every(o, arg);
	case 'o':
		if (!arg[0])
			return cli_usage("-o: an empty file name: say where the recording goes");
		o->output = arg;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		if (!state->quoted)
			return cli_usage("%s: what is this? put -- before a command to be started",
					 arg);
		o->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_SUCCESS:
		return check_targets(o);
	default:
		return parse_word(o, key, arg);
	}
}

int watch_options(int argc, char **argv, struct watch_opts *o)
{
	static const struct argp argp = {
		.options = options,
		.parser = parser,
		.args_doc = "-p PID\n--find\n-- COMMAND...",
		.doc = "Attach to a running server, rebuild each room's life, alert on the stuck "
		       "ones.\v"
		       "Alerts go to stdout, everything else to stderr. The target is never "
		       "stopped and is "
		       "left as it was, however silentpin ends.",
	};

	memset(o, 0, sizeof(*o));
	o->min_confidence = CONF_LIKELY;
	o->keep_mb = 512;
	o->python_every_ns = PYTHON_EVERY_NS;
	return cli_parse(&argp, argc, argv, o);
}
