// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/shot.h"
#include "python/walk.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* A server may make a new list in every turn of its loop, which an idle one does a hundred thousand
 * times a second: a walk is tried again so often, and more often while that takes no time. */
#define TRIES       4
#define TRIES_QUICK 100
#define QUICK_NS    (2 * NS_PER_MS)

static int no_such(int err)
{
	return err == -EFAULT ? -EAGAIN : err;
}

/* ---- one step for all -------------------------------------------------------------------------
 */

static int step_attr(struct pybatch *b, const char *name, struct pyelems *v)
{
	__free struct pycell *in = calloc(v->n + 1, sizeof(*in));
	__free struct pycell *out = calloc(v->n + 1, sizeof(*out));
	struct pycell *outs[1] = {out};
	int err;

	if (!in || !out)
		return -ENOMEM;
	for (size_t i = 0; i < v->n; i++)
		in[i].v = v->e[i].elem;
	err = pybatch_attrs(b, in, v->n, &name, 1, outs);
	for (size_t i = 0; i < v->n && !err; i++) {
		err = no_such(out[i].rc);
		v->e[i].elem = out[i].v;
	}
	return err;
}

static int step_first(struct pybatch *b, struct pyelems *v)
{
	for (size_t i = 0; i < v->n; i++) {
		struct pycell in = {.v = v->e[i].elem}, out = {0};
		int err = pybatch_first(b, &in, 1, &out);

		if (err || out.rc)
			return err ? err : no_such(out.rc);
		v->e[i].elem = out.v;
	}
	return 0;
}

