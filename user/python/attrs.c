// SPDX-License-Identifier: Apache-2.0
/*
 * Attributes of an instance. Where they are differs between versions (Objects/object.c,
 * Include/internal/pycore_object.h): a dict at tp_dictoffset; or an array of values whose names are
 * in the keys that the class shares; or, once somebody asked for __dict__, a dict. Then __slots__.
 */
#include <errno.h>
#include <string.h>

#include "python/raw.h"
#include "util/cleanup.h"

/* Where an instance's words before it are: GC header, and before that (3.11 and later) these. */
#define PRE_VALUES (-32) /* 3.11 */
#define PRE_DICT   (-24)

#define VALUES_INLINE 16 /* 3.13: behind the object's header */
#define VALUES_VALID  3  /* 3.13: a byte of the values' header */

/* PyMemberDef (Include/descrobject.h) */
struct member {
	uint64_t name;
	int32_t type, pad;
	int64_t offset;
	int32_t flags, pad2;
	uint64_t doc;
};
#define T_OBJECT    6
#define T_OBJECT_EX 16
#define MEMBERS_MAX 64
#define MRO_MAX     64

struct place {
	uint64_t values, dict; /* values: address of the first; 0: none */
	uint64_t keys;         /* of the values */
};

static int word_at(struct py_runtime *rt, uint64_t obj, int64_t offset, uint64_t *v)
{
	return pymem_u64(rt->mem, obj + (uint64_t)offset, v);
}

static int place_311(struct py_runtime *rt, uint64_t obj, struct place *p)
{
	uint64_t pre[2];
	int err = pymem_read(rt->mem, obj + (uint64_t)PRE_VALUES, pre, sizeof(pre));

	p->values = err ? 0 : pre[0];
	p->dict = err || p->values ? 0 : pre[1];
	return err;
}

static int place_312(struct py_runtime *rt, uint64_t obj, struct place *p)
{
	uint64_t v;
	int err = word_at(rt, obj, PRE_DICT, &v);

	if (!err && v & 1)
		p->values = v + 1;
	else if (!err)
		p->dict = v;
	return err;
}

static int place_313(struct py_runtime *rt, uint64_t obj, uint64_t flags, struct place *p)
{
	uint8_t valid;
	int err = word_at(rt, obj, PRE_DICT, &p->dict);

	if (err || p->dict || !(flags & PY_TP_INLINE_VALUES))
		return err;
	err = pymem_read(rt->mem, obj + VALUES_INLINE + VALUES_VALID, &valid, 1);
	if (!err && valid)
		p->values = obj + VALUES_INLINE + rt->lay.values_header;
	return err;
}

static int find_place(struct py_runtime *rt, uint64_t obj, const struct py_typeinfo *ti,
		      struct place *p)
{
	int err = 0;

	memset(p, 0, sizeof(*p));
	if (rt->lay.attrs == PY_ATTRS_DICTOFFSET || !(ti->flags & PY_TP_MANAGED_DICT)) {
		/* Negative: counted from the end of an object of variable size. */
		if (ti->dictoffset < 0)
			return -EINVAL;
		return ti->dictoffset ? word_at(rt, obj, ti->dictoffset, &p->dict) : 0;
	}
	if (rt->lay.attrs == PY_ATTRS_311)
		err = place_311(rt, obj, p);
	else if (rt->lay.attrs == PY_ATTRS_312)
		err = place_312(rt, obj, p);
	else
		err = place_313(rt, obj, ti->flags, p);
	if (!err && p->values)
		err = pymem_u64(rt->mem, ti->addr + rt->lay.heap_cached_keys, &p->keys);
	return err;
}

