// SPDX-License-Identifier: Apache-2.0
/* Code objects: names, and the local variables of a frame. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "python/frame.h"
#include "python/raw.h"
#include "util/cleanup.h"

#define CELL_REF   16 /* PyCellObject.ob_ref */
#define LOCALS_MAX 1024

static int text_at(struct py_runtime *rt, uint64_t addr, char *buf, size_t len)
{
	uint64_t str;
	int err = pymem_u64(rt->mem, addr, &str);

	return err ? err : py_str(rt, str, buf, len, NULL);
}

int py_code(struct py_runtime *rt, uint64_t code, struct py_code *out)
{
	const struct py_layout *l = &rt->lay;
	int32_t line;
	int err = text_at(rt, code + l->code.name, out->name, sizeof(out->name));

	out->qualname[0] = 0;
	if (!err && l->code.qualname != PY_NO_OFFSET)
		err = text_at(rt, code + l->code.qualname, out->qualname, sizeof(out->qualname));
	if (!err)
		err = text_at(rt, code + l->code.filename, out->file, sizeof(out->file));
	if (!err)
		err = pymem_u64(rt->mem, code + l->code.localnames, &out->localnames);
	if (!err)
		err = pymem_read(rt->mem, code + l->code.firstlineno, &line, sizeof(line));
	out->firstlineno = err ? 0 : line;
	return err;
}

bool py_code_matches(const struct py_code *c, const char *glob)
{
	const char *dot = strrchr(glob, '.');

	if (dot && c->qualname[0])
		return fnmatch(glob, c->qualname, 0) == 0;
	return fnmatch(dot ? dot + 1 : glob, c->name, 0) == 0;
}

/* Position of a name in a tuple of strings. */
static int find_name(struct py_runtime *rt, uint64_t tuple, const char *name, size_t *pos,
		     size_t *total)
{
	__free uint64_t *item = NULL;
	int err = py_elements(rt, tuple, &item, total, LOCALS_MAX);

	for (size_t i = 0; i < *total && !err; i++) {
		char text[256];

		err = py_str(rt, item[i], text, sizeof(text), NULL);
		*pos = i;
		if (!err && !strcmp(text, name))
			return 0;
	}
	return err ? err : -ENODATA;
}

/* The content when obj is a cell, else obj itself. */
static int through_cell(struct py_runtime *rt, uint64_t obj, uint64_t *value)
{
	struct py_typeinfo ti = {0};
	uint64_t type;
	char name[8];
	int err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &type);

	if (!err)
		err = py_typeinfo(rt, type, &ti);
	*value = obj;
	if (err || ti.flags & PY_TP_HEAPTYPE)
		return err;
	err = py_typename(rt, &ti, name, sizeof(name));
	if (!err && !strcmp(name, "cell"))
		err = pymem_u64(rt->mem, obj + CELL_REF, value);
	return err;
}

static int slot(struct py_runtime *rt, const struct py_frame *f, size_t pos, uint64_t *value)
{
	uint64_t obj;
	int err = pymem_u64(rt->mem, f->locals + pos * 8, &obj);

	if (!err && obj)
		err = through_cell(rt, obj, value);
	if (!err && (!obj || !*value))
		err = -ENODATA;
	return err;
}

/* 3.10 keeps cells and free variables behind the locals, with names of their own; an argument that
 * has become a cell is unbound among the locals. */
static int cell_310(struct py_runtime *rt, const struct py_frame *f, size_t nlocals,
		    const char *name, uint64_t *value)
{
	const uint16_t at[] = {rt->lay.code.cellvars, rt->lay.code.freevars};
	size_t before = nlocals;
	int err = -ENODATA;

	for (size_t i = 0; i < 2 && err == -ENODATA; i++) {
		uint64_t names;
		size_t pos, n = 0;

		err = pymem_u64(rt->mem, f->code + at[i], &names);
		if (!err)
			err = find_name(rt, names, name, &pos, &n);
		if (!err)
			return slot(rt, f, before + pos, value);
		before += n;
	}
	return err;
}

int py_local(struct py_runtime *rt, const struct py_frame *f, const char *name, uint64_t *value)
{
	uint64_t names;
	size_t pos, n = 0;
	int err = pymem_u64(rt->mem, f->code + rt->lay.code.localnames, &names);

	if (!err)
		err = find_name(rt, names, name, &pos, &n);
	if (!err)
		err = slot(rt, f, pos, value);
	if (err == -ENODATA && rt->lay.code.cellvars != PY_NO_OFFSET)
		err = cell_310(rt, f, n, name, value);
	return err;
}

int py_local_declared(struct py_runtime *rt, const struct py_frame *f, const char *name)
{
	const uint16_t at[] = {rt->lay.code.localnames, rt->lay.code.cellvars,
			       rt->lay.code.freevars};
	int err = -ENODATA;

	for (size_t i = 0; i < 3 && err == -ENODATA; i++) {
		uint64_t names;
		size_t pos, n = 0;

		if (at[i] == PY_NO_OFFSET)
			continue;
		err = pymem_u64(rt->mem, f->code + at[i], &names);
		if (!err)
			err = find_name(rt, names, name, &pos, &n);
	}
	return err;
}
