// SPDX-License-Identifier: Apache-2.0
/*
 * list, tuple and deque. Each is read header, elements, then header and elements once more: an
 * element that is replaced in place leaves the header as it was.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/raw.h"
#include "util/cleanup.h"

#define HEAD_MAX 7 /* words, beginning with the type */

/* list: type, size, items, allocated. tuple: type, size. deque: type, size, leftblock, rightblock,
 * leftindex, rightindex, state (Modules/_collectionsmodule.c; state counts its changes). */
static size_t head_words(enum py_type kind)
{
	return kind == PY_T_LIST ? 4 : kind == PY_T_TUPLE ? 2 : 7;
}

#define BLOCK_ITEMS 64
struct block {
	uint64_t left, item[BLOCK_ITEMS], right;
};

/* Read an array and the header behind it, and the array again. */
static int read_array(struct py_runtime *rt, uint64_t obj, const uint64_t *head, size_t words,
		      uint64_t at, uint64_t *item, size_t n)
{
	__free uint64_t *again = malloc(n * sizeof(*again));
	uint64_t head2[HEAD_MAX];
	struct pymem_span span[3];
	int err;

	if (!again)
		return -ENOMEM;
	span[0] = py_span(at, item, n * sizeof(*item));
	span[1] = py_span(obj + PY_OB_TYPE, head2, words * sizeof(*head2));
	span[2] = py_span(at, again, n * sizeof(*again));
	err = py_readv(rt, span, 3);
	if (err)
		return err;
	if (memcmp(head, head2, words * sizeof(*head)) != 0 ||
	    memcmp(item, again, n * sizeof(*item)) != 0)
		return -EAGAIN;
	return 0;
}

static int read_blocks(struct py_runtime *rt, const uint64_t *head, uint64_t *at,
		       struct block *block, size_t blocks)
{
	uint64_t next = head[2], before = 0;

	for (size_t i = 0; i < blocks; i++) {
		int err = pymem_read(rt->mem, next, &block[i], sizeof(block[i]));

		if (err)
			return err;
		if (i && block[i].left != before)
			return -EAGAIN;
		at[i] = before = next;
		next = block[i].right;
	}
	return before == head[3] ? 0 : -EAGAIN;
}

static int same_blocks(struct py_runtime *rt, uint64_t obj, const uint64_t *head,
		       const uint64_t *at, const struct block *block, size_t blocks)
{
	__free struct block *again = malloc(blocks * sizeof(*again));
	__free struct pymem_span *span = malloc((blocks + 1) * sizeof(*span));
	uint64_t head2[HEAD_MAX];
	int err;

	if (!again || !span)
		return -ENOMEM;
	span[0] = py_span(obj + PY_OB_TYPE, head2, sizeof(head2));
	for (size_t i = 0; i < blocks; i++)
		span[i + 1] = py_span(at[i], &again[i], sizeof(again[i]));
	err = py_readv(rt, span, blocks + 1);
	if (err)
		return err;
	if (memcmp(head, head2, sizeof(head2)) != 0)
		return -EAGAIN;
	/* The first block's left and the last one's right link are never set. */
	for (size_t i = 0; i < blocks; i++)
		if (memcmp(again[i].item, block[i].item, sizeof(block[i].item)) != 0)
			return -EAGAIN;
	return 0;
}

static int read_deque(struct py_runtime *rt, uint64_t obj, const uint64_t *head, uint64_t *item,
		      size_t n)
{
	uint64_t left = head[4], right = head[5];
	size_t blocks = (size_t)(left + n + BLOCK_ITEMS - 1) / BLOCK_ITEMS;
	__free struct block *block = NULL;
	__free uint64_t *at = NULL;
	int err;

	if (left >= BLOCK_ITEMS || right >= BLOCK_ITEMS || (left + n - 1) % BLOCK_ITEMS != right)
		return -EAGAIN;
	block = malloc(blocks * sizeof(*block));
	at = malloc(blocks * sizeof(*at));
	if (!block || !at)
		return -ENOMEM;
	err = read_blocks(rt, head, at, block, blocks);
	if (!err)
		err = same_blocks(rt, obj, head, at, block, blocks);
	for (size_t i = 0; i < n && !err; i++)
		item[i] = block[(left + i) / BLOCK_ITEMS].item[(left + i) % BLOCK_ITEMS];
	return err;
}

static int elements_once(struct py_runtime *rt, uint64_t obj, enum py_type kind, uint64_t **out,
			 size_t *n, size_t max)
{
	__free uint64_t *item = NULL;
	uint64_t head[HEAD_MAX] = {0};
	size_t words = head_words(kind);
	int err = pymem_read(rt->mem, obj + PY_OB_TYPE, head, words * sizeof(*head));

	if (err)
		return err;
	/* While list.sort() runs the list looks empty, and its `allocated` is -1. */
	if (head[1] > INT64_MAX ||
	    (kind == PY_T_LIST && (head[1] > head[3] || head[3] > INT64_MAX)))
		return -EAGAIN;
	if (head[1] > max)
		return -E2BIG;
	*n = (size_t)head[1];
	if (*n) {
		item = malloc(*n * sizeof(*item));
		if (!item)
			return -ENOMEM;
	}
	if (*n && kind == PY_T_DEQUE)
		err = read_deque(rt, obj, head, item, *n);
	else if (*n)
		err = read_array(rt, obj, head, words,
				 kind == PY_T_LIST ? head[2] : obj + PY_TUPLE_AT, item, *n);
	/* An element is never NULL, except while the container is being filled. */
	for (size_t i = 0; i < *n && !err; i++)
		if (!item[i])
			err = -EAGAIN;
	if (err)
		return err;
	*out = item;
	item = NULL;
	return 0;
}

int py_elements(struct py_runtime *rt, uint64_t obj, uint64_t **out, size_t *n, size_t max)
{
	enum py_type kind;
	int err = py_type_of(rt, obj, &kind, NULL, 0);

	*out = NULL;
	*n = 0;
	if (err)
		return err;
	if (kind != PY_T_LIST && kind != PY_T_TUPLE && kind != PY_T_DEQUE)
		return -EINVAL;
	if (!max || max > PY_LIST_MAX)
		max = PY_LIST_MAX;
	err = -EAGAIN;
	for (int i = 0; i < PY_TRIES && py_torn(err); i++)
		err = elements_once(rt, obj, kind, out, n, max);
	if (err)
		*n = 0;
	return err;
}

int py_len(struct py_runtime *rt, uint64_t obj, size_t *n)
{
	enum py_type kind;
	uint64_t size;
	int err = py_type_of(rt, obj, &kind, NULL, 0);

	if (err)
		return err;
	if (kind < PY_T_LIST)
		return -EINVAL;
	err = pymem_u64(rt->mem, obj + PY_OB_SIZE, &size); /* a dict's ma_used is there too */
	if (!err && size > INT64_MAX)
		err = -EINVAL;
	if (!err)
		*n = (size_t)size;
	return err;
}
