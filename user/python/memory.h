/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read last time. A row that stood in the same words, all those that lead to its values
 * and those of the values themselves, says the same again: one read of these words instead of the
 * whole way, twice. Most requests of a long queue are such rows.
 */
#ifndef SP_PYTHON_MEMORY_H
#define SP_PYTHON_MEMORY_H

#include "python/batch.h"

struct pyrow;

struct pyfoot {       /* the words that a row stands in */
	size_t first; /* in pymemory.addr */
	uint32_t n;   /* 0: not known */
	uint64_t hash;
};
struct pymemory {
	const struct py_query *query; /* whose rows these are; NULL: nobody's */
	struct pyrow *row;
	struct pyfoot *foot;
	size_t n, cap;
	uint64_t *addr;
	size_t naddr, caddr;
	uint32_t *slot; /* by element: index + 1, 0 empty */
	size_t mask;
};

void pymemory_clear(struct pymemory *m);
/* For rows with elem and key: those that stand in the same words are filled from old, and kept in
 * new; known[i] says which. */
int pymemory_recall(struct pybatch *b, const struct pymemory *old, struct pymemory *fresh,
		    struct pyrow *rows, size_t n, bool *known);
/* Keep rows that have just been read, and the words of b's log that belong to them. */
int pymemory_learn(const struct pybatch *b, struct pymemory *fresh, const struct pyrow *rows,
		   const bool *dirty, size_t n);
/* Ready to be recalled from. */
int pymemory_index(struct pymemory *m);

#endif
