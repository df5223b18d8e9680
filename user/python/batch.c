// SPDX-License-Identifier: Apache-2.0
/* Reads of a batch, the types that it meets, and the log of what it followed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/batch.h"
#include "util/cleanup.h"

#define LOG_MAX ((size_t)4 << 20) /* words; 65536 rows of 8 fields need half of that */

struct pybatch *pybatch_new(struct py_runtime *rt)
{
	struct pybatch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->rt = rt;
	b->pages = pypages_new();
	if (b->pages)
		return b;
	free(b);
	return NULL;
}

void pybatch_free(struct pybatch *b)
{
	if (!b)
		return;
	for (int i = 0; i < b->ntypes; i++)
		free(b->type[i]);
	pypages_free(b->pages);
	free(b->word);
	free(b);
}

void pybatch_begin(struct pybatch *b)
{
	b->round++;
	b->nshared = 0;
	b->nwords = 0;
	b->logging = false;
	if (b->ntypes == PYB_TYPES) /* the old ones would keep new ones out for ever */
		pybatch_reset(b);
}

void pybatch_reset(struct pybatch *b)
{
	for (int i = 0; i < b->ntypes; i++)
		free(b->type[i]);
	b->ntypes = 0;
}

int pybatch_read(struct pybatch *b, struct pymem_span *span, size_t n)
{
	return pypages_read(b->pages, b->rt->mem, span, n);
}

/* ---- the log ---------------------------------------------------------------------------------
 */

