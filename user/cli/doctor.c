// SPDX-License-Identifier: Apache-2.0
/* silentpin doctor: kernel, rights, libraries, each probe: ok, or what to do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/utsname.h>

#include "attach/attach.h"
#include "cli/cli.h"
#include "cli/choose.h"
#include "python/notes.h"
#include "store/text.h"
#include "util/cleanup.h"

#define MAX_PIDS 64
#define LOOKS    5

struct doctor {
	pid_t pid[MAX_PIDS];
	int npids;
	bool find;
	const char *probes, *profile;
	struct attach_features features;
	struct attach_opts forced;
	int good; /* probes that can be attached, and views that can be read */
	bool wants_probes;
	int sockets; /* of the process at hand: entries whose sockets can be watched */
};

/* One finding a line: fine, to be mended, or worth knowing. */
#define FINE   "ok"
#define BAD    "NO"
#define NOTICE "--"

static void say(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(const char *what, const char *fmt, ...)
{
	va_list ap;

	printf("  %s  ", what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* First line of a small file; "" when it cannot be read. */
static void first_line(const char *path, char *buf, size_t len)
{
	__closefd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, len - 1) : 0;

	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
}

/* ---- kernel ---------------------------------------------------------------------------------- */

static void say_lockdown(void)
{
	char line[80];

	first_line("/sys/kernel/security/lockdown", line, sizeof(line));
	if (strstr(line, "[confidentiality]"))
		say(BAD,
		    "lockdown is in confidentiality mode, which forbids BPF to read memory: boot "
		    "with lockdown=integrity or none");
}

/* What else may stand in the way of perf uprobes. */
static void say_perf_setting(void)
{
	char line[80];

	first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	if (line[0])
		say(NOTICE, "kernel.perf_event_paranoid is %s: CAP_SYS_ADMIN overrides it", line);
}

/* How the calls on sockets can be seen, and by which way they will be. */
static void say_sockets(const struct attach_features *f, enum attach_sockets force)
{
	bool ok = force == SOCKETS_TCP       ? f->sock_tcp
		  : force == SOCKETS_SYSCALL ? f->sock_syscall
					     : f->sock_libc;

	say(f->sock_libc ? FINE : NOTICE, "sockets through libc's calls%s",
	    f->sock_libc ? " (the default: other processes pay nothing)"
			 : ": neither kind of uprobe works");
	say(f->sock_syscall ? FINE : NOTICE,
	    "sockets through system calls (SILENTPIN_SOCKETS=syscall: also programs without "
	    "libc)%s%s",
	    f->sock_syscall ? "" : ": ", f->why_sock_syscall);
	say(f->sock_tcp ? FINE : NOTICE,
	    "sockets through the kernel's TCP functions (SILENTPIN_SOCKETS=tcp)%s%s",
	    f->sock_tcp ? "" : ": ", f->why_sock_tcp);
	if (force)
		say(ok ? FINE : BAD, "sockets will be watched as SILENTPIN_SOCKETS=%s asks%s",
		    attach_sockets_name(force),
		    ok ? "" : ": they cannot be: unset it, or choose a way that works");
	say(f->sock_state ? FINE : NOTICE, "ends of connections%s%s", f->sock_state ? "" : ": ",
	    f->why_sock_state);
}

static int examine_kernel(struct doctor *d)
{
	struct attach_features *f = &d->features;
	struct utsname un;
	int rc = attach_features(f);
	/* one of the two kinds is enough */
	const char *missing = f->multi || f->perf ? NOTICE : BAD;

	uname(&un);
	printf("kernel %s (%s)\n", un.release, un.machine);
	say(f->btf ? FINE : BAD, "type information%s",
	    f->btf ? "" : ": /sys/kernel/btf/vmlinux is missing: CONFIG_DEBUG_INFO_BTF is needed");
	say(rc ? BAD : FINE, "BPF tracing programs%s%s", rc ? ": " : "", f->why_bpf);
	if (rc) {
		say_lockdown();
		return rc;
	}
	say(f->multi ? FINE : missing, "uprobe_multi (attach and detach at once)%s%s",
	    f->multi ? "" : ": ", f->why_multi);
	say(f->perf ? FINE : missing, "perf uprobes (the older way, slow to detach)%s%s",
	    f->perf ? "" : ": ", f->why_perf);
	if (!f->perf && !f->multi)
		say_perf_setting();
	if (f->multi || f->perf)
		say(FINE, "probes will be attached by %s",
		    f->multi ? "uprobe_multi" : "perf uprobes");
	else
		say(BAD, "neither kind of uprobe works: give the rights named above, or use "
			 "Linux 6.6 or newer");
	say_sockets(f, d->forced.sock_force);
	say(f->seq ? FINE : NOTICE, "sequence numbers%s",
	    f->seq ? ": a lost record marks the rooms that were open at that moment"
		   : ": not before Linux 5.18 on this machine: a lost record marks all open rooms");
	if (f->pidns)
		say(NOTICE,
		    "silentpin runs in a pid namespace of its own: it sees the processes in "
		    "it, under the numbers they have there");
	say_lockdown();
	return f->multi || f->perf ? 0 : -EOPNOTSUPP;
}

/* ---- rights ---------------------------------------------------------------------------------- */

static bool has_cap(cap_value_t cap)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t v = CAP_CLEAR;

	if (caps) {
		cap_get_flag(caps, cap, CAP_EFFECTIVE, &v);
		cap_free(caps);
	}
	return v == CAP_SET;
}

static void say_cap(bool ok, const char *names, const char *with, const char *without)
{
	if (ok)
		say(FINE, "%s: %s", names, with);
	else
		say(BAD, "%s: %s", names, without);
}

static void examine_rights(const struct doctor *d)
{
	bool admin = has_cap(CAP_SYS_ADMIN);

	printf("rights\n");
	say_cap(admin || (has_cap(CAP_BPF) && has_cap(CAP_PERFMON)), "CAP_BPF and CAP_PERFMON",
		"BPF programs, uprobe_multi", "no probes at all: run as root, or give both");
	if (!d->features.why_bpf[0] && !d->features.multi)
		say_cap(admin, "CAP_SYS_ADMIN", "perf uprobes",
			"no perf uprobes, the only kind that this kernel has: run as root");
	say_cap(has_cap(CAP_SYS_PTRACE), "CAP_SYS_PTRACE",
		"processes of other users, and the server's own view",
		"only your own processes, and no view into the server");
	say_cap(has_cap(CAP_DAC_READ_SEARCH) || has_cap(CAP_DAC_OVERRIDE), "CAP_DAC_READ_SEARCH",
		"libraries in folders of other users",
		"only libraries in folders that you may read");
	say_cap(admin || has_cap(CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE",
		"libraries whose file is deleted or replaced",
		"no libraries whose file is deleted or replaced");
}

/* ---- processes ------------------------------------------------------------------------------- */

struct rows {
	struct doctor *d;
	char file[PATH_MAX]; /* whose rows are being printed */
	char absent[32];     /* the library that was last said to be not mapped */
};

/* A libc has many functions: those in which all is well are not named. They are in any process, and
 * no reason to call one a server. */
static void print_socket(const struct attach_row *row)
{
	if (!row->ok)
		say(row->required ? BAD : NOTICE, "sockets: %s: %s%s", row->probe, row->reason,
		    row->required ? "" : " (not required)");
	else if (!row->file[0])
		say(FINE, "sockets: %s: %s, through %s", row->probe, row->symbol, row->where);
}

/* Probes that are off, or in a library that need not be there: nothing to be mended. A library is
 * said once. */
static bool print_idle(struct rows *r, const struct attach_row *row)
{
	if (row->off) {
		say(NOTICE, "probe %s: %s", row->probe, row->reason);
		return true;
	}
	if (row->ok || row->required || row->file[0])
		return false;
	if (strcmp(row->library, r->absent) != 0)
		say(NOTICE, "library %s: %s: what it does is not seen (not required)", row->library,
		    row->reason);
	snprintf(r->absent, sizeof(r->absent), "%s", row->library);
	return true;
}

static void print_row(void *ctx, const struct attach_row *row)
{
	struct rows *r = ctx;
	bool can = row->ok && (r->d->features.multi || r->d->features.perf);

	if (row->file[0] && strcmp(row->file, r->file) != 0) {
		snprintf(r->file, sizeof(r->file), "%s", row->file);
		say(FINE, "library %s: %s", row->library, row->file);
	}
	if (row->socket) {
		print_socket(row);
		r->d->sockets += row->ok;
		return;
	}
	if (print_idle(r, row))
		return;
	if (row->ok)
		say(FINE, "probe %s: %.60s at %s%s", row->probe, row->symbol, row->where,
		    row->emulated ? "" : " (single-stepped: about 5 us a hit)");
	else
		say(BAD, "probe %s: %s%s", row->probe, row->reason,
		    row->required ? "" : " (not required)");
	r->d->good += can;
}

/* What the profile most likely has wrong. */
static void say_notes(const struct profile *p, const struct py_snapshot *s)
{
	struct py_note note[PY_NOTES_MAX];
	int n = py_notes(p->python, s, note);

	for (int i = 0; i < n; i++) {
		char text[TEXT_SAFE_MAX(sizeof(note[i].text))];

		text_safe(text, sizeof(text), note[i].text);
		say(note[i].slip ? BAD : NOTICE, "server's own view: %s", text);
	}
}

/* A snapshot that a busy server has torn is taken again. */
static int look(struct pyreader *r, struct py_snapshot *s)
{
	int rc = pyreader_snapshot(r, s);

	for (int i = 1; i < LOOKS && !rc && !s->stable; i++) {
		py_snapshot_free(s);
		rc = pyreader_snapshot(r, s);
	}
	return rc;
}

/* The server's own view: its interpreter, the root object, each declared path. */
static void examine_python(struct doctor *d, const struct profile *p, pid_t pid)
{
	struct pyreader *r = NULL;
	struct py_snapshot snap = {0};
	struct sp_err err = {0};

	if (!p->python)
		return;
	if (pyreader_open(pid, p, &r, &err)) {
		say(BAD, "server's own view: %s", err.text);
		return;
	}
	if (look(r, &snap))
		say(BAD, "server's own view: CPython %s: it cannot be read now: try again",
		    pyreader_version(r));
	else if (!snap.complete)
		say(BAD,
		    "server's own view: CPython %s: %s is not in this server: verdicts rest on "
		    "the transport's events alone",
		    pyreader_version(r), snap.missing);
	else
		say(FINE, "server's own view: CPython %s: %zu requests held, read in %.2f ms",
		    pyreader_version(r), snap.nrequest, (double)snap.took_ns / 1e6);
	d->good += snap.complete;
	say_notes(p, &snap);
	py_snapshot_free(&snap);
	pyreader_close(r);
}

/* What such a profile is watched by. */
static void without_probes(struct doctor *d, const struct profile *p)
{
	const struct attach_features *f = &d->features;

	if (!p->sockets) {
		say(NOTICE, "it has no probes: only the server's own view is watched, which needs "
			    "no BPF");
	} else if (f->sock_libc || f->sock_syscall || f->sock_tcp) {
		say(FINE, "it has no probes: its sockets are watched%s",
		    p->python ? ", and the server's own view" : "");
		d->good++;
	} else {
		say(BAD, "it has no probes, and its sockets cannot be watched: the kernel or the "
			 "rights do not allow it, see above");
	}
}

static int examine_process(struct doctor *d, const struct profile_file *pf, pid_t pid,
			   struct sp_err *err)
{
	char cmdline[4096] = "";
	const struct profile *p;
	struct rows r = {.d = d};
	int before = d->good, rc;

	d->sockets = 0;
	if (target_cmdline(pid, cmdline, sizeof(cmdline)))
		return sp_err_set(err, SP_EXIT_NOATTACH, -ESRCH,
				  "process %d: does not exist: check the pid (ps -e)", pid);
	p = cli_choose_profile(pf, d->profile, pid, err);
	if (!p)
		return -ENOENT;
	printf("process %d: %.100s\n", pid, cmdline);
	say(FINE, "profile %s of %s", p->name, pf->path);
	rc = attach_dry_rows(p, pid, print_row, &r, err);
	d->wants_probes |= p->nprobes > 0;
	if (!rc && !p->nuprobes)
		without_probes(d, p);
	else if (!rc && d->good == before && !d->features.multi && !d->features.perf)
		say(BAD, "no probe can be attached: the kernel or the rights do not allow it, see "
			 "above");
	else if (!rc && d->good == before && d->sockets && cli_profile_of(pf, pid) == p) {
		say(NOTICE, "no probe of its transport can be attached: its sockets will be "
			    "watched, and the server's own view");
		d->good++;
	} else if (!rc && d->good == before)
		say(BAD, "no probe can be attached to it now: is it the server's scheduler? "
			 "(--find looks for one)");
	if (!rc)
		examine_python(d, p, pid);
	return rc;
}

/* Several profiles may fit one process. */
static void add_found(struct doctor *d, const pid_t *found, int n)
{
	for (int i = 0; i < n && d->npids < MAX_PIDS; i++) {
		int k = 0;

		while (k < d->npids && d->pid[k] != found[i])
			k++;
		if (k == d->npids)
			d->pid[d->npids++] = found[i];
	}
}

static int find_processes(struct doctor *d, const struct profile_file *pf, struct sp_err *err)
{
	for (int i = 0; i < pf->nprofiles && d->npids < MAX_PIDS; i++) {
		const struct profile *p = &pf->profiles[i];
		pid_t found[MAX_PIDS];

		if (!p->match_cmdline || (d->profile && strcmp(d->profile, p->name) != 0))
			continue;
		add_found(d, found, target_find(p, found, MAX_PIDS));
	}
	if (d->npids)
		return 0;
	return sp_err_set(err, SP_EXIT_NOATTACH, -ENOENT,
			  "--find: no running process fits a profile of %s: start the server, or "
			  "say -p PID",
			  pf->path);
}

/* ---- command line ---------------------------------------------------------------------------- */

#define KEY_FIND    0x100
#define KEY_PROBES  0x101
#define KEY_PROFILE 0x102

static const struct argp_option options[] = {
	{.name = "pid", .key = 'p', .arg = "PID[,PID...]", .doc = "Examine these processes"},
	{.name = "find", .key = KEY_FIND, .doc = "Examine the processes that a profile matches"},
	{.name = "probes", .key = KEY_PROBES, .arg = "FILE", .doc = "Take another probes file"},
	{.name = "profile",
	 .key = KEY_PROFILE,
	 .arg = "NAME",
	 .doc = "Use this profile, not the one that matches"},
	{0},
};

static error_t add_pids(struct doctor *d, const char *arg)
{
	const char *p = arg;

	do {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p || pid <= 0 || pid > INT_MAX || (*end && *end != ','))
			return cli_usage("-p %s: not a process number: give one, or several with "
					 "commas",
					 arg);
		if (d->npids == MAX_PIDS)
			return cli_usage("-p %s: more than %d processes: examine fewer at a time",
					 arg, MAX_PIDS);
		d->pid[d->npids++] = (pid_t)pid;
		p = *end ? end + 1 : end;
	} while (*p);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct doctor *d = state->input;

	switch (key) {
	case 'p':
		return add_pids(d, arg);
	case KEY_FIND:
		d->find = true;
		return 0;
	case KEY_PROBES:
		d->probes = arg;
		return 0;
	case KEY_PROFILE:
		d->profile = arg;
		return 0;
	case ARGP_KEY_ARG:
		return cli_usage("%s: unexpected: a process is named with -p PID", arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int examine_processes(struct doctor *d)
{
	struct profile_file *pf = NULL;
	struct sp_err err = {0};
	int rc = profile_load(d->probes, &pf, &err);

	if (!rc && d->find)
		rc = find_processes(d, pf, &err);
	for (int i = 0; i < d->npids && !rc; i++)
		rc = examine_process(d, pf, d->pid[i], &err);
	profile_free(pf);
	if (rc) {
		fflush(stdout);
		return cli_fail(&err);
	}
	return d->good ? SP_EXIT_OK : SP_EXIT_NOATTACH;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Say for kernel, rights, libraries and each probe: ok, or what to do.\v"
		       "Without a process: kernel and rights. Exit codes: 0 attaching would work, "
		       "1 the kernel or the rights do not allow it, 2 bad usage, 4 no probe could "
		       "be attached to the process.",
	};
	struct doctor d = {0};
	struct sp_err err = {0};
	int rc = cli_parse(&argp, argc, argv, &d), kernel;

	if (rc >= 0)
		return rc;
	if (cli_forced(&d.forced, &err))
		return cli_fail(&err);
	kernel = examine_kernel(&d);
	examine_rights(&d);
	rc = d.npids || d.find ? examine_processes(&d) : SP_EXIT_OK;
	/* without BPF the server's own view can still be watched */
	if (kernel && rc != SP_EXIT_USAGE && (d.wants_probes || !d.good))
		return SP_EXIT_FAIL;
	return rc;
}
