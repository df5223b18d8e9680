// SPDX-License-Identifier: Apache-2.0
/*
 * Requests as their clients see them. A request that is tracked has its release in the answer; one
 * whose front serves several processes opens a life in each of them, until the room shows itself in
 * one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/asked.h"

static bool is_over(const struct life *l)
{
	return l->rare && (l->rare->reply_ns || l->rare->client_gone_ns);
}

/* How well l fits: its request id decides, then that its answer is waited for, then what is nearest
 * to its end. */
static int fit(const struct life *l, const struct sp_event *ev)
{
	bool known = ev->rid[0] && l->rid;
	bool same = known && !strcmp(ev->rid, l->rid);

	return 16 * same + 8 * !known + 4 * l->tracked + 2 * (l->stage == STAGE_RELEASING) +
	       life_doomed(l);
}

/* A request has a number of its own, and so has what is said of it later. */
static bool is_another(const struct life *l, const struct sp_event *ev)
{
	return ev->op && l->asked && ev->op != l->asked;
}

struct life *asked_life(const struct room *r, const struct sp_event *ev, bool exact)
{
	struct life *best = NULL;
	int most = exact ? 15 : -1;

	for (struct life *l = r ? r->first : NULL; l; l = l->rnext) {
		if (!l->asked_ns || is_over(l) || is_another(l, ev) || fit(l, ev) <= most)
			continue;
		best = l;
		most = fit(l, ev);
	}
	return best;
}

/* ---- whose room it is, of several processes ------------------------------------------------ */

static void found_elsewhere(struct model *m, struct life *l)
{
	if (!l->shared || l->elsewhere)
		return;
	l->elsewhere = true;
	if (l->stuck)
		stall_again(m, l, m->now);
	else
		tell_changed(m, l);
}

static bool is_own(const struct sp_event *ev)
{
	switch (ev->role) {
	case ROLE_ARRIVE:
	case ROLE_REPLY:
		return false;
	case ROLE_ABORT:
		return !(ev->flags & EV_SHARED);
	case ROLE_HELD:
		return ev->op || ev->kind[0] || ev->code >= 0; /* an entry that is gone is none */
	case ROLE_PEER:
		return !strcmp(ev->kind, "unread");
	default:
		return true;
	}
}

void asked_shows(struct model *m, struct life *l, const struct sp_event *ev)
{
	int look = MAX_RANKS;

	if (!l->shared || !is_own(ev))
		return;
	l->shared = l->elsewhere = false;
	timer_arm(m, l); /* of its own process's dead thread it waits less long */
	for (struct proc *p = m->procs; p && look--; p = p->hh.next) {
		struct room *r = p == l->proc ? NULL : room_find(m, p->pid, l->room->name);

		for (struct life *o = r ? r->first : NULL; o; o = o->rnext)
			found_elsewhere(m, o);
	}
}

/* The room had shown itself in another process before its request was seen. */
static bool shown_elsewhere(struct model *m, const struct life *l)
{
	int look = MAX_RANKS;

	for (struct proc *p = m->procs; p && look--; p = p->hh.next) {
		struct room *r = p == l->proc ? NULL : room_find(m, p->pid, l->room->name);

		for (struct life *o = r ? r->first : NULL; o; o = o->rnext)
			if (!o->shared)
				return true;
	}
	return false;
}

/* ---- arrive -------------------------------------------------------------------------------- */

/* An announcement may come before the request; what is posted comes after it. */
static struct life *arriving_life(struct model *m, struct proc *p, struct room *r, bool shared)
{
	struct life *l = r->first;

	while (l && (l->arrived || l->ngroups || life_doomed(l)))
		l = l->rnext;
	/* A second request for the room may be another process's: it opens nothing here. */
	if (l || (shared && r->first))
		return l;
	route_supersede(m, r);
	l = life_open(m, r, p, false);
	if (l)
		l->shared = true; /* nothing else of it is known: the caller sees to that */
	return l;
}

