// SPDX-License-Identifier: Apache-2.0
/*
 * Line tables. 3.10 (Objects/lnotab_notes.txt): pairs of bytes, how far the range goes and by how
 * much its line differs from the one before, -128 for "no line". 3.11 and later
 * (Objects/locations.md): an entry's first byte has its top bit set, a form in the next four, and
 * the length in code units less one; what follows depends on the form.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/frame.h"
#include "python/raw.h"
#include "util/cleanup.h"

#define TABLE_MAX (1u << 20)
#define UNIT      2 /* bytes of a code unit */

enum form { FORM_ONE_LINE = 10, FORM_NO_COLUMNS = 13, FORM_LONG = 14, FORM_NONE = 15 };

struct table {
	uint8_t *byte;
	size_t len;
};

static int read_table(struct py_runtime *rt, uint64_t code, struct table *t)
{
	uint64_t bytes, head[2]; /* type, size */
	bool is;
	int err = pymem_u64(rt->mem, code + rt->lay.code.linetable, &bytes);

	if (!err)
		err = pymem_read(rt->mem, bytes + PY_OB_TYPE, head, sizeof(head));
	if (!err)
		err = py_type_flag(rt, head[0], PY_TP_BYTES, &is);
	if (err)
		return err;
	if (!is || head[1] == 0 || head[1] > TABLE_MAX)
		return -EINVAL;
	t->len = (size_t)head[1];
	t->byte = malloc(t->len);
	if (!t->byte)
		return -ENOMEM;
	return pymem_read(rt->mem, bytes + PY_BYTES_AT, t->byte, t->len);
}

static int line_310(const struct table *t, uint64_t at, int first, int *line)
{
	uint64_t end = 0;
	int64_t now = first;

	for (size_t i = 0; i + 1 < t->len; i += 2) {
		int delta = t->byte[i + 1] < 128 ? t->byte[i + 1] : t->byte[i + 1] - 256;

		now += delta == -128 ? 0 : delta;
		end += t->byte[i];
		if (at < end) {
			*line = (int)now;
			return delta == -128 || now < 0 || now > INT32_MAX ? -EINVAL : 0;
		}
	}
	return -EINVAL;
}

/* Six bits a byte, the lowest first; bit 6: more follow. An entry begins with bit 7 set. */
static int signed_varint(const struct table *t, size_t i, int64_t *v)
{
	uint64_t u = 0;

	for (unsigned shift = 0; shift <= 30 && i < t->len && !(t->byte[i] & 0x80); shift += 6) {
		u |= (uint64_t)(t->byte[i] & 0x3f) << shift;
		if (!(t->byte[i++] & 0x40)) {
			*v = u & 1 ? -(int64_t)(u >> 1) : (int64_t)(u >> 1);
			return 0;
		}
	}
	return -EINVAL;
}

static int line_311(const struct table *t, uint64_t at, int first, int *line)
{
	int64_t now = first;
	uint64_t end = 0;
	size_t i = 0;

	while (i < t->len && t->byte[i] & 0x80) {
		int form = (t->byte[i] >> 3) & 15, err = 0;
		int64_t delta = 0;

		end += ((uint64_t)(t->byte[i] & 7) + 1) * UNIT;
		if (form == FORM_LONG || form == FORM_NO_COLUMNS)
			err = signed_varint(t, i + 1, &delta);
		else if (form >= FORM_ONE_LINE && form < FORM_NO_COLUMNS)
			delta = form - FORM_ONE_LINE;
		if (err)
			return err;
		now += delta;
		if (at < end) {
			*line = (int)now;
			return form == FORM_NONE || now < 0 || now > INT32_MAX ? -EINVAL : 0;
		}
		for (i++; i < t->len && !(t->byte[i] & 0x80);)
			i++;
	}
	return -EINVAL;
}

int py_line(struct py_runtime *rt, const struct py_frame *f, int *line)
{
	const struct py_layout *l = &rt->lay;
	struct table t = {0};
	uint64_t start = f->code + l->code.code_start;
	int32_t first;
	int err = pymem_read(rt->mem, f->code + l->code.firstlineno, &first, sizeof(first));

	if (!err)
		err = read_table(rt, f->code, &t);
	if (!err && l->code.code_start == PY_NO_OFFSET)
		/* An index of code units; -1 before the first instruction. */
		err = f->lasti == UINT32_MAX ? -EINVAL : line_310(&t, f->lasti * UNIT, first, line);
	else if (!err)
		/* Just called: the pointer is one unit before the first. */
		err = line_311(&t, f->lasti < start ? 0 : f->lasti - start, first, line);
	free(t.byte);
	return err;
}

int py_frame_text(struct py_runtime *rt, const struct py_frame *f, char *buf, size_t len)
{
	struct py_code c;
	const char *file;
	int line, err = py_code(rt, f->code, &c), slashes = 0;

	if (err)
		return err;
	for (file = c.file + strlen(c.file); file > c.file; file--)
		if (file[-1] == '/' && ++slashes == 2)
			break;
	if (py_line(rt, f, &line))
		line = c.firstlineno;
	snprintf(buf, len, "%s:%d %s", file, line, c.name);
	return 0;
}
