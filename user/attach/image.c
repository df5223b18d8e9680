// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/image.h"

#define CHUNK    (64u << 10) /* as the page cache reads ahead; 64 kB is the largest page, too */
#define FILE_MAX (64ull << 30)

struct image {
	int fd;
	uint64_t size;
	uint8_t *base; /* room for all of it, of which only what was read takes memory */
	bool *have;    /* for each chunk */
};

static uint64_t chunks(uint64_t size)
{
	return (size + CHUNK - 1) / CHUNK;
}

int image_open(int fd, uint64_t size, struct image **out)
{
	struct image *im;
	void *base;

	*out = NULL;
	if (!size || size > FILE_MAX)
		return -EFBIG;
	im = calloc(1, sizeof(*im));
	if (!im)
		return -ENOMEM;
	im->fd = fd;
	im->size = size;
	im->have = calloc(chunks(size), sizeof(*im->have));
	base = mmap(NULL, chunks(size) * CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	im->base = base == MAP_FAILED ? NULL : base;
	if (!im->have || !im->base) {
		image_close(im);
		return -ENOMEM;
	}
	*out = im;
	return 0;
}

void image_close(struct image *im)
{
	if (!im)
		return;
	if (im->base)
		munmap(im->base, chunks(im->size) * CHUNK);
	free(im->have);
	free(im);
}

/* Chunks [first, end), none of which is there. */
static bool read_chunks(struct image *im, uint64_t first, uint64_t end)
{
	uint64_t at = first * CHUNK, to = end * CHUNK < im->size ? end * CHUNK : im->size;

	if (mprotect(im->base + at, (end - first) * CHUNK, PROT_READ | PROT_WRITE))
		return false;
	while (at < to) {
		ssize_t n = pread(im->fd, im->base + at, to - at, (off_t)at);

		if (n == 0 || (n < 0 && errno != EINTR))
			return false; /* it has become shorter */
		at += n > 0 ? (uint64_t)n : 0;
	}
	for (uint64_t i = first; i < end; i++)
		im->have[i] = true;
	return true;
}

const uint8_t *image_at(struct image *im, uint64_t off, uint64_t len)
{
	uint64_t end;

	if (off > im->size || len > im->size - off)
		return NULL;
	end = chunks(off + len);
	for (uint64_t i = off / CHUNK; i < end; i++) {
		uint64_t first = i;

		while (i < end && !im->have[i])
			i++;
		if (i > first && !read_chunks(im, first, i))
			return NULL;
	}
	return im->base + off;
}
