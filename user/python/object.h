/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading objects: int, str, list, tuple, dict, deque, attributes. One address at a time; for the
 * batches of a whole queue see query.h.
 *
 * Every container is read header, payload, header again, and accepted only when both headers are
 * equal; three tries. Return codes, for all: 0; -EAGAIN changed under our eyes three times;
 * -ENODATA no such attribute; -EINVAL not of that type, or impossible sizes; -E2BIG over a cap or
 * the budget; -EFAULT a dangling pointer; -ESRCH, -EPERM.
 */
#ifndef SP_PYTHON_OBJECT_H
#define SP_PYTHON_OBJECT_H

#include "python/runtime.h"

#define PY_LIST_MAX 65536u
#define PY_STR_MAX  4096u

enum py_type {
	PY_T_OTHER,
	PY_T_NONE,
	PY_T_INT,
	PY_T_STR,
	PY_T_LIST,
	PY_T_TUPLE,
	PY_T_DICT,
	PY_T_DEQUE
};
/* By tp_flags, and by the type's name for None, deque and bool (an int). name (may be NULL): the
 * type's name, at most len - 1 bytes. */
int py_type_of(struct py_runtime *rt, uint64_t obj, enum py_type *type, char *name, size_t len);

/* -ERANGE: needs more than 64 bits. A value of 2^63 to 2^64-1 comes as the same bits (rooms). */
int py_int(struct py_runtime *rt, uint64_t obj, int64_t *v, bool *negative);
/* UTF-8, cut at a character's boundary; *full (may be NULL): length in characters. */
int py_str(struct py_runtime *rt, uint64_t obj, char *buf, size_t len, size_t *full);

/* Addresses of the elements, into a malloc'd array that the caller frees. At most max (0: the cap);
 * more: -E2BIG. Works for list, tuple and deque. */
int py_elements(struct py_runtime *rt, uint64_t obj, uint64_t **out, size_t *n, size_t max);
struct py_entry_addr {
	uint64_t key, value;
};
int py_entries(struct py_runtime *rt, uint64_t dict, struct py_entry_addr **out, size_t *n,
	       size_t max);
int py_len(struct py_runtime *rt, uint64_t obj, size_t *n);

/* An attribute of an instance: instance dict, inline values, materialised dict, then __slots__
 * (member descriptors of the type and its bases). Class attributes and properties are not looked
 * at: -ENODATA. */
int py_attr(struct py_runtime *rt, uint64_t obj, const char *name, uint64_t *value);

#endif
