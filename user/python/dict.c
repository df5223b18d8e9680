// SPDX-License-Identifier: Apache-2.0
/*
 * dict: a header with ma_used, a version, the keys table and, when the keys are shared between the
 * instances of a class, an array of values. Entries are in the keys table, in the order of
 * insertion; those of deleted keys stay as NULLs. (Objects/dictobject.c,
 * Include/internal/pycore_dict.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/raw.h"
#include "util/cleanup.h"

struct dict_head {
	uint64_t type, used, version, keys, values;
};

#define LOG2_MAX 24 /* of a keys table: more than PY_KEYS_MAX entries */

/* 3.10: refcount, dk_size, dk_lookup, dk_usable, dk_nentries; 3.11+: refcount, four bytes (log2 of
 * size, of the index' bytes, kind of entries), version, dk_usable, dk_nentries. */
static int layout_310(struct py_keys *k)
{
	uint64_t size = k->raw[0], width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;

	if (!size || size & (size - 1) || size > 1ull << LOG2_MAX)
		return -EAGAIN;
	k->n = (size_t)k->raw[3];
	k->entries = k->addr + 40 + size * width;
	k->entry_size = 24;
	k->key_at = 8;
	return k->raw[3] <= size ? 0 : -EAGAIN;
}

static int layout_311(struct py_keys *k, const struct py_layout *lay)
{
	unsigned log2 = k->raw[0] & 0xff, index = (k->raw[0] >> 8) & 0xff;
	unsigned kind = (k->raw[0] >> 16) & 0xff;

	/* kind 0: any key, with its hash; 1: strings only; 2: strings, values elsewhere */
	if (log2 > LOG2_MAX || index < log2 || index > log2 + 3 || kind > 2)
		return -EAGAIN;
	k->n = (size_t)k->raw[2];
	k->entries = k->addr + lay->keys_indices + (1ull << index);
	k->entry_size = kind ? 16 : 24;
	k->key_at = kind ? 0 : 8;
	return k->raw[2] <= 1ull << log2 ? 0 : -EAGAIN;
}

static size_t keys_raw(const struct py_runtime *rt)
{
	return rt->lay.keys_nentries; /* the last field, less the refcount of 8 bytes */
}

int py_keys_layout(const struct py_runtime *rt, struct py_keys *k)
{
	int err = rt->lay.minor == 10 ? layout_310(k) : layout_311(k, &rt->lay);

	return !err && k->n > PY_KEYS_MAX ? -E2BIG : err;
}

int py_keys_head(struct py_runtime *rt, uint64_t addr, struct py_keys *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	out->addr = addr;
	err = pymem_read(rt->mem, addr + 8, out->raw, keys_raw(rt));
	return err ? err : py_keys_layout(rt, out);
}

int py_keys_same(struct py_runtime *rt, const struct py_keys *k)
{
	uint64_t raw[4] = {0};
	int err = pymem_read(rt->mem, k->addr + 8, raw, keys_raw(rt));

	if (err)
		return err;
	return memcmp(raw, k->raw, sizeof(raw)) ? -EAGAIN : 0;
}

/* ---- one key by name ------------------------------------------------------------------------- */

struct key_head { /* PyASCIIObject from its type */
	uint64_t type, length, hash;
	uint32_t state, pad;
};
#define STATE_ASCII_1 0x64u /* kind 1, compact, ascii */
#define STATE_MASK    0x7cu

static int read_entries(struct py_runtime *rt, const struct py_keys *k, uint8_t *raw)
{
	return pymem_read(rt->mem, k->entries, raw, k->n * k->entry_size);
}

static uint64_t entry_key(const struct py_keys *k, const uint8_t *raw, size_t i)
{
	uint64_t v;

	memcpy(&v, raw + i * k->entry_size + k->key_at, sizeof(v));
	return v;
}

/* Is the string at key, which has the right length, this name? */
static int key_is(struct py_runtime *rt, uint64_t key, const struct key_head *h, const char *name,
		  bool *is)
{
	char text[256];
	int err = py_type_flag(rt, h->type, PY_TP_UNICODE, is);

	if (err || !*is)
		return err;
	err = pymem_read(rt->mem, key + rt->lay.str.ascii_data, text, (size_t)h->length);
	*is = !err && !memcmp(text, name, (size_t)h->length);
	return err;
}

