// SPDX-License-Identifier: Apache-2.0
/* What many objects say: ints and strings, lengths, first entries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event/id.h"
#include "python/batch.h"
#include "util/cleanup.h"

/* From an object's type on: enough for an int of 90 bits and for a string of PYB_TEXT bytes. */
#define VALUE_BYTES 112
#define AT(off)     ((size_t)(off)-PY_OB_TYPE)
#define INT_DIGITS  24
#define STR_STATE   32
#define STATE_KIND1 (1u << 2)
#define STATE_FORM  (0x1fu << 2) /* kind, compact, ascii */
#define STATE_ASCII (STATE_KIND1 | 1u << 5 | 1u << 6)

static uint64_t word(const uint8_t *raw, size_t at)
{
	uint64_t v;

	memcpy(&v, raw + at, sizeof(v));
	return v;
}

/* ---- ints and strings -------------------------------------------------------------------------
 */

/* Digits of 30 bits, at most three: 2^64 needs no more. */
static void take_int(const struct py_layout *lay, const uint8_t *raw, struct pyvalue *v)
{
	uint64_t tag = word(raw, AT(PY_OB_SIZE)), n = tag >> 3;
	unsigned __int128 sum = 0;

	v->negative = (tag & 3) == 2; /* 3.12: low bits of the tag */
	if (!lay->int_tagged) {
		v->negative = (int64_t)tag < 0;
		n = v->negative ? 0 - tag : tag;
	}
	v->rc = n > 3 ? -ERANGE : 0;
	for (size_t i = 0; i < n && !v->rc; i++) {
		uint32_t digit;

		memcpy(&digit, raw + AT(INT_DIGITS) + 4 * i, sizeof(digit));
		if (digit >> 30)
			v->rc = -EAGAIN;
		sum |= (unsigned __int128)digit << (30 * i);
	}
	if (!v->rc && sum >> (v->negative ? 63 : 64))
		v->rc = -ERANGE;
	v->num = v->negative ? -(int64_t)sum : (int64_t)(uint64_t)sum;
}

static size_t characters(const char *utf8)
{
	size_t n = 0;

	for (; *utf8; utf8++)
		n += (*utf8 & 0xc0) != 0x80;
	return n;
}

/* One that takes reads of its own. */
static int read_text(struct pybatch *b, uint64_t obj, struct pyvalue *v)
{
	char id[SP_ID_MAX + 1];
	size_t full = 0;
	int err = py_str(b->rt, obj, id, sizeof(id), &full);

	v->is_text = true;
	if (err)
		return err;
	v->cut = characters(id) != full;
	sp_id_name(v->text, id, strlen(id));
	return 0;
}

/* Of ASCII, so that its characters are its bytes: those that raw does not hold are read here. */
static int take_ascii(struct pybatch *b, size_t row, uint64_t obj, const uint8_t *raw, size_t len,
		      struct pyvalue *v)
{
	size_t ascii = b->rt->lay.str.ascii_data, words = (len + 7) / 8 * 8;
	char id[SP_ID_MAX + 8];
	int err = 0;

	v->is_text = true;
	if (len < PYB_TEXT)
		memcpy(id, raw + AT(ascii), words);
	else
		err = pymem_read(b->rt->mem, obj + ascii, id, words);
	if (err) {
		v->rc = -EAGAIN;
		return pybatch_fatal(b, err) ? err : pybatch_log_other(b, row);
	}
	err = pybatch_log_content(b, row, obj + PY_OB_TYPE, raw, 16);
	if (!err)
		err = pybatch_log_content(b, row, obj + ascii, id, len);
	v->rc = memchr(id, '\0', len) ? -ERANGE : 0;
	sp_id_name(v->text, id, len);
	return err;
}

static int take_text(struct pybatch *b, size_t row, uint64_t obj, const uint8_t *raw,
		     struct pyvalue *v)
{
	uint64_t len = word(raw, AT(PY_OB_SIZE));
	uint32_t state;
	int err;

	memcpy(&state, raw + AT(STR_STATE), sizeof(state));
	if ((state & STATE_FORM) == STATE_ASCII && len <= SP_ID_MAX)
		return take_ascii(b, row, obj, raw, len, v);
	err = read_text(b, obj, v);
	v->rc = err;
	return pybatch_fatal(b, err) ? err : pybatch_log_other(b, row);
}

static int take_value(struct pybatch *b, size_t row, uint64_t obj, const uint8_t *raw,
		      struct pyvalue *v)
{
	size_t len = 8; /* what of raw says it all */
	struct pytype *t;
	struct pytype many = {0};
	int err = pybatch_type(b, word(raw, 0), &t);

