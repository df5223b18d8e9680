// SPDX-License-Identifier: Apache-2.0
/* Requests as the server's own view shows them: which life each belongs to, what it says of it, and
 * the release that is concluded when it is there no longer. */
#include <errno.h>
#include <string.h>

#include "model/seen.h"

/* ---- which life ---------------------------------------------------------------------------- */

/* The request id decides; without one on both sides, the address of the request object. */
static bool is_request(const struct life *l, const struct sp_event *ev)
{
	if (ev->rid[0] && l->rid)
		return !strcmp(ev->rid, l->rid);
	return ev->op && l->seen && ev->op == l->seen->op;
}

/* Objects do not move, and no request goes back: one that begins anew is a retry with the same id.
 */
bool seen_begins_anew(const struct seen *s, const struct sp_event *ev)
{
	if (!s || !s->op || !ev->op || queue_of(ev->kind) != Q_BOOTSTRAP)
		return false;
	return s->op != ev->op || (s->ever && s->queue != Q_BOOTSTRAP);
}

static struct life *known_life(const struct room *r, const struct sp_event *ev)
{
	struct life *found = NULL;

	for (struct life *l = r->first; l; l = l->rnext) {
		if (!is_request(l, ev) || seen_begins_anew(l->seen, ev))
			continue;
		if (ev->op && l->seen && l->seen->op == ev->op)
			return l;
		if (!found)
			found = l;
	}
	return found;
}

/* Known by native events only, and it may be this request. */
static bool may_be(const struct life *l, const struct sp_event *ev, enum queue q)
{
	if ((l->rid && ev->rid[0]) || (l->seen && l->seen->op))
		return false;
	if (q == Q_BOOTSTRAP)
		return l->stage <= STAGE_READY && !l->ngroups; /* before anything is posted */
	/* one that is complete is let go at once, and its entry goes with it, not before */
	return l->stage != STAGE_RELEASING || (q == Q_INFLIGHT && ev->code != HELD_NO_ENTRY);
}

/* The entry of a room goes with the life that ends first, so a request without one is the older;
 * else one for which something has gone wrong is the less likely to be there. */
static struct life *nameless_life(const struct room *r, const struct sp_event *ev, enum queue q)
{
	struct life *first = NULL;

	for (struct life *l = r->first; l; l = l->rnext) {
		if (!may_be(l, ev, q))
			continue;
		if (ev->code == HELD_NO_ENTRY || !life_doomed(l))
			return l;
		if (!first)
			first = l;
	}
	return first;
}

/* A request may get another id on its way into the server (one of a batch): the name that its
 * client has given it is not the last word while the view knows no request of that name. */
static struct life *unbound_life(struct model *m, const struct room *r, const struct sp_event *ev,
				 enum queue q)
{
	struct life *l = nameless_life(r, ev, q);
	char *rid = NULL;

	if (l || !ev->rid[0])
		return l;
	for (l = r->first; l; l = l->rnext) {
		rid = l->rid;
		if (!l->asked_ns || !rid)
			continue;
		l->rid = NULL;
		if (may_be(l, ev, q))
			break;
		l->rid = rid;
	}
	if (l)
		mem_free(m, rid, strlen(rid) + 1);
	return l;
}

/* It was taken to be this life's for want of a better one; but what is complete does not stay in
 * the queue without its entry. So it is another one's, if there is any, or none's that was known.
 */
static bool mistaken(const struct life *l, const struct sp_event *ev, enum queue q)
{
	const struct room *r = l->room;

	if (!l->seen || !l->seen->assumed || l->stage != STAGE_RELEASING || q != Q_INFLIGHT ||
	    ev->code != HELD_NO_ENTRY)
		return false;
	return nameless_life(r, ev, q) || !r->first->rnext;
}

/* Whatever the view has said was of another request. */
static void unbind(struct model *m, struct life *l)
{
	life_unsee(m, l);
	seen_free(m, l);
	mem_free(m, l->rid, l->rid ? strlen(l->rid) + 1 : 0);
	l->rid = NULL;
	view_watch_end(m, l, m->now);
	timer_arm(m, l); /* it no longer waits for an answer */
}

/* ---- what it says -------------------------------------------------------------------------- */

/* A number that only grows. First sight of it is no growth. */
static bool grown(int32_t *have, int32_t now)
{
	bool more = now > *have && *have >= 0;

	if (now > *have)
		*have = now;
	return more;
}

static void note_entry(struct room *r, int64_t code)
{
	if (code != HELD_UNKNOWN)
		r->entry = code == HELD_NO_ENTRY ? ENTRY_NO : ENTRY_YES;
}