static int append(struct pyelems *to, const struct pyelem *from, const uint64_t *item,
		  const struct py_entry_addr *entry, size_t n, bool outermost)
{
	struct pyelem *grown;

	if (to->n + n > PYQ_ROWS_MAX)
		return -EAGAIN; /* more than we look at: never stable */
	grown = realloc(to->e, (to->n + n + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	to->e = grown;
	for (size_t i = 0; i < n; i++) {
		struct pyelem *e = &to->e[to->n++];

		e->elem = entry ? entry[i].value : item[i];
		e->key = entry ? entry[i].key : 0;
		e->owner = outermost ? e->elem : from->owner;
	}
	return 0;
}

/* [*] and {}: each object gives way to what it holds. */
static int step_into(struct pybatch *b, bool entries, bool outermost, struct pyelems *v)
{
	struct pyelems to = {0};
	int err = 0;

	for (size_t i = 0; i < v->n && !err; i++) {
		__free uint64_t *item = NULL;
		__free struct py_entry_addr *entry = NULL;
		size_t n = 0;

		err = entries ? py_entries(b->rt, v->e[i].elem, &entry, &n, 0)
			      : py_elements(b->rt, v->e[i].elem, &item, &n, 0);
		err = no_such(err);
		if (err == -E2BIG && !pybatch_fatal(b, err)) /* over the cap: never whole */
			err = -EAGAIN;
		/* a list that was given up and is filled anew has another length by then: it is
		 * looked at together with the way to it, which may lead to it once more */
		if (!err)
			err = pybatch_log(b, 0, v->e[i].elem + PY_OB_SIZE, n);
		if (!err)
			err = append(&to, &v->e[i], item, entry, n, outermost);
	}
	free(v->e);
	*v = to;
	return err;
}

/* The first nsteps of a path. */
static int walk_steps(struct pybatch *b, uint64_t start, const struct py_path *p, int nsteps,
		      struct pyelems *out)
{
	bool outermost = true;
	int err = 0;

	out->n = 1;
	out->e[0] = (struct pyelem){.elem = start};
	b->logging = true;
	for (int i = 0; i < nsteps && !err; i++) {
		switch (p->step[i].kind) {
		case PY_ATTR:
			err = step_attr(b, p->step[i].name, out);
			break;
		case PY_FIRST:
			err = step_first(b, out);
			break;
		case PY_EACH:
		case PY_ITEMS:
			err = step_into(b, p->step[i].kind == PY_ITEMS, outermost, out);
			outermost = false;
			break;
		case PY_LEN:
			err = -EINVAL;
			break;
		}
	}
	b->logging = false;
	return err;
}

/* All rows are one here: a list that was read after it had been given up, and its place used again,
 * is whole in itself. Only the way to it tells. */
static int same_way(struct pybatch *b)
{
	bool dirty = false;
	int err;

	for (size_t i = 0; i < b->nwords; i++)
		b->word[i].row = 0;
	err = pybatch_verify(b, &dirty, 1);
	return err || !dirty ? err : -EAGAIN;
}

static int walk_once(struct pybatch *b, uint64_t start, const struct py_path *p,
		     struct pyelems *out)
{
	int err = walk_steps(b, start, p, p->nsteps, out);

	if (!err)
		err = same_way(b);
	pybatch_forget(b);
	return err;
}

/* ---- a list that is replaced in every turn of a loop ------------------------------------------
 */

/* A plain way of attributes to one list. */
static bool leads_to_list(const struct py_path *p)
{
	for (int i = 0; i + 1 < p->nsteps; i++)
		if (p->step[i].kind != PY_ATTR)
			return false;
	return p->nsteps > 1 && p->step[p->nsteps - 1].kind == PY_EACH;
}

/* Where the reference to what the way leads to is kept: out of the log, for it may change. 0: not
 * known. */
static uint64_t take_slot(struct pybatch *b, uint64_t list)
{
	for (size_t i = b->nwords; i-- > 0;)
		if (b->word[i].value == list) {
			uint64_t slot = b->word[i].addr;

			b->word[i] = b->word[--b->nwords];
			return slot;
		}
	return 0;
}

static int walk_shot(struct pybatch *b, uint64_t start, const struct py_path *p,
		     struct pyelems *out)
{
	uint64_t item[SHOT_ITEMS], slot;
	size_t n = 0;
	int err = walk_steps(b, start, p, p->nsteps - 1, out);

	slot = err ? 0 : take_slot(b, out->e[0].elem);
	if (!err)
		err = slot ? pyshot_list(b, slot, item, &n) : -EAGAIN;
	if (err == -EINVAL)
		err = -EAGAIN;
	if (!err)
		err = same_way(b);
	pybatch_forget(b);
	if (err)
		return err;
	out->n = 0;
	return append(out, &(struct pyelem){0}, item, NULL, n, true);
}

int pywalk(struct pybatch *b, uint64_t start, const struct py_path *p, struct pyelems *out)
{
	uint64_t began = mono_ns();
	int err = -EAGAIN;

	for (int i = 0; i < TRIES_QUICK && err == -EAGAIN; i++) {
		if (i >= TRIES && mono_ns() - began > QUICK_NS)
			break;
		memset(out, 0, sizeof(*out));
		out->e = calloc(1, sizeof(*out->e));
		if (!out->e)
			return -ENOMEM;
		err = i == TRIES && leads_to_list(p) ? walk_shot(b, start, p, out)
						     : walk_once(b, start, p, out);
		if (err)
			free(out->e);
	}
	if (err)
		memset(out, 0, sizeof(*out));
	return err;
}

/* ---- fields: their paths as a tree, so that what they share is read once ----------------------
 */

#define NODES_MAX (2 + PY_MAX_FIELDS * PY_MAX_STEPS)
struct node {
	int parent; /* -1: the element itself, or its key */
	const struct py_step *step;
	struct pycell *cell;
};
struct tree {
	struct node node[NODES_MAX];
	int n;
	int end[PY_MAX_FIELDS]; /* the node of each field's value */
};

static bool same_step(const struct py_step *a, const struct py_step *b)
{
	return a->kind == b->kind && (a->kind != PY_ATTR || !strcmp(a->name, b->name));
}

static void plant(struct tree *t, const struct py_query *q)
{
	t->node[0] = t->node[1] = (struct node){.parent = -1};
	t->n = 2; /* element or value, key */
	for (int f = 0; f < q->nfields; f++) {
		const struct py_path *p = &q->field[f].path;
		int at = strcmp(p->head, "key") ? 0 : 1;

		for (int s = 0; s < p->nsteps; s++) {
			int k = 2;

			while (k < t->n && (t->node[k].parent != at ||
					    !same_step(t->node[k].step, &p->step[s])))
				k++;
			if (k == t->n)
				t->node[t->n++] = (struct node){.parent = at, .step = &p->step[s]};
			at = k;
		}
		t->end[f] = at;
	}
}

/* All children of a node: the attributes among them in one go. */
static int grow(struct pybatch *b, struct tree *t, int parent, size_t n)
{
	const char *name[PY_MAX_FIELDS];
	struct pycell *out[PY_MAX_FIELDS];
	const struct pycell *from = t->node[parent].cell;
	int nnames = 0, err = 0;

	for (int k = 2; k < t->n && !err; k++) {
		struct node *c = &t->node[k];

		if (c->parent != parent)
			continue;
		if (c->step->kind == PY_ATTR) {
			name[nnames] = c->step->name;
			out[nnames++] = c->cell;
		} else if (c->step->kind == PY_LEN) {
			err = pybatch_len(b, from, n, c->cell);
		} else {
			err = pybatch_first(b, from, n, c->cell);
		}
	}
	return err || !nnames ? err : pybatch_attrs(b, from, n, name, nnames, out);
}

/* ---- from values to rows ----------------------------------------------------------------------
 */

int pyvalue_room(const struct pyvalue *v, char out[PYB_TEXT])
{
	if (v->rc)
		return v->rc;
	if (v->is_text && (v->cut || !v->text[0]))
		return -E2BIG;
	if (v->is_text)
		memcpy(out, v->text, PYB_TEXT);
	else if (v->negative)
		return -ERANGE;
	else
		snprintf(out, PYB_TEXT, "%llu", (unsigned long long)v->num);
	return 0;
}

static int take_field(const struct py_field *f, const struct pyvalue *v, struct pyrow *row)
{
	if (f->what == PY_ROOM)
		return pyvalue_room(v, row->room);
	if (v->rc)
		return v->rc;
	if (f->what == PY_RID) {
		if (!v->is_text)
			snprintf(row->rid, sizeof(row->rid), "%lld", (long long)v->num);
		else if (!v->cut) /* else it may be anybody's */
			memcpy(row->rid, v->text, sizeof(row->rid));
		return 0;
	}
	if (v->is_text)
		return -EINVAL;
	if (!v->negative && v->num < 0) /* 2^63 and more */
		return -ERANGE;
	row->num[f->what] = v->num;
	return 0;
}

/* Does this result keep the row from being one? What is optional or unknown for the moment
 * (None, an empty dict) does not; what is torn always does. */
static int32_t field_rc(const struct py_field *f, int32_t rc)
{
	if (!rc || rc == -EAGAIN || rc == -EFAULT)
		return rc;
	if (f->optional || (f->what != PY_ROOM && (rc == -ENOENT || rc == -ERANGE)))
		return 0;
	return rc;
}

static int take_fields(struct pybatch *b, const struct py_query *q, const struct tree *t,
		       struct pyrow *rows, size_t n)
{
	__free struct pyvalue *value = malloc((n + 1) * sizeof(*value));

	if (!value)
		return -ENOMEM;
	for (int f = 0; f < q->nfields; f++) {
		const struct node *end = &t->node[t->end[f]];
		bool len = end->step && end->step->kind == PY_LEN;
		int err = len ? 0 : pybatch_values(b, end->cell, n, value);

		if (err)
			return err;
		for (size_t i = 0; i < n; i++) {
			int32_t rc;

			if (len)
				value[i] = (struct pyvalue){.num = (int64_t)end->cell[i].v,
							    .rc = end->cell[i].rc};
			rc = field_rc(&q->field[f], take_field(&q->field[f], &value[i], &rows[i]));
			if (rc && (!rows[i].rc || rc == -EAGAIN))
				rows[i].rc = rc;
		}
	}
	return 0;
}

int pyfields(struct pybatch *b, const struct py_query *q, struct pyrow *rows, size_t n)
{
	struct tree t;
	__free struct pycell *cells = NULL;
	int err = 0;

	memset(&t, 0, sizeof(t));
	plant(&t, q);
	cells = calloc((n + 1) * (size_t)t.n, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	for (int k = 0; k < t.n; k++)
		t.node[k].cell = cells + (size_t)k * (n + 1);
	for (size_t i = 0; i < n; i++) {
		t.node[0].cell[i].v = rows[i].elem;
		t.node[1].cell[i].v = rows[i].key;
		rows[i].rc = 0;
		rows[i].room[0] = rows[i].rid[0] = '\0';
		for (int w = 0; w <= PY_NEED; w++)
			rows[i].num[w] = -1;
	}
	for (int k = 0; k < t.n && !err; k++)
		err = grow(b, &t, k, n);
	return err ? err : take_fields(b, q, &t, rows, n);
}
