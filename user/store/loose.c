// SPDX-License-Identifier: Apache-2.0
/*
 * Events of no life, when not everything is recorded: which of them are kept. Where a worker thread
 * is comes several times a second, and matters where it lasts, to the rooms that wait for that
 * thread: the room that it is at may end healthy. The newest such event of a thread is kept, and an
 * older one when none had been kept for `every` before the thread went on: so a replay never takes
 * a thread to be, for longer than that, where it is not.
 */
#include <stdlib.h>
#include <string.h>

/* Without memory a thread stays out of the table: all that is told of it is kept. */
#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "store/buffer.h"
#include "util/clock.h"

#define THREADS_MAX 4096u
/* A part of a deadline that is too short for a verdict. */
#define EVERY_PARTS 4
#define EVERY_MAX   (2 * NS_PER_SEC)

struct loose_thread {
	UT_hash_handle hh;
	struct loose_key {
		uint32_t pid, tid;
	} key;
	uint64_t seq;     /* of the newest, 0: not to be given up */
	uint64_t ns;      /* when it came */
	uint64_t kept_ns; /* when the last one before it came that is kept, 0: none */
};

void loose_init(struct loose *s, const uint64_t stage_ns[SP_STAGE_MAX])
{
	s->every_ns = EVERY_MAX;
	for (int i = 0; i < SP_STAGE_MAX; i++)
		if (stage_ns[i] && stage_ns[i] / EVERY_PARTS < s->every_ns)
			s->every_ns = stage_ns[i] / EVERY_PARTS;
}

/* Of calls that belong to no room only what is wrong, or may be. */
static bool is_told_call(const struct sp_event *ev)
{
	return ev->status == OPS_ERROR || !strcmp(ev->kind, "inside") ||
	       !strcmp(ev->kind, "left") || !strcmp(ev->kind, "tally") ||
	       !strcmp(ev->kind, "dropped");
}

/* The others (operations that outlive their room, polls of a queue) come with every healthy room.
 */
bool loose_wanted(const struct sp_event *ev)
{
	switch (ev->role) {
	case ROLE_ABORT:
	case ROLE_REGISTER:
	case ROLE_PEER:
	case ROLE_TARGET:
	case ROLE_LOSS:
	case ROLE_STALL:
	case ROLE_VIEW:
	case ROLE_THREAD:
		return true;
	case ROLE_CALL:
		return is_told_call(ev);
	default:
		return false;
	}
}

static bool is_place(const struct sp_event *ev)
{
	return ev->role == ROLE_THREAD && !strcmp(ev->kind, "at");
}

/* It may have changed the verdict on l: then it is l's. */
bool loose_place(const struct sp_event *ev, const struct model_life *l)
{
	return is_place(ev) && !(l && l->ever_stuck);
}

static void drop(struct loose *s, struct loose_thread *t)
{
	HASH_DEL(s->threads, t);
	free(t);
}

static struct loose_thread *get(struct loose *s, const struct sp_event *ev)
{
	struct loose_key key = {.pid = ev->pid, .tid = ev->tid};
	struct loose_thread *t;

	HASH_FIND(hh, s->threads, &key, sizeof(key), t);
	if (t)
		return t;
	/* the table keeps the order in which they came */
	while (s->threads && HASH_COUNT(s->threads) >= THREADS_MAX)
		drop(s, s->threads);
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->key = key;
	HASH_ADD(hh, s->threads, key, sizeof(t->key), t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

/* The end of a thread, or of a process. */
static void note_end(struct loose *s, const struct sp_event *ev)
{
	bool process = ev->role == ROLE_TARGET &&
		       (!strcmp(ev->kind, "exited") || !strcmp(ev->kind, "exec"));
	bool thread = ev->role == ROLE_THREAD && !ev->kind[0];
	struct loose_thread *t, *next;

	if (!process && !thread)
		return;
	for (t = s->threads; t; t = next) {
		next = t->hh.next;
		if (t->key.pid == ev->pid && (process || t->key.tid == ev->tid))
			drop(s, t);
	}
}

uint64_t loose_note(struct loose *s, const struct sp_event *ev, uint64_t now_ns, uint64_t seq)
{
	struct loose_thread *t;
	uint64_t spare = 0;

	if (!is_place(ev)) {
		note_end(s, ev);
		return 0;
	}
	t = get(s, ev);
	if (!t)
		return 0;
	if (t->seq && t->kept_ns && now_ns - t->kept_ns < s->every_ns)
		spare = t->seq;
	else
		t->kept_ns = t->ns;
	t->seq = seq;
	t->ns = now_ns;
	return spare;
}

void loose_free(struct loose *s)
{
	while (s->threads)
		drop(s, s->threads);
	loose_ops_free(s);
}