static int search(struct py_runtime *rt, const struct py_keys *k, const uint8_t *raw,
		  const char *name, size_t *pos, uint64_t *key)
{
	__free struct key_head *head = calloc(k->n, sizeof(*head));
	__free struct pymem_span *span = malloc(k->n * sizeof(*span));
	size_t n = 0, len = strlen(name);
	int err;

	if (!head || !span)
		return -ENOMEM;
	for (size_t i = 0; i < k->n; i++)
		if (entry_key(k, raw, i))
			span[n++] = py_span(entry_key(k, raw, i) + PY_OB_TYPE, &head[i],
					    sizeof(head[i]));
	err = pymem_readv(rt->mem, span, n);
	if (err)
		return err;
	for (size_t i = 0; i < k->n; i++) {
		bool is;

		*key = entry_key(k, raw, i);
		if (!*key || head[i].length != len || (head[i].state & STATE_MASK) != STATE_ASCII_1)
			continue;
		err = key_is(rt, *key, &head[i], name, &is);
		*pos = i;
		if (err || is)
			return err;
	}
	/* A key that could not be read may be the one. */
	for (size_t i = 0; i < n; i++)
		if (span[i].rc)
			return span[i].rc;
	return -ENODATA;
}

/* That a name is not there counts only when the table has not changed during the search. */
static int still_absent(struct py_runtime *rt, const struct py_keys *k, const uint8_t *raw)
{
	__free uint8_t *again = malloc(k->n * k->entry_size);
	int err = again ? read_entries(rt, k, again) : -ENOMEM;

	if (err)
		return err;
	for (size_t i = 0; i < k->n; i++)
		if (entry_key(k, raw, i) != entry_key(k, again, i))
			return -EAGAIN;
	err = py_keys_same(rt, k);
	return err ? err : -ENODATA;
}

int py_keys_find(struct py_runtime *rt, const struct py_keys *k, const char *name, size_t *pos,
		 uint64_t *key)
{
	__free uint8_t *raw = NULL;
	int err;

	if (!k->n || !*name || strlen(name) > 255)
		return -ENODATA;
	raw = malloc(k->n * k->entry_size);
	if (!raw)
		return -ENOMEM;
	err = read_entries(rt, k, raw);
	if (!err)
		err = search(rt, k, raw, name, pos, key);
	return err == -ENODATA ? still_absent(rt, k, raw) : err;
}

/* ---- whole ----------------------------------------------------------------------------------- */

static int dict_head(struct py_runtime *rt, uint64_t dict, struct dict_head *h, struct py_keys *k)
{
	int err = pymem_read(rt->mem, dict + PY_OB_TYPE, h, sizeof(*h));

	if (err)
		return err;
	if (h->used > PY_KEYS_MAX)
		return h->used > INT64_MAX ? -EAGAIN : -E2BIG;
	return py_keys_head(rt, h->keys, k);
}

struct table {
	struct dict_head head;
	struct py_keys keys;
	size_t len, nvalues; /* bytes of raw */
	uint8_t *raw;        /* entries, then values of a split dict; each twice */
};

/* Entries and values, both headers, entries and values again. */
static int read_table(struct py_runtime *rt, uint64_t dict, struct table *t)
{
	size_t entries = t->keys.n * t->keys.entry_size,
	       values = t->head.values ? t->keys.n * 8 : 0;
	uint64_t at = t->head.values + rt->lay.values_header;
	struct py_keys keys = {0};
	struct dict_head head;
	struct pymem_span span[6];
	size_t n = 0;
	int err;

	t->len = entries + values;
	t->raw = malloc(2 * t->len);
	if (!t->raw)
		return -ENOMEM;
	span[n++] = py_span(t->keys.entries, t->raw, entries);
	if (values)
		span[n++] = py_span(at, t->raw + entries, values);
	span[n++] = py_span(dict + PY_OB_TYPE, &head, sizeof(head));
	span[n++] = py_span(t->head.keys + 8, keys.raw, keys_raw(rt));
	span[n++] = py_span(t->keys.entries, t->raw + t->len, entries);
	if (values)
		span[n++] = py_span(at, t->raw + t->len + entries, values);
	err = py_readv(rt, span, n);
	if (err)
		return err;
	if (memcmp(&head, &t->head, sizeof(head)) != 0 ||
	    memcmp(keys.raw, t->keys.raw, sizeof(keys.raw)) != 0 ||
	    memcmp(t->raw, t->raw + t->len, t->len) != 0)
		return -EAGAIN;
	return 0;
}

