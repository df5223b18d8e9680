// SPDX-License-Identifier: Apache-2.0
/*
 * Attributes of many objects at once: first where each object keeps them, then the values. The
 * layouts are those of attrs.c; what is out of the ordinary goes to py_attr(), one by one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/batch.h"
#include "util/cleanup.h"

/* What is read around each object: the words before it and the first of its own. */
#define WINDOW_FROM  32
#define WINDOW_BYTES 80
#define PRE_VALUES   0 /* offsets in the window: obj - 32, obj - 24 */
#define PRE_DICT     8
#define OB_TYPE      (WINDOW_FROM + PY_OB_TYPE)
#define INLINE_AT    16 /* 3.13, from obj: capacity, size, embedded, valid; then the values */

#define PENDING       1 /* rc of a cell that is not known yet */
#define PENDING_ALONE 2 /* to be read by itself */
#define LEARNED       8 /* shapes looked up anew, for one name and call */
#define ROUNDS        6
#define SLOW          2048 /* objects of a call that are read one by one */

enum mode { M_OVER, M_VALUES, M_DICT, M_TABLE, M_SLOW };
struct place {
	enum mode mode;
	struct pytype *type;
	uint64_t values;  /* M_VALUES: address of the first */
	uint64_t dict;    /* M_DICT */
	uint64_t keys;    /* M_VALUES, M_TABLE */
	uint32_t nvalues; /* 3.13: how many there are, 0 unknown */
	uint64_t head[4]; /* M_TABLE: of the keys */
};

struct job {
	struct pybatch *b;
	const struct pycell *obj;
	size_t n;
	const char *const *name;
	int nnames;
	struct pycell *const *out;
	struct place *place;
	int slow;
};

static uint64_t word(const uint8_t *raw, size_t at)
{
	uint64_t v;

	memcpy(&v, raw + at, sizeof(v));
	return v;
}

static void all_names(struct job *k, size_t i, int32_t rc)
{
	for (int j = 0; j < k->nnames; j++)
		k->out[j][i].rc = rc;
}

/* ---- where an object keeps its attributes -----------------------------------------------------
 */

/* Nothing but __slots__, if that. */
static int no_dict(struct job *k, size_t i)
{
	all_names(k, i, -ENODATA);
	k->place[i].mode = M_OVER;
	return 0;
}

static int place_dictoffset(struct job *k, size_t i, const uint8_t *raw)
{
	struct place *p = &k->place[i];
	int64_t off = p->type->info.dictoffset;

	if (!off)
		return no_dict(k, i);
	if (off < PY_OB_SIZE || off > WINDOW_BYTES - WINDOW_FROM - 8)
		return 0;
	p->dict = word(raw, WINDOW_FROM + (size_t)off);
	p->mode = M_DICT;
	if (!p->dict)
		no_dict(k, i);
	return pybatch_log(k->b, i, k->obj[i].v + (uint64_t)off, p->dict);
}

static int place_managed(struct job *k, size_t i, const uint8_t *raw)
{
	const struct py_layout *lay = &k->b->rt->lay;
	struct place *p = &k->place[i];
	uint64_t obj = k->obj[i].v, pre = word(raw, PRE_DICT);

	p->dict = pre;
	if (lay->attrs == PY_ATTRS_311 && word(raw, PRE_VALUES)) {
		p->values = word(raw, PRE_VALUES);
		p->dict = 0;
	} else if (lay->attrs == PY_ATTRS_312 && pre & 1) {
		p->values = pre + 1;
		p->dict = 0;
	} else if (lay->attrs == PY_ATTRS_313 && !pre &&
		   p->type->info.flags & PY_TP_INLINE_VALUES && raw[WINDOW_FROM + INLINE_AT + 3]) {
		p->values = obj + INLINE_AT + lay->values_header;
		p->nvalues = raw[WINDOW_FROM + INLINE_AT];
	}
	p->keys = p->type->cached_keys;
	p->mode = p->values && p->keys ? M_VALUES : p->dict ? M_DICT : M_SLOW;
	if (!p->values && !p->dict)
		no_dict(k, i);
	if (p->mode == M_VALUES && lay->attrs == PY_ATTRS_311)
		return pybatch_log(k->b, i, obj - WINDOW_FROM + PRE_VALUES, p->values);
	return pybatch_log(k->b, i, obj - WINDOW_FROM + PRE_DICT, pre);
}

