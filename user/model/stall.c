// SPDX-License-Identifier: Apache-2.0
/*
 * What happens at a deadline. A life is late when its own progress is too old, but it is stuck only
 * when the queue in front of it has stood still for as long: what is ahead of it and still moves is
 * its progress too (docs/model.md: doubt).
 */
#include <errno.h>
#include <string.h>

#include "model/asked.h"
#include "model/calls.h"

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When was something posted before o, to the same peer, last completed? Without a known peer the
 * thread's earlier rooms stand for its queue. */
uint64_t op_ahead(const struct op *o)
{
	if (o->agent)
		return flow_before(&o->agent->flow, o->seq);
	return flow_before(&o->worker->flow, o->life_id);
}

/* Of several operations in progress, the one whose queue stands still the longest decides. */
static bool own_ahead(const struct life *l, uint64_t *ns)
{
	bool any = false;

	for (const struct op *o = l->ops; o; o = o->lnext) {
		uint64_t ahead;

		if (o->state != OP_BUSY)
			continue;
		ahead = op_ahead(o);
		if (!any || ahead < *ns)
			*ns = ahead;
		any = true;
	}
	return any;
}

/* When did w last do anything, as far as both sources tell? */
uint64_t worker_moved(const struct worker *w)
{
	return max_ns(w->at_ns, w->act_ns);
}

static const struct op *others_op(const struct worker *w, const struct life *l)
{
	const struct op *o = w && w->busy ? w->busy->wprev : NULL;

	return o && !o->loose && op_life(o) != l ? o : NULL;
}

static const struct worker *thread_of(const struct model *m, const struct life *l)
{
	const struct worker *w = seen_worker(m, l);

	if (w)
		return w;
	return l->worker ? l->worker : worker_inferred(l);
}

/* The view tells where l waits, and so what is ahead of it: the rooms listed before it in the
 * waiting queue; in the backlog of a thread, all that this thread does; at the hands of a thread or
 * nowhere, nothing. false: it does not tell. */
static bool seen_ahead(const struct model *m, const struct life *l, uint64_t *ns)
{
	const struct worker *w = seen_worker(m, l);
	const struct op *o = others_op(w, l);
	const struct seen *s = l->seen;

	if (!s || !s->listed)
		return false;
	if (s->queue == Q_WAITING) {
		*ns = max_ns(flow_before(&l->proc->waitq, s->waitq),
			     flow_before(&l->proc->flow, l->id));
		return true;
	}
	if (s->queue != Q_INFLIGHT || l->stage == STAGE_RELEASING)
		return false;
	if (w) {
		*ns = max_ns(worker_moved(w), o ? op_ahead(o) : 0);
		return w->at_ns != 0;
	}
	*ns = 0;
	return seen_idle(m, l) || s->code == HELD_NO_ENTRY;
}

/* The last movement of what stands before l in its queue, 0: none. Rooms that came later and went
 * past it do not count, or one pin on a busy node would never be seen. */
uint64_t life_ahead(const struct model *m, const struct life *l)
{
	const struct worker *w = thread_of(m, l);
	const struct op *o = others_op(w, l);
	uint64_t ns = 0;

	if (l->stage == STAGE_BOOTSTRAP)
		return 0;
	if (own_ahead(l, &ns) || seen_ahead(m, l, &ns))
		return ns;
	ns = flow_before(&l->proc->flow, l->id);
	if (l->stage == STAGE_RELEASING || !w)
		return ns;
	ns = max_ns(ns, flow_before(&w->flow, l->progress_id));
	if (o && o->life_id < l->progress_id)
		ns = max_ns(ns, max_ns(o->since_ns, op_ahead(o)));
	return ns;
}

/* Its thread has been busy with a younger room for suspiciously long, but not yet for the whole
 * deadline: wait, once, for what becomes of that. */
static uint64_t worth_waiting(const struct model *m, const struct life *l, uint64_t ns,
			      uint64_t span)
{
	const struct op *o = others_op(thread_of(m, l), l);

	/* the view knows better what it waits for */
	if (seen_idle(m, l) || (seen_listed(l) && !seen_in(l, Q_INFLIGHT)))
		return 0;

	if (!o || l->deferred || l->stage == STAGE_BOOTSTRAP || l->stage == STAGE_RELEASING)
		return 0;
	for (const struct op *own = l->ops; own; own = own->lnext)
		if (own->state == OP_BUSY)
			return 0;
	return ns - o->since_ns >= span / 10 && ns - o->since_ns < span ? o->since_ns : 0;
}

/* Late, but the queue moves: not stuck yet. */
static bool queue_moves(struct model *m, struct life *l, uint64_t ns)
{
	uint64_t span = stage_span(m, l);
	uint64_t ahead;

	if ((l->fake && !seen_in(l, Q_INFLIGHT)) || !span)
		return false;
	ahead = life_ahead(m, l);
	if (ahead + span <= ns || ahead <= l->progress_ns) {
		ahead = worth_waiting(m, l, ns, span);
		if (!ahead || ahead <= l->progress_ns)
			return false;
		l->deferred = true;
	}
	l->ahead_ns = ahead;
	l->waits = true;
	timer_arm(m, l);
	tell_changed(m, l);
	return true;
}

