// SPDX-License-Identifier: Apache-2.0
/* Events that carry a room or an operation: which life they belong to, and what they do to it. */
#include <errno.h>
#include <string.h>

#include "model/asked.h"
#include "model/loose.h"

void route_give(struct model *m, const struct sp_event *ev, struct life *l)
{
	m->at_hand = l;
	l->last_ns = m->now;
	if (ev->rid[0] && !l->rid) {
		size_t len = strnlen(ev->rid, sizeof(ev->rid) - 1);

		l->rid = mem_new(m, len + 1);
		if (l->rid)
			memcpy(l->rid, ev->rid, len);
	}
	m->prepared = NULL;
	if (l->stuck)
		stall_prepare(m, l);
	tell_taken(m, ev, l);
	asked_shows(m, l, ev);
}

void route_settle(struct model *m)
{
	struct life *l = m->at_hand;

	m->at_hand = NULL;
	m->prepared = NULL;
	if (l && m->recovered == l)
		tell_recovered(m, l, OUTCOME_MOVING);
	if (l && l->stuck)
		stall_again(m, l, m->now);
	else if (l)
		tell_changed(m, l);
}

/* ---- announce ----------------------------------------------------------------------------- */

/* A room in bootstrap whose deadline has passed, opened again by its peers: they have given the
 * first attempt up, and so has the server, or its timeout will. */
void route_supersede(struct model *m, struct room *r)
{
	struct life *next;

	for (struct life *l = r->first; l; l = next) {
		next = l->rnext;
		if (l->stage == STAGE_BOOTSTRAP && l->stuck && !seen_listed(l) && !l->tracked)
			life_end(m, l, OUTCOME_FAILED);
	}
}

static struct life *announced_life(struct model *m, struct proc *p, struct room *r,
				   const struct agent *a)
{
	struct life *l = r->first;

	while (l && !life_accepts(l, a))
		l = l->rnext;
	if (l)
		return l;
	route_supersede(m, r);
	return life_open(m, r, p, false);
}

static int announce(struct model *m, struct proc *p, struct room *r, struct agent *a,
		    const struct sp_event *ev)
{
	struct life *l = announced_life(m, p, r, a);
	struct did did = {.role = ROLE_ANNOUNCE, .agent = a, .rank = -1, .last = -1, .chunk = -1};
	int rc;

	if (!l)
		return -ENOMEM;
	route_give(m, ev, l);
	if (l->rare)
		l->rare->unread_ns = 0;
	rc = life_announce(m, l, a, ev);
	did.need = l->quorum;
	did.flags = ev->flags & EV_NODATA;
	if (!l->npeers || l->peers[l->npeers - 1].agent != a)
		did.agent = NULL;
	life_progress(m, l, &did);
	if (l->stage == STAGE_BOOTSTRAP && life_quorum(l))
		life_stage(m, l, STAGE_READY);
	route_settle(m);
	return rc;
}

/* A socket does not show which thread takes its messages (tid 0), nor that it does. */
static int announcer(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct worker *w;

	p->native = true;
	if (!ev->tid)
		return 0;
	w = worker_get(m, p, ev->tid);
	if (!w)
		return -ENOMEM;
	w->announces = true;
	p->boot_known = true;
	p->boot_missing = false;
	p->boot_dead_ns = 0;
	p->boot_tid = ev->tid;
	return 0;
}

static int route_announce(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct room *r = room_get(m, ev->pid, ev->room);
	struct agent *a;
	int rc = -ENOMEM;

	if (!r)
		return rc;
	/* opening a life may forget others, and with them what only they refer to; so may a new
	 * agent, or thread */
	room_ref(m, r);
	a = agent_get(m, ev->pid, ev);
	if (a) {
		agent_ref(m, a);
		rc = announcer(m, p, ev);
		if (!rc)
			rc = announce(m, p, r, a, ev);
		agent_unref(m, a);
	}
	room_unref(m, r);
	return rc;
}

/* ---- operations --------------------------------------------------------------------------- */

/* The earliest life that is not over for the server and has not had this operation yet. */
static struct life *posted_life(struct model *m, const struct room *r, const struct sp_event *ev)
{
	struct life *l = r->first;
	uint8_t kind;

