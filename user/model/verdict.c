// SPDX-License-Identifier: Apache-2.0
/*
 * Which cause fits an overdue life. Causes are tried in the order of enum sp_cause, the first that
 * fits wins; then what is not known takes confidence away. Facts younger than the stall are
 * evidence at most: the earliest root stays the cause.
 */
#include "model/asked.h"
#include "model/calls.h"
#include "model/facts.h"
#include "model/loose.h"

static bool set(struct choice *c, enum sp_cause cause, enum sp_confidence conf, int pin)
{
	c->cause = cause;
	c->conf = conf;
	c->pin = pin;
	return true;
}

/* Certain enough for an alert only where an active source would have shown the room's end. Where
 * that is the answer to its client, the server's main loop must have had the time for it. */
static bool set_if_seen(const struct model *m, const struct life *l, uint64_t now, struct choice *c,
			enum sp_cause cause)
{
	bool answer = l->tracked && !m->cfg.sees_release && !seen_listed(l);
	uint64_t since = l->abort_ns > l->progress_ns ? l->abort_ns : l->progress_ns;

	if (still_held(m, l) && !(answer && loop_unseen(m, l, since, now)))
		return set(c, cause, CONF_LIKELY, 1);
	return set(c, cause, CONF_POSSIBLE, -1);
}

