// SPDX-License-Identifier: Apache-2.0
/*
 * How a queue that changes is read. Rows are believed one by one: an element that was in the
 * container, whose words were the same after it had been read as before, and which is still there.
 * The container is believed when two walks in a row give the same elements. A server that makes a
 * new list with the same requests in every turn is stable in this sense, and so it should be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/walk.h"
#include "util/cleanup.h"

#define WALKS 6 /* the first, and one after each of up to 5 evaluations */

/* ---- by element: open addressing ---------------------------------------------------------------
 */

/* Rows and elements alike begin with these. */
struct name {
	uint64_t elem, key;
};
struct index {
	uint32_t *slot; /* place in the array + 1, 0 empty */
	size_t mask, stride;
	const void *array;
};

static const struct name *name_at(const struct index *x, size_t i)
{
	return (const void *)((const char *)x->array + i * x->stride);
}

static uint32_t *index_find(const struct index *x, uint64_t elem, uint64_t key)
{
	size_t i = ((elem ^ key * 31) * 0x9e3779b97f4a7c15ull) >> 20;

	for (i &= x->mask; x->slot[i]; i = (i + 1) & x->mask) {
		const struct name *n = name_at(x, x->slot[i] - 1);

		if (n->elem == elem && n->key == key)
			break;
	}
	return &x->slot[i];
}

/* Of what is in the array twice, the first. */
static int index_make(struct index *x, const void *array, size_t stride, size_t n)
{
	size_t size = 16;

	while (size < 2 * n + 2)
		size *= 2;
	free(x->slot);
	x->slot = calloc(size, sizeof(*x->slot));
	x->mask = size - 1;
	x->array = array;
	x->stride = stride;
	for (size_t i = 0; i < n && x->slot; i++) {
		uint32_t *slot = index_find(x, name_at(x, i)->elem, name_at(x, i)->key);

		if (!*slot)
			*slot = (uint32_t)i + 1;
	}
	return x->slot ? 0 : -ENOMEM;
}

/* ---- evaluation -------------------------------------------------------------------------------
 */

struct eval {
	struct pybatch *b;
	const struct py_query *q;
	struct pyelems now, before;
	struct pyrow *row; /* all that were evaluated, in the order in which they were met */
	size_t n, cap;
	struct index index;         /* of the rows that are believed */
	const struct pymemory *old; /* NULL: nothing is remembered */
	struct pymemory memory;     /* for the next time */
};

static bool torn(int32_t rc)
{
	return rc == -EAGAIN || rc == -EFAULT;
}

/* Elements that are there now and not believed yet, as new rows from e->n on. */
static int gather(struct eval *e, size_t *fresh)
{
	*fresh = 0;
	for (size_t i = 0; i < e->now.n; i++) {
		const struct pyelem *at = &e->now.e[i];
		struct pyrow *r;

		if (*index_find(&e->index, at->elem, at->key))
			continue;
		if (e->n + *fresh == e->cap) {
			size_t cap = e->cap ? 2 * e->cap : e->now.n + 8;
			struct pyrow *grown = realloc(e->row, cap * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			e->row = grown;
			e->index.array = grown;
			e->cap = cap;
		}
		r = &e->row[e->n + (*fresh)++];
		r->elem = at->elem;
		r->key = at->key;
		r->owner = at->owner;
	}
	return 0;
}

static int reindex(struct eval *e)
{
	return index_make(&e->index, e->row, sizeof(*e->row), e->n);
}

/* Those that are remembered to the front; *n: how many. */
static int recall(struct eval *e, struct pyrow *rows, size_t nrows, size_t *n)
{
	__free bool *known = calloc(nrows, sizeof(*known));
	int err;

	*n = 0;
	if (!known)
		return -ENOMEM;
	err = pymemory_recall(e->b, e->old, &e->memory, rows, nrows, known);
	for (size_t i = 0; i < nrows && !err; i++) {
		struct pyrow row = rows[i];

		if (!known[i])
			continue;
		rows[i] = rows[*n];
		rows[(*n)++] = row;
	}
	return err;
}

/* Read rows; *kept: how many held still, which are in front then. */
static int read_rows(struct eval *e, struct pyrow *rows, size_t n, size_t *kept)
{
	__free bool *dirty = calloc(n + 1, sizeof(*dirty));
	int err;

	*kept = 0;
	if (!dirty)
		return -ENOMEM;
	e->b->logging = true;
	e->b->contents = e->old;
	err = pyfields(e->b, e->q, rows, n);
	if (!err)
		err = pybatch_verify(e->b, dirty, n);
	for (size_t i = 0; i < n; i++)
		dirty[i] |= torn(rows[i].rc);
	if (!err && e->old)
		err = pymemory_learn(e->b, &e->memory, rows, dirty, n);
	pybatch_forget(e->b);
	e->b->logging = e->b->contents = false;
	for (size_t i = 0; i < n && !err; i++)
		if (!dirty[i])
			rows[(*kept)++] = rows[i];
	return err;
}

/* What is there and not believed yet. */
static int evaluate(struct eval *e)
{
	struct pyrow *fresh;
	size_t n, known = 0, kept = 0;
	int err = gather(e, &n);

	if (err || !n)
		return err;
	fresh = e->row + e->n;
	if (e->old)
		err = recall(e, fresh, n, &known);
	if (!err && known < n)
		err = read_rows(e, fresh + known, n - known, &kept);
	if (err)
		return err;
	e->n += known + kept;
	return reindex(e);
}

static bool same(const struct pyelems *a, const struct pyelems *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->e, b->e, a->n * sizeof(*a->e)));
}

