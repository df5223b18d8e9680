// SPDX-License-Identifier: Apache-2.0
/* Which processes are watched: those named, those found, or the one that was started. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "attach/target.h"
#include "cli/choose.h"
#include "cli/watch.h"
#include "util/clock.h"
#include "util/log.h"

/* Looking through /proc for new matches costs about a millisecond per thousand processes. */
#define FIND_EVERY_NS (1 * NS_PER_SEC)

/* --enable and --disable, in the order in which they were said. */
static int switch_probes(struct watch *w, struct sp_err *err)
{
	struct profile *p = &w->probes->profiles[w->profile - w->probes->profiles];
	int rc = 0;

	for (int i = 0; !rc && i < w->o.nswitched; i++)
		rc = profile_enable(p, w->o.switched[i], w->o.switched_on[i], err);
	return rc;
}

static int profile_of_target(struct watch *w, struct sp_err *err)
{
	struct cli_choice c;
	char cmd[4096];
	int rc = target_cmdline(w->o.pids[0], cmd, sizeof(cmd));

	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "pid %d: no such process: find it with pgrep -f, or say --find",
				  w->o.pids[0]);
	rc = cli_choose_profile(w->probes, NULL, w->o.pids[0], &c, err);
	w->profile = c.profile;
	return rc;
}

static void profile_of_find(struct watch *w)
{
	pid_t pid;

	for (int i = 0; i < w->probes->nprofiles; i++) {
		const struct profile *p = &w->probes->profiles[i];

		if (!p->match_cmdline)
			continue;
		if (!w->profile)
			w->profile = p;
		if (target_find(p, &pid, 1) > 0) {
			const struct profile *own = cli_profile_of(w->probes, pid);

			w->profile = own ? own : p;
			return;
		}
	}
}

int watch_choose_profile(struct watch *w, struct sp_err *err)
{
	struct cli_choice c;
	int rc = 0;

	if (w->o.profile) {
		rc = cli_choose_profile(w->probes, w->o.profile, 0, &c, err);
		w->profile = c.profile;
	} else if (w->o.npids) {
		rc = profile_of_target(w, err);
	} else if (w->o.find) {
		profile_of_find(w);
	}
	if (rc)
		return rc;
	if (!w->profile) { /* a command, or none that --find could look for */
		w->profile = &w->probes->profiles[0];
		if (w->o.command && w->probes->nprofiles > 1)
			pr_debug(
				"profile %s: the command is not running yet, so that nothing tells "
				"which "
				"is its own (--profile NAME chooses)",
				w->profile->name);
	}
	if (w->o.find && !w->profile->match_cmdline)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "--find: profile %s has no match: say -p PID, or give it one",
				  w->profile->name);
	return switch_probes(w, err);
}

/*
 * Every process with a libc has sockets that can be watched, and many have the library of a group.
 * That makes it a target only when there is a reason to take it for the server: of a profile that
 * somebody names, anything of it there; or that sockets are asked for.
 */
static bool worth_watching(const struct watch *w, pid_t pid)
{
	const struct profile *p = w->profile;

	for (int i = 0; i < p->nuprobes; i++)
		if (cli_tells_server(p, i) && attach_has(w->attach, (uint32_t)pid, i))
			return true;
	if (w->o.no_uprobes && (w->o.profile || !p->match_cmdline))
		return true;
	if (w->o.profile)
		return cli_looks_like(pid, p);
	return p->match_cmdline && cli_profile_of(w->probes, pid) == p;
}

/* It may be the other end of the transfer, or a server with another transport. */
static void warn_anothers(const struct watch *w, pid_t pid)
{
	const struct profile *whose;

	if (cli_is_anothers(w->probes, pid, w->profile, &whose))
		pr_warn("pid %d: it looks like a process of profile %s, and is watched as one of "
			"%s: say --profile %s",
			pid, whose->name, w->profile->name, whose->name);
}

