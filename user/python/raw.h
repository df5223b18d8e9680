/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What object.c, dict.c, attrs.c and frame.c share. The offsets here are the same in 3.10 to 3.13
 * (Include/cpython/ of each); those that differ are in struct py_layout.
 */
#ifndef SP_PYTHON_RAW_H
#define SP_PYTHON_RAW_H

#include "python/object.h"

#define PY_TRIES 3

#define PY_OB_TYPE  8
#define PY_OB_SIZE  16 /* objects of variable size: int, tuple, bytes, type */
#define PY_TUPLE_AT 24 /* first element */
#define PY_BYTES_AT 32

#define PY_FRAME_RAW 128 /* all fields of a frame that we use lie in this */

/* tp_flags (Include/object.h) */
#define PY_TP_INLINE_VALUES (1ull << 2) /* 3.13 */
#define PY_TP_MANAGED_DICT  (1ull << 4) /* 3.11 and later */
#define PY_TP_HEAPTYPE      (1ull << 9)
#define PY_TP_LONG          (1ull << 24)
#define PY_TP_LIST          (1ull << 25)
#define PY_TP_TUPLE         (1ull << 26)
#define PY_TP_BYTES         (1ull << 27)
#define PY_TP_UNICODE       (1ull << 28)
#define PY_TP_DICT          (1ull << 29)
#define PY_TP_TYPE          (1ull << 31)

struct py_typeinfo {
	uint64_t addr, name, flags, members, base, mro;
	int64_t size, basicsize, dictoffset;
};
int py_typeinfo(struct py_runtime *rt, uint64_t type, struct py_typeinfo *out);
int py_typename(struct py_runtime *rt, const struct py_typeinfo *ti, char *buf, size_t len);
/* Does the type have that flag? One read, none for an exact type met before. */
int py_type_flag(struct py_runtime *rt, uint64_t type, uint64_t flag, bool *is);

/* The keys of a dict, or the shared keys of a class. */
#define PY_KEYS_MAX (4ul * PY_LIST_MAX) /* entries, those of deleted keys included */
struct py_keys {
	uint64_t addr;
	uint64_t raw[4]; /* the header behind its reference count */
	uint64_t entries;
	size_t n;
	uint32_t entry_size, key_at; /* of an entry; the value is 8 behind the key */
};
int py_keys_head(struct py_runtime *rt, uint64_t addr, struct py_keys *out);
/* The rest of k from addr and raw, the four words from addr + 8; -EAGAIN: no keys table. */
int py_keys_layout(const struct py_runtime *rt, struct py_keys *k);
/* The header again: -EAGAIN when it has changed. */
int py_keys_same(struct py_runtime *rt, const struct py_keys *k);
/* Position of the entry whose key is the ASCII string name; *key: its address. -ENODATA. */
int py_keys_find(struct py_runtime *rt, const struct py_keys *k, const char *name, size_t *pos,
		 uint64_t *key);
int py_dict_find(struct py_runtime *rt, uint64_t dict, const char *name, uint64_t *value);

/* Where an instance keeps the member `name` of __slots__, its own or a base's; -ENODATA. */
int py_slot_find(struct py_runtime *rt, const struct py_typeinfo *ti, const char *name,
		 int64_t *offset);

/* Sorts what came back: 0 all read, else the first span's error. */
int py_readv(struct py_runtime *rt, struct pymem_span *span, size_t n);
static inline struct pymem_span py_span(uint64_t addr, void *buf, size_t len)
{
	return (struct pymem_span){.addr = addr, .buf = buf, .len = (uint32_t)len};
}
/* Worth another try: it changed, or an address that has just been freed. */
static inline bool py_torn(int err)
{
	return err == -EAGAIN || err == -EFAULT;
}

#endif