static size_t collect(const struct table *t, struct py_entry_addr *e)
{
	size_t n = 0;

	for (size_t i = 0; i < t->keys.n; i++) {
		const uint8_t *value = t->raw + i * t->keys.entry_size + t->keys.key_at + 8;

		if (t->head.values)
			value = t->raw + t->keys.n * t->keys.entry_size + i * 8;
		e[n].key = entry_key(&t->keys, t->raw, i);
		memcpy(&e[n].value, value, sizeof(e[n].value));
		n += e[n].key && e[n].value;
	}
	return n;
}

static int entries_once(struct py_runtime *rt, uint64_t dict, struct py_entry_addr **out, size_t *n,
			size_t max)
{
	struct table t = {0};
	struct py_entry_addr *e = NULL;
	int err = dict_head(rt, dict, &t.head, &t.keys);

	if (err)
		return err;
	if (t.head.used > max)
		return -E2BIG;
	if (!t.keys.n) {
		*n = 0;
		return t.head.used ? -EAGAIN : 0;
	}
	err = read_table(rt, dict, &t);
	if (!err) {
		e = malloc(t.keys.n * sizeof(*e));
		if (!e)
			err = -ENOMEM;
	}
	if (!err) {
		*n = collect(&t, e);
		err = *n == t.head.used ? 0 : -EAGAIN;
	}
	free(t.raw);
	if (err || !*n)
		free(e);
	else
		*out = e;
	return err;
}

static int is_dict(struct py_runtime *rt, uint64_t obj)
{
	uint64_t type;
	bool is;
	int err = pymem_u64(rt->mem, obj + PY_OB_TYPE, &type);

	if (!err)
		err = py_type_flag(rt, type, PY_TP_DICT, &is);
	return err ? err : is ? 0 : -EINVAL;
}

int py_entries(struct py_runtime *rt, uint64_t dict, struct py_entry_addr **out, size_t *n,
	       size_t max)
{
	int err = is_dict(rt, dict);

	*out = NULL;
	*n = 0;
	if (err)
		return err;
	if (!max || max > PY_LIST_MAX)
		max = PY_LIST_MAX;
	err = -EAGAIN;
	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = entries_once(rt, dict, out, n, max);
	if (err)
		*n = 0;
	return err;
}

/* ---- one value ------------------------------------------------------------------------------- */

static int find_once(struct py_runtime *rt, uint64_t dict, const char *name, uint64_t *value)
{
	struct dict_head head, again;
	struct py_keys keys;
	struct pymem_span span[3];
	uint64_t key, key2, at;
	size_t pos;
	int found, err = dict_head(rt, dict, &head, &keys);

	if (err)
		return err;
	found = py_keys_find(rt, &keys, name, &pos, &key);
	if (found && found != -ENODATA)
		return found;
	span[0] = py_span(dict + PY_OB_TYPE, &again, sizeof(again));
	if (!found) {
		at = keys.entries + pos * keys.entry_size + keys.key_at;
		span[1] = py_span(at, &key2, sizeof(key2));
		at = head.values ? head.values + rt->lay.values_header + pos * 8 : at + 8;
		span[2] = py_span(at, value, sizeof(*value));
	}
	err = py_readv(rt, span, found ? 1 : 3);
	if (err)
		return err;
	/* Other keys may change meanwhile, as long as the tables stay where they are. */
	if (again.type != head.type || again.keys != head.keys || again.values != head.values)
		return -EAGAIN;
	if (found)
		return again.used != head.used ? -EAGAIN : -ENODATA;
	if (key2 != key)
		return -EAGAIN;
	return *value ? 0 : -ENODATA;
}

int py_dict_find(struct py_runtime *rt, uint64_t dict, const char *name, uint64_t *value)
{
	int err = is_dict(rt, dict);

	if (err)
		return err;
	err = -EAGAIN;
	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = find_once(rt, dict, name, value);
	return err;
}