static int attach_named(struct watch *w, struct sp_err *err)
{
	struct sp_err one = {0};
	int probes = 0;
	int rc;

	for (int i = 0; i < w->o.npids; i++) {
		rc = attach_add(w->attach, w->o.pids[i], &one);
		if (rc > 0 && worth_watching(w, w->o.pids[i]))
			probes += rc;
		if (rc >= 0)
			warn_anothers(w, w->o.pids[i]);
		if (rc < 0 && w->o.npids > 1)
			pr_warn("%s", one.text);
		if (rc < 0)
			*err = one;
	}
	if (probes || watch_python_readers(w->python))
		return 0;
	if (w->native_err.text[0])
		return sp_err_set(err, SP_EXIT_NOATTACH, -EPERM, "%s", w->native_err.text);
	if (err->text[0])
		return sp_err_set(err, SP_EXIT_NOATTACH, -ENOENT, "%s", one.text);
	if (w->o.no_uprobes && w->o.no_sockets && watch_python_why(w->python))
		return sp_err_set(err, SP_EXIT_NOATTACH, -EPERM, "%s", watch_python_why(w->python));
	if (w->o.no_uprobes && w->o.no_sockets)
		return sp_err_set(
			err, SP_EXIT_NOATTACH, -ENOENT,
			"pid %d: no Python state of profile %s can be read in it: is it the "
			"server's scheduler? see `silentpin py %d`",
			w->o.pids[0], w->profile->name, w->o.pids[0]);
	if (w->o.profile && !cli_looks_like(w->o.pids[0], w->profile))
		return sp_err_set(err, SP_EXIT_NOATTACH, -ENOENT,
				  "pid %d: nothing of profile %s is in it, neither title nor "
				  "libraries nor its python root: leave --profile out, or see "
				  "`silentpin doctor -p %d`",
				  w->o.pids[0], w->profile->name, w->o.pids[0]);
	return sp_err_set(err, SP_EXIT_NOATTACH, -ENOENT,
			  "pid %d: no %s of profile %s%s could be %s: is it the server's "
			  "scheduler? see `silentpin doctor -p %d`",
			  w->o.pids[0], w->o.no_uprobes ? "socket" : "probe", w->profile->name,
			  w->o.no_uprobes || !attach_probes(w->attach) ? "" : "'s transport",
			  w->o.no_uprobes ? "watched" : "attached", w->o.pids[0]);
}

static bool is_new_match(const struct watch *w, pid_t pid)
{
	for (int i = 0; i < w->o.npids; i++)
		if (w->o.pids[i] == pid)
			return false;
	return true;
}

/* --find: attach what has turned up since the last look. pids[] holds those that were tried. */
static void find_more(struct watch *w)
{
	pid_t found[WATCH_MAX_PIDS];
	int n = target_find(w->profile, found, WATCH_MAX_PIDS);
	int kept = 0;

	for (int i = 0; i < w->o.npids; i++) /* forget those that are gone: pids are reused */
		for (int k = 0; k < n; k++)
			if (found[k] == w->o.pids[i])
				w->o.pids[kept++] = w->o.pids[i];
	w->o.npids = kept;
	for (int i = 0; i < n && w->o.npids < WATCH_MAX_PIDS; i++) {
		struct sp_err err = {0};
		int rc;

		if (!is_new_match(w, found[i]))
			continue;
		w->o.pids[w->o.npids++] = found[i];
		/* the other end of the transfer is for a watch of its own */
		if (cli_is_anothers(w->probes, found[i], w->profile, NULL))
			continue;
		rc = attach_add(w->attach, found[i], &err);
		if (rc < 0)
			pr_warn("%s", err.text);
		w->refused |= rc < 0;
	}
}

/* The kernel or the rights are not enough for probes; anything else is to be mended, not gone
 * around. */
static bool not_allowed(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -EOPNOTSUPP || rc == -ENOSYS;
}

