// SPDX-License-Identifier: Apache-2.0
/* Operations posted without a room: kept by their thread until the view shows whose they are. */
#include <errno.h>
#include <stdio.h>

#include "model/loose.h"
#include "model/seen.h"

/* Rooms asked whether an operation may be theirs. */
#define MAX_LOOK 1000

static void unlink_op(struct op *o)
{
	struct loose *x = o->worker->proc->loose;
	struct op **at = &x->first;

	while (*at != o)
		at = &(*at)->lnext;
	*at = o->lnext;
	x->n--;
}

void loose_remove(struct model *m, struct op *o)
{
	unlink_op(o);
	if (o->room)
		room_unref(m, o->room);
	o->room = NULL;
}

static void drop_oldest(struct model *m, struct loose *x)
{
	struct op *o = x->first;

	while (o->lnext)
		o = o->lnext;
	op_free(m, o);
}

void loose_drop(struct model *m, struct proc *p)
{
	while (p->loose && p->loose->first)
		op_free(m, p->loose->first);
	mem_free(m, p->loose, sizeof(*p->loose));
	p->loose = NULL;
}

int loose_post(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct worker *w = worker_get(m, p, ev->tid);
	struct op *o;

	if (!p->loose)
		p->loose = mem_new(m, sizeof(*p->loose));
	if (!w || !p->loose)
		return -ENOMEM;
	p->loose->seen_ns = m->now;
	if (m->nops >= MAX_OPS || (ev->status == OPS_ERROR && (ev->flags & EV_CREATED)))
		return 0;
	if (p->loose->n >= MAX_LOOSE)
		drop_oldest(m, p->loose);
	o = op_new(m, w, ev);
	if (!o)
		return -ENOMEM;
	o->loose = true;
	o->lnext = p->loose->first;
	p->loose->first = o;
	p->loose->n++;
	if (op_bind(m, o, ev->op)) {
		op_free(m, o);
		return -ENOMEM;
	}
	w->act_ns = m->now;
	if (!(ev->flags & EV_CREATED))
		op_post(m, o, ev);
	return 0;
}

void loose_failed(struct model *m, const struct op *o, const struct sp_event *ev)
{
	struct loose *x = o->worker->proc->loose;

	x->error_ns = m->now;
	x->error_code = ev->code;
	x->error_tid = o->worker->key.tid;
	snprintf(x->error_note, sizeof(x->error_note), "%.*s", (int)sizeof(x->error_note) - 1,
		 ev->note);
}

/* Its post was progress of the room, at its own time. */
static void progress(struct model *m, struct life *l, const struct op *o)
{
	struct did did = did_op(o, ROLE_POST, OPS_UNKNOWN);
	uint64_t before = l->progress_ns;

	life_progress(m, l, &did);
	l->progress_ns = before > o->since_ns ? before : o->since_ns;
	timer_arm(m, l);
}

void loose_tie(struct model *m, struct op *o, struct life *l)
{
	if (l->nops >= MAX_OPS_OF_LIFE) {
		l->uncertain = true;
		o->lone = true;
		return;
	}
	if (l->stuck)
		stall_prepare(m, l);
	loose_remove(m, o);
	o->loose = false;
	op_join(m, o, l);
	worker_serves(m, o->worker, l);
	if (o->agent && o->state == OP_BUSY) {
		o->seq = o->agent->posted++;
		o->over_at_post = (uint32_t)o->agent->over;
	}
	progress(m, l, o);
}

/* ---- what the view shows ------------------------------------------------------------------- */

/* Both looks of the round began after it was posted, and it is still in progress. */
static bool looked_at(const struct op *o, const struct sp_event *ev)
{
	return o->state == OP_BUSY && !o->lone && ev->code > 0 && (uint64_t)ev->code >= o->since_ns;
}

bool loose_asks(const struct proc *p, const struct sp_event *ev)
{
	for (const struct op *o = p->loose ? p->loose->first : NULL; o; o = o->lnext)
		if (looked_at(o, ev))
			return true;
	return false;
}

static bool newest_of_thread(const struct op *o)
{
	return o->holds && o->worker->busy->wprev == o;
}

/*
 * While an operation is in progress its thread stays with the room. The first round after the post
 * names it, the next one must agree: a thread that has left the operation behind (its end was not
 * seen) is on the move by then. One that could not be told so is never told later.
 */
static struct life *shown(struct model *m, struct op *o)
{
	struct worker *w = o->worker;
	struct life *l = worker_life(w);
	bool ok = l && newest_of_thread(o) && !w->exited_ns && m->lossy_ns <= o->since_ns;

	if (!ok || (o->room && o->room != w->at)) {
		o->lone = true;
		return NULL;
	}
	if (o->room)
		return l;
	o->room = w->at;
	room_ref(m, o->room);
	return NULL;
}

void loose_look(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct op *next;

	for (struct op *o = p->loose ? p->loose->first : NULL; o; o = next) {
		struct life *l = looked_at(o, ev) ? shown(m, o) : NULL;

		next = o->lnext;
		if (!l)
			continue;
		loose_tie(m, o, l);
		if (m->recovered == l)
			tell_recovered(m, l, OUTCOME_MOVING);
		if (l->stuck)
			stall_again(m, l, m->now);
		else
			tell_changed(m, l);
	}
}

/* ---- whose may it be? ---------------------------------------------------------------------- */

/* By the view its thread was elsewhere at some time since. */
static bool elsewhere(const struct life *l, const struct op *o)
{
	const struct worker *w = o->worker;
	const struct proc *p = l->proc;

	if (o->room)
		return o->room != l->room;
	if (l->seen && l->seen->tid && l->seen->tid != w->key.tid)
		return true;
	return w->at && w->at != l->room && (w->at_ns > o->since_ns || p->looked_ns >= o->since_ns);
}

static bool may_own(const struct life *l, const struct op *o)
{
	/* nothing is posted before the quorum; what the view tells comes a moment late */
	uint64_t from =
		l->stage == STAGE_READY && l->did.role != ROLE_HELD ? l->progress_ns : l->opened_ns;

	if (l->stage != STAGE_READY && l->stage != STAGE_INFLIGHT)
		return false;
	if (o->since_ns < from || l->fake)
		return false;
	if (l->worker && l->worker != o->worker)
		return false;
	return !elsewhere(l, o);
}

const struct op *loose_of(const struct life *l, uint64_t now, uint64_t least)
{
	const struct loose *x = l->proc->loose;
	const struct op *best = NULL;

	for (const struct op *o = x ? x->first : NULL; o; o = o->lnext)
		if (o->state == OP_BUSY && o->since_ns + least <= now && may_own(l, o))
			best = o; /* the oldest is the last */
	return best;
}

bool loose_alone(const struct life *l, const struct op *o)
{
	int look = MAX_LOOK;

	for (const struct life *other = l->proc->lives; other; other = other->next)
		if (!look-- || (other != l && may_own(other, o)))
			return false;
	return true;
}
