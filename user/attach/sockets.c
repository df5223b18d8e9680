// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/features.h"
#include "attach/sock_front.h"
#include "attach/sockets.h"
#include "util/clock.h"

#define PROC      "/proc"
#define LOOK_GAP  NS_PER_SEC
#define URING_GAP (10 * NS_PER_SEC)
#define LONELY    (10 * NS_PER_SEC) /* a server listens only after its schedulers have started */
#define DUTY      20                /* at most a twentieth of the time in looks */

const char *attach_sockets_name(enum attach_sockets s)
{
	static const char *const names[] = {"none", "libc", "syscall", "tcp"};

	return s <= SOCKETS_TCP ? names[s] : "?";
}

int socks_open(struct attach *a, struct sp_err *err)
{
	int rc;

	if (!a->profile->sockets || a->opts.no_sockets || a->opts.no_probes)
		return 0;
	a->how = bpfload_sock_how(&a->bpf);
	rc = a->how ? bpfload_sock_attach(&a->bpf, a->how) : 0;
	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "sockets: their calls cannot be seen by way of %s: %s: see "
				  "`silentpin doctor`",
				  attach_sockets_name(a->how), strerror(-rc));
	return 0;
}

static void close_links(struct sock_watch *sw, struct links *all)
{
	for (int i = 0; i < sw->nlib; i++) {
		for (int l = 0; l < sw->lib[i].links.n; l++)
			links_add(all, sw->lib[i].links.fd[l]);
		free(sw->lib[i].links.fd);
		free(sw->lib[i].err);
	}
	free(sw->lib);
}

void socks_close(struct attach *a, struct links *all)
{
	for (int i = 0; i < a->nwatched; i++)
		close_links(&a->watched[i]->sock, all);
	for (int i = 0; i < a->nfronts; i++) {
		close_links(&a->front[i]->sock, all);
		target_close(&a->front[i]->id);
		free(a->front[i]->owner);
		free(a->front[i]);
	}
	free(a->front);
	for (int i = 0; i < a->nlibc; i++)
		plan_free(a->libc[i]);
	free(a->libc);
}

/* ---- fronts ---------------------------------------------------------------------------------- */

static struct front *find_front(const struct attach *a, uint32_t pid)
{
	for (int i = 0; i < a->nfronts; i++)
		if ((uint32_t)a->front[i]->id.pid == pid)
			return a->front[i];
	return NULL;
}

const struct sock_watch *socks_of(const struct attach *a, const struct front *f)
{
	const struct watched *w = watched_find(a, (uint32_t)f->id.pid);

	return w ? &w->sock : &f->sock;
}

static struct front_owner *owner_of(const struct front *f, uint32_t pid)
{
	for (int i = 0; i < f->nowners; i++)
		if (f->owner[i].pid == pid)
			return &f->owner[i];
	return NULL;
}

static uint32_t front_rules(const struct front *f)
{
	uint32_t rules = 0;

	for (int i = 0; f && i < f->nowners; i++)
		rules |= f->owner[i].rules;
	return rules;
}

/* What silentpin is about to start is still its own copy. */
static bool before_exec(pid_t pid)
{
	return front_parent(PROC, pid) == getpid() && front_same_exe(PROC, pid, getpid());
}

uint32_t socks_rules(const struct attach *a, pid_t pid)
{
	const struct profile_sockets *s = a->profile->sockets;
	uint32_t rules = a->how ? front_rules(find_front(a, (uint32_t)pid)) : 0;

	if (!a->how || before_exec(pid))
		return 0;
	for (int i = 0; i < s->nentries; i++)
		if (front_self(PROC, &s->entry[i].process, pid))
			rules |= 1u << i;
	return rules;
}

static void drop_front(struct attach *a, struct front *f)
{
	sock_watch_gone(a, f->id.pid, &f->sock);
	for (int i = 0; i < a->nfronts; i++)
		if (a->front[i] == f) {
			a->front[i] = a->front[--a->nfronts];
			break;
		}
	target_close(&f->id);
	free(f->owner);
	free(f);
}

