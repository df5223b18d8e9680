// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/features.h"
#include "attach/inside.h"
#include "attach/pointer.h"
#include "attach/returns.h"
#include "attach/sockets.h"
#include "util/clock.h"

#define ADOPT_GAP   NS_PER_SEC
#define TARGETS_MAX 4096 /* as many as the map sp_targets holds */

void attach_notify(const struct attach *a, const struct attach_notice *n)
{
	if (a->fn)
		a->fn(a->ctx, n);
}

static void notify(const struct attach *a, enum attach_what what, uint64_t ns,
		   const struct watched *w, uint32_t ppid)
{
	struct attach_notice n = {
		.what = what,
		.ns = ns,
		.pid = (uint32_t)w->id.pid,
		.ppid = ppid,
		/* the sockets of a helper that it has forked are watched, but nothing to tell of */
		.n = what != NOTICE_FORK || socks_is_server(a, w) ? watched_probes(w) : 0,
	};

	if (target_cmdline(w->id.pid, n.text, sizeof(n.text)))
		n.text[0] = 0;
	attach_notify(a, &n);
}

/* A way that was asked for and does not work is no way. */
static int force_sockets(struct attach *a, struct sp_err *err)
{
	struct attach_features *f = &a->features;

	if (!a->profile->sockets || a->opts.no_sockets)
		return 0;
	if (a->opts.sock_force == SOCKETS_SYSCALL)
		features_sock_syscall(f);
	else if (a->opts.sock_force == SOCKETS_TCP)
		features_sock_tcp(f);
	else
		return 0;
	if (f->sock_syscall || f->sock_tcp)
		return 0;
	return sp_err_set(err, SP_EXIT_NOATTACH, -EOPNOTSUPP,
			  "sockets by way of %s: %s: unset SILENTPIN_SOCKETS",
			  attach_sockets_name(a->opts.sock_force),
			  f->why_sock_tcp[0] ? f->why_sock_tcp : f->why_sock_syscall);
}

static bool wants_uprobes(const struct profile *p, const struct attach_opts *o)
{
	return (p->sockets ? p->nuprobes > 0 : p->nprobes > 0) && !o->no_uprobes;
}

static bool wants_sockets(const struct profile *p, const struct attach_opts *o)
{
	return p->sockets && !o->no_sockets;
}

static int go_without(struct attach *a, const char *why)
{
	a->how = SOCKETS_NONE;
	a->opts.no_sockets = true;
	snprintf(a->no_sockets_why, sizeof(a->no_sockets_why), "%.*s",
		 (int)sizeof(a->no_sockets_why) - 1, why);
	return 0;
}

/* The programs for sockets are the larger part: a kernel that refuses them may take the others. */
static bool may_go_without(const struct attach *a, int rc)
{
	return rc != -EPERM && rc != -EACCES && wants_sockets(a->profile, &a->opts) &&
	       wants_uprobes(a->profile, &a->opts);
}

static int load_all(struct attach *a, struct sp_err *err)
{
	int rc = bpfload_open(a->profile, &a->opts, &a->features, &a->bpf, err);

	rc = rc ? rc : socks_open(a, err);
	if (rc)
		bpfload_close(&a->bpf);
	return rc;
}

static void settle_returns(struct attach *a)
{
	struct attach_features *f = &a->features;

	if (!wants_uprobes(a->profile, &a->opts) || !attach_has_returns(a->profile))
		return;
	a->returns = a->opts.returns;
	if (!a->returns)
		a->returns =
			returns_try(a->bpf.progs.backend, f->why_returns, sizeof(f->why_returns));
}

