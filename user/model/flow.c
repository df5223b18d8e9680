// SPDX-License-Identifier: Apache-2.0
/*
 * How far a queue has got. A completion with a lower number and a later time answers every question
 * that an older one with a higher number could: such entries are dropped as they are overtaken, and
 * what remains grows in both number and time.
 */
#include <errno.h>
#include <string.h>

#include "model/lives.h"

/* Drop what is too old to matter, and when that is not enough the older half. */
static void make_room(struct flow *f, uint64_t ns, uint64_t window)
{
	uint32_t drop = 0;

	while (drop < f->n && f->e[drop].ns + window < ns)
		drop++;
	if (f->n - drop >= MAX_FLOW)
		drop = f->n / 2;
	if (!drop)
		return;
	f->n -= drop;
	memmove(f->e, f->e + drop, f->n * sizeof(*f->e));
}

int flow_push(struct model *m, struct flow *f, uint64_t seq, uint64_t ns)
{
	while (f->n && f->e[f->n - 1].seq >= seq)
		f->n--;
	/* within one quantum the lower number may stand for both: it claims progress for the
	 * numbers between them at most a quantum late, and never for longer */
	if (f->n && f->e[f->n - 1].ns / m->quantum == ns / m->quantum) {
		f->e[f->n - 1].ns = ns;
		return 0;
	}
	if (f->n == f->cap)
		make_room(f, ns, m->window);
	if (mem_grow(m, (void **)&f->e, sizeof(*f->e), &f->cap, f->n + 1))
		return -ENOMEM;
	f->e[f->n].seq = seq;
	f->e[f->n].ns = ns;
	f->n++;
	return 0;
}

uint64_t flow_before(const struct flow *f, uint64_t seq)
{
	uint32_t lo = 0, hi = f->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->e[mid].seq < seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? f->e[lo - 1].ns : 0;
}

void flow_free(struct model *m, struct flow *f)
{
	mem_free(m, f->e, f->cap * sizeof(*f->e));
	f->e = NULL;
	f->n = f->cap = 0;
}
