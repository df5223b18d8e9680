// SPDX-License-Identifier: Apache-2.0
/*
 * An end that was concluded, not seen, may be taken back. The row of a life that ended is found
 * again by this table, for as long as the model can take an end back (ten minutes, 4,096 of them);
 * lives that ended for good are in it too, as the store cannot tell.
 */
#include <stdlib.h>
#include <string.h>

/* Without memory an element stays out of its table: its life would get a second row. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "store/buffer.h"
#include "util/clock.h"

#define ENDED_MAX    16384u
#define ENDED_MAX_NS (610 * NS_PER_SEC)

struct ended_lives {
	UT_hash_handle hh;
	struct ended_key {
		uint64_t id, opened_ns;
		uint32_t pid, life;
		uint64_t room; /* hash */
	} key;
	uint64_t ended_ns, row, first_seq, last_seq, stacks_ns;
	uint32_t events, verdict_sum, nstacks;
	uint8_t stage, cause, confidence;
};

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t room_hash(const char *room)
{
	uint64_t h = 14695981039346656037ull;

	while (*room)
		h = (h ^ (uint8_t)*room++) * 1099511628211ull;
	return h;
}

static struct ended_key key_of(const struct model_life *l)
{
	return (struct ended_key){.id = l->id,
				  .opened_ns = l->opened_ns,
				  .pid = l->pid,
				  .life = l->life,
				  .room = room_hash(l->room)};
}

static void drop(struct ended_lives **t, struct ended_lives *e)
{
	HASH_DEL(*t, e);
	free(e);
}

void ended_add(struct ended_lives **t, const struct life_ref *ref, const struct model_life *l,
	       uint64_t now_ns, bool kept)
{
	struct ended_lives *e = calloc(1, sizeof(*e));

	/* the table keeps the order in which they ended */
	while (*t && (HASH_COUNT(*t) >= ENDED_MAX || (*t)->ended_ns + ENDED_MAX_NS < now_ns))
		drop(t, *t);
	if (!e)
		return;
	e->key = key_of(l);
	e->ended_ns = now_ns;
	e->row = ref->row;
	e->first_seq = kept ? ref->seqs.first : 0;
	e->last_seq = kept ? ref->seqs.last : 0;
	e->events = kept ? ref->events : 0;
	e->stacks_ns = ref->stacks_ns;
	e->nstacks = ref->nstacks;
	e->verdict_sum = ref->verdict_sum;
	e->stage = ref->stage;
	e->cause = ref->cause;
	e->confidence = ref->confidence;
	HASH_ADD(hh, *t, key, sizeof(e->key), e);
	if (!e->hh.tbl)
		free(e);
}

bool ended_take(struct ended_lives **t, struct life_ref *ref, const struct model_life *l)
{
	struct ended_key key = key_of(l);
	struct ended_lives *e;

	HASH_FIND(hh, *t, &key, sizeof(key), e);
	if (!e)
		return false;
	ref->row = e->row;
	ref->again = true;
	ref->seqs.first = e->first_seq;
	ref->seqs.last = e->last_seq;
	ref->events = e->events;
	ref->stacks_ns = e->stacks_ns;
	ref->nstacks = e->nstacks;
	ref->verdict_sum = e->verdict_sum;
	ref->stage = e->stage;
	ref->cause = e->cause;
	ref->confidence = e->confidence;
	drop(t, e);
	return true;
}

void ended_free(struct ended_lives **t)
{
	while (*t)
		drop(t, *t);
}
