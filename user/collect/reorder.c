// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include "collect/collect.h"

struct slot {
	uint64_t ns;
	uint64_t order; /* of arrival: equal times keep it */
	uint32_t at;    /* index into events */
};

struct reorder {
	struct slot *heap;
	struct sp_event *events;
	uint32_t *spare; /* unused indices of events */
	size_t n, cap, nspare;
	uint64_t order;
};

struct reorder *reorder_new(void)
{
	return calloc(1, sizeof(struct reorder));
}

void reorder_free(struct reorder *r)
{
	if (!r)
		return;
	free(r->heap);
	free(r->events);
	free(r->spare);
	free(r);
}

static bool before(const struct slot *a, const struct slot *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static int grow(struct reorder *r)
{
	size_t cap = r->cap ? r->cap * 2 : 256;
	struct slot *heap = realloc(r->heap, cap * sizeof(*heap));
	struct sp_event *events;
	uint32_t *spare;

	if (!heap)
		return -ENOMEM;
	r->heap = heap;
	events = realloc(r->events, cap * sizeof(*events));
	if (!events)
		return -ENOMEM;
	r->events = events;
	spare = realloc(r->spare, cap * sizeof(*spare));
	if (!spare)
		return -ENOMEM;
	r->spare = spare;
	for (size_t i = cap; i > r->cap; i--)
		r->spare[r->nspare++] = i - 1;
	r->cap = cap;
	return 0;
}

int reorder_push(struct reorder *r, const struct sp_event *ev)
{
	struct slot s = {.ns = ev->ns, .order = r->order++};
	size_t i;

	if (r->n == r->cap && grow(r))
		return -ENOMEM;
	s.at = r->spare[--r->nspare];
	r->events[s.at] = *ev;
	for (i = r->n++; i > 0 && before(&s, &r->heap[(i - 1) / 2]); i = (i - 1) / 2)
		r->heap[i] = r->heap[(i - 1) / 2];
	r->heap[i] = s;
	return 0;
}

bool reorder_pop(struct reorder *r, uint64_t horizon_ns, struct sp_event *ev)
{
	struct slot last;
	size_t i = 0;

	if (!r->n || r->heap[0].ns > horizon_ns)
		return false;
	*ev = r->events[r->heap[0].at];
	r->spare[r->nspare++] = r->heap[0].at;
	last = r->heap[--r->n];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= r->n)
			break;
		if (child + 1 < r->n && before(&r->heap[child + 1], &r->heap[child]))
			child++;
		if (!before(&r->heap[child], &last))
			break;
		r->heap[i] = r->heap[child];
		i = child;
	}
	if (r->n)
		r->heap[i] = last;
	return true;
}

void reorder_each(struct reorder *r, void (*fn)(void *ctx, struct sp_event *ev), void *ctx)
{
	for (size_t i = 0; i < r->n; i++)
		fn(ctx, &r->events[r->heap[i].at]);
}

size_t reorder_count(const struct reorder *r)
{
	return r->n;
}
