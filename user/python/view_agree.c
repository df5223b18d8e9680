// SPDX-License-Identifier: Apache-2.0
/* What two consecutive snapshots agree on, and what of it is new. The rules are in view.h. */
#include <stdio.h>
#include <string.h>

#include "python/view_priv.h"
#include "util/clock.h"

#define ENTRY_LEFT                                                                                 \
	4 /* snapshots after which an entry says nothing about a request that was sent             \
	   */
#define FORGET_NS     (600 * NS_PER_SEC)
#define GONE_ITEMS    16384u /* requests in no queue: the oldest are forgotten beyond that */
#define SAME_ROOM_MAX 64     /* requests of one room that are looked through for the same rid */

static const struct view_facts nothing = {.code = HELD_UNKNOWN, .seen = -1, .need = -1};

struct view_facts *view_facts_of(const struct view_take *t, struct view_room *r)
{
	struct pyview *v = t->v;

	if (r->round == v->round)
		return &r->now;
	if (!r->born) {
		r->born = v->round;
		r->told = HELD_UNKNOWN;
		r->before = r->sure = nothing;
	}
	r->round = v->round;
	r->now = nothing;
	if (t->s->has_status)
		r->now.code = HELD_NO_ENTRY;
	if (t->s->has_announced)
		r->now.seen = 0;
	return &r->now;
}

/* ---- events -------------------------------------------------------------------------------- */

void view_event_init(const struct view_take *t, struct sp_event *ev, enum sp_role role,
		     const char *room)
{
	sp_event_init(ev);
	ev->ns = t->s->start_ns;
	ev->pid = t->v->pid;
	ev->role = role;
	snprintf(ev->room, sizeof(ev->room), "%s", room);
}

static void item_event(const struct view_take *t, struct sp_event *ev, enum sp_role role,
		       const struct view_item *it)
{
	view_event_init(t, ev, role, it->room->name);
	ev->op = it->addr;
	snprintf(ev->rid, sizeof(ev->rid), "%s", it->rid);
}

static void say_release(const struct view_take *t, const struct view_item *it, const char *note)
{
	struct sp_event ev;

	item_event(t, &ev, ROLE_RELEASE, it);
	ev.flags = EV_INFERRED;
	snprintf(ev.note, sizeof(ev.note), "%s", note);
	t->fn(t->ctx, &ev);
}

/* What was sure before, and is in doubt in this snapshot, makes nothing new. */
static int64_t code_to_say(const struct view_item *it)
{
	int64_t sure = it->room->sure.code;

	if (it->room->code_agreed)
		return sure;
	if (it->sure)
		return it->told.code;
	return sure == HELD_NO_ENTRY ? HELD_UNKNOWN : sure;
}

/* Without an entry in the table of announcements: none so far, as long as it waits for them. Later
 * the table may have been cleared. */
static int32_t seen_to_say(const struct view_take *t, const struct view_item *it, int8_t queue)
{
	int32_t seen = it->room->sure.seen;

	return seen || (queue >= 0 && strstr(t->v->py->queue[queue].name, "bootstrap")) ? seen : -1;
}

/* An event when anything about the request differs from what was said last. queue -1: in none. */
static void say_held(const struct view_take *t, struct view_item *it, int8_t queue)
{
	const struct view_facts *f = &it->room->sure;
	bool first = !it->sure;
	int64_t code = code_to_say(it);
	int32_t seen = seen_to_say(t, it, queue);
	struct sp_event ev;

	if (!first && it->told.queue == queue && it->told.code == code && it->told.seen == seen &&
	    it->told.need == f->need && it->told.tid == f->tid && it->told.flags == f->flags &&
	    it->told.sent == it->sent_sure && it->told.total == it->total_sure)
		return;
	it->sure = true;
	it->told.queue = queue;
	it->told.code = code;
	it->told.seen = seen;
	it->told.need = f->need;
	it->told.tid = f->tid;
	it->told.flags = f->flags;
	it->told.sent = it->sent_sure;
	it->told.total = it->total_sure;
	item_event(t, &ev, ROLE_HELD, it);
	if (queue >= 0)
		snprintf(ev.kind, sizeof(ev.kind), "%s", t->v->py->queue[queue].name);
	ev.code = code;
	ev.chunk = seen;
	ev.need = f->need;
	ev.part = it->sent_sure;
	ev.parts = it->total_sure;
	ev.tid = f->tid;
	ev.flags = f->flags | (first && it->born == 1 ? EV_CUT : 0);
	t->fn(t->ctx, &ev);
}