static struct front *new_front(struct attach *a, pid_t pid)
{
	struct front **grown = realloc(a->front, sizeof(void *) * (size_t)(a->nfronts + 1));
	struct front *f = calloc(1, sizeof(*f));

	if (grown)
		a->front = grown;
	if (!grown || !f || target_open(pid, &f->id, NULL)) {
		free(f);
		return NULL;
	}
	a->front[a->nfronts++] = f;
	return f;
}

/* f stands in front of target pid for an entry. */
static int add_owner(struct front *f, uint32_t pid, uint32_t rule)
{
	struct front_owner *o = owner_of(f, pid), *grown;

	if (!o) {
		grown = realloc(f->owner, sizeof(*grown) * (size_t)(f->nowners + 1));
		if (!grown)
			return -ENOMEM;
		f->owner = grown;
		o = &f->owner[f->nowners++];
		*o = (struct front_owner){.pid = pid};
	}
	o->rules |= rule;
	return 0;
}

static void watch_front(struct attach *a, pid_t pid, uint32_t target, uint32_t rule)
{
	struct watched *w = watched_find(a, (uint32_t)pid);
	struct front *f = find_front(a, (uint32_t)pid);

	if (!f)
		f = new_front(a, pid);
	if (!f)
		return;
	if (add_owner(f, target, rule)) {
		if (!f->nowners)
			drop_front(a, f);
		return;
	}
	if (w) {
		sock_watch_set(a, pid, &w->sock, socks_rules(a, pid));
		return;
	}
	sock_watch_set(a, pid, &f->sock, front_rules(f));
	if (!f->sock.in_place)
		sock_watch_scan(a, pid, &f->sock, NULL);
}

struct finder {
	const struct attach *a;
	bool targets_too;
};

static bool is_like_target(const struct attach *a, pid_t pid)
{
	const struct sock_process match = {.is = SOCK_IS_SELF,
					   .cmdline = a->profile->match_cmdline};

	return match.cmdline && front_self(PROC, &match, pid);
}

/* silentpin itself may be the parent of what it has started. A server is no other's front: it is
 * another rank, or has forked this one. */
static bool no_front(void *ctx, pid_t pid)
{
	const struct finder *f = ctx;
	const struct watched *w = watched_find(f->a, (uint32_t)pid);

	return pid == getpid() || is_like_target(f->a, pid) ||
	       (w && (!f->targets_too || watched_uprobes(w)));
}

bool socks_is_server(const struct attach *a, const struct watched *w)
{
	if (w->named || watched_uprobes(w))
		return true;
	return a->opts.no_uprobes && is_like_target(a, w->id.pid);
}

/* The fronts of a target. Those that are targets too (the root of a command that silentpin has
 * started) only where there is no other, and no siblings among them: those are other schedulers. */
static void look_for_fronts(struct attach *a, const struct watched *w)
{
	const struct profile_sockets *s = a->profile->sockets;

	for (int i = 0; i < s->nentries && socks_is_server(a, w); i++) {
		struct sock_process want = s->entry[i].process;
		struct finder f = {.a = a};
		pid_t pid[FRONTS_MAX];
		int n = front_find(PROC, &want, w->id.pid, no_front, &f, pid);

		if (!n) {
			f.targets_too = true;
			want.is &= ~(unsigned)SOCK_IS_SIBLING;
			n = front_find(PROC, &want, w->id.pid, no_front, &f, pid);
		}
		for (int k = 0; k < n; k++)
			watch_front(a, pid[k], (uint32_t)w->id.pid, 1u << i);
	}
}

static void front_exited(struct attach *a, struct front *f, uint64_t ns)
{
	struct attach_notice n = {
		.what = NOTICE_FRONT_EXITED, .ns = ns, .pid = (uint32_t)f->id.pid};

	for (int i = 0; i < f->nowners; i++) {
		n.ppid = f->owner[i].pid;
		attach_notify(a, &n);
	}
	drop_front(a, f);
}

/* ---- what is said ---------------------------------------------------------------------------- */