	if (!l || !l->rnext)
		return l;
	kind = kind_index(m, ev->kind);
	while (l->rnext && (life_doomed(l) || l->stage == STAGE_RELEASING || op_seen(l, kind, ev)))
		l = l->rnext;
	return l;
}

static int route_create(struct model *m, struct proc *p, const struct sp_event *ev)
{
	bool failed = ev->status == OPS_ERROR && (ev->flags & EV_CREATED);
	struct room *r = room_get(m, ev->pid, ev->room);
	struct life *l = r ? posted_life(m, r, ev) : NULL;
	int rc;

	if (!r)
		return -ENOMEM;
	if (!l && failed) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	if (!l)
		l = life_open(m, r, p, true);
	if (!l)
		return -ENOMEM;
	route_give(m, ev, l);
	rc = op_create(m, l, ev);
	route_settle(m);
	return rc;
}

/* An operation created on this thread a moment ago, whose handle is only known now. */
static struct op *bind_unbound(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct worker *w = worker_get(m, p, ev->tid);
	struct op *o = w ? w->unbound : NULL;

	if (!o || !ev->op)
		return NULL;
	w->unbound = NULL;
	if (!op_bind(m, o, ev->op))
		return o;
	op_free(m, o);
	return NULL;
}

/* Closed, with the last that its owner knew of it: that counts first, and may end its life. */
static void closed(struct model *m, struct op *o, const struct sp_event *ev)
{
	if (o->state <= OP_BUSY && (ev->status == OPS_DONE || ev->status == OPS_ERROR)) {
		op_status(m, o, ev);
		o = op_find(m, ev->pid, ev->op);
	}
	if (o)
		op_close(m, o);
}

/* The operation that a post is about; NULL: a new one. A handle that is posted for another room, or
 * for other work of the room, is in use again. */
static struct op *posted_op(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct op *o = ev->room[0] ? NULL : bind_unbound(m, p, ev);
	struct room *r;

	if (o)
		return o;
	o = op_find(m, ev->pid, ev->op);
	if (!o || (ev->flags & EV_CREATED))
		return NULL;
	if (!ev->room[0])
		return o;
	if (!strcmp(op_room(o), ev->room))
		return op_same(m, o, ev) ? o : NULL;
	r = o->loose ? room_find(m, ev->pid, ev->room) : NULL;
	if (!r || !r->first)
		return NULL;
	loose_tie(m, o, posted_life(m, r, ev));
	return o;
}

int route_op(struct model *m, const struct sp_event *ev)
{
	struct proc *p = proc_get(m, ev->pid);
	bool post = ev->role == ROLE_POST;
	struct op *o;

	if (!p)
		return -ENOMEM;
	p->native |= post;
	o = post ? posted_op(m, p, ev) : op_find(m, ev->pid, ev->op);
	if (post && ev->room[0] && !o)
		return route_create(m, p, ev);
	if (post && ev->op && !o) {
		tell_taken(m, ev, NULL);
		return loose_post(m, p, ev);
	}
	if (!o) {
		m->st.unknown_ops++;
		tell_taken(m, ev, NULL);
		return 0;
	}
	if (op_life(o))
		route_give(m, ev, o->life);
	else
		tell_taken(m, ev, NULL);
	if (post)
		op_post(m, o, ev);
	else if (ev->role == ROLE_STATUS)
		op_status(m, o, ev);
	else
		closed(m, o, ev);
	route_settle(m);
	return 0;
}

/* ---- the other roles of a room ------------------------------------------------------------ */

static int route_abort(struct model *m, const struct sp_event *ev)
{
	struct room *r = room_get(m, ev->pid, ev->room);
	struct life *first, *one;

	if (!r)
		return -ENOMEM;
	first = r->first;
	/* by its request id it is that request's alone */
	one = ev->rid[0] ? asked_life(r, ev, true) : NULL;
	if (!first) {
		room_keep_abort(m, r);
		tell_taken(m, ev, NULL);
		return 0;
	}
	/* the server has one entry for the room: it hits every life of it */
	while (first->rnext && first->abort_ns)
		first = first->rnext;
	if (one)
		first = one;
	route_give(m, ev, first);
	for (struct life *l = r->first; l; l = l->rnext) {
		if (l->abort_ns || (one && l != one))
			continue;
		l->abort_ns = m->now;
		if (l != first)
			tell_changed(m, l);
	}
	route_settle(m);
	return 0;
}

