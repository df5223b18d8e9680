/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query of a profile, evaluated: "self.queue[*] -> {room: bootstrap_room}". The elements are
 * read, what they say is read, everything that was followed is compared with what is there now, and
 * the elements are read once more: stable is what did not change in between.
 */
#ifndef SP_PYTHON_QUERY_H
#define SP_PYTHON_QUERY_H

#include "python/batch.h"
#include "python/memory.h"

#define PYQ_ROWS_MAX 131072u /* elements of a query: two full lists */

struct pyrow {
	uint64_t elem;  /* the element's address; of an entry: its value's */
	uint64_t key;   /* of an entry, else 0 */
	uint64_t owner; /* the element of the outermost [*], where there are two or more */
	int32_t rc;     /* while it is evaluated; 0 in results */
	char room[PYB_TEXT], rid[PYB_TEXT]; /* "" not asked for */
	int64_t num[PY_NEED + 1];           /* by enum py_what; -1: not asked for, or unknown */
};
struct pyrows {
	struct pyrow *row; /* in the container's order */
	size_t n;
	size_t unstable; /* elements that could not be read stable, and containers */
};

/*
 * 0: out holds the rows, all of them unless unstable is not 0. -ENODATA, -EINVAL: an attribute of
 * the path, or a required field of every element, does not exist, or is of another type: this is
 * not how this server keeps it. -EAGAIN: not even the container could be read. -ESRCH, -EPERM,
 * -E2BIG (budget), -ENOMEM: as everywhere. start: the object that the path's head names. mem: what
 * is remembered from one run to the next, NULL: nothing.
 */
int pyquery_run(struct pybatch *b, uint64_t start, const struct py_query *q, struct pymemory *mem,
		struct pyrows *out);
void pyrows_free(struct pyrows *r);

/* The object at the end of a path without [*] and {}; -ENODATA, -EINVAL, -EAGAIN as above. */
int pyquery_path(struct pybatch *b, uint64_t start, const struct py_path *p, uint64_t *obj);
/* A room as text: an int from 0 to 2^64-1 or the name (event/id.h) of a str that is not empty.
 * -ENOENT: None; -ERANGE, -E2BIG: neither. */
int pyvalue_room(const struct pyvalue *v, char out[PYB_TEXT]);

#endif