/* Without a source that shows its end, a terminal life is over. What has been told of it stays. */
static void untrack(struct model *m, struct life *l)
{
	l->tracked = false;
	if (l->stage == STAGE_RELEASING && !l->stuck && !sees_release(m, l))
		life_end(m, l, OUTCOME_DONE);
}

/* Two requests for the room, and which of them is this process's is not known: nor whose answer. */
static void nobodys(struct model *m, struct room *r)
{
	struct life *next;

	for (struct life *l = r->first; l; l = next) {
		next = l->rnext;
		l->asked_ns = 0;
		untrack(m, l);
	}
}

static int arrive(struct model *m, struct proc *p, struct room *r, const struct sp_event *ev)
{
	struct did did = {.role = ROLE_ARRIVE, .rank = -1, .last = -1, .chunk = -1, .need = -1};
	bool shared = ev->flags & EV_SHARED;
	struct life *l = arriving_life(m, p, r, shared);

	if (!l && shared && r->first) {
		nobodys(m, r);
		tell_taken(m, ev, NULL);
		return 0;
	}
	if (!l)
		return -ENOMEM;
	l->shared = l->shared && shared;
	l->fake |= (ev->flags & EV_FAKE) != 0;
	l->tracked = ev->flags & EV_TRACKED;
	l->arrived = true;
	l->asked_ns = m->now;
	l->asked = ev->op;
	if (l->shared)
		l->elsewhere = shown_elsewhere(m, l);
	route_give(m, ev, l);
	life_progress(m, l, &did);
	route_settle(m);
	return 0;
}

int route_arrive(struct model *m, struct proc *p, const struct sp_event *ev)
{
	struct room *r = room_get(m, ev->pid, ev->room);
	int rc;

	if (!r)
		return -ENOMEM;
	/* opening a life may forget others, and with them the room */
	room_ref(m, r);
	rc = arrive(m, p, r, ev);
	room_unref(m, r);
	return rc;
}

/* ---- reply --------------------------------------------------------------------------------- */

static enum sp_outcome reply_outcome(const struct model *m, const struct life *l,
				     const struct sp_event *ev)
{
	if (l->shared && l->elsewhere)
		return OUTCOME_NONE; /* it was another process's */
	if (ev->status == OPS_ERROR)
		return OUTCOME_FAILED;
	if (ev->status == OPS_DONE || l->stage == STAGE_RELEASING || life_complete(m, l))
		return OUTCOME_DONE;
	if (ev->code >= 400 || life_doomed(l) || (l->rare && l->rare->abandoned_ns))
		return OUTCOME_FAILED;
	/* without a code: operations were seen, and not all there should be */
	return ev->code || !l->ngroups ? OUTCOME_DONE : OUTCOME_FAILED;
}

/* The client has its answer. The server's own view has the last word: a request that it lists is
 * still held. */
static void answered(struct model *m, struct life *l, const struct sp_event *ev)
{
	enum sp_outcome outcome = reply_outcome(m, l, ev);
	struct rare *x = life_rare(m, l);

	l->tracked = false;
	if (!l->shared)
		l->proc->reply_ns = m->now;
	if (!x || !view_active(l->proc)) {
		life_end(m, l, outcome);
		return;
	}
	x->reply_ns = m->now;
	x->reply_code = (int32_t)ev->code;
	x->reply_failed = outcome == OUTCOME_FAILED;
	if (!seen_listed(l))
		life_park(m, l, outcome);
	else if (outcome == OUTCOME_DONE && seen_in(l, Q_INFLIGHT))
		life_releasing(m, l);
}

static void begins(struct model *m, struct life *l)
{
	struct rare *x = life_rare(m, l);

	if (!x)
		return;
	x->first_ns = m->now;
	x->answering = l->stage == STAGE_RELEASING;
}

static bool of_socket(const struct sp_event *ev)
{
	return !strcmp(ev->kind, "first") || !strcmp(ev->kind, "end");
}

