// SPDX-License-Identifier: Apache-2.0
/* Memory that is counted, and the small table of operation kinds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/lives.h"

/* What malloc takes for a block of this size (glibc: 8 bytes of header, multiples of 16, at least
 * 32). */
static size_t footprint(size_t size)
{
	size_t n = (size + 8 + 15) & ~(size_t)15;

	return n < 32 ? 32 : n;
}

void *mem_new(struct model *m, size_t size)
{
	void *p = calloc(1, size);

	if (p)
		m->st.bytes += footprint(size);
	return p;
}

void mem_free(struct model *m, void *p, size_t size)
{
	if (!p)
		return;
	m->st.bytes -= footprint(size);
	free(p);
}

int mem_grow(struct model *m, void **array, size_t size, uint32_t *cap, uint32_t want)
{
	uint32_t n = *cap ? *cap * 2 : 2;
	void *p;

	if (want <= *cap)
		return 0;
	/* most rooms have one peer and few chunks: the first block is for exactly that */
	if (!*cap)
		n = want;
	while (n < want)
		n *= 2;
	p = realloc(*array, n * size);
	if (!p)
		return -ENOMEM;
	m->st.bytes += footprint(n * size) - (*cap ? footprint(*cap * size) : 0);
	*array = p;
	*cap = n;
	return 0;
}

static uint32_t power_above(uint32_t n)
{
	return n <= 1 ? n : 1u << (32 - __builtin_clz(n - 1));
}

size_t mem_appended(size_t size, uint32_t n)
{
	return size * power_above(n);
}

int mem_append(struct model *m, void **array, size_t size, uint32_t n)
{
	uint32_t cap = power_above(n);

	return mem_grow(m, array, size, &cap, n + 1);
}

/* Kinds are a profile's few words; one too many reads as the unknown kind 0. */
uint8_t kind_index(struct model *m, const char *kind)
{
	for (int i = 0; i < m->nkinds; i++)
		if (!strcmp(m->kinds[i], kind))
			return (uint8_t)i;
	if (m->nkinds >= MAX_KINDS)
		return 0;
	memcpy(m->kinds[m->nkinds], kind, strnlen(kind, sizeof(m->kinds[0]) - 1));
	return (uint8_t)m->nkinds++;
}