static int attach_source(struct watch *w, struct sp_err *err)
{
	struct attach_opts ao = {
		.follow_children = true,
		.no_probes = w->o.no_uprobes && w->o.no_sockets,
		.no_uprobes = w->o.no_uprobes,
		.no_sockets = w->o.no_sockets,
	};
	int rc = cli_forced(&ao, err);

	if (!rc)
		rc = attach_open(w->profile, &ao, watch_notice, w, &w->attach, err);
	if (!rc || !w->python || ao.no_probes || !not_allowed(rc))
		return rc;
	/* the server's own view needs neither BPF nor its rights */
	w->native_err = *err;
	ao.no_probes = true;
	memset(err, 0, sizeof(*err));
	return attach_open(w->profile, &ao, watch_notice, w, &w->attach, err);
}

int watch_choose_sources(struct watch *w, struct sp_err *err)
{
	const struct profile *p = w->profile;
	struct watch_opts *o = &w->o;

	o->no_python |= !p->python || (o->only && o->only[0] != 'p');
	o->no_uprobes |= !p->nuprobes;
	o->no_sockets |= !p->sockets;
	if (!o->no_python || !o->no_uprobes || !o->no_sockets)
		return 0;
	if (o->only)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "--only %s: profile %s has no %s section: say --profile NAME, or "
				  "leave --only out",
				  o->only, p->name, o->only[0] == 'u' ? "probes" : o->only);
	return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
			  "profile %s has only a python section: leave --no-python out", p->name);
}

int watch_sources(struct watch *w, struct sp_err *err)
{
	if (!w->o.no_python)
		w->python = watch_python_new(w);
	return attach_source(w, err);
}

/* Each process costs a few descriptors, 25 where probes are perf events, and a server may have
 * hundreds of children. A command that we start keeps the limit that we were given. */
static void raise_fd_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &lim))
		pr_debug("the limit of open files stays as it is: %s", strerror(errno));
}

int watch_attach(struct watch *w, struct sp_err *err)
{
	int rc;

	if (!w->o.command)
		raise_fd_limit();
	if (w->o.find) {
		find_more(w);
		if (!attach_targets(w->attach))
			pr_info("no process matches %s yet: waiting", w->profile->match_cmdline);
		return 0;
	}
	if (!w->o.command)
		return attach_named(w, err);
	rc = target_spawn(w->o.command, &w->child, err);
	if (rc)
		return rc;
	raise_fd_limit();
	rc = attach_add(w->attach, w->child.pid, err);
	return rc < 0 ? rc : 0;
}

int watch_go(struct watch *w, struct sp_err *err)
{
	int rc = w->o.command ? target_go(&w->child, w->o.command[0], err) : 0;

	w->child_runs = w->o.command && !rc;
	return rc;
}

static void tell_halt(struct watch *w, const struct probed *p)
{
	struct sp_event ev;

	sp_event_init(&ev);
	ev.ns = mono_ns();
	ev.pid = ev.tid = p->pid;
	ev.role = ROLE_TARGET;
	snprintf(ev.kind, sizeof(ev.kind), p->halted ? "stopped" : "continued");
	collect_inject(w->collect, &ev);
	pr_info("pid %u: %s", p->pid,
		p->halted ? "stopped: its rooms are not judged" : "continued");
}

/* A stopped server holds everything, and that is no fault of a room. One that is traced call by
 * call stops all the time, and goes on. */
static void look_for_halts(struct watch *w)
{
	for (int i = 0; i < w->nprobed; i++) {
		struct probed *p = &w->probed[i];
		uint64_t spent = 0;
		bool halts = target_stopped((pid_t)p->pid, &spent);
		bool halted = halts && (p->halted || (p->halts && p->spent == spent));

		p->halts = halts;
		p->spent = spent;
		if (halted == p->halted)
			continue;
		p->halted = halted;
		tell_halt(w, p);
	}
}

void watch_targets(struct watch *w, uint64_t now_ns)
{
	attach_tick(w->attach);
	look_for_halts(w);
	if (w->o.find && now_ns >= w->next_find_ns) {
		find_more(w);
		w->next_find_ns = now_ns + FIND_EVERY_NS;
	}
	if (w->child_runs && waitpid(w->child.pid, NULL, WNOHANG) == w->child.pid)
		w->child_runs = false;
}

bool watch_has_targets(const struct watch *w)
{
	return w->o.find || w->child_runs || attach_targets(w->attach) > 0;
}