static int place_one(struct job *k, size_t i, const uint8_t *raw)
{
	struct place *p = &k->place[i];
	int err = pybatch_type(k->b, word(raw, OB_TYPE), &p->type);

	if (pybatch_fatal(k->b, err))
		return err;
	if (err) {
		all_names(k, i, -EAGAIN);
		return 0;
	}
	p->mode = M_SLOW;
	err = pybatch_log(k->b, i, k->obj[i].v + PY_OB_TYPE, word(raw, OB_TYPE));
	if (err || !p->type)
		return err;
	if (k->b->rt->lay.attrs != PY_ATTRS_DICTOFFSET && p->type->info.flags & PY_TP_MANAGED_DICT)
		return place_managed(k, i, raw);
	return place_dictoffset(k, i, raw);
}

static int find_places(struct job *k)
{
	__free uint8_t *raw = calloc(k->n, WINDOW_BYTES);
	__free struct pymem_span *span = malloc(k->n * sizeof(*span));
	size_t m = 0;
	int err;

	if (!raw || !span)
		return -ENOMEM;
	for (size_t i = 0; i < k->n; i++) {
		all_names(k, i, k->obj[i].rc ? k->obj[i].rc : PENDING);
		if (!k->obj[i].rc)
			span[m++] = py_span(k->obj[i].v - WINDOW_FROM, raw + i * WINDOW_BYTES,
					    WINDOW_BYTES);
	}
	err = pybatch_read(k->b, span, m);
	m = 0;
	for (size_t i = 0; i < k->n && !err; i++) {
		if (k->obj[i].rc)
			continue;
		if (span[m++].rc)
			k->place[i].mode = M_SLOW; /* at the edge of a mapping: only a part of it */
		else
			err = place_one(k, i, raw + i * WINDOW_BYTES);
	}
	return err;
}

/* ---- through a dict ---------------------------------------------------------------------------
 */

/* ma_version, ma_keys, ma_values from +24 */
#define DICT_KEYS   32
#define DICT_VALUES 40

static int open_dicts(struct job *k)
{
	__free uint64_t *raw = malloc(k->n * 2 * sizeof(*raw));
	__free struct pymem_span *span = malloc(k->n * sizeof(*span));
	size_t m = 0;
	int err;

	if (!raw || !span)
		return -ENOMEM;
	for (size_t i = 0; i < k->n; i++)
		if (k->place[i].mode == M_DICT)
			span[m++] = py_span(k->place[i].dict + DICT_KEYS, raw + 2 * i, 16);
	err = pybatch_read(k->b, span, m);
	m = 0;
	for (size_t i = 0; i < k->n && !err; i++) {
		struct place *p = &k->place[i];

		if (p->mode != M_DICT)
			continue;
		if (span[m++].rc) {
			all_names(k, i, -EAGAIN);
			p->mode = M_OVER;
			continue;
		}
		p->keys = raw[2 * i];
		p->values = raw[2 * i + 1];
		p->mode = p->values ? M_VALUES : M_TABLE;
		if (p->values)
			p->values += k->b->rt->lay.values_header;
		err = pybatch_log(k->b, i, p->dict + DICT_KEYS, raw[2 * i]);
		if (!err)
			err = pybatch_log(k->b, i, p->dict + DICT_VALUES, raw[2 * i + 1]);
	}
	return err;
}

/* ---- values whose keys are shared -------------------------------------------------------------
 */

static int value_spans(struct job *k, struct pymem_span *span, size_t *m)
{
	for (size_t i = 0; i < k->n; i++) {
		struct place *p = &k->place[i];

		for (int j = 0; j < k->nnames && p->mode == M_VALUES; j++) {
			struct pycell *c = &k->out[j][i];
			uint32_t pos = 0;
			int err = pybatch_shared(k->b, p->type, p->keys, k->name[j], &pos);

			if (pybatch_fatal(k->b, err))
				return err;
			c->rc = err;
			if (!err && p->nvalues && pos >= p->nvalues)
				c->rc = -EAGAIN;
			if (!c->rc)
				span[(*m)++] = py_span(p->values + (uint64_t)pos * 8, &c->v, 8);
		}
	}
	return 0;
}