static void doubt_list(struct model *m, struct stuck *s, bool doubtful)
{
	if (s->listed == doubtful)
		return;
	s->listed = doubtful;
	if (!doubtful) {
		if (s->prev)
			s->prev->next = s->next;
		else
			m->doubt_first = s->next;
		if (s->next)
			s->next->prev = s->prev;
		else
			m->doubt_last = s->prev;
		m->ndoubt--;
		return;
	}
	s->next = NULL;
	s->prev = m->doubt_last;
	if (s->prev)
		s->prev->next = s;
	else
		m->doubt_first = s;
	m->doubt_last = s;
	m->ndoubt++;
}

static bool alerts(enum sp_cause cause)
{
	return cause != CAUSE_FAKE_ROOM && cause != CAUSE_BACKPRESSURE && cause != CAUSE_NONE;
}

/* When the verdict is looked at again: after as long as it has lasted, a deadline at least, or when
 * the thread that l waits for will have stood still for a deadline. */
static uint64_t look_again(const struct model *m, const struct life *l, uint64_t ns)
{
	uint64_t span = stage_span(m, l);
	const struct worker *w = thread_of(m, l);
	uint64_t again, ripe;

	if (!span || (l->fake && !seen_in(l, Q_INFLIGHT)))
		return NEVER;
	again = ns + max_ns(span, ns - l->stuck->since_ns);
	if (w && (others_op(w, l) || (w->at && w->at != l->room)) && worker_moved(w) + span > ns &&
	    worker_moved(w) + span < again)
		again = worker_moved(w) + span;
	ripe = call_ripens(m, l, w, ns);
	return ripe < again ? ripe : again;
}

void stall_again(struct model *m, struct life *l, uint64_t ns)
{
	struct stuck *s = l->stuck;
	struct choice c = {.cause = s->cause, .conf = s->conf, .pin = s->pin};
	bool keep = s->by_view && l->seen && l->seen->lost;
	uint64_t again;

	/* what the view has told stays when it is lost: native events know less, not better */
	if (!keep)
		verdict_choose(m, l, ns, &c);
	s->by_view = keep || seen_listed(l);
	s->cause = (uint8_t)c.cause;
	s->conf = (uint8_t)c.conf;
	s->pin = (int8_t)c.pin;
	again = look_again(m, l, ns);
	if (s->again_ns <= ns || again < s->again_ns)
		s->again_ns = again;
	timer_arm(m, l);
	doubt_list(m, s, c.conf < CONF_LIKELY || c.pin != 1);
	if (!alerts(c.cause) || s->told[c.cause] >= c.conf) {
		tell_changed(m, l);
	} else {
		s->told[c.cause] = (uint8_t)c.conf;
		if (c.conf >= s->best_conf) {
			s->best_cause = s->cause;
			s->best_conf = s->conf;
			s->best_pin = s->pin;
		}
		tell_changed(m, l);
		tell_stuck(m, l, ns);
	}
}

void doubt_trim(struct model *m)
{
	while (m->ndoubt > MAX_DOUBTFUL)
		life_forget(m, m->doubt_first->life);
}

int life_overdue(struct model *m, struct life *l, uint64_t ns)
{
	if (l->seen && l->seen->ask_ns) {
		/* nobody has looked: the view is no better than an unstable one */
		if (l->proc->view == VIEW_OK)
			l->proc->view = VIEW_UNSTABLE;
		ns = l->seen->ask_ns;
		view_unwait(m, l->seen);
		return life_judge(m, l, ns);
	}
	/* it has been shown for as long again, and no more will ever be known of it */
	if ((l->stuck && asked_unfollowed(m, l)) || asked_unbegun(m, l)) {
		life_end(m, l, OUTCOME_NONE);
		return 0;
	}
	if (!l->stuck && queue_moves(m, l, ns))
		return 0;
	if (view_active(l->proc) && !view_ask(m, l, ns))
		return 0;
	return life_judge(m, l, ns);
}

int life_judge(struct model *m, struct life *l, uint64_t ns)
{
	if (l->stuck) {
		if (seen_unheld(m, l))
			view_watch_end(m, l, ns);
		stall_again(m, l, ns);
		return 0;
	}
	if (queue_moves(m, l, ns))
		return 0;
	l->stuck = mem_new(m, sizeof(*l->stuck));
	if (!l->stuck)
		return -ENOMEM;
	l->stuck->life = l;
	l->stuck->since_ns = ns;
	l->ever_stuck = l->ever_stuck || !l->fake || seen_in(l, Q_INFLIGHT);
	l->waits = false;
	stall_again(m, l, ns);
	return 0;
}

void stall_prepare(struct model *m, const struct life *l)
{
	const struct stuck *s = l->stuck;
	struct choice c;

	m->prepared = NULL;
	if (!s || !s->best_conf)
		return;
	verdict_choose(m, l, m->now, &c);
	if (c.cause != s->best_cause)
		c = (struct choice){0};
	c.cause = s->best_cause;
	c.conf = s->best_conf;
	c.pin = (int)s->best_pin;
	verdict_words(m, l, &c, m->now, &m->withdrawn);
	m->prepared = l;
}

/* It moves, or ends. */
void stall_clear(struct model *m, struct life *l)
{
	if (m->prepared != l)
		stall_prepare(m, l);
	if (m->recovered && m->recovered != l)
		tell_recovered(m, m->recovered, OUTCOME_MOVING);
	if (l->stuck->best_conf) {
		m->recovered = l;
		m->recovered_idle_ns = m->now - l->progress_ns;
	}
	m->prepared = NULL;
	doubt_list(m, l->stuck, false);
	mem_free(m, l->stuck, sizeof(*l->stuck));
	l->stuck = NULL;
}
