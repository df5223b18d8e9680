// SPDX-License-Identifier: Apache-2.0
/* The table of operations: chained, doubled when there are two for each bucket. */
#include <errno.h>

#include "model/lives.h"

#define FIRST_SIZE 64u

static uint32_t place(uint32_t pid, uint64_t handle, uint32_t size)
{
	/* handles are addresses: the multiplication (2^64 / golden ratio) brings the bits that
	 * differ to the top */
	uint64_t h = (handle ^ (uint64_t)pid << 40) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32) & (size - 1);
}

struct op *op_find(const struct model *m, uint32_t pid, uint64_t handle)
{
	struct op *o;

	if (!m->optab_size)
		return NULL;
	o = m->optab[place(pid, handle, m->optab_size)];
	while (o && (o->handle != handle || o->pid != pid))
		o = o->hnext;
	return o;
}

static int grow(struct model *m)
{
	uint32_t size = m->optab_size ? m->optab_size * 2 : FIRST_SIZE;
	struct op **tab = mem_new(m, size * sizeof(void *));

	if (!tab)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->optab_size; i++) {
		struct op *next;

		for (struct op *o = m->optab[i]; o; o = next) {
			struct op **at = &tab[place(o->pid, o->handle, size)];

			next = o->hnext;
			o->hnext = *at;
			*at = o;
		}
	}
	optab_free(m);
	m->optab = tab;
	m->optab_size = size;
	return 0;
}

int optab_add(struct model *m, struct op *o)
{
	struct op **at;

	if (m->nops / 2 >= m->optab_size && grow(m) && !m->optab_size)
		return -ENOMEM;
	at = &m->optab[place(o->pid, o->handle, m->optab_size)];
	o->hnext = *at;
	*at = o;
	o->hashed = true;
	return 0;
}

void optab_remove(struct model *m, struct op *o)
{
	struct op **at;

	if (!o->hashed)
		return;
	at = &m->optab[place(o->pid, o->handle, m->optab_size)];
	while (*at != o)
		at = &(*at)->hnext;
	*at = o->hnext;
	o->hashed = false;
}

void optab_free(struct model *m)
{
	mem_free(m, m->optab, m->optab_size * sizeof(void *));
	m->optab = NULL;
	m->optab_size = 0;
}
