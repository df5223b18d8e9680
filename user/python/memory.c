// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/memory.h"
#include "python/query.h"
#include "util/cleanup.h"

#define ROW_WORDS 64 /* a row of more words is not kept */

void pymemory_clear(struct pymemory *m)
{
	free(m->row);
	free(m->foot);
	free(m->addr);
	free(m->slot);
	memset(m, 0, sizeof(*m));
}

static uint64_t mix(uint64_t hash, uint64_t v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* ---- by element ------------------------------------------------------------------------------
 */

static size_t slot_of(const struct pymemory *m, uint64_t elem, uint64_t key)
{
	size_t i = (size_t)(mix(elem, key) >> 16) & m->mask;

	while (m->slot[i] &&
	       (m->row[m->slot[i] - 1].elem != elem || m->row[m->slot[i] - 1].key != key))
		i = (i + 1) & m->mask;
	return i;
}

int pymemory_index(struct pymemory *m)
{
	size_t size = 16;

	while (size < 2 * m->n + 2)
		size *= 2;
	free(m->slot);
	m->slot = calloc(size, sizeof(*m->slot));
	m->mask = size - 1;
	if (!m->slot)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++)
		m->slot[slot_of(m, m->row[i].elem, m->row[i].key)] = (uint32_t)i + 1;
	return 0;
}

static const struct pyfoot *find(const struct pymemory *m, const struct pyrow *r, size_t *at)
{
	uint32_t i = m->slot ? m->slot[slot_of(m, r->elem, r->key)] : 0;

	*at = i - 1;
	return i && m->foot[i - 1].n ? &m->foot[i - 1] : NULL;
}

/* ---- keeping -----------------------------------------------------------------------------------
 */

/* A row and room for n addresses; the foot's n counts those that are there. */
static int add(struct pymemory *m, const struct pyrow *row, size_t n, struct pyfoot **foot)
{
	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 64;
		struct pyrow *rows = realloc(m->row, cap * sizeof(*rows));
		struct pyfoot *feet;

		if (!rows)
			return -ENOMEM;
		m->row = rows;
		feet = realloc(m->foot, cap * sizeof(*feet));
		if (!feet)
			return -ENOMEM;
		m->foot = feet;
		m->cap = cap;
	}
	if (m->naddr + n > m->caddr) {
		size_t cap = m->caddr ? 2 * m->caddr : 1024;
		uint64_t *grown;

		while (cap < m->naddr + n)
			cap *= 2;
		grown = realloc(m->addr, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		m->addr = grown;
		m->caddr = cap;
	}
	m->row[m->n] = *row;
	*foot = &m->foot[m->n++];
	**foot = (struct pyfoot){.first = m->naddr};
	m->naddr += n;
	return 0;
}

/* The log has the rows' words as they were met, step by step. */
int pymemory_learn(const struct pybatch *b, struct pymemory *fresh, const struct pyrow *rows,
		   const bool *dirty, size_t n)
{
	__free uint32_t *count = calloc(n + 1, sizeof(*count));
	size_t base = fresh->n;

	if (!count)
		return -ENOMEM;
	for (size_t i = 0; i < b->nwords; i++)
		if (b->word[i].row < n)
			count[b->word[i].row] += b->word[i].addr ? 1 : ROW_WORDS + 1;
	for (size_t i = 0; i < n; i++) {
		struct pyfoot *f;
		int err;

		if (dirty[i])
			count[i] = ROW_WORDS + 1;
		err = add(fresh, &rows[i], count[i] <= ROW_WORDS ? count[i] : 0, &f);

		if (err)
			return err;
	}
	for (size_t i = 0; i < b->nwords; i++) {
		const struct pyword *w = &b->word[i];
		struct pyfoot *f;

		if (w->row >= n || count[w->row] > ROW_WORDS)
			continue;
		f = &fresh->foot[base + w->row];
		fresh->addr[f->first + f->n++] = w->addr;
		f->hash = mix(f->hash, w->value);
	}
	return 0;
}

/* ---- recalling ---------------------------------------------------------------------------------
 */

struct recalled { /* of a row: where it is in the old memory, its words in now[] */
	const struct pyfoot *foot;
	size_t at, first;
};

/* Spans of all words; those that follow one another in one. */
static size_t foot_spans(const struct pymemory *old, const struct recalled *r, size_t n,
			 struct pymem_span *span, uint64_t *now)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t *addr = r[i].foot ? old->addr + r[i].foot->first : NULL;

		for (uint32_t k = 0; addr && k < r[i].foot->n; k++) {
			if (k && addr[k] == addr[k - 1] + 8 && span[m - 1].len < 128)
				span[m - 1].len += 8;
			else
				span[m++] = py_span(addr[k], &now[r[i].first + k], 8);
		}
	}
	return m;
}

static int read_feet(struct pybatch *b, const struct pymemory *old, const struct recalled *r,
		     size_t n, size_t words, bool *known)
{
	__free struct pymem_span *span = malloc((words + 1) * sizeof(*span));
	__free uint64_t *now = calloc(words + 1, sizeof(*now));
	size_t spans, m = 0;
	int err;

	if (!span || !now)
		return -ENOMEM;
	spans = foot_spans(old, r, n, span, now);
	err = pybatch_read(b, span, spans);
	for (size_t i = 0; i < n && !err; i++) {
		const struct pyfoot *f = r[i].foot;
		uint64_t hash = 0;

		if (!f)
			continue;
		known[i] = true;
		for (uint64_t *end = &now[r[i].first + f->n];
		     m < spans && (uint64_t *)span[m].buf < end; m++)
			known[i] &= !span[m].rc;
		for (uint32_t k = 0; known[i] && k < f->n; k++)
			hash = mix(hash, now[r[i].first + k]);
		known[i] &= hash == f->hash;
	}
	return err;
}

static int recall(struct pybatch *b, const struct pymemory *old, struct pymemory *fresh,
		  struct pyrow *rows, size_t n, bool *known)
{
	__free struct recalled *r = calloc(n + 1, sizeof(*r));
	size_t words = 0;
	int err;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		r[i].foot = find(old, &rows[i], &r[i].at);
		r[i].first = words;
		words += r[i].foot ? r[i].foot->n : 0;
	}
	err = read_feet(b, old, r, n, words, known);
	for (size_t i = 0; i < n && !err; i++) {
		struct pyfoot *to;
		uint64_t owner = rows[i].owner;

		if (!known[i])
			continue;
		rows[i] = old->row[r[i].at];
		rows[i].owner = owner;
		err = add(fresh, &rows[i], r[i].foot->n, &to);
		if (err)
			break;
		memcpy(fresh->addr + to->first, old->addr + r[i].foot->first,
		       r[i].foot->n * sizeof(*old->addr));
		to->n = r[i].foot->n;
		to->hash = r[i].foot->hash;
	}
	return err;
}

int pymemory_recall(struct pybatch *b, const struct pymemory *old, struct pymemory *fresh,
		    struct pyrow *rows, size_t n, bool *known)
{
	return old->n ? recall(b, old, fresh, rows, n, known) : 0;
}