static bool thread_died(const struct life *l, uint64_t now, struct choice *c)
{
	const struct proc *p = l->proc;
	const struct worker *w = l->worker ? l->worker : worker_inferred(l);

	if (l->stage == STAGE_BOOTSTRAP) {
		if (!p->boot_dead_ns || p->boot_dead_ns >= fact_since(l, now))
			return false;
		return set(c, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	}
	if (!w || !w->exited_ns || w->exited_ns >= fact_since(l, now))
		return false;
	/* a thread that has reported an error owed the room nothing more */
	if (l->error_ns && l->error_ns <= w->exited_ns)
		return false;
	return set(c, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
}

static bool transfer_error(const struct model *m, const struct life *l, uint64_t now,
			   struct choice *c)
{
	uint64_t since = fact_since(l, now);
	const struct rare *r = l->rare;
	bool failed = l->error_ns && l->error_ns < since;

	if (r && r->create_failed_ns && r->create_failed_ns < since)
		failed = true;
	if (r && r->abandoned_ns && r->abandoned_ns < since && !fact_aborted(l, now))
		failed = true;
	return failed && set_if_seen(m, l, now, c, CAUSE_TRANSFER_ERROR);
}

/* Behind o: a pin when o itself has stood still for as long as a transfer may take. */
static bool set_behind(const struct model *m, const struct life *l, uint64_t now,
		       const struct op *o, struct choice *c)
{
	uint64_t span = m->cfg.stage_ns[STAGE_INFLIGHT];
	uint64_t from = o->since_ns > op_ahead(o) ? o->since_ns : op_ahead(o);

	if (!span)
		span = stage_span(m, l);
	c->op = o;
	return set(c, CAUSE_QUEUED_BEHIND, CONF_LIKELY, from + span <= now ? 1 : -1);
}

/* Its thread is in a call for another room, and does not come back from it. */
static bool behind_call(const struct model *m, const struct life *l, const struct worker *w,
			uint64_t now, struct choice *c)
{
	uint64_t span = m->cfg.stage_ns[STAGE_INFLIGHT];

	c->call = call_ahead(m, l, w, now);
	return c->call &&
	       set(c, CAUSE_QUEUED_BEHIND, CONF_LIKELY, c->call->since_ns + span <= now ? 1 : -1);
}

bool native_behind(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	uint64_t span = stage_span(m, l);
	const struct worker *w = l->worker ? l->worker : worker_inferred(l);
	int need = fact_unmet(m, l);
	const struct op *o;

	/* what goes with the last chunk is posted with it: the thread has been here and gone on */
	if (l->ngroups && (need < 0 || !m->cfg.profile->needs[need].last))
		return false;
	if (w) {
		o = worker_blocked(w, l, now, span);
		return o ? set_behind(m, l, now, o, c) : behind_call(m, l, w, now, c);
	}
	/* all the threads that were seen; there may be more until enough rooms have passed */
	o = l->proc->served < LEARN_MIN ? NULL : fact_all_blocked(l, now, span);
	return o && set_behind(m, l, now, o, c);
}

static bool control_lost(const struct life *l, uint64_t now, struct choice *c)
{
	const struct rare *r = l->rare;

	if (!r || !r->control_out_ns || r->control_out_ns >= fact_since(l, now) ||
	    r->control_in_ns >= r->control_out_ns || l->proc->control_heard_ns >= r->control_out_ns)
		return false;
	return set(c, CAUSE_CONTROL_LOST, CONF_LIKELY, 1);
}

static bool room_reused(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	const struct rare *r = l->rare;
	bool doubt;

	if (!r || !r->overlap_ns || r->overlap_ns >= fact_since(l, now))
		return false;
	/* it went on after the other one's end: that did not hurt it */
	if (r->reused_ns && l->progress_ns > r->reused_ns)
		return false;
	doubt = r->reuse_doubt || (fact_aborted(l, now) && !still_held(m, l));
	/* nothing posted and the other one still open: both may wait for their forward pass */
	if (l->stage == STAGE_READY && !r->reused_ns)
		doubt = true;
	/* both may have been in one forward pass: then one look at the one entry has ended both */
	if (r->one_pass && !l->ngroups && !still_held(m, l))
		doubt = true;
	if (doubt)
		return set(c, CAUSE_ROOM_REUSED, CONF_POSSIBLE, -1);
	return set(c, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
}

static bool incomplete(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	int need = fact_unmet(m, l);

	if (!l->ngroups)
		return false;
	if (fact_aborted(l, now))
		return set_if_seen(m, l, now, c, CAUSE_ABORT_NOT_REAPED);
	if (fact_created(l) || fact_parts(l) || need < 0 || m->cfg.profile->needs[need].last)
		return set(c, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	return set(c, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
}

/* An operation of no known room stands still, and it can be no other's: but whether it is l's... */
static bool loose_stalled(const struct model *m, const struct life *l, uint64_t now,
			  struct choice *c)
{
	const struct op *o = loose_of(l, now, m->cfg.stage_ns[STAGE_INFLIGHT]);

	if (!o || fact_aborted(l, now) || !loose_alone(l, o))
		return false;
	return set(c, CAUSE_TRANSFER_STALLED, CONF_POSSIBLE, -1);
}

static bool nothing_sent(const struct model *m, const struct life *l, uint64_t now,
			 struct choice *c)
{
	uint64_t span = stage_span(m, l);
	uint64_t gone = life_gone_ns(l);

	if (fact_aborted(l, now)) {
		set_if_seen(m, l, now, c, CAUSE_ABORT_NOT_REAPED);
		c->pin = -1; /* it may have come before the server knew the request */
		return true;
	}
	if (gone && gone < fact_since(l, now))
		return life_gone_well(l) ? set(c, CAUSE_PEER_GONE, CONF_POSSIBLE, -1)
					 : set_if_seen(m, l, now, c, CAUSE_PEER_GONE);
	/* its thread has begun with it, and is held up on the way to its first post */
	if (call_blocks(m, l, now))
		return set(c, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	if (!l->worker && !worker_inferred(l) && fact_any_blocked(l, now, span))
		return set(c, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	return set(c, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
}

static void choose_moving(const struct model *m, const struct life *l, uint64_t now,
			  struct choice *c)
{
	if (thread_died(l, now, c) || transfer_error(m, l, now, c))
		return;
	c->op = fact_busy(l);
	if (c->op) {
		set(c, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
		return;
	}
	if (native_behind(m, l, now, c) || control_lost(l, now, c) || room_reused(m, l, now, c) ||
	    loose_stalled(m, l, now, c) || incomplete(m, l, now, c))
		return;
	nothing_sent(m, l, now, c);
}

/* All is sent. That the answer has begun means that the server has let go, most likely: the client
 * is slow to take it. */
static void choose_releasing(const struct model *m, const struct life *l, uint64_t now,
			     struct choice *c)
{
	if (l->tracked && l->rare && l->rare->answering)
		set(c, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	else
		set_if_seen(m, l, now, c, CAUSE_DONE_NOT_RELEASED);
}

static void choose_bootstrap(const struct model *m, const struct life *l, uint64_t now,
			     struct choice *c)
{
	const struct rare *r = l->rare;

	if (thread_died(l, now, c))
		return;
	if (fact_aborted(l, now)) {
		set_if_seen(m, l, now, c, CAUSE_ABORT_NOT_REAPED);
		return;
	}
	if (r && r->abort_early_ns) {
		set(c, CAUSE_ABORT_BEFORE_OPEN, CONF_LIKELY, 0);
		return;
	}
	if (!l->npeers) {
		set(c, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
		return;
	}
	set(c, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	/* a straggler's announcement after an abort, or one whose companions came before the
	 * attach, looks the same */
	if (l->blurred || (r && r->reuse_doubt))
		c->conf = CONF_POSSIBLE;
}

/* What is not known takes confidence away. */
static void cap(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	bool unseen = fact_aborted(l, now) && !m->cfg.sees_release && !l->tracked;
	/* what is missing may be among the operations of which nobody knows whose they are */
	bool unknown = life_loose(l) && is_absence(c->cause) && !call_blocks(m, l, now);
	bool doubt = l->uncertain || l->straggles || unseen || unknown;

	if (doubt && c->conf > CONF_POSSIBLE)
		c->conf = CONF_POSSIBLE;
	if (doubt && c->pin == 1)
		c->pin = -1;
	if (l->late && c->conf > CONF_LIKELY)
		c->conf = CONF_LIKELY;
}

/* What a room waits for in vain there, the server's own timeout ends, says the profile. */
static void delayed(const struct model *m, const struct life *l, struct choice *c)
{
	bool absent = is_absence(c->cause) || c->cause == CAUSE_PEER_GONE;

	if (absent && m->cfg.profile->delayed[l->stage])
		c->pin = 0;
}

static void choose(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	*c = (struct choice){.cause = CAUSE_NONE};
	if (l->fake && !seen_in(l, Q_INFLIGHT)) {
		set(c, CAUSE_FAKE_ROOM, CONF_POSSIBLE, -1);
		return;
	}
	if (!l->stuck && l->waits) {
		set(c, CAUSE_BACKPRESSURE, CONF_POSSIBLE, 0);
		return;
	}
	/* the server's own view needs no history */
	if (view_choose(m, l, now, c)) {
		/* nothing of it is expected on the wire: whether that is a pin is for a person */
		if (l->fake && c->conf > CONF_LIKELY)
			c->conf = CONF_LIKELY;
		return;
	}
	switch (l->stage) {
	case STAGE_BOOTSTRAP:
		choose_bootstrap(m, l, now, c);
		break;
	case STAGE_RELEASING:
		choose_releasing(m, l, now, c);
		break;
	default:
		choose_moving(m, l, now, c);
	}
	cap(m, l, now, c);
	asked_cap(m, l, c);
	view_cap(m, l, c);
}

void verdict_choose(const struct model *m, const struct life *l, uint64_t now, struct choice *c)
{
	choose(m, l, now, c);
	delayed(m, l, c);
}
