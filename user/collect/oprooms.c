// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/oprooms.h"

struct entry {
	struct {
		uint64_t op;
		uint64_t pid;
	} key;
	struct op_room is;
	UT_hash_handle hh;
};

struct oprooms {
	struct entry *table;
};

struct oprooms *oprooms_new(void)
{
	return calloc(1, sizeof(struct oprooms));
}

static void drop(struct oprooms *o, struct entry *e)
{
	HASH_DEL(o->table, e);
	free(e);
}

void oprooms_clear(struct oprooms *o, uint32_t pid)
{
	struct entry *next;

	for (struct entry *e = o->table; e; e = next) {
		next = e->hh.next;
		if (!pid || e->key.pid == pid)
			drop(o, e);
	}
}

void oprooms_free(struct oprooms *o)
{
	if (!o)
		return;
	oprooms_clear(o, 0);
	free(o);
}

static struct entry *find(const struct oprooms *o, uint32_t pid, uint64_t op)
{
	struct entry *e, probe = {.key = {.op = op, .pid = pid}};

	HASH_FIND(hh, o->table, &probe.key, sizeof(probe.key), e);
	return e;
}

struct op_room *oprooms_find(const struct oprooms *o, uint32_t pid, uint64_t op)
{
	struct entry *e = find(o, pid, op);

	return e ? &e->is : NULL;
}

struct op_room *oprooms_get(struct oprooms *o, uint32_t pid, uint64_t op)
{
	struct entry *e = find(o, pid, op);

	if (e)
		return &e->is;
	while (HASH_COUNT(o->table) >= OPROOMS_MAX)
		drop(o, o->table); /* uthash keeps the order in which they came */
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->key.op = op;
	e->key.pid = pid;
	HASH_ADD(hh, o->table, key, sizeof(e->key), e);
	if (e->hh.tbl)
		return &e->is;
	free(e);
	return NULL;
}

void oprooms_forget(struct oprooms *o, uint32_t pid, uint64_t op)
{
	struct entry *e = find(o, pid, op);

	if (e)
		drop(o, e);
}

size_t oprooms_count(const struct oprooms *o)
{
	return HASH_COUNT(o->table);
}