/* The value, and everything that led to it once more. */
static int from_values(struct py_runtime *rt, uint64_t obj, const struct py_typeinfo *ti,
		       const struct place *p, const char *name, uint64_t *value)
{
	struct place again;
	struct py_keys keys;
	uint64_t key, key2;
	struct pymem_span span[2];
	size_t pos;
	int found, err = py_keys_head(rt, p->keys, &keys);

	if (err)
		return err;
	found = py_keys_find(rt, &keys, name, &pos, &key);
	if (found && found != -ENODATA)
		return found;
	if (!found) {
		span[0] = py_span(p->values + pos * 8, value, sizeof(*value));
		span[1] = py_span(keys.entries + pos * keys.entry_size + keys.key_at, &key2,
				  sizeof(key2));
		err = py_readv(rt, span, 2);
	}
	if (!err)
		err = find_place(rt, obj, ti, &again);
	if (err)
		return err;
	if (memcmp(&again, p, sizeof(again)) != 0 || (!found && key2 != key))
		return -EAGAIN;
	return found || !*value ? -ENODATA : 0;
}

static int from_dict(struct py_runtime *rt, uint64_t obj, const struct py_typeinfo *ti,
		     const struct place *p, const char *name, uint64_t *value)
{
	struct place again;
	int err = py_dict_find(rt, p->dict, name, value), err2;

	if (err && err != -ENODATA)
		return err;
	err2 = find_place(rt, obj, ti, &again);
	if (err2)
		return err2;
	return memcmp(&again, p, sizeof(again)) ? -EAGAIN : err;
}

/* ---- __slots__ ------------------------------------------------------------------------------- */

static int slot_of(struct py_runtime *rt, const struct py_typeinfo *ti, const char *name,
		   int64_t *offset)
{
	struct member m[MEMBERS_MAX];
	/* A class made in Python says how many it has; a built-in one ends them by a NULL. */
	size_t n = ti->size > 0 && ti->size < MEMBERS_MAX ? (size_t)ti->size : 0;
	int err;

	if (!ti->members || !(ti->flags & PY_TP_HEAPTYPE) || !n)
		return -ENODATA;
	err = pymem_read(rt->mem, ti->members, m, n * sizeof(m[0]));
	for (size_t i = 0; i < n && !err && m[i].name; i++) {
		char text[256];

		if (m[i].type != T_OBJECT_EX && m[i].type != T_OBJECT)
			continue;
		err = pymem_cstr(rt->mem, m[i].name, text, sizeof(text));
		if (err || strcmp(text, name) != 0)
			continue;
		*offset = m[i].offset;
		return 0;
	}
	return err ? err : -ENODATA;
}

int py_slot_find(struct py_runtime *rt, const struct py_typeinfo *ti, const char *name,
		 int64_t *offset)
{
	__free uint64_t *type = NULL;
	size_t n;
	int err = py_elements(rt, ti->mro, &type, &n, MRO_MAX);

	if (err)
		return err;
	err = -ENODATA;
	for (size_t i = 0; i < n && err == -ENODATA; i++) {
		struct py_typeinfo base;

		err = py_typeinfo(rt, type[i], &base);
		if (!err)
			err = slot_of(rt, &base, name, offset);
	}
	if (!err && (*offset < PY_OB_SIZE || *offset > ti->basicsize - 8))
		err = -EINVAL;
	return err;
}

static int from_slots(struct py_runtime *rt, uint64_t obj, const struct py_typeinfo *ti,
		      const char *name, uint64_t *value)
{
	int64_t offset;
	int err = py_slot_find(rt, ti, name, &offset);

	if (err)
		return err;
	err = word_at(rt, obj, offset, value);
	return err ? err : *value ? 0 : -ENODATA;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int attr_once(struct py_runtime *rt, uint64_t obj, const char *name, uint64_t *value)
{
	struct py_typeinfo ti;
	struct place p;
	uint64_t type, again;
	int found = -ENODATA, err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &type);

	if (!err)
		err = py_typeinfo(rt, type, &ti);
	if (!err)
		err = find_place(rt, obj, &ti, &p);
	if (err)
		return err;
	if (p.values)
		found = from_values(rt, obj, &ti, &p, name, value);
	else if (p.dict)
		found = from_dict(rt, obj, &ti, &p, name, value);
	if (found == -ENODATA)
		found = from_slots(rt, obj, &ti, name, value);
	err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &again);
	if (err)
		return err;
	return again == type ? found : -EAGAIN;
}

int py_attr(struct py_runtime *rt, uint64_t obj, const char *name, uint64_t *value)
{
	int err = -EAGAIN;

	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = attr_once(rt, obj, name, value);
	return err;
}