/* An end belongs to the life with its request id, else to the one nearest its end. */
struct life *route_ending(const struct room *r, const struct sp_event *ev)
{
	struct life *l;

	if (ev->rid[0])
		for (l = r->first; l; l = l->rnext)
			if (l->rid && !strcmp(l->rid, ev->rid))
				return l;
	for (l = r->first; l; l = l->rnext)
		if (l->stage == STAGE_RELEASING)
			return l;
	for (l = r->first; l; l = l->rnext)
		if (life_doomed(l))
			return l;
	return r->first;
}

static enum sp_outcome outcome_of(const struct life *l, const struct sp_event *ev)
{
	if (ev->status == OPS_ERROR)
		return OUTCOME_FAILED;
	if (ev->status == OPS_DONE || l->stage == STAGE_RELEASING)
		return OUTCOME_DONE;
	if (life_doomed(l) || (l->rare && l->rare->abandoned_ns))
		return OUTCOME_FAILED;
	/* operations were seen, and not all there should be */
	return l->ngroups ? OUTCOME_FAILED : OUTCOME_DONE;
}

/* An explicit end status sent to a peer: the life is over once every peer has it, or at the first
 * that says it failed. */
static void told(struct model *m, struct life *l, const struct sp_event *ev)
{
	struct rare *r = life_rare(m, l);
	enum sp_outcome outcome = OUTCOME_FAILED;

	if (ev->status != OPS_DONE && ev->status != OPS_ERROR)
		return;
	if (ev->status == OPS_DONE) {
		outcome = OUTCOME_DONE;
		/* what still looks in progress has ended unseen, or is no more this room's matter
		 */
		if (!r || ++r->told < life_takers(l))
			return;
	}
	if (!sees_release(m, l))
		life_end(m, l, outcome);
	else if (outcome == OUTCOME_DONE)
		life_releasing(m, l);
	else if (!l->error_ns) {
		l->error_ns = m->now;
		if (r)
			r->told_failed = true;
	}
}

static int route_end(struct model *m, const struct sp_event *ev)
{
	struct did did = {.role = ev->role, .rank = -1, .last = -1, .chunk = -1, .need = -1};
	struct room *r = room_find(m, ev->pid, ev->room);
	struct life *l = r ? route_ending(r, ev) : NULL;

	if (ev->role == ROLE_RELEASE && (ev->flags & EV_INFERRED)) {
		route_inferred(m, ev);
		return 0;
	}
	if (!l) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, l);
	life_progress(m, l, &did);
	if (ev->role == ROLE_TOLD)
		told(m, l, ev);
	else
		life_end(m, l, outcome_of(l, ev));
	route_settle(m);
	return 0;
}

static bool is_reply(const char *kind)
{
	return strcasestr(kind, "rsp") || strcasestr(kind, "reply") ||
	       strcasestr(kind, "watermark");
}

static int route_control(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct room *r = ev->room[0] ? room_find(m, ev->pid, ev->room) : NULL;
	struct life *l = r ? r->first : NULL;
	struct rare *x;

	if (!l) {
		if (is_reply(ev->kind) && !ev->room[0])
			p->control_heard_ns = m->now;
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, l);
	x = life_rare(m, l);
	if (x && is_reply(ev->kind))
		x->control_in_ns = m->now;
	else if (x)
		x->control_out_ns = m->now;
	route_settle(m);
	return x ? 0 : -ENOMEM;
}

int route_room(struct model *m, const struct sp_event *ev)
{
	struct proc *p = proc_get(m, ev->pid);

	if (!p)
		return -ENOMEM;
	if (!ev->room[0] && ev->role != ROLE_CONTROL) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	switch (ev->role) {
	case ROLE_ANNOUNCE:
		return route_announce(m, p, ev);
	case ROLE_ARRIVE:
		return route_arrive(m, p, ev);
	case ROLE_HELD:
		return route_held(m, p, ev);
	case ROLE_ABORT:
		return strcmp(ev->kind, "client-gone") ? route_abort(m, ev)
						       : route_client_gone(m, ev);
	case ROLE_REPLY:
		return route_reply(m, ev);
	case ROLE_CONTROL:
		return route_control(m, p, ev);
	default:
		return route_end(m, ev);
	}
}
