// SPDX-License-Identifier: Apache-2.0
/* Recorded memory: a sorted array of pieces that do not overlap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/mem.h"

struct piece {
	uint64_t addr;
	size_t len;
	uint8_t *bytes;
};
struct image {
	struct pymem mem;
	struct piece *piece;
	size_t n, cap;
};

/* Index of the last piece that begins at or before addr; -1: none. */
static ptrdiff_t piece_before(const struct image *im, uint64_t addr)
{
	size_t lo = 0, hi = im->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (im->piece[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (ptrdiff_t)lo - 1;
}

/* A span may run over pieces that touch. */
static int read_span(const struct image *im, uint64_t addr, uint8_t *buf, size_t len)
{
	while (len) {
		ptrdiff_t i = piece_before(im, addr);
		const struct piece *p = i < 0 ? NULL : &im->piece[i];
		size_t part;

		if (!p || addr - p->addr >= p->len)
			return -EFAULT;
		part = p->len - (size_t)(addr - p->addr);
		if (part > len)
			part = len;
		memcpy(buf, p->bytes + (addr - p->addr), part);
		addr += part;
		buf += part;
		len -= part;
	}
	return 0;
}

static int image_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct image *im = ctx;

	im->mem.calls++;
	for (size_t i = 0; i < n; i++)
		span[i].rc = read_span(im, span[i].addr, span[i].buf, span[i].len);
	return 0;
}

static void image_close(struct pymem *m)
{
	struct image *im = m->ctx;

	for (size_t i = 0; i < im->n; i++)
		free(im->piece[i].bytes);
	free(im->piece);
	free(im);
}

struct pymem *pymem_image(void)
{
	struct image *im = calloc(1, sizeof(*im));

	if (!im)
		return NULL;
	im->mem.readv = image_readv;
	im->mem.close = image_close;
	im->mem.ctx = im;
	pymem_budget(&im->mem, 0, 0);
	return &im->mem;
}

static int insert(struct image *im, size_t at, uint64_t addr, const uint8_t *bytes, size_t len)
{
	struct piece *grown;
	uint8_t *copy;

	if (im->n == im->cap) {
		grown = realloc(im->piece, (im->cap * 2 + 16) * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		im->piece = grown;
		im->cap = im->cap * 2 + 16;
	}
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, bytes, len);
	for (size_t i = im->n; i > at; i--)
		im->piece[i] = im->piece[i - 1];
	im->piece[at].addr = addr;
	im->piece[at].len = len;
	im->piece[at].bytes = copy;
	im->n++;
	return 0;
}

/* Bytes that are there already are overwritten. */
int pymem_image_add(struct pymem *m, uint64_t addr, const void *bytes, size_t len)
{
	struct image *im = m->ctx;
	const uint8_t *from = bytes;

	if (len > UINT64_MAX - addr)
		return -EINVAL;
	while (len) {
		ptrdiff_t i = piece_before(im, addr);
		const struct piece *next = (size_t)(i + 1) < im->n ? &im->piece[i + 1] : NULL;
		struct piece *p = i < 0 ? NULL : &im->piece[i];
		size_t part = len;
		int err;

		if (p && addr - p->addr < p->len) {
			if (part > p->len - (size_t)(addr - p->addr))
				part = p->len - (size_t)(addr - p->addr);
			memcpy(p->bytes + (addr - p->addr), from, part);
		} else {
			if (next && part > next->addr - addr)
				part = (size_t)(next->addr - addr);
			err = insert(im, (size_t)(i + 1), addr, from, part);
			if (err)
				return err;
		}
		addr += part;
		from += part;
		len -= part;
	}
	return 0;
}
