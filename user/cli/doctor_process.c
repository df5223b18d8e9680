// SPDX-License-Identifier: Apache-2.0
/* A process: its profile, libraries and probes, and the server's own view. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/choose.h"
#include "cli/doctor.h"
#include "python/notes.h"
#include "store/text.h"

#define LOOKS 5

struct rows {
	struct doctor *d;
	const struct profile *profile;
	char file[PATH_MAX]; /* whose rows are being printed */
	char absent[32];     /* the library of which it was last said that it is not mapped */
};

/* A libc has many functions: those in which all is well are not named. They are in any process, and
 * no reason to call one a server. */
static void print_socket(const struct attach_row *row)
{
	if (!row->ok)
		doctor_say(row->required ? BAD : NOTICE, "sockets: %s: %s%s", row->probe,
			   row->reason, row->required ? "" : " (not required)");
	else if (!row->file[0])
		doctor_say(FINE, "sockets: %s: %s, through %s", row->probe, row->symbol,
			   row->where);
}

static bool said_absent(struct rows *r, const struct attach_row *row)
{
	bool said = !strcmp(row->library, r->absent);

	snprintf(r->absent, sizeof(r->absent), "%s", row->library);
	return said;
}

/* Probes that are off, not to be found yet, or in a library that need not be there: nothing to be
 * mended. A library is said once. */
static bool print_idle(struct rows *r, const struct attach_row *row)
{
	if (row->off || row->later) {
		doctor_say(NOTICE, "probe %s: %s", row->probe, row->reason);
		return true;
	}
	if (row->ok || row->required || row->file[0])
		return false;
	if (!said_absent(r, row))
		doctor_say(NOTICE, "library %s: %s: what it does is not seen (not required)",
			   row->library, row->reason);
	return true;
}

static bool tells_server(const struct profile *p, const char *probe)
{
	for (int i = 0; i < p->nuprobes; i++)
		if (!strcmp(p->probes[i].name, probe))
			return cli_tells_server(p, i);
	return false;
}

static void print_row(void *ctx, const struct attach_row *row)
{
	struct rows *r = ctx;
	bool can = row->ok && (r->d->features.multi || r->d->features.perf);

	if (row->file[0] && strcmp(row->file, r->file) != 0) {
		snprintf(r->file, sizeof(r->file), "%s", row->file);
		doctor_say(FINE, "library %s: %s", row->library, row->file);
	}
	if (row->socket) {
		print_socket(row);
		r->d->sockets += row->ok;
		return;
	}
	if (print_idle(r, row))
		return;
	if (!row->file[0])
		said_absent(r, row);
	if (row->ok)
		doctor_say(FINE, "probe %s: %.60s at %s%s", row->probe, row->symbol, row->where,
			   row->emulated ? "" : " (single-stepped: about 5 us a hit)");
	else
		doctor_say(BAD, "probe %s: %s%s", row->probe, row->reason,
			   row->required ? "" : " (not required)");
	if (can && tells_server(r->profile, row->probe))
		r->d->good++;
	else
		r->d->others += can;
}

/* What the profile most likely has wrong. */
static void say_notes(const struct profile *p, const struct py_snapshot *s)
{
	struct py_note note[PY_NOTES_MAX];
	int n = py_notes(p->python, s, note);

	for (int i = 0; i < n; i++) {
		char text[TEXT_SAFE_MAX(sizeof(note[i].text))];

		text_safe(text, sizeof(text), note[i].text);
		doctor_say(note[i].slip ? BAD : NOTICE, "server's own view: %s", text);
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
		doctor_say(BAD, "server's own view: %s", err.text);
		return;
	}
	if (look(r, &snap))
		doctor_say(BAD, "server's own view: CPython %s: it cannot be read now: try again",
			   pyreader_version(r));
	else if (!snap.complete)
		doctor_say(
			BAD,
			"server's own view: CPython %s: %s is not in this server: verdicts rest on "
			"the transport's events alone",
			pyreader_version(r), snap.missing);
	else
		doctor_say(FINE,
			   "server's own view: CPython %s: %zu requests held, read in %.2f ms",
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
		doctor_say(NOTICE,
			   "it has no probes: only the server's own view is watched, which needs "
			   "no BPF");
	} else if (f->sock_libc || f->sock_syscall || f->sock_tcp) {
		doctor_say(FINE, "it has no probes: its sockets are watched%s",
			   p->python ? ", and the server's own view" : "");
		d->good++;
	} else {
		doctor_say(BAD,
			   "it has no probes, and its sockets cannot be watched: the kernel or the "
			   "rights do not allow it, see above");
	}
}

