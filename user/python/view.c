// SPDX-License-Identifier: Apache-2.0
/* A view takes snapshots: what each one says is noted here, view_agree.c concludes from it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/view_priv.h"
#include "util/clock.h"

#define AGREE_NS   (50 * NS_PER_MS)
#define BARE_ROOMS 65536u /* entries of the status table without a request */

struct pyview *pyview_new(const struct profile *p, uint32_t pid)
{
	struct pyview *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->py = p->python;
	v->pid = pid;
	v->bytes = sizeof(*v);
	return v;
}

void pyview_free(struct pyview *v)
{
	if (!v)
		return;
	view_table_free(v);
	free(v);
}

void pyview_reset(struct pyview *v)
{
	struct pyview fresh = {.py = v->py, .pid = v->pid, .bytes = sizeof(*v)};

	if (v->workers_told != WORKERS_SURE)
		fresh.workers_told = WORKERS_PERHAPS;
	fresh.misfit_perhaps = v->misfit | v->misfit_perhaps;

	view_table_free(v);
	*v = fresh;
}

size_t pyview_requests(const struct pyview *v)
{
	return v->listed;
}

size_t pyview_bytes(const struct pyview *v)
{
	return v->bytes;
}

/* ---- what this snapshot says ---------------------------------------------------------------- */

static int32_t count(int64_t n)
{
	return n > INT32_MAX ? INT32_MAX : n < 0 ? -1 : (int32_t)n;
}

static void mark_request(const struct view_take *t, const struct pyview_request *q)
{
	struct pyview *v = t->v;
	struct view_item *it = view_item_find(v, q);

	if (!it) {
		it = view_item_add(v, q);
		if (!it) {
			v->failed = true;
			return;
		}
		it->born = v->round;
		it->queue = it->queue_before = -1;
		it->sent_before = it->sent_sure = it->total_before = it->total_sure = -1;
	}
	if (it->round != v->round)
		it->queue = -1;
	it->round = v->round;
	/* on its way between two of them while they were read: where it has come to */
	if (q->queue > it->queue)
		it->queue = (int8_t)q->queue;
	it->sent = count(q->sent);
	it->total = count(q->total);
	view_facts_of(t, it->room);
	if (it->sure)
		it->room->listed_round = v->round;
}

static void mark_status(const struct view_take *t, const struct pyview_status *st)
{
	struct pyview *v = t->v;
	struct view_room *r = view_room_find(v, st->room);

	if (!r && v->bare >= BARE_ROOMS)
		return;
	if (!r)
		r = view_room_add(v, st->room);
	if (!r) {
		v->failed = true;
		return;
	}
	view_facts_of(t, r)->entry = true;
	/* a value that means something else in an event is an entry of unknown value */
	r->now.code = st->code == HELD_NO_ENTRY ? HELD_UNKNOWN : st->code;
}

/* Chunks of a room may wait in several backlogs: one that is served tells where it goes on. */
static void mark_waiting(const struct view_take *t, const struct pyview_waiting *w)
{
	struct view_room *r = view_room_find(t->v, w->room);
	struct view_facts *f = r ? view_facts_of(t, r) : NULL;

	if (!f)
		return;
	if (w->served) {
		f->tid = w->tid;
		f->flags = w->tid ? 0 : EV_WAITS;
	} else if (t->s->nworker || t->s->serving_proved) {
		f->flags = EV_ORPHAN;
	} else {
		/* without any worker the profile's names may not fit this server */
		f->flags = EV_WAITS;
	}
}

static void mark_worker(const struct view_take *t, const struct pyview_worker *pw)
{
	struct pyview *v = t->v;
	struct view_room *r = pw->room[0] ? view_room_find(v, pw->room) : NULL;
	struct view_worker *w;

	if (r) {
		struct view_facts *f = view_facts_of(t, r);

		f->tid = pw->tid;
		f->flags = EV_AT;
	}
	if (!pw->tid)
		return;
	w = view_worker_find(v, pw->tid);
	if (!w) {
		w = view_worker_add(v, pw->tid);
		if (!w) {
			v->failed = true;
			return;
		}
		w->born = v->round;
	}
	w->round = v->round;
	snprintf(w->room, sizeof(w->room), "%s", pw->room);
}

static void mark(const struct view_take *t)
{
	const struct py_snapshot *s = t->s;
	struct pyview *v = t->v;

	v->cursor = NULL;
	for (size_t i = 0; i < s->nrequest; i++)
		if (s->request[i].queue >= 0 && s->request[i].queue < v->py->nqueues)
			mark_request(t, &s->request[i]);
	for (size_t i = 0; i < s->nstatus; i++)
		mark_status(t, &s->status[i]);
	for (size_t i = 0; i < s->nannounced; i++) {
		struct view_room *r = view_room_find(v, s->announced[i].room);

		if (r) {
			view_facts_of(t, r)->seen = s->announced[i].seen;
			r->now.need = s->announced[i].need;
		}
	}
	for (int served = 0; served <= 1; served++)
		for (size_t i = 0; i < s->nwaiting; i++)
			if (s->waiting[i].served == served)
				mark_waiting(t, &s->waiting[i]);
	for (size_t i = 0; i < s->nworker; i++)
		mark_worker(t, &s->worker[i]);
}

/* A snapshot that confirms nothing: but what it has seen is not gone. */
static void glimpse(struct pyview *v, const struct py_snapshot *s)
{
	v->cursor = NULL;
	for (size_t i = 0; i < s->nrequest; i++) {
		struct view_item *it = view_item_find(v, &s->request[i]);

		if (it)
			it->gone = 0;
	}
	for (size_t i = 0; i < s->nstatus; i++) {
		struct view_room *r = view_room_find(v, s->status[i].room);

		if (r)
			r->no_entry = 0;
	}
}

/* ---- a snapshot ----------------------------------------------------------------------------- */

int pyview_take(struct pyview *v, const struct py_snapshot *s, pyview_fn fn, void *ctx,
		uint64_t *since_ns)
{
	struct view_take t = {.v = v, .s = s, .fn = fn, .ctx = ctx};
	bool agrees;

	if (!s->stable || (v->round && s->start_ns < v->last_ns + AGREE_NS)) {
		glimpse(v, s);
		return !s->stable ? -EAGAIN : s->complete ? 0 : -ENODATA;
	}
	v->round++;
	v->failed = false;
	mark(&t);
	view_agree(&t);
	agrees = v->round > 1 && v->last_complete && s->complete;
	*since_ns = v->last_ns;
	v->last_ns = s->start_ns;
	v->last_complete = s->complete;
	if (v->failed)
		return -ENOMEM;
	return agrees ? 1 : s->complete ? 0 : -ENODATA;
}