/*
 * An element that is elsewhere in the order than before may be another object in the same place:
 * one went, was freed, and a new one came at the end. Those are not believed any longer.
 */
static int drop_moved(struct eval *e)
{
	struct index before = {0};
	__free bool *stays = calloc(e->n + 1, sizeof(*stays));
	size_t next = 0, kept = 0;
	int err = index_make(&before, e->before.e, sizeof(*e->before.e), e->before.n);

	if (!stays)
		err = -ENOMEM;
	for (size_t i = 0; i < e->now.n && !err; i++) {
		const struct pyelem *at = &e->now.e[i];
		uint32_t was = *index_find(&before, at->elem, at->key);
		uint32_t row = *index_find(&e->index, at->elem, at->key);

		if (!was || was - 1 < next)
			continue;
		next = was;
		if (row)
			stays[row - 1] = true;
	}
	for (size_t i = 0; i < e->n && !err; i++)
		if (stays[i])
			e->row[kept++] = e->row[i];
	if (!err) {
		e->n = kept;
		err = reindex(e);
	}
	free(before.slot);
	return err;
}

/* Are all elements of the last walk believed? */
static size_t missing(const struct eval *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->now.n; i++)
		n += !*index_find(&e->index, e->now.e[i].elem, e->now.e[i].key);
	return n;
}

static int watch_it(struct eval *e, uint64_t start, size_t *unstable)
{
	int err = pywalk(e->b, start, &e->q->path, &e->now);

	for (int i = 1; i < WALKS && !err; i++) {
		err = evaluate(e);
		if (err)
			break;
		free(e->before.e);
		e->before = e->now;
		memset(&e->now, 0, sizeof(e->now));
		err = pywalk(e->b, start, &e->q->path, &e->now);
		if (err == -EAGAIN && i + 1 < WALKS) {
			e->now = e->before; /* another try */
			memset(&e->before, 0, sizeof(e->before));
			err = 0;
			continue;
		}
		if (err)
			break;
		*unstable = 0;
		if (!same(&e->now, &e->before)) {
			err = drop_moved(e);
			*unstable = 1;
		}
		*unstable += missing(e);
		if (!*unstable)
			break;
	}
	return err;
}

/* The rows of what is there now, in its order, each once. */
static int collect(const struct eval *e, struct pyrows *out, int *unfit)
{
	__free bool *done = calloc(e->n + 1, sizeof(*done));

	out->row = malloc((e->now.n + 1) * sizeof(*out->row));
	if (!out->row || !done)
		return -ENOMEM;
	*unfit = 0;
	for (size_t i = 0; i < e->now.n; i++) {
		uint32_t at = *index_find(&e->index, e->now.e[i].elem, e->now.e[i].key);

		if (!at || done[at - 1])
			continue;
		done[at - 1] = true;
		if (!e->row[at - 1].rc)
			out->row[out->n++] = e->row[at - 1];
		else if (!*unfit)
			*unfit = e->row[at - 1].rc;
	}
	return 0;
}

int pyquery_run(struct pybatch *b, uint64_t start, const struct py_query *q, struct pymemory *mem,
		struct pyrows *out)
{
	struct eval e = {.b = b, .q = q, .old = mem, .memory.query = q};
	int unfit = 0, err = index_make(&e.index, NULL, sizeof(struct pyrow), 0);

	memset(out, 0, sizeof(*out));
	if (mem && mem->query != q)
		pymemory_clear(mem);
	if (!err)
		err = watch_it(&e, start, &out->unstable);
	if (!err)
		err = collect(&e, out, &unfit);
	/* Not one element has the required fields: the alternative is for another version. */
	if (!err && !out->n && (unfit == -ENODATA || unfit == -EINVAL))
		err = unfit;
	if (!err && mem)
		err = pymemory_index(&e.memory);
	if (!err && mem) {
		pymemory_clear(mem);
		*mem = e.memory;
	} else {
		pymemory_clear(&e.memory);
	}
	free(e.now.e);
	free(e.before.e);
	free(e.row);
	free(e.index.slot);
	if (err)
		pyrows_free(out);
	return err;
}

void pyrows_free(struct pyrows *r)
{
	free(r->row);
	memset(r, 0, sizeof(*r));
}

int pyquery_path(struct pybatch *b, uint64_t start, const struct py_path *p, uint64_t *obj)
{
	struct pyelems v;
	int err = pywalk(b, start, p, &v);

	if (!err)
		*obj = v.e[0].elem;
	if (!err)
		free(v.e);
	return err;
}