static int read_values(struct job *k)
{
	__free struct pymem_span *span = malloc(k->n * (size_t)k->nnames * sizeof(*span));
	size_t m = 0;
	int err;

	if (!span)
		return -ENOMEM;
	err = value_spans(k, span, &m);
	if (!err)
		err = pybatch_read(k->b, span, m);
	m = 0;
	for (size_t i = 0; i < k->n && !err; i++)
		for (int j = 0; j < k->nnames && k->place[i].mode == M_VALUES; j++) {
			struct pycell *c = &k->out[j][i];

			if (c->rc)
				continue;
			if (span[m].rc)
				c->rc = -EAGAIN;
			else if (!err)
				err = pybatch_log(k->b, i, span[m].addr, c->v);
			if (!c->rc && !c->v)
				c->rc = -ENODATA;
			m++;
		}
	return err;
}

/* ---- tables of their own ----------------------------------------------------------------------
 */

struct
try {
	int shape;         /* index into the type's, -1 none yet */
	uint64_t entry[2]; /* key, value */
};

/* The shape to try for this cell, looked up in its own table when none is left. */
static int next_shape(struct job *k, size_t i, int j, struct try *t, int *learned)
{
	struct place *p = &k->place[i];
	struct pycell *c = &k->out[j][i];
	struct pyshape *s;
	int err;

	t->shape = pyshape_next(p->type, k->name[j], t->shape + 1);
	if (t->shape >= 0)
		return 0;
	if (*learned >= LEARNED) {
		c->rc = PENDING_ALONE;
		return 0;
	}
	(*learned)++;
	err = pyshape_learn(k->b, p->type, k->name[j], p->keys, &s);
	if (err) {
		c->rc = err == -ENODATA ? PENDING_ALONE : err;
		return pybatch_fatal(k->b, err) ? err : 0;
	}
	t->shape = (int)(s - p->type->shape);
	return 0;
}

static int table_spans(struct job *k, struct try *try, struct pymem_span *span, size_t *m,
		       int *learned)
{
	for (size_t i = 0; i < k->n; i++) {
		struct place *p = &k->place[i];
		size_t head = *m;

		if (p->mode != M_TABLE)
			continue;
		for (int j = 0; j < k->nnames; j++) {
			struct try *t = &try[i * (size_t)k->nnames + (size_t)j];
			int err;

			if (k->out[j][i].rc != PENDING)
				continue;
			err = next_shape(k, i, j, t, &learned[j]);
			if (err)
				return err;
			if (k->out[j][i].rc != PENDING)
				continue;
			if (*m == head)
				span[(*m)++] = py_span(p->keys + 8, p->head, sizeof(p->head));
			span[(*m)++] = py_span(p->keys + p->type->shape[t->shape].at, t->entry, 16);
		}
	}
	return 0;
}

static int table_value(struct job *k, size_t i, int j, const struct try *t)
{
	const struct pyshape *s = &k->place[i].type->shape[t->shape];
	struct pycell *c = &k->out[j][i];
	uint64_t at = k->place[i].keys + s->at;

	if (!pyshape_fits(k->b->rt, s, k->place[i].head, t->entry[0]))
		return 0; /* another shape: next round */
	c->v = s->absent ? 0 : t->entry[1];
	c->rc = c->v ? 0 : -ENODATA;
	/* A key goes only together with its value. */
	if (s->absent)
		return pybatch_log(k->b, i, at, t->entry[0]);
	return pybatch_log(k->b, i, at + 8, t->entry[1]);
}

static int table_round(struct job *k, struct try *try, struct pymem_span *span, int *learned,
		       bool *more)
{
	size_t m = 0;
	int err = table_spans(k, try, span, &m, learned);

	*more = m > 0;
	if (!err)
		err = pybatch_read(k->b, span, m);
	m = 0;
	for (size_t i = 0; i < k->n && !err; i++) {
		int32_t head = PENDING;

		for (int j = 0; j < k->nnames && k->place[i].mode == M_TABLE && !err; j++) {
			int32_t rc;

			if (k->out[j][i].rc != PENDING)
				continue;
			if (head == PENDING)
				head = span[m++].rc;
			rc = span[m++].rc;
			if (head)
				k->out[j][i].rc = -EAGAIN;
			else if (!rc) /* else: not as long as that shape: the next one */
				err = table_value(k, i, j, &try[i * (size_t)k->nnames + (size_t)j]);
		}
	}
	return err;
}

