// SPDX-License-Identifier: Apache-2.0
/* silentpin doctor: kernel, rights, libraries, each probe: ok, or what to do. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/choose.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "store/text.h"

void doctor_say(const char *what, const char *fmt, ...)
{
	char text[2048], safe[TEXT_SAFE_MAX(sizeof(text))];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_safe(safe, sizeof(safe), text);
	printf("  %s  %s\n", what, safe);
}

/* Several profiles may fit one process. */
static void add_found(struct doctor *d, const pid_t *found, int n)
{
	for (int i = 0; i < n && d->npids < DOCTOR_MAX_PIDS; i++) {
		int k = 0;

		while (k < d->npids && d->pid[k] != found[i])
			k++;
		if (k == d->npids)
			d->pid[d->npids++] = found[i];
	}
}

static int find_processes(struct doctor *d, const struct profile_file *pf, struct sp_err *err)
{
	for (int i = 0; i < pf->nprofiles && d->npids < DOCTOR_MAX_PIDS; i++) {
		const struct profile *p = &pf->profiles[i];
		pid_t found[DOCTOR_MAX_PIDS];

		if (!p->match_cmdline || (d->profile && strcmp(d->profile, p->name) != 0))
			continue;
		add_found(d, found, target_find(p, found, DOCTOR_MAX_PIDS));
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
		if (d->npids == DOCTOR_MAX_PIDS)
			return cli_usage("-p %s: more than %d processes: examine fewer at a time",
					 arg, DOCTOR_MAX_PIDS);
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
		rc = doctor_process(d, pf, d->pid[i], &err);
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
	kernel = doctor_kernel(&d);
	doctor_rights(&d);
	rc = d.npids || d.find ? examine_processes(&d) : SP_EXIT_OK;
	/* without BPF the server's own view can still be watched */
	if (kernel && rc != SP_EXIT_USAGE && (d.wants_probes || !d.good))
		return SP_EXIT_FAIL;
	return rc;
}
