// SPDX-License-Identifier: Apache-2.0
/* silentpin py: one look at what the server itself holds. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/attach.h"
#include "cli/choose.h"
#include "cli/cli.h"
#include "output/json.h"
#include "output/py_text.h"
#include "python/snapshot.h"
#include "util/log.h"

/* A snapshot that a busy server has torn is taken again, so often. */
#define TRIES 5

struct py_opts {
	pid_t pid;
	const char *probes, *profile;
	bool json, stacks;
};

#define KEY_PROBES  0x100
#define KEY_PROFILE 0x101
#define KEY_JSON    0x102
#define KEY_STACKS  0x103

static const struct argp_option options[] = {
	{"json", KEY_JSON, NULL, 0, "One JSON object", 1},
	{"stacks", KEY_STACKS, NULL, 0, "Also each thread's Python stack, innermost first", 1},
	{"probes", KEY_PROBES, "FILE", 0, "Probes file (default: the installed probes.yaml)", 2},
	{"profile", KEY_PROFILE, "NAME", 0,
	 "Profile of it (default: the one that fits the process)", 2},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct py_opts *o = state->input;
	char *end;
	long pid;

	switch (key) {
	case KEY_JSON:
		o->json = true;
		return 0;
	case KEY_STACKS:
		o->stacks = true;
		return 0;
	case KEY_PROBES:
		o->probes = arg;
		return 0;
	case KEY_PROFILE:
		o->profile = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->pid)
			return cli_usage("%s: one process at a time: say `silentpin py PID`", arg);
		errno = 0;
		pid = strtol(arg, &end, 10);
		if (end == arg || *end || errno || pid <= 0 || pid > INT_MAX)
			return cli_usage("%s: not a process id: for example `silentpin py 4242`",
					 arg);
		o->pid = (pid_t)pid;
		return 0;
	case ARGP_KEY_NO_ARGS:
		return cli_usage("py: of which process? say `silentpin py PID`");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int choose(const struct py_opts *o, const struct profile_file *pf,
		  const struct profile **out, struct sp_err *err)
{
	struct cli_choice c;
	char cmd[4096];
	int rc = target_cmdline(o->pid, cmd, sizeof(cmd));

	if (rc)
		return sp_err_set(err, SP_EXIT_FAIL, rc,
				  "pid %d: no such process: find it with pgrep -f", o->pid);
	rc = cli_choose_profile(pf, o->profile, o->pid, &c, err);
	if (rc)
		return rc;
	*out = c.profile;
	if (!(*out)->python)
		return sp_err_set(
			err, SP_EXIT_USAGE, -ENOENT,
			"profile %s: has no python section: say --profile NAME, or give it one "
			"(docs/profiles.md)",
			(*out)->name);
	return 0;
}

static int look(struct pyreader *r, pid_t pid, struct py_snapshot *s, struct sp_err *err)
{
	int rc = pyreader_snapshot(r, s);

	for (int i = 1; i < TRIES && !rc && !s->stable; i++) {
		py_snapshot_free(s);
		rc = pyreader_snapshot(r, s);
	}
	if (rc == -ESRCH)
		return sp_err_set(err, SP_EXIT_FAIL, rc,
				  "pid %d: it has ended, or runs another program: look again", pid);
	if (rc)
		return sp_err_set(err, SP_EXIT_FAIL, rc,
				  "pid %d: cannot be read now: %s: look again", pid, strerror(-rc));
	return 0;
}

static int show(const struct py_opts *o, const struct profile *p, struct pyreader *r,
		struct sp_err *err)
{
	struct py_report rep = {.pid = o->pid, .profile = p, .python = pyreader_version(r)};
	struct py_snapshot s = {0};
	int rc = look(r, o->pid, &s, err);

	if (!rc && o->stacks && pyreader_stacks(r, &rep.stacks, &rep.nstacks))
		pr_warn("pid %d: its stacks changed too fast to be read: look again", o->pid);
	if (!rc) {
		char *text;

		rep.snapshot = &s;
		rep.with_stacks = o->stacks;
		text = o->json ? py_json(&rep) : py_text(&rep);
		if (text)
			fputs(text, stdout);
		else
			rc = sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
		free(text);
	}
	py_stacks_free(rep.stacks, rep.nstacks);
	py_snapshot_free(&s);
	return rc;
}

int cmd_py(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PID",
		.doc = "Read the server's queues and status table out of its memory, once.\v"
		       "The process is not stopped. What was seen torn is said (stable: false); a "
		       "room that is inflight without an entry in the status table is the silent "
		       "pin. Exit codes: 0 read, 1 it could not be read, 2 bad usage.",
	};
	struct py_opts o = {0};
	struct profile_file *pf = NULL;
	const struct profile *p = NULL;
	struct pyreader *r = NULL;
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &o);

	if (rc >= 0)
		return rc;
	rc = profile_load(o.probes, &pf, &err);
	if (!rc)
		rc = choose(&o, pf, &p, &err);
	if (!rc) {
		rc = pyreader_open(o.pid, p, &r, &err);
		if (rc)
			err.exit_code = SP_EXIT_FAIL;
	}
	if (!rc)
		rc = show(&o, p, r, &err);
	pyreader_close(r);
	profile_free(pf);
	return rc ? cli_fail(&err) : SP_EXIT_OK;
}