	if (!err && !t) {
		err = py_typeinfo(b->rt, word(raw, 0), &many.info);
		t = &many;
	}
	v->rc = err == -EFAULT ? -EAGAIN : err;
	if (err)
		return pybatch_fatal(b, err) ? err : 0;
	if (t->info.flags & PY_TP_UNICODE)
		return take_text(b, row, obj, raw, v);
	v->rc = t->none ? -ENOENT : -EINVAL;
	if (t->info.flags & PY_TP_LONG) {
		take_int(&b->rt->lay, raw, v);
		len = AT(INT_DIGITS) + 12;
		if (!v->rc && v->num >> 30 == 0) /* one digit or none */
			len = AT(INT_DIGITS) + 4;
	}
	return pybatch_log_content(b, row, obj + PY_OB_TYPE, raw, len);
}

/* The last objects of a mapping: less than VALUE_BYTES may be there. */
static int take_alone(struct pybatch *b, size_t row, uint64_t obj, struct pyvalue *v)
{
	enum py_type type;
	int err = py_type_of(b->rt, obj, &type, NULL, 0);

	if (!err && type == PY_T_INT) {
		err = py_int(b->rt, obj, &v->num, &v->negative);
	} else if (!err && type == PY_T_STR) {
		err = read_text(b, obj, v);
	} else if (!err) {
		err = type == PY_T_NONE ? -ENOENT : -EINVAL;
	}
	v->rc = err;
	return pybatch_fatal(b, err) ? err : pybatch_log_other(b, row);
}

int pybatch_values(struct pybatch *b, const struct pycell *obj, size_t n, struct pyvalue *out)
{
	__free uint8_t *raw = malloc(n * VALUE_BYTES + 1);
	__free struct pymem_span *span = malloc((n + 1) * sizeof(*span));
	size_t m = 0;
	int err;

	if (!raw || !span)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		memset(&out[i], 0, sizeof(out[i]));
		out[i].rc = obj[i].rc;
		if (!obj[i].rc)
			span[m++] =
				py_span(obj[i].v + PY_OB_TYPE, raw + i * VALUE_BYTES, VALUE_BYTES);
	}
	err = pybatch_read(b, span, m);
	m = 0;
	for (size_t i = 0; i < n && !err; i++) {
		if (obj[i].rc)
			continue;
		err = span[m++].rc ? take_alone(b, i, obj[i].v, &out[i])
				   : take_value(b, i, obj[i].v, raw + i * VALUE_BYTES, &out[i]);
	}
	return err;
}

/* ---- lengths ----------------------------------------------------------------------------------
 */

/* ob_size, ma_used: both the word behind the type */
static int take_len(struct pybatch *b, size_t row, uint64_t obj, const uint64_t raw[2],
		    struct pycell *out)
{
	const uint64_t sized = PY_TP_LIST | PY_TP_TUPLE | PY_TP_DICT;
	struct pytype *t;
	size_t len = 0;
	int err = pybatch_type(b, raw[0], &t);

	out->v = raw[1];
	if (!err && (!t || !(t->info.flags & sized))) {
		err = py_len(b->rt, obj, &len);
		out->v = len;
		if (!err)
			err = pybatch_log_other(b, row);
	}
	out->rc = err == -EFAULT ? -EAGAIN : err;
	if (!err && out->v > PY_KEYS_MAX)
		out->rc = -ERANGE;
	if (err)
		return pybatch_fatal(b, err) ? err : 0;
	err = pybatch_log(b, row, obj + PY_OB_TYPE, raw[0]);
	return err ? err : pybatch_log(b, row, obj + PY_OB_SIZE, raw[1]);
}

int pybatch_len(struct pybatch *b, const struct pycell *obj, size_t n, struct pycell *out)
{
	__free uint64_t *raw = malloc((n + 1) * 2 * sizeof(*raw));
	__free struct pymem_span *span = malloc((n + 1) * sizeof(*span));
	size_t m = 0;
	int err;

	if (!raw || !span)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		out[i].rc = obj[i].rc;
		if (!obj[i].rc)
			span[m++] = py_span(obj[i].v + PY_OB_TYPE, raw + 2 * i, 16);
	}
	err = pybatch_read(b, span, m);
	m = 0;
	for (size_t i = 0; i < n && !err; i++) {
		if (obj[i].rc)
			continue;
		if (span[m++].rc)
			out[i].rc = -EAGAIN;
		else
			err = take_len(b, i, obj[i].v, raw + 2 * i, &out[i]);
	}
	return err;
}