int route_reply(struct model *m, const struct sp_event *ev)
{
	struct did did = {.role = ROLE_REPLY, .rank = -1, .last = -1, .chunk = -1, .need = -1};
	struct room *r = room_find(m, ev->pid, ev->room);
	struct life *l = asked_life(r, ev, false);

	/* what is seen on a socket begins with an arrival: that life has ended */
	if (!l && r && !of_socket(ev))
		l = route_ending(r, ev);
	if (!l) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	did.kind = kind_index(m, ev->kind);
	did.code = ev->code;
	route_give(m, ev, l);
	life_progress(m, l, &did);
	if (!strcmp(ev->kind, "first"))
		begins(m, l);
	else
		answered(m, l, ev);
	route_settle(m);
	return 0;
}

/* ---- the client is gone; nothing will be seen of its answer -------------------------------- */

/* The server is expected to abort the request; other requests of the room are not concerned. */
int route_client_gone(struct model *m, const struct sp_event *ev)
{
	struct life *l = asked_life(room_find(m, ev->pid, ev->room), ev, false);
	struct rare *x;

	if (!l) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, l);
	x = life_rare(m, l);
	if (x) {
		x->client_gone_ns = m->now;
		x->gone_early = l->stage != STAGE_RELEASING && !life_complete(m, l);
	}
	if (!l->abort_ns)
		l->abort_ns = m->now;
	untrack(m, l);
	route_settle(m);
	return x ? 0 : -ENOMEM;
}

int route_untracked(struct model *m, const struct sp_event *ev)
{
	struct life *l = asked_life(room_find(m, ev->pid, ev->room), ev, false);
	struct rare *x;

	if (!l) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, l);
	x = life_rare(m, l);
	if (x)
		x->untracked_ns = m->now;
	untrack(m, l);
	route_settle(m);
	return x ? 0 : -ENOMEM;
}

/* It waits for somebody who does not read: the earliest life that lacks an announcement. */
int route_unread(struct model *m, const struct sp_event *ev)
{
	struct room *r = room_find(m, ev->pid, ev->room);
	struct life *l = r ? r->first : NULL;
	struct rare *x;

	while (l && l->rnext && (l->stage != STAGE_BOOTSTRAP || life_doomed(l)))
		l = l->rnext;
	if (!l) {
		tell_taken(m, ev, NULL);
		return 0;
	}
	route_give(m, ev, l);
	x = life_rare(m, l);
	if (x && !x->unread_ns) {
		x->unread_ns = m->now;
		snprintf(x->unread_peer, sizeof(x->unread_peer), "%.*s",
			 (int)sizeof(x->unread_peer) - 1, ev->peer[0] ? ev->peer : ev->agent);
	}
	route_settle(m);
	return x ? 0 : -ENOMEM;
}

/* Nothing will show its end. */
static bool ends_unseen(const struct model *m, const struct life *l)
{
	return !l->tracked && !m->cfg.sees_release && !view_active(l->proc) && !seen_listed(l);
}

bool asked_unfollowed(const struct model *m, const struct life *l)
{
	bool sent = l->stage == STAGE_READY || l->stage == STAGE_INFLIGHT;

	return ends_unseen(m, l) &&
	       ((proc_blind(m, l->proc) && sent) || (l->shared && l->elsewhere));
}

/* The server itself gives up what is not announced within the deadline of bootstrap: an
 * announcement later than that belongs to a younger request. */
bool asked_unbegun(const struct model *m, const struct life *l)
{
	uint64_t span = m->cfg.stage_ns[STAGE_BOOTSTRAP], since = l->proc->attached_ns;

	if (!m->cfg.sees_arrive || !since || !proc_blind(m, l->proc) || !ends_unseen(m, l))
		return false;
	if (l->arrived && !(l->rare && l->rare->untracked_ns))
		return false;
	if (l->stage == STAGE_BOOTSTRAP)
		return l->blurred; /* other peers' announcements may have been before, too */
	return !span || l->opened_ns < since + span;
}