static int load(struct attach *a, struct sp_err *err)
{
	struct sp_err first = {0};
	int rc = features_basic(&a->features);

	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc, "%s", a->features.why_bpf);
	rc = force_sockets(a, &first);
	if (rc && wants_uprobes(a->profile, &a->opts))
		rc = go_without(a, first.text);
	rc = rc ? rc : load_all(a, &first);
	if (rc && may_go_without(a, rc)) {
		go_without(a, "this kernel refuses the programs for them: run with -v for its "
			      "reason");
		rc = load_all(a, &first);
	}
	if (rc && err)
		*err = first;
	if (!rc)
		settle_returns(a);
	return rc;
}

int attach_open(const struct profile *p, const struct attach_opts *o, attach_notice_fn fn,
		void *ctx, struct attach **out, struct sp_err *err)
{
	struct attach *a = calloc(1, sizeof(*a));
	int rc = -ENOMEM;

	*out = NULL;
	if (a)
		a->over = inside_over_new();
	if (a && a->over)
		rc = pointers_open(p, &a->pointers);
	if (rc) {
		attach_close(a);
		if (rc == -ENOMEM)
			return sp_err_set(err, SP_EXIT_FAIL, rc, "out of memory");
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "more probes than %d: switch some off (--disable)",
				  SP_MAX_PROBES);
	}
	a->profile = &a->pointers.profile;
	a->opts = *o;
	a->fn = fn;
	a->ctx = ctx;
	/* the server's own view needs none, see profile/python.h */
	a->opts.no_probes |= !wants_uprobes(p, o) && !wants_sockets(p, o);
	rc = a->opts.no_probes ? 0 : load(a, err);
	if (rc) {
		attach_close(a);
		return rc;
	}
	*out = a;
	return 0;
}

static void watched_free(struct watched *w)
{
	target_close(&w->id);
	free(w);
}

void attach_close(struct attach *a)
{
	struct links all = {0};

	if (!a)
		return;
	for (int i = 0; i < a->nwatched; i++) {
		struct watched *w = a->watched[i];

		for (int k = 0; k < w->nlib; k++) {
			for (int l = 0; l < w->lib[k].links.n; l++)
				links_add(&all, w->lib[k].links.fd[l]);
			free(w->lib[k].links.fd);
			free(w->lib[k].err);
		}
		free(w->lib);
		free(w->pointer);
	}
	socks_close(a, &all);
	for (int i = 0; i < a->nwatched; i++)
		watched_free(a->watched[i]);
	links_close_all(&all);
	for (int i = 0; i < a->nplan; i++)
		plan_free(a->plan[i]);
	bpfload_close(&a->bpf);
	pointers_close(&a->pointers);
	free(a->over);
	free(a->watched);
	free(a->plan);
	free(a);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct watched *watched_find(const struct attach *a, uint32_t pid)
{
	for (int i = 0; i < a->nwatched; i++)
		if ((uint32_t)a->watched[i]->id.pid == pid)
			return a->watched[i];
	return NULL;
}

static int add_watched(struct attach *a, pid_t pid, struct watched **out, struct sp_err *err)
{
	/* an array of pointers */
	struct watched **grown = realloc(a->watched, sizeof(void *) * (size_t)(a->nwatched + 1));
	struct watched *w = calloc(1, sizeof(*w));
	int rc;

	*out = NULL;
	if (grown)
		a->watched = grown;
	if (!grown || !w) {
		free(w);
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "out of memory");
	}
	rc = target_open(pid, &w->id, err);
	if (!rc) {
		rc = bpfload_target(&a->bpf, (uint32_t)pid, true);
		if (rc) {
			target_close(&w->id);
			sp_err_set(err, SP_EXIT_NOATTACH, rc, "process %d: cannot be watched: %s",
				   pid, strerror(-rc));
		}
	}
	if (rc) {
		free(w);
		return rc;
	}
	w->born_ns = mono_ns();
	socks_adopt(a, w);
	a->watched[a->nwatched++] = w;
	*out = w;
	return 0;
}

