// SPDX-License-Identifier: Apache-2.0
/*
 * Which cause fits a life that the server's queues hold, from both sources: the native events, and
 * the server's own view. That it is held is known here, so what only a release could tell is told;
 * what rests on the view alone needs no history. The order is that of verdict.c.
 */
#include <string.h>

#include "model/asked.h"
#include "model/calls.h"
#include "model/facts.h"
#include "model/loose.h"

struct view {
	const struct model *m;
	const struct life *l;
	const struct seen *s;
	uint64_t now, span;
	uint64_t since; /* facts at or after this time are too young to be the cause */
	bool whole;     /* native events have shown all of it... */
	bool loose;     /* but operations that may be its own are of no known room */
	struct choice *c;
};

static bool set(struct view *v, enum sp_cause cause, enum sp_confidence conf, int pin)
{
	v->c->cause = cause;
	v->c->conf = conf;
	v->c->pin = pin;
	return true;
}

static enum sp_confidence certain_if(bool yes)
{
	return yes ? CONF_CERTAIN : CONF_LIKELY;
}

static bool worker_gone(struct view *v)
{
	const struct life *l = v->l;
	const struct worker *w = l->worker;

	if (life_complete(v->m, l))
		return false;
	if ((v->s->orphan || v->s->cut_off) && v->s->tid_ns < v->since)
		return set(v, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	/* another thread serves it now, or it had reported an error first */
	if (!w || v->s->tid || !w->exited_ns || w->exited_ns >= v->since ||
	    (l->error_ns && l->error_ns <= w->exited_ns))
		return false;
	return set(v, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
}

/* Without an entry the failure could not be recorded: then that is what holds the room. */
static bool failed_transfer(struct view *v)
{
	const struct life *l = v->l;
	const struct rare *r = l->rare;
	bool failed = l->error_ns && l->error_ns < v->since;

	if (v->s->code == HELD_NO_ENTRY)
		return false;
	if (r && r->create_failed_ns && r->create_failed_ns < v->since)
		failed = true;
	if (failed)
		return set(v, CAUSE_TRANSFER_ERROR, certain_if(v->s->code != HELD_UNKNOWN), 1);
	if (!r || !r->abandoned_ns || r->abandoned_ns >= v->since || fact_aborted(l, v->now))
		return false;
	return set(v, CAUSE_TRANSFER_ERROR, CONF_LIKELY, 1);
}

/* A pin when the thread itself has stood still for as long as a transfer may take. */
static int behind_pin(const struct view *v, uint64_t moved)
{
	uint64_t span = v->m->cfg.stage_ns[STAGE_INFLIGHT];

	return moved + (span ? span : v->span) <= v->now ? 1 : -1;
}

/* It waits for thread w, which does something else. */
static void find_culprit(struct view *v, const struct worker *w)
{
	const struct op *o = w->busy ? w->busy->wprev : NULL;

	if (w->at && w->at != v->l->room)
		v->c->worker = w;
	else if (o && !o->loose && op_life(o) != v->l)
		v->c->op = o;
}

static bool behind(struct view *v)
{
	const struct worker *w = v->s->at ? NULL : seen_worker(v->m, v->l);

	if (!w || worker_moved(w) + v->span > v->now)
		return false;
	find_culprit(v, w);
	if (!v->c->op && !v->c->worker)
		return false;
	return set(v, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, behind_pin(v, worker_moved(w)));
}

/* In the backlog of a thread that moves, or of which nothing is known, not even which it is. */
static bool queued(struct view *v)
{
	const struct worker *w = seen_worker(v->m, v->l);

	if ((!v->s->tid && !v->s->queued) || v->s->at)
		return false;
	if (w)
		find_culprit(v, w);
	return set(v, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
}

/* Has the thread that the view has at it been there since before the stall? Where the view came
 * late to that, the thread's own post says so: o is in progress, and it has posted nothing since.
 */
static bool at_work(const struct view *v, const struct op *o)
{
	const struct worker *w = o ? o->worker : NULL;

	if (!v->s->at || life_complete(v->m, v->l))
		return false;
	if (v->s->tid_ns < v->since)
		return true;
	return v->whole && w && w->key.tid == v->s->tid && o->since_ns < v->since && w->busy &&
	       w->busy->wprev == o;
}

static bool stalled(struct view *v)
{
	const struct op *o = fact_busy(v->l);
	bool at = at_work(v, o);

	if (!o && !at)
		return false;
	v->c->op = o;
	/* were it polled, a thread would be at it */
	if (!at && seen_idle(v->m, v->l))
		return set(v, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	return set(v, CAUSE_TRANSFER_STALLED,
		   certain_if(at || (v->whole && seen_moving(v->m, v->l))), 1);
}

static bool no_reply(struct view *v)
{
	const struct rare *r = v->l->rare;

	if (!r || !r->control_out_ns || r->control_out_ns >= v->since ||
	    r->control_in_ns >= r->control_out_ns ||
	    v->l->proc->control_heard_ns >= r->control_out_ns)
		return false;
	return set(v, CAUSE_CONTROL_LOST, certain_if(v->whole), 1);
}

static bool no_entry(struct view *v)
{
	return v->s->code == HELD_NO_ENTRY &&
	       set(v, CAUSE_STATUS_LOST, certain_if(!v->l->proc->misfit), 1);
}

static bool reused(struct view *v)
{
	const struct rare *r = v->l->rare;

	if (!r || !r->overlap_ns || r->overlap_ns >= v->since)
		return false;
	/* the other one was most likely gone by then */
	if (r->reuse_doubt && !r->both_seen)
		return false;
	/* it went on after the other one's end: that did not hurt it */
	if (r->reused_ns && v->l->progress_ns > r->reused_ns)
		return false;
	return set(v, CAUSE_ROOM_REUSED, certain_if(r->both_seen), 1);
}

/* What the server's main loop still has to do. It may just not have come to it. */
static bool set_for_loop(struct view *v, enum sp_cause cause, uint64_t since)
{
	if (loop_busy(v->m, v->l->proc, since))
		return set(v, cause, CONF_POSSIBLE, -1);
	return set(v, cause, CONF_CERTAIN, 1);
}

static bool finished(struct view *v)
{
	if (v->l->stage == STAGE_RELEASING || life_complete(v->m, v->l))
		return set_for_loop(v, CAUSE_DONE_NOT_RELEASED, v->l->progress_ns);
	return seen_done(v->m, v->l) && set_for_loop(v, CAUSE_DONE_NOT_RELEASED, v->s->code_ns);
}

static bool aborted(struct view *v)
{
	if (seen_failed(v->m, v->l))
		return set_for_loop(v, CAUSE_ABORT_NOT_REAPED, v->s->code_ns);
	return fact_aborted(v->l, v->now) &&
	       set_for_loop(v, CAUSE_ABORT_NOT_REAPED, v->l->abort_ns);
}

static bool native_incomplete(struct view *v, enum sp_confidence conf)
{
	const struct model *m = v->m;
	int need = fact_unmet(m, v->l);

	if (fact_created(v->l) || fact_parts(v->l) || need < 0 || m->cfg.profile->needs[need].last)
		return set(v, CAUSE_SEND_INCOMPLETE, conf, 1);
	return set(v, CAUSE_AUX_MISSING, conf, 1);
}

/* Is something sent beside the chunks? */
static bool other_need(const struct model *m)
{
	for (int i = 0; i < m->cfg.profile->nneeds; i++)
		if (!m->cfg.profile->needs[i].last)
			return true;
	return false;
}

/* By its status: under way. A server that notes nothing until the end leaves it at ready, though
 * something was posted. */
static bool sending(const struct view *v)
{
	return seen_moving(v->m, v->l) || (seen_ready(v->m, v->l) && v->l->ngroups);
}

static bool incomplete(struct view *v)
{
	const struct seen *s = v->s;
	bool counted = s->sent >= 0 && s->total > 0;
	enum sp_confidence native = v->loose ? CONF_POSSIBLE : CONF_LIKELY;

	if (v->m->pulls)
		return false;
	if (v->l->ngroups && v->whole && !v->loose)
		return native_incomplete(v, CONF_CERTAIN);
	if (!sending(v))
		return v->l->ngroups && native_incomplete(v, native);
	if (!counted || !seen_idle(v->m, v->l)) {
		if (v->l->ngroups)
			return native_incomplete(v, native);
		return set(v, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	}
	return set(v,
		   s->sent == s->total && other_need(v->m) ? CAUSE_AUX_MISSING
							   : CAUSE_SEND_INCOMPLETE,
		   CONF_CERTAIN, 1);
}

static bool peer_gone(const struct view *v)
{
	uint64_t ns = life_gone_ns(v->l);

	return ns && ns < v->since && !life_gone_well(v->l);
}

static void in_inflight(struct view *v)
{
	bool sure;

	if (worker_gone(v) || failed_transfer(v) || behind(v) || stalled(v) || no_reply(v) ||
	    no_entry(v))
		return;
	/* where the view does not tell of backlogs, what native events tell */
	if (!v->s->tid && !backlog_known(v->m) && native_behind(v->m, v->l, v->now, v->c))
		return;
	if (reused(v) || finished(v) || aborted(v) || queued(v) || incomplete(v))
		return;
	sure = seen_ready(v->m, v->l) && seen_idle(v->m, v->l);
	if (peer_gone(v) && !sure)
		set(v, CAUSE_PEER_GONE, CONF_LIKELY, 1);
	else if (v->m->pulls)
		/* it is for the peer to read; what the server does if it never has is not known */
		set(v, CAUSE_NEVER_SENT, CONF_LIKELY, -1);
	else if (v->loose && !sure && !call_blocks(v->m, v->l, v->now))
		set(v, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	else
		set(v, CAUSE_NEVER_SENT, certain_if(sure), 1);
}

/* For its forward pass, or before that for what the server needs to begin with it. */
static void in_waiting(struct view *v)
{
	if (seen_failed(v->m, v->l) || fact_aborted(v->l, v->now))
		set(v, CAUSE_ABORT_NOT_REAPED, CONF_LIKELY, -1);
	else if (peer_gone(v))
		set(v, CAUSE_PEER_GONE, CONF_LIKELY, -1);
	else
		set(v, CAUSE_NEVER_SENT, CONF_LIKELY, -1);
}

static bool boot_gone(struct view *v)
{
	const struct proc *p = v->l->proc;

	if (!p->boot_dead_ns || p->boot_dead_ns >= v->since)
		return false;
	return set(v, CAUSE_THREAD_DIED, certain_if(p->boot_missing && p->boot_known), 1);
}

/* By a peer, not by the client that has gone: the server drops what it does not know yet. */
static bool peer_aborted(const struct view *v)
{
	const struct life *l = v->l;

	return fact_aborted(l, v->now) && !(l->rare && l->rare->client_gone_ns == l->abort_ns);
}

/* Announced, but not to this request: it came too early, or went with another one of the room. An
 * abort that had reached the request would have changed its status. */
static bool unheard(const struct view *v)
{
	return seen_bootstrap(v->m, v->l) && (v->s->announced == 0 || peer_aborted(v));
}

static void in_bootstrap(struct view *v)
{
	const struct life *l = v->l;
	const struct rare *r = l->rare;
	bool counted = v->s->announced >= 0;

	if (l->stage != STAGE_BOOTSTRAP && !unheard(v)) {
		in_waiting(v);
		return;
	}
	if (boot_gone(v))
		return;
	if (l->stage != STAGE_BOOTSTRAP) {
		set(v, peer_aborted(v) ? CAUSE_ABORT_BEFORE_OPEN : CAUSE_DECODE_ABSENT,
		    CONF_CERTAIN, 0);
		return;
	}
	if (seen_failed(v->m, l) || fact_aborted(l, v->now)) {
		/* the bootstrap timeout is there for what the abort did not reach */
		set(v, CAUSE_ABORT_NOT_REAPED, CONF_CERTAIN, seen_bootstrap(v->m, l) ? 0 : 1);
		return;
	}
	if (r && r->abort_early_ns)
		set(v, CAUSE_ABORT_BEFORE_OPEN, CONF_CERTAIN, 0);
	else if (!life_announced(l))
		set(v, CAUSE_DECODE_ABSENT, certain_if(counted || v->whole), 0);
	else
		set(v, CAUSE_QUORUM_INCOMPLETE,
		    certain_if(life_quorum_need(l) &&
			       (counted || (v->whole && !l->blurred && !(r && r->reuse_doubt)))),
		    0);
}

/* ---- other ranks --------------------------------------------------------------------------- */

static bool same_request(const struct life *a, const struct life *b)
{
	return !a->rid || !b->rid || !strcmp(a->rid, b->rid);
}

static const struct life *unfinished(const struct model *m, const struct room *r,
				     const struct life *l)
{
	for (const struct life *o = r->first; o; o = o->rnext)
		if (same_request(o, l) && o->stage != STAGE_RELEASING && !life_complete(m, o) &&
		    !seen_done(m, o))
			return o;
	return NULL;
}

/* All ranks end a room together: one that has done its part may only wait for another; one that
 * another has left behind waits for ever. */
static void ranks(struct view *v)
{
	struct model *m = (struct model *)v->m; /* room_find hands out what may be changed */
	bool done = v->c->cause == CAUSE_DONE_NOT_RELEASED;
	int look = MAX_RANKS;

	if ((!done && v->c->cause != CAUSE_NEVER_SENT) || !seen_in(v->l, Q_INFLIGHT))
		return;
	for (const struct proc *p = m->procs; p && look--; p = p->hh.next) {
		const struct room *r =
			p == v->l->proc ? NULL : room_find(m, p->pid, v->l->room->name);
		const struct life *o = r && done ? unfinished(m, r, v->l) : NULL;

		if (!r ||
		    (!o && (r->nopen || r->ended_ns < v->l->opened_ns || r->ended_ns >= v->since)))
			continue;
		/* slower, or stuck? It is asked again */
		if (o && !o->stuck)
			set(v, CAUSE_RANK_DIVERGED, CONF_POSSIBLE, -1);
		else
			set(v, CAUSE_RANK_DIVERGED, certain_if(!o || seen_listed(o)), 1);
		v->c->rank = o;
		v->c->other = r;
		return;
	}
}

bool view_choose(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	struct view v = {
		.m = m,
		.l = l,
		.s = l->seen,
		.now = now,
		.span = stage_span(m, l),
		.since = fact_since(l, now),
		.whole = !l->late && !l->uncertain && !l->straggles,
		.loose = life_loose(l),
		.c = c,
	};

	if (!seen_listed(l))
		return false;
	if (v.s->queue == Q_BOOTSTRAP)
		in_bootstrap(&v);
	else if (v.s->queue == Q_INFLIGHT)
		in_inflight(&v);
	else
		in_waiting(&v);
	ranks(&v);
	if (c->conf == CONF_CERTAIN && l->proc->view != VIEW_OK && l->proc->view != VIEW_NONE)
		c->conf = CONF_LIKELY;
	return true;
}

/* Not listed: on its way through the forward pass, or no longer held. What its own operation in
 * progress tells is true all the same. */
void view_cap(const struct model *m, const struct life *l, struct choice *c)
{
	bool forward = view_active(l->proc) && seen_entry(m, l);

	if (!forward && !seen_unheld(m, l))
		return;
	if (forward && c->cause == CAUSE_TRANSFER_STALLED)
		return;
	if (c->conf > CONF_POSSIBLE)
		c->conf = CONF_POSSIBLE;
	if (c->pin == 1)
		c->pin = -1;
}