static void say_seen(const struct attach *a, const struct sock_watch *sw, uint32_t pid,
		     uint32_t target)
{
	struct attach_notice n = {
		.what = NOTICE_SOCKETS, .ns = mono_ns(), .pid = pid, .ppid = target};

	sock_watch_how(a, sw, n.text, sizeof(n.text));
	attach_notify(a, &n);
}

static void say_fronts(const struct attach *a)
{
	for (int i = 0; i < a->nfronts; i++) {
		const struct front *f = a->front[i];
		const struct sock_watch *sw = socks_of(a, f);

		for (int k = 0; k < f->nowners && sw->in_place; k++) {
			if (!f->owner[k].said)
				say_seen(a, sw, (uint32_t)f->id.pid, f->owner[k].pid);
			f->owner[k].said = true;
		}
	}
}

static void say_target(const struct attach *a, struct watched *w)
{
	uint32_t pid = (uint32_t)w->id.pid;

	if (w->sock.in_place && !w->sock.said && socks_is_server(a, w) &&
	    w->sock.rules & ~front_rules(find_front(a, pid))) {
		w->sock.said = true;
		say_seen(a, &w->sock, pid, pid);
	}
}

/* A scheduler without a front: its requests will not be seen coming. */
static void say_lonely(const struct attach *a, struct watched *w, uint64_t now)
{
	const struct profile_sockets *s = a->profile->sockets;
	uint32_t pid = (uint32_t)w->id.pid, has = w->sock.rules | w->lonely;
	struct attach_notice n = {.what = NOTICE_SOCKETS_NO, .ns = now, .pid = pid};

	if (now - w->born_ns < LONELY || find_front(a, pid) || !socks_is_server(a, w))
		return;
	for (int i = 0; i < a->nfronts; i++) {
		const struct front_owner *o = owner_of(a->front[i], pid);

		has |= o ? o->rules : 0;
	}
	for (int i = 0; i < s->nentries; i++) {
		const struct sock_entry *e = &s->entry[i];

		if (has & 1u << i || !(e->process.is & ~(unsigned)SOCK_IS_SELF))
			continue;
		w->lonely |= 1u << i;
		snprintf(n.text, sizeof(n.text),
			 "%.40s: no process related to it fits the profile's `process:`%s",
			 a->profile->probes[e->probe].name,
			 e->process.listens ? " and listens" : "");
		attach_notify(a, &n);
	}
}

static void look_for_uring(const struct attach *a, struct sock_watch *sw, uint32_t pid)
{
	struct attach_notice n = {.what = NOTICE_IO_URING, .ns = mono_ns(), .pid = pid};

	if (sw->uring || !sw->rules || !front_has_uring(PROC, (pid_t)pid))
		return;
	sw->uring = true;
	attach_notify(a, &n);
}

/* ---- the course of things -------------------------------------------------------------------- */

void socks_adopt(struct attach *a, struct watched *w)
{
	struct front *f = find_front(a, (uint32_t)w->id.pid);

	if (!f)
		return;
	w->sock = f->sock; /* its links go on */
	w->sock.said = false;
	memset(&f->sock, 0, sizeof(f->sock));
	drop_front(a, f);
}

void socks_added(struct attach *a, struct watched *w)
{
	struct attach_notice no = {
		.what = NOTICE_SOCKETS_NO, .ns = mono_ns(), .pid = (uint32_t)w->id.pid};

	if (a->no_sockets_why[0]) {
		snprintf(no.text, sizeof(no.text), "%s", a->no_sockets_why);
		attach_notify(a, &no);
	}
	if (!a->how)
		return;
	say_target(a, w);
	look_for_uring(a, &w->sock, (uint32_t)w->id.pid);
	look_for_fronts(a, w);
	say_fronts(a);
	for (int i = 0; i < a->nfronts; i++)
		look_for_uring(a, &a->front[i]->sock, (uint32_t)a->front[i]->id.pid);
}

void socks_removed(struct attach *a, struct watched *w)
{
	uint32_t pid = (uint32_t)w->id.pid;
	struct front *own = find_front(a, pid);

	sock_watch_gone(a, w->id.pid, &w->sock);
	if (own)
		front_exited(a, own, mono_ns());
	for (int i = a->nfronts - 1; i >= 0; i--) {
		struct front *f = a->front[i];
		struct front_owner *o = owner_of(f, pid);

		if (!o)
			continue;
		*o = f->owner[--f->nowners];
		if (!f->nowners)
			drop_front(a, f);
		else if (!watched_find(a, (uint32_t)f->id.pid))
			sock_watch_set(a, f->id.pid, &f->sock, front_rules(f));
	}
}