static int read_tables(struct job *k)
{
	size_t cells = k->n * (size_t)k->nnames;
	__free struct try *try = malloc(cells * sizeof(*try));
	__free struct pymem_span *span = malloc((cells + k->n) * sizeof(*span));
	__free int *learned = calloc((size_t)k->nnames, sizeof(*learned));
	bool more = true;

	if (!try || !span || !learned)
		return -ENOMEM;
	for (size_t i = 0; i < cells; i++)
		try[i].shape = -1;
	for (int r = 0; r < ROUNDS && more; r++) {
		int err = table_round(k, try, span, learned, &more);

		if (err)
			return err;
	}
	return 0;
}

/* ---- __slots__, of what the others did not have -----------------------------------------------
 */

static int slot_spans(struct job *k, struct pymem_span *span, size_t *m)
{
	for (size_t i = 0; i < k->n; i++)
		for (int j = 0; j < k->nnames; j++) {
			struct pycell *c = &k->out[j][i];
			int64_t offset = 0;
			int err;

			if (c->rc != -ENODATA || !k->place[i].type)
				continue;
			err = pybatch_slot(k->b, k->place[i].type, k->name[j], &offset);
			if (pybatch_fatal(k->b, err))
				return err;
			c->rc = err ? err : PENDING;
			if (!err)
				span[(*m)++] = py_span(k->obj[i].v + (uint64_t)offset, &c->v, 8);
		}
	return 0;
}

static int read_slots(struct job *k)
{
	__free struct pymem_span *span = malloc(k->n * (size_t)k->nnames * sizeof(*span));
	size_t m = 0, done = 0;
	int err;

	if (!span)
		return -ENOMEM;
	err = slot_spans(k, span, &m);
	if (!err && m)
		err = pybatch_read(k->b, span, m);
	for (size_t i = 0; i < k->n && m; i++)
		for (int j = 0; j < k->nnames && done < m && !err; j++) {
			struct pycell *c = &k->out[j][i];

			if (span[done].buf != &c->v)
				continue;
			c->rc = span[done].rc ? -EAGAIN : c->v ? 0 : -ENODATA;
			err = pybatch_log(k->b, i, span[done++].addr, c->v);
		}
	return err;
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static int read_slow(struct job *k, size_t i, int j)
{
	struct pycell *c = &k->out[j][i];
	int err;

	if (k->slow++ >= SLOW) {
		c->rc = -EAGAIN;
		return 0;
	}
	err = py_attr(k->b->rt, k->obj[i].v, k->name[j], &c->v);
	c->rc = err;
	return pybatch_fatal(k->b, err) ? err : pybatch_log_other(k->b, i);
}

int pybatch_attrs(struct pybatch *b, const struct pycell *obj, size_t n, const char *const *name,
		  int nnames, struct pycell *const *out)
{
	__free struct place *place = calloc(n + 1, sizeof(*place));
	struct job k = {.b = b,
			.obj = obj,
			.n = n,
			.name = name,
			.nnames = nnames,
			.out = out,
			.place = place};
	int err;

	if (!place)
		return -ENOMEM;
	if (!n || !nnames)
		return 0;
	err = find_places(&k);
	if (!err)
		err = open_dicts(&k);
	if (!err)
		err = read_values(&k);
	if (!err)
		err = read_tables(&k);
	if (!err)
		err = read_slots(&k);
	for (size_t i = 0; i < n; i++)
		for (int j = 0; j < nnames && !err; j++) {
			int32_t rc = out[j][i].rc;

			if (rc == PENDING || rc == PENDING_ALONE)
				err = read_slow(&k, i, j);
			else if (rc == -ENODATA) /* it may get it later, elsewhere */
				err = pybatch_log_other(b, i);
		}
	return err;
}
