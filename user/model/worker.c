// SPDX-License-Identifier: Apache-2.0
/*
 * Processes and their threads. A thread that posts works on one batch at a time: while its latest
 * operation is in progress it can serve nobody else, whoever's operation that is.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/calls.h"
#include "model/loose.h"
#include "model/seen.h"

struct proc *proc_get(struct model *m, uint32_t pid)
{
	struct proc *p;

	HASH_FIND(hh, m->procs, &pid, sizeof(pid), p);
	if (p)
		return p;
	p = mem_new(m, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	HASH_ADD(hh, m->procs, pid, sizeof(p->pid), p);
	if (!p->hh.tbl) {
		mem_free(m, p, sizeof(*p));
		return NULL;
	}
	return p;
}

static void worker_free(struct model *m, struct worker *w)
{
	struct proc *p = w->proc;

	if (w->hashed)
		HASH_DELETE(hh, m->workers, w);
	if (w->prev)
		w->prev->next = w->next;
	else
		p->workers = w->next;
	if (w->next)
		w->next->prev = w->prev;
	if (w->posts && !w->exited_ns)
		p->nposters--;
	if (w->at)
		room_unref(m, w->at);
	flow_free(m, &w->flow);
	mem_free(m, w, sizeof(*w));
}

/* Too many threads: the one that has been silent longest, as far as a short look tells. */
static void worker_make_room(struct model *m)
{
	struct worker *w, *next, *oldest = NULL;
	int look = 64;

	for (w = m->workers; w && look--; w = next) {
		next = w->hh.next;
		if (!w->refs && (!oldest || w->act_ns < oldest->act_ns))
			oldest = w;
	}
	if (oldest)
		worker_free(m, oldest);
}

struct worker *worker_find(const struct model *m, uint32_t pid, uint32_t tid)
{
	struct worker_key key = {.pid = pid, .tid = tid};
	struct worker *w;

	HASH_FIND(hh, m->workers, &key, sizeof(key), w);
	return w;
}

struct worker *worker_get(struct model *m, struct proc *p, uint32_t tid)
{
	struct worker_key key = {.pid = p->pid, .tid = tid};
	struct worker *w = worker_find(m, p->pid, tid);

	if (w)
		return w;
	if (HASH_COUNT(m->workers) >= MAX_WORKERS)
		worker_make_room(m);
	w = mem_new(m, sizeof(*w));
	if (!w)
		return NULL;
	w->key = key;
	w->proc = p;
	HASH_ADD(hh, m->workers, key, sizeof(w->key), w);
	if (!w->hh.tbl) {
		mem_free(m, w, sizeof(*w));
		return NULL;
	}
	w->hashed = true;
	w->next = p->workers;
	if (w->next)
		w->next->prev = w;
	p->workers = w;
	return w;
}

void worker_ref(struct worker *w)
{
	w->refs++;
}

void worker_unref(struct model *m, struct worker *w)
{
	if (!--w->refs && w->exited_ns)
		worker_free(m, w);
}

/* The list keeps the order of posting, the newest last: busy->wprev is the newest. */
void worker_hold(struct model *m, struct worker *w, struct op *o)
{
	if (o->holds)
		return;
	o->holds = true;
	o->wnext = NULL;
	if (w->busy) {
		o->wprev = w->busy->wprev;
		o->wprev->wnext = o;
		w->busy->wprev = o;
	} else {
		o->wprev = o;
		w->busy = o;
	}
	w->nbusy++;
}

void worker_let_go(struct op *o)
{
	struct worker *w = o->worker;

	if (!o->holds)
		return;
	o->holds = false;
	w->nbusy--;
	if (w->busy == o) {
		w->busy = o->wnext;
		if (o->wnext)
			o->wnext->wprev = o->wprev;
		return;
	}
	o->wprev->wnext = o->wnext;
	if (o->wnext)
		o->wnext->wprev = o->wprev;
	else
		w->busy->wprev = o->wprev;
}

