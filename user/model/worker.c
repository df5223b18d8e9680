// SPDX-License-Identifier: Apache-2.0
/*
 * Processes and their threads. A thread that posts works on one batch at a time: while its latest
 * operation is in progress it can serve nobody else, whoever's operation that is.
 */
#include <errno.h>
#include <string.h>

#include "model/lives.h"

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

struct worker *worker_get(struct model *m, struct proc *p, uint32_t tid)
{
	struct worker_key key = {.pid = p->pid, .tid = tid};
	struct worker *w;

	HASH_FIND(hh, m->workers, &key, sizeof(key), w);
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
		else if (o->life != l)
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

	if (!o || op_life(o) == l || w->act_ns + span > now)
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

void thread_exit(struct model *m, const struct sp_event *ev)
{
	struct worker_key key = {.pid = ev->pid, .tid = ev->tid};
	struct worker *w;

	HASH_FIND(hh, m->workers, &key, sizeof(key), w);
	if (!w)
		return;
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
	HASH_DELETE(hh, m->procs, p);
	mem_free(m, p, sizeof(*p));
}