static void tick_target(struct attach *a, struct watched *w, bool uring, uint64_t now)
{
	if (w->borrowed)
		return;
	sock_watch_set(a, w->id.pid, &w->sock, socks_rules(a, w->id.pid));
	if (!w->sock.in_place)
		sock_watch_scan(a, w->id.pid, &w->sock, NULL);
	look_for_fronts(a, w);
	say_target(a, w);
	say_lonely(a, w, now);
	if (uring)
		look_for_uring(a, &w->sock, (uint32_t)w->id.pid);
}

void socks_tick(struct attach *a, uint64_t now)
{
	uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), gap;
	bool uring = now >= a->uring_ns;

	if (!a->how || now < a->fronts_ns)
		return;
	for (int i = a->nfronts - 1; i >= 0; i--)
		if (!target_alive(&a->front[i]->id))
			front_exited(a, a->front[i], now);
	for (int i = 0; i < a->nwatched; i++)
		tick_target(a, a->watched[i], uring, now);
	for (int i = 0; i < a->nfronts; i++) {
		struct front *f = a->front[i];

		if (!watched_find(a, (uint32_t)f->id.pid) && !f->sock.in_place)
			sock_watch_scan(a, f->id.pid, &f->sock, NULL);
		if (uring)
			look_for_uring(a, &f->sock, (uint32_t)f->id.pid);
	}
	say_fronts(a);
	if (uring)
		a->uring_ns = now + URING_GAP;
	gap = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) * DUTY;
	a->fronts_ns = mono_ns() + (gap > LOOK_GAP ? gap : LOOK_GAP);
}

/* ---- what others ask ------------------------------------------------------------------------- */

int attach_owners(const struct attach *a, uint32_t pid, uint32_t *owners, int max)
{
	const struct watched *w = watched_find(a, pid);
	const struct front *f = find_front(a, pid);
	int n = 0;

	if (w && n < max && (!f || a->opts.no_uprobes || watched_uprobes(w)))
		owners[n++] = pid;
	for (int i = 0; f && i < f->nowners && n < max; i++)
		owners[n++] = f->owner[i].pid;
	return n;
}

/* Entry i in a front of pid. */
static bool front_sees(const struct attach *a, uint32_t pid, uint32_t rules)
{
	for (int i = 0; i < a->nfronts; i++) {
		const struct front_owner *o = owner_of(a->front[i], pid);

		if (o && o->rules & rules && socks_of(a, a->front[i])->in_place)
			return true;
	}
	return false;
}

bool attach_sees_sockets(const struct attach *a, uint32_t pid, bool front)
{
	const struct watched *w = watched_find(a, pid);

	if (front)
		return front_sees(a, pid, ~0u);
	return w && w->sock.in_place;
}

enum attach_sockets attach_sockets_used(const struct attach *a)
{
	return a->how;
}

int socks_fronts(const struct attach *a, uint32_t pid)
{
	int n = 0;

	for (int i = 0; i < a->nfronts; i++)
		n += a->front[i]->sock.in_place && (!pid || owner_of(a->front[i], pid));
	return n;
}

bool attach_has(const struct attach *a, uint32_t pid, int probe)
{
	const struct watched *w = watched_find(a, pid);
	int entry = a->profile->probes[probe].library < 0 ? a->profile->probes[probe].socket : -1;

	if (entry >= 0)
		return (w && w->sock.in_place && w->sock.rules & 1u << entry) ||
		       front_sees(a, pid, 1u << entry);
	for (int k = 0; w && k < w->nlib; k++)
		for (int n = 0; n < w->lib[k].plan->nprobe; n++)
			if (w->lib[k].plan->probe[n].index == probe &&
			    w->lib[k].plan->probe[n].ok && !w->lib[k].err[n])
				return true;
	return false;
}
