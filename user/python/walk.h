/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of a query: its path followed from the start to the container's content. */
#ifndef SP_PYTHON_WALK_H
#define SP_PYTHON_WALK_H

#include "python/query.h"

struct pyelem {
	uint64_t elem, key, owner;
};
struct pyelems {
	struct pyelem *e;
	size_t n;
};
/* As pyquery_run. */
int pywalk(struct pybatch *b, uint64_t start, const struct py_path *p, struct pyelems *out);
/* Fill rows[i].room ... rc from rows[i].elem and key; what was followed is in b's log. 0, or what
 * concerns everything. */
int pyfields(struct pybatch *b, const struct py_query *q, struct pyrow *rows, size_t n);

#endif
