// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "collect/scope_priv.h"

struct scope *scope_new(const struct profile *p, struct calls *calls, struct tallies *tallies,
			scope_emit emit, void *ctx)
{
	struct scope *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->p = p;
	s->calls = calls;
	s->tallies = tallies;
	s->emit = emit;
	s->ctx = ctx;
	s->ops = oprooms_new();
	if (s->ops)
		return s;
	free(s);
	return NULL;
}

static void no_one(void *ctx, const struct sp_event *ev, bool doubtful)
{
}

void scope_free(struct scope *s)
{
	if (!s)
		return;
	s->emit = no_one;
	while (s->nodes)
		wait_done(s, s->nodes, "", false, false);
	while (s->threads) {
		struct thread *t = s->threads;

		HASH_DEL(s->threads, t);
		free(t);
	}
	oprooms_free(s->ops);
	free(s);
}

/* ---- threads ------------------------------------------------------------------------------- */

struct thread *scope_thread(const struct scope *s, uint32_t pid, uint32_t tid)
{
	struct thread *t, probe = {.key = {.pid = pid, .tid = tid}};

	HASH_FIND(hh, s->threads, &probe.key, sizeof(probe.key), t);
	return t;
}

static void forget_thread(struct scope *s, struct thread *t)
{
	t->room[0] = '\0';
	while (t->nodes) {
		bool last = !t->nodes->next;

		wait_done(s, t->nodes, "", false, false);
		if (last)
			return; /* it went with its last node */
	}
	scope_thread_put(s, t);
}

static void evict(struct scope *s, struct thread *t)
{
	while (t->nodes && t->nodes->next)
		wait_give_up(s, t->nodes);
	t->room[0] = '\0';
	if (t->nodes)
		wait_give_up(s, t->nodes); /* the thread goes with its last node */
	else
		scope_thread_put(s, t);
}

struct thread *scope_thread_get(struct scope *s, uint32_t pid, uint32_t tid)
{
	struct thread *t = scope_thread(s, pid, tid);

