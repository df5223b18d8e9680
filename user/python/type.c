// SPDX-License-Identifier: Apache-2.0
/* What an object is. */
#include <errno.h>
#include <string.h>

#include "python/raw.h"

/* PyTypeObject, from tp_name to tp_mro (Include/cpython/object.h) */
#define TP_SIZE       16
#define TP_NAME       24
#define TP_BASICSIZE  32
#define TP_FLAGS      168
#define TP_MEMBERS    240
#define TP_BASE       256
#define TP_DICTOFFSET 288
#define TP_MRO        344
#define TP_END        352

#define DEQUE_BASICSIZE 64 /* what deque.c reads: a smaller object is none */
#define BASES_MAX       8

int py_readv(struct py_runtime *rt, struct pymem_span *span, size_t n)
{
	int err = pymem_readv(rt->mem, span, n);

	for (size_t i = 0; i < n && !err; i++)
		err = span[i].rc;
	return err;
}

static uint64_t word(const uint8_t *raw, size_t offset)
{
	uint64_t v;

	memcpy(&v, raw + offset - TP_SIZE, sizeof(v));
	return v;
}

int py_typeinfo(struct py_runtime *rt, uint64_t type, struct py_typeinfo *out)
{
	uint8_t raw[TP_END - TP_SIZE];
	int err = pymem_read(rt->mem, type + TP_SIZE, raw, sizeof(raw));

	if (err)
		return err;
	out->addr = type;
	out->size = (int64_t)word(raw, TP_SIZE);
	out->name = word(raw, TP_NAME);
	out->basicsize = (int64_t)word(raw, TP_BASICSIZE);
	out->flags = word(raw, TP_FLAGS);
	out->members = word(raw, TP_MEMBERS);
	out->base = word(raw, TP_BASE);
	out->dictoffset = (int64_t)word(raw, TP_DICTOFFSET);
	out->mro = word(raw, TP_MRO);
	return 0;
}

int py_typename(struct py_runtime *rt, const struct py_typeinfo *ti, char *buf, size_t len)
{
	return pymem_cstr(rt->mem, ti->name, buf, len);
}

int py_type_flag(struct py_runtime *rt, uint64_t type, uint64_t flag, bool *is)
{
	uint64_t flags = 0;
	int err = 0;

	if (type && type == rt->type.int_)
		flags = PY_TP_LONG;
	else if (type && type == rt->type.str)
		flags = PY_TP_UNICODE;
	else if (type && type == rt->type.dict)
		flags = PY_TP_DICT;
	else
		err = pymem_u64(rt->mem, type + TP_FLAGS, &flags);
	*is = flags & flag;
	return err;
}

static int named(struct py_runtime *rt, const struct py_typeinfo *ti, const char *want, bool *is)
{
	char name[32];
	int err = py_typename(rt, ti, name, sizeof(name));

	*is = !err && !strcmp(name, want);
	return err;
}

/* A subclass of deque is one too: look at the bases. */
static int deque_or_other(struct py_runtime *rt, struct py_typeinfo *ti, enum py_type *type)
{
	*type = PY_T_OTHER;
	for (int i = 0; i < BASES_MAX && ti->basicsize >= DEQUE_BASICSIZE; i++) {
		bool is;
		int err = named(rt, ti, "collections.deque", &is);

		if (err)
			return err;
		if (is) {
			*type = PY_T_DEQUE;
			return 0;
		}
		if (!ti->base)
			return 0;
		err = py_typeinfo(rt, ti->base, ti);
		if (err)
			return err;
	}
	return 0;
}

static int classify(struct py_runtime *rt, struct py_typeinfo *ti, enum py_type *type)
{
	bool none;
	int err;

	if (ti->flags & PY_TP_LONG)
		*type = PY_T_INT;
	else if (ti->flags & PY_TP_UNICODE)
		*type = PY_T_STR;
	else if (ti->flags & PY_TP_LIST)
		*type = PY_T_LIST;
	else if (ti->flags & PY_TP_TUPLE)
		*type = PY_T_TUPLE;
	else if (ti->flags & PY_TP_DICT)
		*type = PY_T_DICT;
	else if (ti->flags & PY_TP_HEAPTYPE || ti->basicsize >= DEQUE_BASICSIZE)
		return deque_or_other(rt, ti, type);
	else {
		err = named(rt, ti, "NoneType", &none);
		*type = none ? PY_T_NONE : PY_T_OTHER;
		return err;
	}
	return 0;
}

static int type_once(struct py_runtime *rt, uint64_t obj, enum py_type *type, char *name,
		     size_t len)
{
	struct py_typeinfo ti;
	uint64_t addr, again;
	int err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &addr);

	if (err)
		return err;
	err = py_typeinfo(rt, addr, &ti);
	if (!err && name)
		err = py_typename(rt, &ti, name, len);
	if (!err)
		err = classify(rt, &ti, type);
	if (!err)
		err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &again);
	if (!err && again != addr)
		err = -EAGAIN;
	return err;
}

int py_type_of(struct py_runtime *rt, uint64_t obj, enum py_type *type, char *name, size_t len)
{
	int err = -EAGAIN;

	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = type_once(rt, obj, type, name, len);
	return err;
}