static bool note_code(struct model *m, struct seen *s, int64_t code)
{
	bool known = s->code != HELD_UNKNOWN;

	if (code == HELD_UNKNOWN || code == s->code)
		return false;
	s->code = code;
	s->code_ns = m->now;
	return known;
}

static void note_thread(struct model *m, struct seen *s, const struct sp_event *ev)
{
	uint32_t tid = ev->tid == ev->pid ? 0 : ev->tid; /* the main thread is no worker */
	bool at = ev->flags & EV_AT, orphan = ev->flags & EV_ORPHAN, queued = ev->flags & EV_WAITS;

	if (tid || at)
		s->cut_off = false;
	if (s->tid == tid && s->at == at && s->orphan == orphan && s->queued == queued)
		return;
	s->tid = tid;
	s->at = at;
	s->orphan = orphan;
	s->queued = queued;
	s->tid_ns = m->now;
}

static void note_forward(const struct model *m, struct proc *p, struct seen *s, bool forward)
{
	if (s->forward == forward)
		return;
	if (forward)
		p->forward_ns = m->now;
	s->forward = forward;
	p->nforward += forward ? 1 : -1u;
}

/* Into a queue, from one to the next, or out of it. */
static bool note_queue(struct model *m, struct life *l, enum queue q, const struct sp_event *ev)
{
	struct seen *s = l->seen;
	struct proc *p = l->proc;
	bool was = s->listed || (s->lost && s->queue_ns && s->kind);
	bool moved = q != Q_NONE ? !was || s->queue != q : was;
	bool first = !s->ever;

	if (moved && was && s->queue == Q_WAITING)
		flow_push(m, &p->waitq, s->waitq, m->now);
	if (moved && q == Q_WAITING)
		s->waitq = ++p->waitq_seq;
	if (moved) {
		s->queue_ns = m->now;
		if (!(ev->flags & EV_CUT))
			p->loop_ns = m->now;
	}
	s->listed = q != Q_NONE;
	s->lost = false;
	if (s->listed) {
		s->queue = (uint8_t)q;
		s->kind = kind_index(m, ev->kind);
		s->ever = true;
	}
	if (q == Q_INFLIGHT)
		s->sent_once = true;
	note_forward(m, p, s, !s->listed && s->queue != Q_INFLIGHT && ev->code != HELD_NO_ENTRY);
	return moved && !first;
}

static enum sp_stage stage_of(const struct life *l, enum queue q)
{
	uint32_t need = life_quorum_need(l);

	switch (q) {
	case Q_INFLIGHT:
		return STAGE_INFLIGHT;
	case Q_WAITING:
		return STAGE_READY;
	case Q_BOOTSTRAP:
		return need && life_announced(l) >= need ? STAGE_READY : STAGE_BOOTSTRAP;
	default:
		/* in no queue: on its way through the forward pass */
		return l->seen->queue == Q_INFLIGHT ? STAGE_INFLIGHT : STAGE_READY;
	}
}

static void note_siblings(struct model *m, struct life *l)
{
	for (struct life *o = l->room->first; o; o = o->rnext) {
		if (o == l || !seen_listed(o))
			continue;
		life_overlap(m, o->id < l->id ? o : l, o->id < l->id ? l : o);
		if (o->rare)
			o->rare->both_seen = true;
		if (l->rare)
			l->rare->both_seen = true;
	}
}

static void progress(struct model *m, struct life *l, const struct sp_event *ev)
{
	struct did did = {.role = ROLE_HELD, .rank = -1, .last = -1, .chunk = -1, .need = -1};

	did.kind = kind_index(m, ev->kind);
	did.code = ev->code;
	life_progress(m, l, &did);
}

/* Whether rounds are to tell its end. */
static void watch_end(struct model *m, struct life *l)
{
	struct seen *s = l->seen;

	if (s->listed) {
		s->gone_ns = 0;
		if (!s->ask_ns && s->waits)
			view_unwait(m, s);
	} else if (l->stage == STAGE_RELEASING || (l->stuck && seen_unheld(m, l))) {
		view_watch_end(m, l, m->now);
	}
}

/* anew: it was opened, or opened again, by this event. */
static int held(struct model *m, struct life *l, const struct sp_event *ev, bool anew)
{
	enum queue q = queue_of(ev->kind);
	struct seen *s = seen_get(m, l);
	bool moved = anew;

	if (!s)
		return -ENOMEM;
	if (!s->ever && q != Q_NONE && l->did.role != ROLE_NONE && l->did.role != ROLE_HELD)
		l->proc->proved = true;
	if (ev->op)
		s->op = ev->op;
	l->arrived = true;
	note_entry(l->room, ev->code);
	moved |= note_code(m, s, ev->code);
	moved |= note_queue(m, l, q, ev);
	moved |= grown(&s->announced, ev->chunk);
	moved |= grown(&s->sent, ev->part);
	if (ev->need > 0)
		s->need = ev->need;
	if (ev->parts >= 0)
		s->total = ev->parts;
	note_thread(m, s, ev);
	if (s->listed)
		note_siblings(m, l);
	if (moved || l->stage < stage_of(l, q))
		progress(m, l, ev);
	if (l->stage < stage_of(l, q))
		life_stage(m, l, stage_of(l, q));
	watch_end(m, l);
	return 0;
}

