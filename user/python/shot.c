// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/shot.h"
#include "util/cleanup.h"
#include "util/clock.h"

#define LISTS  6 /* a spinning loop has two or three in use */
#define HEAD   4 /* words from the type on: type, size, items, allocated */
#define MAX_NS (3 * NS_PER_MS)

struct list {
	uint64_t addr, head[HEAD]; /* as they were met */
	uint64_t now[HEAD], item[SHOT_ITEMS];
};

struct shot {
	struct pybatch *b;
	uint64_t slot, before, after;
	struct list list[LISTS];
	int n, next; /* next: whose turn it is to be forgotten */
};

/* Is what was met at addr a list, and not too long? */
static int is_list(struct shot *s, const uint64_t head[HEAD])
{
	struct pytype *t = NULL;
	int err = pybatch_type(s->b, head[0], &t);

	if (err)
		return pybatch_fatal(s->b, err) ? err : -EAGAIN;
	if (!t || !(t->info.flags & PY_TP_LIST))
		return -EAGAIN; /* its memory is in use for something else by now */
	return head[3] > SHOT_ITEMS ? -EINVAL : 0;
}

/* The list at addr, with what it is now, takes a place. */
static int meet(struct shot *s, uint64_t addr)
{
	uint64_t head[HEAD];
	int err = pymem_read(s->b->rt->mem, addr + PY_OB_TYPE, head, sizeof(head)), at = 0;

	if (err)
		return pybatch_fatal(s->b, err) ? err : -EAGAIN;
	err = is_list(s, head);
	if (err)
		return err;
	while (at < s->n && s->list[at].addr != addr)
		at++;
	if (at == LISTS) {
		at = s->next;
		s->next = (s->next + 1) % LISTS;
	} else if (at == s->n) {
		s->n++;
	}
	s->list[at].addr = addr;
	memcpy(s->list[at].head, head, sizeof(head));
	return 0;
}

/* Slot, all lists that were met, slot: in one call. */
static int read_all(struct shot *s)
{
	struct pymem_span span[2 * LISTS + 2];
	size_t n = 0;
	int err;

	span[n++] = py_span(s->slot, &s->before, sizeof(s->before));
	for (int i = 0; i < s->n; i++) {
		struct list *l = &s->list[i];

		span[n++] = py_span(l->addr + PY_OB_TYPE, l->now, sizeof(l->now));
		if (l->head[3])
			span[n++] = py_span(l->head[2], l->item, l->head[3] * sizeof(*l->item));
	}
	span[n++] = py_span(s->slot, &s->after, sizeof(s->after));
	err = pymem_readv(s->b->rt->mem, span, n);
	if (!err && (span[0].rc || span[n - 1].rc))
		err = -EAGAIN;
	return err;
}

/* The list that the slot led to throughout; NULL: another one, or one that has changed. */
static const struct list *hit(const struct shot *s)
{
	for (int i = 0; i < s->n && s->before == s->after; i++) {
		const struct list *l = &s->list[i];

		/* same type, items and room for them: then these are its items */
		if (l->addr == s->before && l->now[0] == l->head[0] && l->now[2] == l->head[2] &&
		    l->now[3] == l->head[3] && l->now[1] <= l->now[3])
			return l;
	}
	return NULL;
}

int pyshot_list(struct pybatch *b, uint64_t slot, uint64_t item[SHOT_ITEMS], size_t *n)
{
	__free struct shot *s = calloc(1, sizeof(*s));
	uint64_t began = mono_ns();
	const struct list *l;
	int err;

	if (!s)
		return -ENOMEM;
	s->b = b;
	s->slot = slot;
	do {
		err = read_all(s);
		l = err ? NULL : hit(s);
		if (l) {
			*n = l->now[1];
			memcpy(item, l->item, *n * sizeof(*item));
			return 0;
		}
		if (!err)
			err = meet(s, s->after);
	} while ((!err || err == -EAGAIN) && mono_ns() - began < MAX_NS);
	return err ? err : -EAGAIN;
}
