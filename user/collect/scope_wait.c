// SPDX-License-Identifier: Apache-2.0
/* Events that wait for the end of the call that encloses them. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "collect/scope_priv.h"

struct node *wait_find(const struct thread *t, uint64_t enter_ns)
{
	struct node *n = t->nodes;

	while (n && n->enter_ns != enter_ns)
		n = n->next;
	return n;
}

static struct node *node_get(struct scope *s, struct thread *t, uint64_t enter_ns, uint64_t ns)
{
	struct node *n = wait_find(t, enter_ns);

	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->pid = t->key.pid;
	n->tid = t->key.tid;
	n->enter_ns = enter_ns;
	n->born_ns = ns;
	n->last = &n->first;
	LL_PREPEND(t->nodes, n);
	DL_APPEND2(s->nodes, n, before, behind);
	return n;
}

static void node_free(struct scope *s, struct node *n)
{
	struct thread *t = scope_thread(s, n->pid, n->tid);

	DL_DELETE2(s->nodes, n, before, behind);
	if (t) {
		LL_DELETE(t->nodes, n);
		scope_thread_put(s, t);
	}
	free(n);
}

static struct wait_sum *sum_get(struct node *n, int probe, const char *other)
{
	struct wait_sum *w;

	for (w = n->sums; w; w = w->next)
		if (w->probe == probe && !strcmp(w->other, other))
			return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->probe = probe;
	memcpy(w->other, other, strlen(other) + 1);
	LL_PREPEND(n->sums, w);
	return w;
}

/* The first calls of a kind wait as they are, the others as their sum. */
static bool only_counted(struct wait_sum *w, const struct sp_event *ev)
{
	if (w->told < CALLS_TOLD) {
		w->told++;
		return false;
	}
	if (ev->status == OPS_ERROR && w->failed < CALLS_FAILED) {
		w->failed++;
		return false;
	}
	call_sum_add(&w->sum, ev);
	return true;
}

/* An operation whose post waits for the call that was entered then; 0: not any more. */
static void mark_op(struct scope *s, const struct waiter *w, uint64_t enter_ns)
{
	struct op_room *o;

	if (w->follows || w->ev.role != ROLE_POST || !w->ev.op)
		return;
	o = enter_ns ? oprooms_get(s->ops, w->ev.pid, w->ev.op)
		     : oprooms_find(s->ops, w->ev.pid, w->ev.op);
	if (!o || o->room[0])
		return;
	o->tid = w->ev.tid;
	o->enter_ns = enter_ns;
}

struct node *wait_add(struct scope *s, struct thread *t, uint64_t enter_ns,
		      const struct sp_event *ev, bool follows, const char *other)
{
	struct node *n = node_get(s, t, enter_ns, ev->ns);
	struct wait_sum *sum;
	struct waiter *w;

	if (!n)
		return NULL;
	if (ev->role == ROLE_CALL) {
		sum = sum_get(n, ev->probe, other);
		if (sum && only_counted(sum, ev))
			return n;
	}
	w = calloc(1, sizeof(*w));
	if (!w) {
		if (!n->first && !n->sums)
			node_free(s, n);
		return NULL;
	}
	w->ev = *ev;
	w->follows = follows;
	memcpy(w->other, other, strlen(other) + 1);
	*n->last = w;
	n->last = &w->next;
	n->posts += follows || ev->role == ROLE_POST;
	mark_op(s, w, enter_ns);
	s->waiting++;
	return n;
}

static void waiter_done(struct scope *s, struct waiter *w, const char *room, bool doubtful)
{
	if (w->follows) {
		scope_learn(s, &w->ev);
		s->emit(s->ctx, &w->ev, false);
	} else {
		memcpy(w->ev.room, room, strlen(room) + 1);
		mark_op(s, w, 0);
		scope_learn(s, &w->ev);
		scope_out(s, &w->ev, doubtful);
	}
	s->waiting--;
	free(w);
}