/* ---- first entries ----------------------------------------------------------------------------
 */

struct first {
	uint64_t dict[5]; /* from the type on: type, used, version, keys, values */
	struct py_keys keys;
	uint64_t entry[2]; /* key, value */
	uint64_t value;    /* of a split dict */
};

/* The first entry was deleted, or the dict is out of the ordinary: all of it, then. */
static int first_alone(struct pybatch *b, size_t row, uint64_t obj, struct pycell *out)
{
	__free struct py_entry_addr *e = NULL;
	size_t n = 0;
	int err = py_entries(b->rt, obj, &e, &n, 0);

	if (!err && !n)
		err = -ENOENT;
	if (!err)
		out->v = e[0].value;
	out->rc = err;
	return pybatch_fatal(b, err) ? err : pybatch_log_other(b, row);
}

/* A dict with something in it? */
static int check_dict(struct pybatch *b, size_t row, uint64_t obj, const struct first *f,
		      struct pycell *out)
{
	struct pytype *t;
	int err = pybatch_type(b, f->dict[0], &t);

	if (pybatch_fatal(b, err))
		return err;
	if (err)
		out->rc = -EAGAIN;
	else if (!t || !(t->info.flags & PY_TP_DICT))
		out->rc = -EINVAL;
	else if (!f->dict[1])
		out->rc = -ENOENT;
	if (out->rc)
		return pybatch_log_other(b, row);
	return pybatch_log(b, row, obj + PY_OB_TYPE, f->dict[0]);
}

static int take_first(struct pybatch *b, size_t row, uint64_t obj, const struct first *f,
		      struct pycell *out)
{
	uint64_t at = f->dict[4] ? f->dict[4] + b->rt->lay.values_header
				 : f->keys.entries + f->keys.key_at + 8;
	int err;

	out->v = f->dict[4] ? f->value : f->entry[1];
	if (!f->entry[0] || !out->v)
		return first_alone(b, row, obj, out);
	err = pybatch_log(b, row, obj + PY_OB_TYPE + 24, f->dict[3]);
	return err ? err : pybatch_log(b, row, at, out->v);
}

/* Of every row that is still well: its dict, that one's keys, the first entry. Both reads of a row
 * count: a spare one keeps their number the same. */
static int first_read(struct pybatch *b, const struct pycell *obj, size_t n, struct first *f,
		      struct pycell *out, int step)
{
	__free struct pymem_span *span = malloc((2 * n + 1) * sizeof(*span));
	size_t m = 0, got = 0;
	int err;

	if (!span)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (out[i].rc)
			continue;
		if (step == 0)
			span[m++] = py_span(obj[i].v + PY_OB_TYPE, f[i].dict, sizeof(f[i].dict));
		else if (step == 1)
			span[m++] = py_span(f[i].keys.addr + 8, f[i].keys.raw, 32);
		else
			span[m++] = py_span(f[i].keys.entries + f[i].keys.key_at, f[i].entry, 16);
		if (step == 2)
			span[m++] = f[i].dict[4] ? py_span(f[i].dict[4] + b->rt->lay.values_header,
							   &f[i].value, 8)
						 : py_span(f[i].keys.addr + 8, &f[i].value, 8);
	}
	err = pybatch_read(b, span, m);
	for (size_t i = 0; i < n && !err; i++) {
		if (out[i].rc)
			continue;
		for (int k = 0; k < (step == 2 ? 2 : 1); k++)
			if (span[got++].rc)
				out[i].rc = -EAGAIN;
	}
	return err;
}

int pybatch_first(struct pybatch *b, const struct pycell *obj, size_t n, struct pycell *out)
{
	__free struct first *f = calloc(n + 1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		out[i].rc = obj[i].rc;
	err = first_read(b, obj, n, f, out, 0);
	for (size_t i = 0; i < n && !err; i++) {
		if (out[i].rc)
			continue;
		f[i].keys.addr = f[i].dict[3];
		err = check_dict(b, i, obj[i].v, &f[i], &out[i]);
	}
	if (!err)
		err = first_read(b, obj, n, f, out, 1);
	for (size_t i = 0; i < n && !err; i++)
		if (!out[i].rc && (py_keys_layout(b->rt, &f[i].keys) || !f[i].keys.n))
			out[i].rc = -EAGAIN;
	if (!err)
		err = first_read(b, obj, n, f, out, 2);
	for (size_t i = 0; i < n && !err; i++)
		if (!out[i].rc)
			err = take_first(b, i, obj[i].v, &f[i], &out[i]);
	return err;
}