/* Its links, what the kernel keeps for it, and itself. */
static void remove_watched(struct attach *a, struct watched *w)
{
	bpfload_target(&a->bpf, (uint32_t)w->id.pid, false);
	bpfload_forget_process(&a->bpf, (uint32_t)w->id.pid, true);
	watched_drop_libs(w);
	socks_removed(a, w);
	for (int i = 0; i < a->nwatched; i++)
		if (a->watched[i] == w) {
			a->watched[i] = a->watched[--a->nwatched];
			break;
		}
	watched_free(w);
}

static void exited(struct attach *a, struct watched *w, uint64_t ns)
{
	struct attach_notice n = {.what = NOTICE_EXITED, .ns = ns, .pid = (uint32_t)w->id.pid};

	remove_watched(a, w);
	attach_notify(a, &n);
}

static int add_fail(int rc, pid_t pid, struct sp_err *err)
{
	if (rc == -EPERM)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: not permitted: run as root, or give CAP_SYS_PTRACE "
				  "(its memory maps), CAP_BPF and CAP_PERFMON (its probes)",
				  pid);
	if (rc == -ESRCH)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: has ended: attach while it runs", pid);
	return sp_err_set(err, SP_EXIT_NOATTACH, rc, "process %d: cannot be attached: %s", pid,
			  strerror(-rc));
}

/* For one target. */
static int in_place(const struct attach *a, const struct watched *w)
{
	return watched_probes(w) + socks_fronts(a, (uint32_t)w->id.pid);
}

int attach_add(struct attach *a, pid_t pid, struct sp_err *err)
{
	struct watched *w = watched_find(a, (uint32_t)pid);
	int rc;

	if (w)
		return in_place(a, w);
	rc = add_watched(a, pid, &w, err);
	if (!w)
		return rc;
	w->named = true;
	rc = watched_scan(a, w);
	if (rc == 0 && watched_link_error(w) == -EPERM)
		rc = -EPERM;
	if (rc < 0) {
		remove_watched(a, w);
		return add_fail(rc, pid, err);
	}
	notify(a, NOTICE_ATTACHED, mono_ns(), w, 0);
	socks_added(a, w);
	return in_place(a, w);
}

/* Scan a process that is watched already; what comes in place is told library by library. */
static void rescan(struct attach *a, struct watched *w)
{
	bool no_return = w->no_return;
	int had = w->nlib;

	if (watched_scan(a, w) < 0)
		return; /* gone: the next tick sees it */
	if (w->no_return != no_return)
		had = 0; /* all have been placed anew */
	for (int i = had; i < w->nlib; i++) {
		struct attach_notice n = {
			.what = NOTICE_LIB,
			.ns = mono_ns(),
			.pid = (uint32_t)w->id.pid,
			.n = w->lib[i].good,
			.gap = true, /* it was mapped before this scan, and may have run */
		};

		snprintf(n.text, sizeof(n.text), "%s", w->lib[i].plan->path);
		if (n.n)
			attach_notify(a, &n);
	}
}

static bool scan_is_due(const struct watched *w, uint64_t now)
{
	if (w->borrowed || now < w->due_ns)
		return false;
	return now >= w->forced_ns || target_pages(w->id.pid) != w->pages;
}

static void forget_threads(struct attach *a, uint64_t now)
{
	if (a->ngone == 0 || (now < a->forget_ns && a->ngone < GONE_MAX))
		return;
	bpfload_forget_threads(&a->bpf, a->gone, a->ngone);
	a->ngone = 0;
	a->forget_ns = now + NS_PER_SEC;
}

static bool was_stray(const struct attach *a, uint32_t pid)
{
	for (int i = 0; i < a->nstrays; i++)
		if (a->stray[i] == pid)
			return true;
	return false;
}

static void adopt(struct attach *a, uint32_t pid, uint64_t now)
{
	struct watched *w;

	add_watched(a, (pid_t)pid, &w, NULL);
	if (!w) {
		bpfload_target(&a->bpf, pid, false);
		return;
	}
	notify(a, NOTICE_FORK, now, w, 0);
	rescan(a, w);
}