/* ---- only an entry of the status table ----------------------------------------------------- */

static void entry_of(struct model *m, struct life *l, const struct sp_event *ev)
{
	struct seen *s;

	if (seen_listed(l))
		return;
	s = seen_get(m, l);
	if (!s)
		return;
	if (l->stuck)
		stall_prepare(m, l);
	/* its disappearance tells an end, not that the room moves */
	if (note_code(m, s, ev->code) && ev->code != HELD_NO_ENTRY)
		progress(m, l, ev);
	if (ev->code == HELD_NO_ENTRY)
		note_forward(m, l->proc, s, false);
	watch_end(m, l);
}

static int entry_only(struct model *m, struct room *r, const struct sp_event *ev)
{
	struct life *first = r->first;

	note_entry(r, ev->code);
	if (!first) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, first);
	for (struct life *l = first; l; l = l->rnext) {
		entry_of(m, l, ev);
		if (l == first)
			continue;
		if (m->recovered == l)
			tell_recovered(m, l, OUTCOME_MOVING);
		if (l->stuck)
			stall_again(m, l, m->now);
		else
			tell_changed(m, l);
	}
	route_settle(m);
	return 0;
}

/* ---- in ------------------------------------------------------------------------------------ */

/* The same address, and another request in it: the one that had it is no more. */
static void end_replaced(struct model *m, struct room *r, const struct sp_event *ev)
{
	struct life *next;

	for (struct life *l = r->first; l; l = next) {
		next = l->rnext;
		if (l->seen && l->seen->op == ev->op && is_request(l, ev) &&
		    seen_begins_anew(l->seen, ev))
			life_park(m, l, inferred_outcome(m, l));
	}
}

static int held_room(struct model *m, struct proc *p, struct room *r, const struct sp_event *ev)
{
	enum queue q = queue_of(ev->kind);
	bool anew = false, assumed = false;
	struct life *l;
	int rc;

	if (q == Q_NONE && !ev->op)
		return entry_only(m, r, ev);
	l = known_life(r, ev);
	if (l && mistaken(l, ev, q)) {
		unbind(m, l);
		l = NULL;
	}
	if (!l) {
		end_replaced(m, r, ev);
		l = park_find(m, r, ev);
		anew = l != NULL;
		if (l && q != Q_NONE)
			park_reopen(m, l);
		else if (l)
			l = NULL; /* only a queue brings it back */
	}
	if (!l && q != Q_NONE) {
		l = unbound_life(m, r, ev, q);
		assumed = l != NULL;
	}
	/* in no queue, and never seen in one: nothing of it is held */
	if (!l && q == Q_NONE) {
		note_entry(r, ev->code);
		tell_taken(m, ev, NULL);
		return 0;
	}
	if (!l) {
		l = life_open(m, r, p, q != Q_BOOTSTRAP || (ev->flags & EV_CUT));
		anew = true;
	}
	if (!l)
		return -ENOMEM;
	route_give(m, ev, l);
	rc = held(m, l, ev, anew);
	if (l->seen)
		l->seen->assumed |= assumed;
	route_settle(m);
	return rc;
}

int route_held(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct room *r = room_get(m, ev->pid, ev->room);
	int rc;

	if (!r)
		return -ENOMEM;
	/* what is given up meanwhile may take other rooms with it, the longest idle ones */
	room_ref(m, r);
	rc = held_room(m, p, r, ev);
	room_unref(m, r);
	return rc;
}

void route_inferred(struct model *m, const struct sp_event *ev)
{
	struct room *r = room_find(m, ev->pid, ev->room);
	struct life *l = r ? known_life(r, ev) : NULL;
	bool other = false;

	if (!l) {
		tell_taken(m, ev, NULL);
		return;
	}
	route_give(m, ev, l);
	l->proc->loop_ns = m->now;
	/* an entry that is left is another request's, or else it is told of */
	for (const struct life *o = r->first; o; o = o->rnext)
		other |= o != l && seen_listed(o);
	if (!other)
		r->entry = ENTRY_NO;
	life_park(m, l, inferred_outcome(m, l));
	route_settle(m);
}