/* What was found of it, as a list. */
static void say_why(const struct cli_choice *c, char *why, size_t len)
{
	if (c->named)
		snprintf(why, len, "--profile names it");
	else if (!c->fits && !c->libs && !c->root)
		snprintf(why, len,
			 "no match fits the command line, no profile's libraries are mapped, no "
			 "python root is in the process");
	else
		snprintf(why, len, "%s the command line%s%s",
			 c->fits ? "its match fits" : "no match fits",
			 c->libs ? ", its libraries are mapped" : "",
			 c->root ? ", its python root is in the process" : "");
}

/* Which profile, and why. What is taken only because it comes first is a guess. */
static void say_profile(const struct profile_file *pf, pid_t pid, const struct cli_choice *c)
{
	bool nothing = !c->named && !c->fits && !c->libs && !c->root;
	const struct profile *p = c->profile, *whose = NULL;
	char why[200];

	say_why(c, why, sizeof(why));
	if (c->named && cli_is_anothers(pf, pid, p, &whose))
		doctor_say(NOTICE, "profile %s of %s: %s, but the process looks like one of %s",
			   p->name, pf->path, why, whose->name);
	else if (nothing)
		doctor_say(NOTICE, "profile %s of %s: a guess: %s: say --profile NAME", p->name,
			   pf->path, why);
	else if (c->others)
		doctor_say(NOTICE,
			   "profile %s of %s: a guess: %s, and so it is with %d more profile%s: "
			   "say --profile NAME",
			   p->name, pf->path, why, c->others, c->others == 1 ? "" : "s");
	else
		doctor_say(FINE, "profile %s of %s: %s", p->name, pf->path, why);
}

/* A process with nothing but its sockets: does watch take it for the server? As worth_watching of
 * watch_target.c. */
static bool sockets_suffice(const struct profile_file *pf, pid_t pid, const struct cli_choice *c)
{
	return c->named ? cli_looks_like(pid, c->profile) : cli_profile_of(pf, pid) == c->profile;
}

/* Nothing of the transport is in place: what is left? */
static void without_transport(struct doctor *d, const struct profile_file *pf, pid_t pid,
			      const struct cli_choice *c)
{
	if (!d->features.multi && !d->features.perf) {
		doctor_say(BAD, "no probe can be attached: the kernel or the rights do not allow "
				"it, see above");
	} else if (d->sockets && sockets_suffice(pf, pid, c)) {
		doctor_say(NOTICE, "no probe of its transport can be attached: its sockets will be "
				   "watched, and the server's own view");
		d->good++;
	} else if (c->named && !cli_looks_like(pid, c->profile)) {
		doctor_say(BAD,
			   "nothing of profile %s is in it, neither title nor libraries nor its "
			   "python root: leave --profile out",
			   c->profile->name);
	} else {
		doctor_say(BAD,
			   "no probe%s can be attached to it now: is it the server's scheduler? "
			   "(--find looks for one)",
			   d->others ? " of its transport" : "");
	}
}

/* Where return probes may be used. When not in this process, that is said. */
static enum attach_returns say_no_returns(const struct doctor *d, const struct profile *p,
					  pid_t pid)
{
	enum attach_returns use = d->forced.returns ? d->forced.returns : d->features.returns;

	if (attach_has_returns(p) && !attach_may_return(use, pid))
		doctor_say(NOTICE, "returns are probed at ret instructions: %s",
			   use == RETURNS_NEVER
				   ? "SILENTPIN_RETURNS=ret asks for it"
				   : "a return probe might crash it, as it has a seccomp filter");
	return use;
}

int doctor_process(struct doctor *d, const struct profile_file *pf, pid_t pid, struct sp_err *err)
{
	char cmdline[4096] = "", safe[TEXT_SAFE_MAX(101)];
	const struct profile *p;
	struct cli_choice c;
	struct rows r = {.d = d};
	int before = d->good, rc;

	d->sockets = d->others = 0;
	if (target_cmdline(pid, cmdline, sizeof(cmdline)))
		return sp_err_set(err, SP_EXIT_NOATTACH, -ESRCH,
				  "process %d: does not exist: check the pid (ps -e)", pid);
	rc = cli_choose_profile(pf, d->profile, pid, &c, err);
	if (rc)
		return rc;
	p = c.profile;
	cmdline[100] = '\0';
	text_safe(safe, sizeof(safe), cmdline);
	printf("process %d: %s\n", pid, safe);
	say_profile(pf, pid, &c);
	r.profile = p;
	rc = attach_dry_rows(p, pid, say_no_returns(d, p, pid), print_row, &r, err);
	d->wants_probes |= p->nprobes > 0;
	if (!rc && !p->nuprobes)
		without_probes(d, p);
	else if (!rc && d->good == before)
		without_transport(d, pf, pid, &c);
	if (!rc)
		examine_python(d, p, pid);
	return rc;
}