static int log_word(struct pybatch *b, const struct pyword *w)
{
	if (b->nwords == b->cwords) {
		size_t cap = b->cwords ? 2 * b->cwords : 1024;
		struct pyword *grown;

		if (cap > LOG_MAX)
			return -E2BIG;
		grown = realloc(b->word, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		b->word = grown;
		b->cwords = cap;
	}
	b->word[b->nwords++] = *w;
	return 0;
}

int pybatch_log(struct pybatch *b, size_t row, uint64_t addr, uint64_t value)
{
	struct pyword w = {.addr = addr, .value = value, .row = (uint32_t)row};

	return b->logging ? log_word(b, &w) : 0;
}

int pybatch_log_content(struct pybatch *b, size_t row, uint64_t addr, const void *bytes, size_t len)
{
	struct pyword w = {.addr = addr, .row = (uint32_t)row, .content = true};
	int err = 0;

	/* A last word may go beyond the object: an object's place is a multiple of 16 bytes. */
	for (size_t i = 0; i < len && !err && b->logging && b->contents; i += 8, w.addr += 8) {
		memcpy(&w.value, (const uint8_t *)bytes + i, 8);
		err = log_word(b, &w);
	}
	return err;
}

void pybatch_forget(struct pybatch *b)
{
	b->nwords = 0;
}

int pybatch_verify(struct pybatch *b, bool *dirty, size_t n)
{
	__free uint64_t *now = malloc((b->nwords + 1) * sizeof(*now));
	__free struct pymem_span *span = malloc((b->nwords + 1) * sizeof(*span));
	size_t m = 0;
	int err;

	if (!now || !span)
		return -ENOMEM;
	for (size_t i = 0; i < b->nwords; i++)
		if (b->word[i].addr && !b->word[i].content)
			span[m++] = py_span(b->word[i].addr, &now[i], sizeof(now[i]));
	err = pybatch_read(b, span, m);
	m = 0;
	for (size_t i = 0; i < b->nwords && !err; i++) {
		const struct pyword *w = &b->word[i];

		if (!w->addr || w->content)
			continue;
		if (w->row < n && (span[m].rc || now[i] != w->value))
			dirty[w->row] = true;
		m++;
	}
	return err;
}

/* ---- types -----------------------------------------------------------------------------------
 */

static void drop_absent(struct pytype *t)
{
	int kept = 0;

	for (int i = 0; i < t->nshapes; i++)
		if (!t->shape[i].absent)
			t->shape[kept++] = t->shape[i];
	t->nshapes = kept;
}

static int read_type(struct pybatch *b, struct pytype *t)
{
	struct py_typeinfo info;
	char name[16];
	int err = py_typeinfo(b->rt, t->addr, &info);

	if (!err)
		err = py_typename(b->rt, &info, name, sizeof(name));
	if (!err && info.flags & PY_TP_MANAGED_DICT)
		err = pymem_u64(b->rt->mem, t->addr + b->rt->lay.heap_cached_keys, &t->cached_keys);
	if (err)
		return err;
	if (memcmp(&info, &t->info, sizeof(info)) != 0) /* another one, at the same address */
		t->nshapes = 0;
	/* Where something is proves itself each time; that it is nowhere does not. */
	drop_absent(t);
	t->nslots = 0;
	t->info = info;
	t->none = !strcmp(name, "NoneType");
	t->round = b->round;
	return 0;
}

int pybatch_type(struct pybatch *b, uint64_t addr, struct pytype **out)
{
	struct pytype *t = NULL;

	*out = NULL;
	for (int i = 0; i < b->ntypes && !t; i++)
		if (b->type[i]->addr == addr)
			t = b->type[i];
	if (!t) {
		if (b->ntypes == PYB_TYPES)
			return 0;
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		t->addr = addr;
		b->type[b->ntypes++] = t;
	}
	if (t->round != b->round) {
		int err = read_type(b, t);

		if (err)
			return err;
	}
	*out = t;
	return 0;
}

/* ---- shapes ----------------------------------------------------------------------------------
 */

static uint64_t geometry(const struct py_runtime *rt, uint64_t raw0)
{
	return rt->lay.minor == 10 ? raw0 : raw0 & 0xffffff; /* above: a version */
}

static uint64_t nentries(const struct py_runtime *rt, const uint64_t raw[4])
{
	return rt->lay.minor == 10 ? raw[3] : raw[2];
}

bool pyshape_fits(const struct py_runtime *rt, const struct pyshape *s, const uint64_t raw[4],
		  uint64_t key)
{
	if (geometry(rt, raw[0]) != s->geometry || key != s->key || !key)
		return false;
	return s->absent ? nentries(rt, raw) == s->nentries : nentries(rt, raw) > s->pos;
}

int pyshape_next(const struct pytype *t, const char *name, int from)
{
	for (int i = from; i < t->nshapes; i++)
		if (!strcmp(t->shape[i].name, name))
			return i;
	return -1;
}

int pyshape_learn(struct pybatch *b, struct pytype *t, const char *name, uint64_t keys,
		  struct pyshape **out)
{
	struct pyshape *s = &t->shape[t->nshapes < PYB_SHAPES ? t->nshapes : PYB_SHAPES - 1];
	struct py_keys k;
	uint64_t key = 0;
	size_t pos = 0;
	int found, err = py_keys_head(b->rt, keys, &k);

	*out = NULL;
	if (err)
		return err;
	found = py_keys_find(b->rt, &k, name, &pos, &key);
	if (found && found != -ENODATA)
		return found;
	if (found) {
		err = py_keys_same(b->rt, &k);
		if (err)
			return err;
		pos = k.n ? k.n - 1 : 0;
		err = k.n ? pymem_u64(b->rt->mem, k.entries + pos * k.entry_size + k.key_at, &key)
			  : -ENODATA;
		if (err || !key)
			return err ? err : -ENODATA;
	}
	memset(s, 0, sizeof(*s));
	memcpy(s->name, name, strnlen(name, sizeof(s->name) - 1));
	s->geometry = geometry(b->rt, k.raw[0]);
	s->key = key;
	s->pos = (uint32_t)pos;
	s->at = (uint32_t)(k.entries - keys + pos * k.entry_size + k.key_at);
	s->nentries = (uint32_t)k.n;
	s->absent = found;
	if (t->nshapes < PYB_SHAPES)
		t->nshapes++;
	*out = s;
	return 0;
}

/* ---- shared tables ---------------------------------------------------------------------------
 */

static int shared_pos(struct pybatch *b, struct pytype *t, uint64_t keys, const char *name,
		      uint32_t *pos)
{
	uint64_t raw[4] = {0}, key = 0;
	struct pyshape *s = NULL;
	struct pymem_span span[2] = {py_span(keys + 8, raw, sizeof(raw))};
	int err;

	for (int i = pyshape_next(t, name, 0); i >= 0; i = pyshape_next(t, name, i + 1)) {
		span[1] = py_span(keys + t->shape[i].at, &key, sizeof(key));
		err = pymem_readv(b->rt->mem, span, 2);
		if (err || span[0].rc)
			return err ? err : span[0].rc;
		/* A place that cannot be read: the table is not as long as that shape. */
		if (!span[1].rc && pyshape_fits(b->rt, &t->shape[i], raw, key)) {
			s = &t->shape[i];
			break;
		}
	}
	if (!s) {
		err = pyshape_learn(b, t, name, keys, &s);
		if (err)
			return err;
	}
	*pos = s->pos;
	return s->absent ? -ENODATA : 0;
}

int pybatch_shared(struct pybatch *b, struct pytype *t, uint64_t keys, const char *name,
		   uint32_t *pos)
{
	int err;

	for (int i = 0; i < b->nshared; i++) {
		if (b->shared[i].keys == keys && !strcmp(b->shared[i].name, name)) {
			*pos = b->shared[i].pos;
			return b->shared[i].rc;
		}
	}
	err = shared_pos(b, t, keys, name, pos);
	/* A torn one is looked up again. */
	if ((!err || err == -ENODATA) && b->nshared < PYB_SHARED) {
		b->shared[b->nshared].keys = keys;
		b->shared[b->nshared].pos = *pos;
		memcpy(b->shared[b->nshared].name, name, strlen(name) + 1);
		b->shared[b->nshared++].rc = err;
	}
	return err;
}

int pybatch_slot(struct pybatch *b, struct pytype *t, const char *name, int64_t *offset)
{
	struct pyslot *s;
	int err;

	for (int i = 0; i < t->nslots; i++) {
		if (!strcmp(t->slot[i].name, name)) {
			*offset = t->slot[i].offset;
			return *offset ? 0 : -ENODATA;
		}
	}
	err = py_slot_find(b->rt, &t->info, name, offset);
	if (err && err != -ENODATA)
		return err;
	if (err)
		*offset = 0;
	s = &t->slot[t->nslots < PYB_SLOTS ? t->nslots++ : PYB_SLOTS - 1];
	memcpy(s->name, name, strlen(name) + 1);
	s->offset = *offset;
	return err;
}