/* The kernel side has noted every forked child, also where no record of it could be had. */
static int known_children(const struct attach *a, uint32_t *pid, int max)
{
	int n = 0;

	if (!a->opts.no_probes)
		return bpfload_targets(&a->bpf, pid, max);
	for (int i = 0; a->opts.follow_children && i < a->nwatched && n < max; i++)
		n += target_children(a->watched[i]->id.pid, pid + n, max - n);
	return n;
}

static void adopt_strays(struct attach *a, uint64_t now)
{
	uint32_t pid[TARGETS_MAX], stray[STRAYS_MAX];
	int n, nstrays = 0;

	if (now < a->adopt_ns)
		return;
	a->adopt_ns = now + ADOPT_GAP;
	n = known_children(a, pid, TARGETS_MAX);
	for (int i = 0; i < n; i++) {
		if (watched_find(a, pid[i]))
			continue;
		if (was_stray(a, pid[i]))
			adopt(a, pid[i], now);
		else if (nstrays < STRAYS_MAX)
			stray[nstrays++] = pid[i];
	}
	memcpy(a->stray, stray, sizeof(*stray) * (size_t)nstrays);
	a->nstrays = nstrays;
}

void attach_tick(struct attach *a)
{
	uint64_t now = mono_ns();

	for (int i = a->nwatched - 1; i >= 0; i--) {
		struct watched *w = a->watched[i];

		if (!target_alive(&w->id))
			exited(a, w, now);
		else if (scan_is_due(w, now))
			rescan(a, w);
	}
	forget_threads(a, now);
	adopt_strays(a, now);
	socks_tick(a, now);
	plans_sweep(a, now);
}

/* ---- records --------------------------------------------------------------------------------- */

static void on_fork(struct attach *a, const struct sp_rec_hit *rec)
{
	uint32_t child = (uint32_t)rec->val[0];
	const struct watched *parent = watched_find(a, rec->h.pid);
	struct watched *w;

	if (!child || watched_find(a, child))
		return;
	add_watched(a, (pid_t)child, &w, NULL);
	if (!w) {
		bpfload_target(&a->bpf, child, false); /* it has ended already */
		return;
	}
	w->borrowed = rec->val[1];
	if (!w->borrowed && parent)
		watched_inherit(a, w, parent);
	notify(a, NOTICE_FORK, rec->h.ns, w, rec->h.pid);
}

static void on_exec(struct attach *a, const struct sp_rec_hit *rec)
{
	struct watched *w = watched_find(a, rec->h.pid);

	if (!w)
		return;
	watched_drop_libs(w);
	sock_watch_exec(&w->sock);
	bpfload_forget_process(&a->bpf, rec->h.pid, false);
	w->borrowed = false;
	w->born_ns = rec->h.ns;
	w->due_ns = 0;
	w->pages = 0;
	w->trampoline = 0;
	w->no_return = false;
	notify(a, NOTICE_EXEC, rec->h.ns, w, 0);
	rescan(a, w);
}

static void on_exit_thread(struct attach *a, const struct sp_rec_hit *rec)
{
	struct watched *w = watched_find(a, rec->h.pid);

	if (a->ngone == GONE_MAX)
		forget_threads(a, mono_ns());
	a->gone[a->ngone++] = rec->h.tid;
	if (w && rec->val[0])
		exited(a, w, rec->h.ns);
}

void attach_record(struct attach *a, const struct sp_rec_hit *rec)
{
	if (rec->h.type == SP_REC_HIT)
		pointer_record(a, rec);
	else if (rec->h.type == SP_REC_FORK)
		on_fork(a, rec);
	else if (rec->h.type == SP_REC_EXEC)
		on_exec(a, rec);
	else if (rec->h.type == SP_REC_EXIT)
		on_exit_thread(a, rec);
}
