/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same step for many objects at once: attributes, lengths, ints and strings of a whole queue in
 * a few reads. Where an attribute was found in one object is tried first in the next one of its
 * type, and believed only when the key at that place is the very same string.
 *
 * What was followed on the way (types, tables, slots) is kept in a log; reading it again at the end
 * tells which rows changed meanwhile.
 */
#ifndef SP_PYTHON_BATCH_H
#define SP_PYTHON_BATCH_H

#include <errno.h>

#include "event/event.h"
#include "profile/python.h"
#include "python/pages.h"
#include "python/raw.h"

#define PYB_TYPES  64 /* types met in a snapshot */
#define PYB_SHAPES 32 /* of one type: attributes, times the orders in which they were set */
#define PYB_SLOTS  16
#define PYB_SHARED 64
#define PYB_TEXT   SP_ROOM_MAX /* bytes of a room or a rid, with the NUL */

/* One object on its way through the steps. rc: 0; -ENODATA no such attribute, -EINVAL not of that
 * type: this alternative does not fit; -ENOENT: None, or the first entry of an empty dict; -EAGAIN,
 * -EFAULT: torn; -ERANGE, -E2BIG: no such value can be a room. */
struct pycell {
	uint64_t v; /* address, or the number itself behind PY_LEN */
	int32_t rc;
};

/* Where a type's instances keep an attribute: in a keys table of this geometry, the entry at this
 * offset has this very key. */
struct pyshape {
	char name[PY_NAME_MAX];
	uint64_t geometry, key;
	uint32_t pos, at, nentries; /* at: of the entry's key, from the table's start */
	bool absent; /* tables with this number of entries and this last key lack it */
};
struct pyslot { /* __slots__ */
	char name[PY_NAME_MAX];
	int64_t offset; /* from the object; 0: the type has no such slot */
};
struct pytype {
	uint64_t addr, cached_keys;
	unsigned round; /* in which it was read last */
	struct py_typeinfo info;
	bool none; /* NoneType */
	struct pyshape shape[PYB_SHAPES];
	struct pyslot slot[PYB_SLOTS];
	int nshapes, nslots;
};

struct pyword {
	uint64_t addr, value; /* addr 0: something of this row was read that is not in the log */
	uint32_t row;
	bool content; /* of an int or a string: what was read, not how it was reached */
};

struct pybatch {
	struct py_runtime *rt;
	struct pypages *pages;
	unsigned round; /* of this snapshot */
	struct pytype *type[PYB_TYPES];
	int ntypes;
	struct { /* positions in keys tables that many objects share, of this snapshot */
		uint64_t keys;
		char name[PY_NAME_MAX];
		uint32_t pos;
		int32_t rc;
	} shared[PYB_SHARED];
	int nshared;
	bool logging, contents; /* with the contents of values */
	struct pyword *word;
	size_t nwords, cwords;
};

struct pybatch *pybatch_new(struct py_runtime *rt);
void pybatch_free(struct pybatch *b);
/* A new snapshot: what is known of types is checked again before it is used. */
void pybatch_begin(struct pybatch *b);
/* Forget the types and positions: they may come from torn reads. */
void pybatch_reset(struct pybatch *b);

/* out[j][i]: attribute name[j] of object i; rows of obj with an error keep it. 0, or an error that
 * concerns everything: -ESRCH, -EPERM, -E2BIG (budget), -ENOMEM. The same for the others. */
int pybatch_attrs(struct pybatch *b, const struct pycell *obj, size_t n, const char *const *name,
		  int nnames, struct pycell *const *out);
int pybatch_len(struct pybatch *b, const struct pycell *obj, size_t n, struct pycell *out);
int pybatch_first(struct pybatch *b, const struct pycell *obj, size_t n, struct pycell *out);

/* What an object says: an int, or a string's name (event/id.h); cut: it is longer than ids are. */
struct pyvalue {
	bool is_text, cut, negative;
	int64_t num;
	char text[PYB_TEXT];
	int32_t rc;
};
int pybatch_values(struct pybatch *b, const struct pycell *obj, size_t n, struct pyvalue *out);

/* Read the log again, but for contents: dirty[row] for rows that changed. */
int pybatch_verify(struct pybatch *b, bool *dirty, size_t n);
void pybatch_forget(struct pybatch *b);

/* ---- among the files of the batch ------------------------------------------------------------ */
int pybatch_log(struct pybatch *b, size_t row, uint64_t addr, uint64_t value);
/* `len` bytes that were read at addr, in words. */
int pybatch_log_content(struct pybatch *b, size_t row, uint64_t addr, const void *bytes,
			size_t len);
/* Something of the row was read by other means. */
static inline int pybatch_log_other(struct pybatch *b, size_t row)
{
	return pybatch_log(b, row, 0, 0);
}
int pybatch_read(struct pybatch *b, struct pymem_span *span, size_t n);
/* *out NULL with 0: too many types; read that object by itself. */
int pybatch_type(struct pybatch *b, uint64_t addr, struct pytype **out);
/* The first shape from `from` on that is about name; -1: none. */
int pyshape_next(const struct pytype *t, const char *name, int from);
/* Look the attribute up in a table, and remember what was found. */
int pyshape_learn(struct pybatch *b, struct pytype *t, const char *name, uint64_t keys,
		  struct pyshape **out);
/* raw: the four words from keys + 8. */
bool pyshape_fits(const struct py_runtime *rt, const struct pyshape *s, const uint64_t raw[4],
		  uint64_t key);
/* Position of name in a table that many objects share; -ENODATA. */
int pybatch_shared(struct pybatch *b, struct pytype *t, uint64_t keys, const char *name,
		   uint32_t *pos);
int pybatch_slot(struct pybatch *b, struct pytype *t, const char *name, int64_t *offset);
/* An error that concerns everything, not only the object at hand. -E2BIG may be either. */
static inline bool pybatch_fatal(const struct pybatch *b, int err)
{
	return err == -ESRCH || err == -EPERM || err == -ENOMEM ||
	       (err == -E2BIG && !b->rt->mem->bytes_left);
}

#endif