/* A room without a request: its entry in the status table. */
static void say_entry(const struct view_take *t, struct view_room *r)
{
	struct sp_event ev;
	bool first = r->told == HELD_UNKNOWN;

	if (r->told == r->sure.code || (first && r->sure.code == HELD_NO_ENTRY))
		return;
	r->told = r->sure.code;
	view_event_init(t, &ev, ROLE_HELD, r->name);
	ev.code = r->sure.code;
	ev.flags = first && r->born == 1 ? EV_CUT : 0;
	t->fn(t->ctx, &ev);
}

/* ---- what two of them agree on -------------------------------------------------------------- */

/* A number that only grows: at least what it was before is certain. Else it must be seen twice. */
static int32_t agree_count(int32_t sure, int32_t before, int32_t now)
{
	return now >= before ? before : sure;
}

/*
 * Where both snapshots contradict what was sure, it is so no more: the newer one's value takes its
 * place, but what speaks of a fault (no entry, no thread) only when it was seen twice.
 */
static void agree_code(struct view_room *r)
{
	bool moved = r->sure.code != HELD_UNKNOWN && r->now.code != r->sure.code &&
		     r->before.code != r->sure.code;

	r->code_agreed = moved || r->now.code == r->before.code;
	if (r->now.code == r->before.code)
		r->sure.code = r->now.code;
	else if (moved)
		r->sure.code = r->now.code == HELD_NO_ENTRY ? r->before.code : r->now.code;
}

static bool same_work(const struct view_facts *a, const struct view_facts *b)
{
	return a->tid == b->tid && a->flags == b->flags;
}

static void agree_work(struct view_room *r)
{
	const struct view_facts *now = &r->now, *before = &r->before;
	bool orphan = now->flags & EV_ORPHAN;

	if (!same_work(now, before) && (same_work(now, &r->sure) || same_work(before, &r->sure)))
		return;
	if (orphan && !same_work(now, before))
		now = &nothing;
	r->sure.tid = now->tid;
	r->sure.flags = now->flags;
}

static void roll_room(const struct view_take *t, struct view_room *r)
{
	struct view_facts *now = view_facts_of(t, r);

	if (!t->s->has_status) {
		/* nothing was learned of it */
		now->code = r->before.code;
		now->entry = r->before.entry;
	} else if (now->entry) {
		r->no_entry = 0;
	} else if (t->s->complete) {
		r->no_entry = view_twice(r->no_entry);
	}
	r->code_agreed = false;
	if (r->born != t->v->round) {
		r->sure.seen = agree_count(r->sure.seen, r->before.seen, now->seen);
		if (now->need == r->before.need)
			r->sure.need = now->need;
		agree_work(r);
		if (t->s->has_status)
			agree_code(r);
	}
	r->before = *now;
}

static void roll_rooms(const struct view_take *t)
{
	struct pyview *v = t->v;

	for (struct view_room *r = v->rooms; r; r = r->hh.next)
		roll_room(t, r);
}

/* ---- requests ------------------------------------------------------------------------------- */

enum queue_kind { QUEUE_WAITING, QUEUE_BOOTSTRAP, QUEUE_INFLIGHT };

/* Leaving a queue whose name says nothing proves nothing, as leaving `waiting` does. */
static enum queue_kind kind_of(const struct pyview *v, int8_t queue)
{
	const char *name = v->py->queue[queue].name;

	if (strstr(name, "inflight"))
		return QUEUE_INFLIGHT;
	/* without a table a request in its forward pass cannot be told from one that has gone */
	if (strstr(name, "bootstrap") && v->py->status.n)
		return QUEUE_BOOTSTRAP;
	return QUEUE_WAITING;
}

/* The same request as another object that is listed now: it has not been let go. In an earlier
 * queue it is a retry with the same id. */
static const struct view_item *listed_elsewhere(const struct view_take *t,
						const struct view_item *it)
{
	int n = 0;

	if (!it->rid[0])
		return NULL;
	for (const struct view_item *o = it->room->items; o && n < SAME_ROOM_MAX; o = o->next, n++)
		if (o != it && o->round == t->v->round && o->queue >= it->queue &&
		    !strcmp(o->rid, it->rid))
			return o;
	return NULL;
}

static bool forget(const struct view_take *t, struct view_item *it)
{
	view_item_del(t->v, it);
	return false;
}

/* A confirmed request is in no queue, in two complete snapshots at least. false: forgotten. */
static bool judge_gone(struct view_take *t, struct view_item *it)
{
	enum queue_kind kind = kind_of(t->v, it->queue);
	bool table = t->v->py->status.n;
	bool no_entry = table && it->room->no_entry == VIEW_TWICE;
	/* from there it goes nowhere else; what is left in the table may be another's, or stays */
	bool sent = kind == QUEUE_INFLIGHT &&
		    (!table || it->gone >= ENTRY_LEFT || it->room->listed_round == t->v->round);
	const struct view_item *other = listed_elsewhere(t, it);

	if (other) /* once it is sure, or will be at its turn */
		return other->sure || other->queue == other->queue_before ? forget(t, it) : true;
	if ((kind != QUEUE_WAITING && no_entry) || sent) {
		say_release(t, it, "");
		return forget(t, it);
	}
	if (t->s->start_ns - it->gone_ns >= FORGET_NS) {
		say_release(t, it, "not seen for 600 s");
		return forget(t, it);
	}
	if (t->surplus) {
		t->surplus--;
		return forget(t, it);
	}
	/* an entry that has gone just now is most likely the first sign of its release */
	if (kind == QUEUE_WAITING || it->room->no_entry != 1)
		say_held(t, it, -1);
	return true;
}

