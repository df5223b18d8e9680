// SPDX-License-Identifier: Apache-2.0
/*
 * Deadlines: a binary heap with one entry per life. Progress only moves the life's own clock; the
 * entry keeps its old, earlier time and is put right when it comes up, so that an event costs
 * nothing here. Equal times fire in order of the lives' opening.
 */
#include <errno.h>

#include "model/seen.h"

static bool before(const struct timer *a, const struct timer *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->life->id < b->life->id;
}

static void put(struct model *m, uint32_t at, struct timer t)
{
	m->heap[at] = t;
	t.life->timer = at + 1;
}

static void sift_up(struct model *m, uint32_t at, struct timer t)
{
	while (at > 0) {
		uint32_t up = (at - 1) / 2;

		if (!before(&t, &m->heap[up]))
			break;
		put(m, at, m->heap[up]);
		at = up;
	}
	put(m, at, t);
}

static void sift_down(struct model *m, uint32_t at, struct timer t)
{
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= m->nheap)
			break;
		if (child + 1 < m->nheap && before(&m->heap[child + 1], &m->heap[child]))
			child++;
		if (!before(&m->heap[child], &t))
			break;
		put(m, at, m->heap[child]);
		at = child;
	}
	put(m, at, t);
}

uint64_t stage_span(const struct model *m, const struct life *l)
{
	uint64_t span = m->cfg.stage_ns[l->stage];

	/* without operations, what is sent and its forward pass are one wait */
	if (proc_blind(m, l->proc) && l->stage == STAGE_READY && span)
		span += m->cfg.stage_ns[STAGE_INFLIGHT];
	return span;
}

uint64_t life_due(const struct model *m, const struct life *l)
{
	uint64_t from = l->progress_ns > l->ahead_ns ? l->progress_ns : l->ahead_ns;
	uint64_t span = stage_span(m, l);
	uint64_t due = span && span < NEVER - from ? from + span : NEVER;

	if (l->proc->halted)
		return NEVER;
	if (l->seen && l->seen->ask_ns)
		return (l->seen->ask_ns > m->blind_ns ? l->seen->ask_ns : m->blind_ns) + ASK_MAX_NS;
	if (l->stuck)
		return l->stuck->again_ns;
	/* whether it is this process's at all is not known so soon */
	if (l->stage == STAGE_BOOTSTRAP && l->proc->boot_dead_ns && !l->fake && !l->shared) {
		uint64_t dead = l->proc->boot_dead_ns;
		uint64_t then = (l->progress_ns > dead ? l->progress_ns : dead) + BOOT_DEAD_NS;

		if (then < due)
			due = then;
	}
	return due;
}

int timer_arm(struct model *m, struct life *l)
{
	struct timer t = {.ns = life_due(m, l), .life = l};

	if (l->timer) {
		if (t.ns < m->heap[l->timer - 1].ns)
			sift_up(m, l->timer - 1, t);
		return 0;
	}
	if (t.ns == NEVER)
		return 0;
	if (mem_grow(m, (void **)&m->heap, sizeof(*m->heap), &m->heap_cap, m->nheap + 1))
		return -ENOMEM;
	sift_up(m, m->nheap++, t);
	return 0;
}

void timer_drop(struct model *m, struct life *l)
{
	uint32_t at = l->timer;
	struct timer moved;

	if (!at)
		return;
	l->timer = 0;
	at--;
	moved = m->heap[--m->nheap];
	if (moved.life == l)
		return;
	if (at > 0 && before(&moved, &m->heap[(at - 1) / 2]))
		sift_up(m, at, moved);
	else
		sift_down(m, at, moved);
}

void timer_run(struct model *m, uint64_t now)
{
	while (m->nheap && m->heap[0].ns <= now) {
		struct timer t = m->heap[0];
		uint64_t due = life_due(m, t.life);

		if (due > t.ns) {
			t.ns = due;
			if (due == NEVER)
				timer_drop(m, t.life);
			else
				sift_down(m, 0, t);
			continue;
		}
		if (t.ns > m->now)
			m->now = t.ns;
		/* afterwards the life's due time is later than this one, unless memory is short */
		if (life_overdue(m, t.life, t.ns)) {
			t.ns += NS_S;
			sift_down(m, 0, t);
		}
		doubt_trim(m);
	}
	if (now > m->now)
		m->now = now;
}