/* It works on one batch at a time: what it still held for others, it has given up (a transfer that
 * was aborted, say), and nobody waits behind that. */
static void move_on(struct model *m, struct worker *w, const struct life *l)
{
	struct op *next;

	for (struct op *o = w->busy; o; o = next) {
		next = o->wnext;
		if (o->orphan)
			op_free(m, o);
		else if (!o->loose && o->life != l)
			worker_let_go(o);
	}
}

/* w creates an operation for l: from now on it is l's thread. */
void worker_serves(struct model *m, struct worker *w, struct life *l)
{
	bool first = !l->worker;

	move_on(m, w, l);
	if (!w->posts) {
		w->posts = true;
		w->proc->nposters++;
	}
	if (l->worker == w)
		return;
	worker_ref(w);
	if (l->worker)
		worker_unref(m, l->worker);
	l->worker = w;
	if (first)
		learn_served(m, w, l);
}

const struct op *worker_blocked(const struct worker *w, const struct life *l, uint64_t now,
				uint64_t span)
{
	const struct op *o = w->busy ? w->busy->wprev : NULL;

	/* one of no known room may as well be l's own */
	if (!o || o->loose || op_life(o) == l || w->act_ns + span > now)
		return NULL;
	return o;
}

static bool announcers_left(const struct proc *p)
{
	for (const struct worker *w = p->workers; w; w = w->next)
		if (w->announces && !w->exited_ns)
			return true;
	return false;
}

static void bootstrap_dead(struct model *m, struct proc *p, uint32_t tid)
{
	p->boot_dead_ns = m->now;
	p->boot_tid = tid;
	for (struct life *l = p->lives; l; l = l->next)
		if (l->stage == STAGE_BOOTSTRAP && !l->stuck)
			timer_arm(m, l);
}

void worker_set_at(struct model *m, struct worker *w, struct room *at, uint32_t life)
{
	if (at)
		room_ref(m, at);
	if (w->at)
		room_unref(m, w->at);
	w->at = at;
	w->at_life = life;
	w->at_ns = m->now;
}

/* What it was at is not finished. */
static void cut_off(struct model *m, const struct worker *w)
{
	for (struct life *l = w->at ? w->at->first : NULL; l; l = l->rnext) {
		struct seen *s = l->seen;

		if (!s || !s->at || s->tid != w->key.tid)
			continue;
		s->cut_off = true;
		s->at = false;
		s->tid = 0;
		s->tid_ns = m->now;
	}
}

static void thread_exit(struct model *m, const struct sp_event *ev)
{
	struct worker *w = worker_find(m, ev->pid, ev->tid);

	if (!w)
		return;
	cut_off(m, w);
	/* the number may come again, for another thread */
	HASH_DELETE(hh, m->workers, w);
	w->hashed = false;
	w->exited_ns = m->now;
	if (w->posts)
		w->proc->nposters--;
	if (w->announces) {
		tell_target(m, ev, "thread-exited");
		if (!announcers_left(w->proc))
			bootstrap_dead(m, w->proc, ev->tid);
	}
	if (!w->refs)
		worker_free(m, w);
}

/* The life of the room that the thread is at: the one that the view has shown so, else the one that
 * is sent now. */
static struct life *life_at(const struct room *r, uint32_t tid)
{
	struct life *l;

	for (l = r->first; l; l = l->rnext)
		if (l->seen && l->seen->tid == tid)
			return l;
	for (l = r->first; l; l = l->rnext)
		if (l->stage == STAGE_INFLIGHT)
			return l;
	return r->first;
}

struct life *worker_life(const struct worker *w)
{
	return w->at ? life_at(w->at, w->key.tid) : NULL;
}

/* The thread may have been seen at a room before a life of it was. */
uint32_t worker_at_life(const struct worker *w)
{
	const struct life *l;

	if (!w->at || w->at_life)
		return w->at_life;
	l = life_at(w->at, w->key.tid);
	return l ? l->number : w->at->nlives;
}