/* false: it is forgotten */
static bool roll_gone(struct view_take *t, struct view_item *it)
{
	it->queue_before = -1;
	if (!t->s->complete)
		return true;
	if (it->gone < UINT8_MAX)
		it->gone++;
	if (it->gone == 1)
		it->gone_ns = t->s->start_ns;
	if (it->gone < VIEW_TWICE)
		return true;
	return it->sure ? judge_gone(t, it) : forget(t, it);
}

static void roll_listed(const struct view_take *t, struct view_item *it)
{
	it->gone = 0;
	it->had_entry |= it->room->now.entry;
	if (it->had_entry)
		t->v->fits |= (uint8_t)(1 << it->queue);
	if (it->born != t->v->round) {
		it->sent_sure = agree_count(it->sent_sure, it->sent_before, it->sent);
		it->total_sure = agree_count(it->total_sure, it->total_before, it->total);
	}
	if (it->queue == it->queue_before)
		say_held(t, it, it->queue);
	it->queue_before = it->queue;
	it->sent_before = it->sent;
	it->total_before = it->total;
}

static void roll_items(struct view_take *t)
{
	struct pyview *v = t->v;
	struct view_item *it, *next;
	size_t listed = 0, gone = 0;

	t->surplus = v->gone > GONE_ITEMS ? v->gone - GONE_ITEMS : 0;
	for (it = v->items; it; it = next) {
		next = it->hh.next;
		if (it->round == v->round) {
			roll_listed(t, it);
			listed += it->sure;
		} else {
			gone += roll_gone(t, it);
		}
	}
	v->listed = listed;
	v->gone = gone;
}

/* After the requests: what is left of the rooms. */
static void roll_entries(const struct view_take *t)
{
	struct view_room *r, *next;

	for (r = t->v->rooms; r; r = next) {
		next = r->hh.next;
		if (r->items) {
			r->told = HELD_UNKNOWN;
			continue;
		}
		say_entry(t, r);
		if (!r->now.entry && (r->told == HELD_UNKNOWN || r->told == HELD_NO_ENTRY))
			view_room_del(t->v, r);
	}
}

/* ---- is the table that of these rooms? ------------------------------------------------------ */

/* Requests of the queue are listed, and the table has entries, and all of them are of rooms that
 * are in no queue. */
static bool misfits(const struct view_take *t, int queue)
{
	const struct pyview *v = t->v;
	bool listed = false;

	if (v->fits >> queue & 1 || !t->s->has_status ||
	    !strstr(v->py->queue[queue].name, "inflight"))
		return false;
	for (size_t i = 0; i < t->s->nrequest && !listed; i++)
		listed = t->s->request[i].queue == queue;
	for (const struct view_room *r = v->rooms; r && listed; r = r->hh.next) {
		const struct view_item *it = r->items;

		while (it && it->round != v->round)
			it = it->next;
		if (!it && r->round == v->round && r->now.entry)
			return true;
	}
	return false;
}

/* A doubt counts at once, as it only takes certainty away. */
static void roll_misfits(const struct view_take *t)
{
	struct pyview *v = t->v;

	for (int i = 0; i < v->py->nqueues; i++) {
		uint8_t bit = (uint8_t)(1 << i);
		bool now = misfits(t, i);
		struct sp_event ev;

		v->fit_rounds[i] = now ? 0 : view_twice(v->fit_rounds[i]);
		if (now ? v->misfit & bit
			: !((v->misfit | v->misfit_perhaps) & bit) ||
				    (!(v->fits & bit) && v->fit_rounds[i] < VIEW_TWICE))
			continue;
		v->misfit = now ? v->misfit | bit : v->misfit & ~bit;
		v->misfit_perhaps &= (uint8_t)~bit;
		view_event_init(t, &ev, ROLE_VIEW, "");
		snprintf(ev.kind, sizeof(ev.kind), "%s", now ? "misfit" : "fits");
		snprintf(ev.note, sizeof(ev.note), "%s", v->py->queue[i].name);
		t->fn(t->ctx, &ev);
	}
}

void view_agree(struct view_take *t)
{
	roll_rooms(t);
	view_agree_threads(t);
	roll_items(t);
	roll_misfits(t);
	roll_entries(t);
}