	if (t)
		return t;
	while (HASH_COUNT(s->threads) >= SCOPE_THREADS)
		evict(s, s->threads); /* the one that came first */
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->key.pid = pid;
	t->key.tid = tid;
	HASH_ADD(hh, s->threads, key, sizeof(t->key), t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

void scope_thread_put(struct scope *s, struct thread *t)
{
	if (t->room[0] || t->nodes)
		return;
	HASH_DEL(s->threads, t);
	free(t);
}

/* ---- events that come in ------------------------------------------------------------------- */

void scope_out(struct scope *s, const struct sp_event *ev, bool doubtful)
{
	if (ev->role == ROLE_CALL)
		calls_take(s->calls, ev, doubtful);
	else
		s->emit(s->ctx, ev, doubtful);
}

void scope_learn(struct scope *s, const struct sp_event *ev)
{
	struct op_room *o;

	if (!ev->op)
		return;
	if (ev->role == ROLE_CLOSE || (ev->role == ROLE_POST && (ev->flags & EV_CREATED)))
		oprooms_forget(s->ops, ev->pid, ev->op);
	if (!ev->room[0] || (ev->role != ROLE_POST && ev->role != ROLE_STATUS))
		return;
	o = oprooms_get(s->ops, ev->pid, ev->op);
	if (o) {
		memcpy(o->room, ev->room, sizeof(o->room));
		o->enter_ns = 0;
	}
}

const char *scope_op_room(const struct scope *s, uint32_t pid, uint64_t op)
{
	const struct op_room *o = op ? oprooms_find(s->ops, pid, op) : NULL;

	return o && o->room[0] ? o->room : NULL;
}

const char *scope_thread_room(const struct scope *s, uint32_t pid, uint32_t tid, uint64_t enter_ns)
{
	const struct thread *t = scope_thread(s, pid, tid);

	/* a call that was entered before the work began is not part of it */
	return t && t->room[0] && t->since_ns <= enter_ns ? t->room : NULL;
}

/* Its post still waits: it must not come before it. */
static bool follows_post(struct scope *s, const struct sp_event *ev)
{
	const struct op_room *o;
	struct thread *t;

	if (!ev->op || (ev->role != ROLE_STATUS && ev->role != ROLE_CLOSE && ev->role != ROLE_POST))
		return false;
	o = oprooms_find(s->ops, ev->pid, ev->op);
	t = o && !o->room[0] && o->enter_ns ? scope_thread(s, ev->pid, o->tid) : NULL;
	return t && wait_find(t, o->enter_ns) && wait_add(s, t, o->enter_ns, ev, true, "");
}

/* Of an operation that is known the model knows the room, and the life. */
static bool wants_room(const struct scope *s, const struct sp_event *ev)
{
	if (ev->room[0])
		return false;
	if (ev->role == ROLE_CALL || !ev->op)
		return true;
	return ev->role == ROLE_POST && !scope_op_room(s, ev->pid, ev->op);
}

static void note_post(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *ev,
		      struct node *n)
{
	const struct profile_probe *pr = &s->p->probes[rec->h.probe];

	if (!(pr->prog.flags & SP_P_EACH) || pr->each.tally != SP_TALLY_POST)
		return;
	if (n)
		n->tallied = true;
	tallies_post(s->tallies, rec, n ? "" : ev->room, n ? n->enter_ns : 0, ev->object);
}

static void take(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *given)
{
	const struct profile_probe *pr = &s->p->probes[rec->h.probe];
	uint64_t entry = rec->h.enter_ns ? rec->h.enter_ns : rec->h.ns;
	struct sp_event ev = *given;
	const char *room = NULL;
	struct thread *t;
	struct node *n;

	if (follows_post(s, given))
		return;
	if (wants_room(s, given)) {
		const char *op = ev.role == ROLE_CALL ? scope_op_room(s, ev.pid, ev.op) : NULL;

		room = pr->scope == SCOPE_THREAD ? scope_thread_room(s, ev.pid, ev.tid, entry)
						 : NULL;
		t = !op && pr->scope != SCOPE_NONE && rec->h.scope_ns
			    ? scope_thread_get(s, ev.pid, ev.tid)
			    : NULL;
		n = t ? wait_add(s, t, rec->h.scope_ns, given, false, room ? room : "") : NULL;
		if (n) {
			note_post(s, rec, given, n);
			return;
		}
		room = op ? op : room;
		if (room)
			memcpy(ev.room, room, strlen(room) + 1);
	}
	scope_learn(s, &ev);
	note_post(s, rec, &ev, NULL);
	scope_out(s, &ev, room != NULL);
}

static void note_work(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *ev,
		      enum field_work work)
{
	const char *room = ev->room[0] ? ev->room : scope_op_room(s, ev->pid, ev->op);
	struct thread *t;

	if (work == WORK_BEGIN && room) {
		t = scope_thread_get(s, ev->pid, ev->tid);
		if (!t)
			return;
		memmove(t->room, room, strlen(room) + 1);
		t->since_ns = rec->h.ns;
		return;
	}
	/* the end, or a beginning of which the room is not known */
	t = scope_thread(s, ev->pid, ev->tid);
	if (!t)
		return;
	t->room[0] = '\0';
	scope_thread_put(s, t);
}

/* An enclosing call has returned: what ran inside is of its room, or of the call around it. Of
 * elements of one call each may have another room. */
static void returned(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *ev)
{
	bool each = s->p->probes[rec->h.probe].prog.flags & SP_P_EACH;
	struct thread *t = scope_thread(s, rec->h.pid, rec->h.tid);
	struct node *n = t ? wait_find(t, rec->h.enter_ns) : NULL;
	const char *room = ev && !each && ev->room[0] ? ev->room : NULL;
	bool doubtful = false;

	if (!n)
		return;
	if (!room && ev && !each) {
		room = scope_op_room(s, ev->pid, ev->op);
		doubtful = true;
	}
	if (room) {
		char own[SP_ROOM_MAX]; /* what is emitted may change what it points to */

		memcpy(own, room, strlen(room) + 1);
		wait_done(s, n, own, doubtful, true);
	} else {
		wait_outward(s, n, rec->h.scope_ns == n->enter_ns ? 0 : rec->h.scope_ns);
	}
}

void scope_record(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *ev,
		  const struct event_more *more)
{
	uint32_t flags = s->p->probes[rec->h.probe].prog.flags;
	bool is_scope = flags & SP_P_SCOPE && rec->h.enter_ns;
	struct sp_event mark;
	struct thread *t;

	if (s->p->probes[rec->h.probe].each.tally == SP_TALLY_END && !tallies_end(s->tallies, rec))
		ev = NULL;
	if (ev && more->work != WORK_NONE && ev->role == ROLE_CALL) {
		mark = *ev;
		mark.flags |= EV_MARK;
		ev = &mark;
	}
	if (s->nodes && flags & (SP_P_SCOPE | SP_P_SCOPED)) {
		t = scope_thread(s, rec->h.pid, rec->h.tid);
		if (t)
			wait_over(s, t, rec, is_scope);
	}
	if (ev)
		take(s, rec, ev);
	if (is_scope && s->nodes)
		returned(s, rec, ev);
	if (ev && more->work != WORK_NONE)
		note_work(s, rec, ev, more->work);
	if (s->waiting > SCOPE_WAITERS)
		wait_tick(s, rec->h.ns);
}

/* ---- what befalls it ----------------------------------------------------------------------- */

void scope_loss(struct scope *s, uint32_t pid)
{
	struct thread *next;

	oprooms_clear(s->ops, pid);
	calls_doubt(s->calls, pid);
	tallies_loss(s->tallies, pid);
	for (struct node *n = s->nodes; n; n = n->behind) {
		if (pid && n->pid != pid)
			continue;
		for (struct waiter *w = n->first; w; w = w->next)
			w->other[0] = '\0';
		for (struct wait_sum *w = n->sums; w; w = w->next)
			w->other[0] = '\0';
	}
	for (struct thread *t = s->threads; t; t = next) {
		next = t->hh.next;
		if (pid && t->key.pid != pid)
			continue;
		t->room[0] = '\0';
		scope_thread_put(s, t);
	}
}

void scope_gone(struct scope *s, uint32_t pid, uint32_t tid)
{
	struct thread *t, *next;

	if (tid) {
		t = scope_thread(s, pid, tid);
		if (t)
			forget_thread(s, t);
		return;
	}
	for (t = s->threads; t; t = next) {
		next = t->hh.next;
		if (t->key.pid == pid)
			forget_thread(s, t);
	}
	oprooms_clear(s->ops, pid);
	calls_gone(s->calls, pid);
	tallies_gone(s->tallies, pid);
}

void scope_tick(struct scope *s, uint64_t now_ns)
{
	if (s->nodes)
		wait_tick(s, now_ns);
}

void scope_finish(struct scope *s)
{
	while (s->nodes)
		wait_done(s, s->nodes, "", false, false);
}

void scope_resolve(struct scope *s, uint32_t pid, uint32_t tid, uint64_t enter_ns, const char *room)
{
	struct thread *t = scope_thread(s, pid, tid);
	struct node *n = t ? wait_find(t, enter_ns) : NULL;
	char own[SP_ROOM_MAX];

	if (!n)
		return;
	memcpy(own, room, strlen(room) + 1);
	wait_done(s, n, own, true, true);
}

void scope_check(struct scope *s, uint64_t older_than_ns,
		 bool (*is_there)(void *ctx, uint32_t pid, uint32_t tid, uint64_t enter_ns),
		 void *ctx)
{
	struct node *next;

	for (struct node *n = s->nodes; n; n = next) {
		next = n->behind;
		if (n->enter_ns >= older_than_ns || is_there(ctx, n->pid, n->tid, n->enter_ns))
			n->missed = false;
		else if (n->missed) /* which call is around it was never told */
			wait_done(s, n, "", false, false);
		else
			n->missed = true;
	}
}

void scope_stats(const struct scope *s, struct scope_stats *st)
{
	st->threads = HASH_COUNT(s->threads);
	st->waiting = s->waiting;
	st->given_up = s->given_up;
}
