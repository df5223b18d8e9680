// SPDX-License-Identifier: Apache-2.0
/* int and str. */
#include <errno.h>
#include <string.h>

#include "python/raw.h"

/* PyLongObject: type, size or tag, digits of 30 bits. One of a single digit has 28 bytes, and the
 * allocator gives it 32: so much can be read of any. */
struct raw_int {
	uint64_t type, tag;
	uint32_t digit[3];
};
#define INT_FIRST (sizeof(uint64_t) * 3)

static int int_size(const struct py_runtime *rt, uint64_t tag, uint64_t *n, bool *negative)
{
	if (rt->lay.int_tagged) {
		*n = tag >> 3;
		*negative = (tag & 3) == 2;
		return (tag & 3) == 3 ? -EINVAL : 0;
	}
	*negative = (int64_t)tag < 0;
	*n = *negative ? 0 - tag : tag;
	return 0;
}

int py_int(struct py_runtime *rt, uint64_t obj, int64_t *v, bool *negative)
{
	struct raw_int r = {0};
	uint64_t n, value;
	bool is, neg;
	int err = pymem_read(rt->mem, obj + PY_OB_TYPE, &r, INT_FIRST);

	if (!err)
		err = py_type_flag(rt, r.type, PY_TP_LONG, &is);
	if (err)
		return err;
	if (!is || int_size(rt, r.tag, &n, &neg))
		return -EINVAL;
	if (n > 3)
		return -ERANGE;
	if (n == 3)
		err = pymem_read(rt->mem, obj + PY_OB_TYPE, &r, sizeof(r.type) * 2 + 12);
	if (err)
		return err;
	if (n == 3 && r.digit[2] >> 4)
		return -ERANGE;
	value = (n > 0 ? r.digit[0] : 0) | (n > 1 ? (uint64_t)r.digit[1] << 30 : 0) |
		(n > 2 ? (uint64_t)r.digit[2] << 60 : 0);
	if (neg && value > 1ull << 63)
		return -ERANGE;
	*v = (int64_t)(neg ? 0 - value : value);
	if (negative)
		*negative = neg;
	return 0;
}

/* ---- str ------------------------------------------------------------------------------------- */

/* PyASCIIObject from its type: length, hash, state (Include/cpython/unicodeobject.h) */
struct raw_str {
	uint64_t type, length, hash;
	uint32_t state, pad;
};
#define STATE_KIND(s)    (((s) >> 2) & 7)
#define STATE_COMPACT(s) (((s) >> 5) & 1)
#define STATE_ASCII(s)   (((s) >> 6) & 1)
#define STATE_MASK       0x7cu

static uint32_t code_point(const uint8_t *p, unsigned kind)
{
	uint32_t c = 0;

	memcpy(&c, p, kind); /* little-endian targets only, as this program itself */
	/* A lone surrogate is not text; a NUL would make two different strings look the same. */
	if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		return 0xfffd;
	return c;
}

static size_t utf8(uint32_t c, uint8_t out[4])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (uint8_t)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	out[0] = (uint8_t)(lead[n] | c);
	return n;
}

static void encode(const uint8_t *raw, size_t n, unsigned kind, char *buf, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		uint8_t c[4];
		size_t need = utf8(code_point(raw + i * kind, kind), c);

		if (used + need >= len)
			break;
		memcpy(buf + used, c, need);
		used += need;
	}
	buf[used] = 0;
}

/* Where the characters are: behind the object, or, in an instance of a subclass, where it points.
 */
static int str_data(struct py_runtime *rt, uint64_t obj, uint32_t state, uint64_t *at)
{
	if (!STATE_COMPACT(state))
		return pymem_u64(rt->mem, obj + rt->lay.str.compact_data, at);
	*at = obj + (STATE_ASCII(state) ? rt->lay.str.ascii_data : rt->lay.str.compact_data);
	return 0;
}

static int str_once(struct py_runtime *rt, uint64_t obj, char *buf, size_t len, size_t *full)
{
	uint8_t raw[PY_STR_MAX];
	struct raw_str r, again;
	struct pymem_span span[2];
	unsigned kind;
	uint64_t data;
	size_t n;
	bool is;
	int err = pymem_read(rt->mem, obj + PY_OB_TYPE, &r, sizeof(r));

	if (!err)
		err = py_type_flag(rt, r.type, PY_TP_UNICODE, &is);
	if (err)
		return err;
	kind = STATE_KIND(r.state);
	/* kind 0: not made ready yet (3.10 and 3.11, from C only) */
	if (!is || (kind != 1 && kind != 2 && kind != 4) || r.length > INT64_MAX)
		return -EINVAL;
	err = str_data(rt, obj, r.state, &data);
	if (err)
		return err;
	/* A character gives at least one byte: more than len of them are never needed. */
	n = r.length < len ? (size_t)r.length : len;
	n = n < sizeof(raw) / kind ? n : sizeof(raw) / kind;
	span[0] = py_span(data, raw, n * kind);
	span[1] = py_span(obj + PY_OB_TYPE, &again, sizeof(again));
	err = py_readv(rt, n ? span : span + 1, n ? 2 : 1);
	if (err)
		return err;
	if (again.type != r.type || again.length != r.length ||
	    (again.state ^ r.state) & STATE_MASK)
		return -EAGAIN;
	encode(raw, n, kind, buf, len);
	if (full)
		*full = (size_t)r.length;
	return 0;
}

int py_str(struct py_runtime *rt, uint64_t obj, char *buf, size_t len, size_t *full)
{
	int err = -EAGAIN;

	if (!len)
		return -EINVAL;
	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = str_once(rt, obj, buf, len, full);
	return err;
}