void wait_done(struct scope *s, struct node *n, const char *room, bool doubtful, bool others)
{
	struct wait_sum *sum;
	struct waiter *w;

	if (n->tallied)
		tallies_known(s->tallies, n->pid, n->tid, n->enter_ns, room);
	while ((w = n->first)) {
		bool own = room[0] || !others;

		n->first = w->next;
		waiter_done(s, w, own ? room : w->other, own ? doubtful : true);
	}
	while ((sum = n->sums)) {
		bool own = room[0] || !others;

		n->sums = sum->next;
		if (sum->sum.n)
			calls_count(s->calls, n->pid, sum->probe, own ? room : sum->other,
				    &sum->sum, own ? doubtful : true);
		free(sum);
	}
	node_free(s, n);
}

static void take_sums(struct node *to, struct node *from)
{
	struct wait_sum *sum;

	while ((sum = from->sums)) {
		struct wait_sum *mine = sum_get(to, sum->probe, sum->other);

		from->sums = sum->next;
		if (mine) {
			mine->told += sum->told;
			mine->failed += sum->failed;
			call_sum_join(&mine->sum, &sum->sum);
		}
		free(sum);
	}
}

void wait_outward(struct scope *s, struct node *n, uint64_t enter_ns)
{
	struct thread *t = scope_thread(s, n->pid, n->tid);
	struct node *outer = t && enter_ns ? node_get(s, t, enter_ns, n->born_ns) : NULL;

	if (!outer || outer == n) {
		wait_done(s, n, "", false, !enter_ns);
		return;
	}
	for (struct waiter *w = n->first; w; w = w->next)
		mark_op(s, w, enter_ns);
	if (n->first) {
		*outer->last = n->first;
		outer->last = n->last;
	}
	if (n->born_ns < outer->born_ns)
		outer->born_ns = n->born_ns;
	outer->posts += n->posts;
	outer->tallied |= n->tallied;
	if (n->tallied)
		tallies_moved(s->tallies, n->pid, n->tid, n->enter_ns, enter_ns);
	take_sums(outer, n);
	node_free(s, n);
}

/*
 * The record's call was entered at e, and the innermost call around it at sc. A call that was
 * entered in between, and is not the innermost, is over. And one that was entered after e is, when
 * this call has returned: it ran inside.
 */
void wait_over(struct scope *s, struct thread *t, const struct sp_rec_hit *rec, bool is_scope)
{
	uint64_t e = rec->h.enter_ns ? rec->h.enter_ns : rec->h.ns;
	uint64_t sc = rec->h.scope_ns;
	struct node *n = t->nodes;

	while (n) {
		bool inside = rec->h.enter_ns && n->enter_ns > e;

		if (!inside && (n->enter_ns <= sc || n->enter_ns >= e)) {
			n = n->next;
			continue;
		}
		wait_outward(s, n, inside && is_scope ? e : sc);
		/* the list may be another one now, and the thread gone */
		t = scope_thread(s, rec->h.pid, rec->h.tid);
		n = t ? t->nodes : NULL;
	}
}

/* The posts of a node, and what follows them, go on without a room. */
static void let_posts_go(struct scope *s, struct node *n)
{
	struct waiter **at = &n->first, *w;

	while ((w = *at)) {
		if (!w->follows && w->ev.role != ROLE_POST) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		s->given_up++;
		waiter_done(s, w, "", false);
	}
	n->last = at;
	n->posts = 0;
	if (!n->first && !n->sums)
		node_free(s, n);
}

void wait_give_up(struct scope *s, struct node *n)
{
	for (const struct waiter *w = n->first; w; w = w->next)
		s->given_up++;
	for (const struct wait_sum *w = n->sums; w; w = w->next)
		s->given_up += w->sum.n;
	wait_done(s, n, "", false, false);
}

void wait_tick(struct scope *s, uint64_t now_ns)
{
	struct node *next;

	while (s->nodes && s->waiting > SCOPE_WAITERS)
		wait_give_up(s, s->nodes);
	for (struct node *n = s->nodes; n; n = next) {
		next = n->behind;
		if (now_ns > n->born_ns + SCOPE_WAIT_NS)
			wait_give_up(s, n);
		else if (n->posts && now_ns > n->born_ns + SCOPE_POST_NS)
			let_posts_go(s, n);
	}
}