static int thread_at(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct worker *w = worker_get(m, p, ev->tid);
	struct room *r = ev->room[0] ? room_get(m, ev->pid, ev->room) : NULL;
	struct life *l = r ? life_at(r, ev->tid) : NULL;

	if (!w || (ev->room[0] && !r))
		return -ENOMEM;
	if (l)
		route_give(m, ev, l);
	else
		tell_taken(m, ev, NULL);
	if (r)
		worker_set_at(m, w, r, l ? l->number : r->nlives);
	else
		worker_set_at(m, w, NULL, 0);
	route_settle(m);
	return 0;
}

/* A thread that the server cannot do without, as the view sees it. */
static void thread_missing(struct model *m, struct proc *p, const struct sp_event *ev)
{
	tell_taken(m, ev, NULL);
	p->boot_missing = true;
	p->boot_known |= ev->tid != 0;
	if (p->boot_dead_ns)
		return;
	tell_target(m, ev, "thread-missing");
	bootstrap_dead(m, p, ev->tid ? ev->tid : p->boot_tid);
}

static void thread_found(struct model *m, struct proc *p, const struct sp_event *ev)
{
	tell_taken(m, ev, NULL);
	p->boot_missing = false;
	p->boot_known = true;
	p->boot_dead_ns = 0;
	if (ev->tid)
		p->boot_tid = ev->tid;
}

/* Whether what no thread is seen at is what no thread is at. */
static void workers_known(struct model *m, struct proc *p, const struct sp_event *ev, bool sure)
{
	tell_taken(m, ev, NULL);
	p->rejudge |= p->unsure && sure;
	p->unsure = !sure;
	snprintf(p->unsure_why, sizeof(p->unsure_why), "%s", ev->note);
}

int thread_event(struct model *m, const struct sp_event *ev)
{
	bool at = !strcmp(ev->kind, "at"), missing = !strcmp(ev->kind, "missing");
	bool sure = !strcmp(ev->kind, "sure"), unsure = !strcmp(ev->kind, "unsure");
	struct proc *p;

	if (!at && !missing && !sure && !unsure && strcmp(ev->kind, "found") != 0) {
		tell_taken(m, ev, NULL);
		calls_thread_gone(m, ev);
		thread_exit(m, ev);
		return 0;
	}
	p = proc_get(m, ev->pid);
	if (!p)
		return -ENOMEM;
	if (at)
		return thread_at(m, p, ev);
	if (sure || unsure)
		workers_known(m, p, ev, sure);
	else if (missing)
		thread_missing(m, p, ev);
	else
		thread_found(m, p, ev);
	return 0;
}

static void orphans_free(struct model *m, struct worker *w)
{
	struct op *next;

	for (struct op *o = w->busy; o; o = next) {
		next = o->wnext;
		op_free(m, o);
	}
}

/* The process has ended, or runs another program now: nothing of it can go on. */
void proc_drop(struct model *m, struct proc *p)
{
	struct worker *w, *next;

	while (p->lives)
		life_end(m, p->lives, OUTCOME_FAILED);
	park_drop(m, p);
	loose_drop(m, p);
	calls_drop(m, p);
	for (w = p->workers; w; w = next) {
		/* its own reference keeps it until its operations are gone */
		worker_ref(w);
		orphans_free(m, w);
		next = w->next;
		w->exited_ns = w->exited_ns ? w->exited_ns : m->now;
		worker_unref(m, w);
	}
	agent_drop_pid(m, p->pid);
	learn_free(m, p);
	while (p->workers)
		worker_free(m, p->workers);
	flow_free(m, &p->flow);
	flow_free(m, &p->waitq);
	HASH_DELETE(hh, m->procs, p);
	mem_free(m, p, sizeof(*p));
}
