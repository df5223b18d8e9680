/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of scope among themselves: scope.c decides, scope_wait.c keeps what waits. */
#ifndef SP_COLLECT_SCOPE_PRIV_H
#define SP_COLLECT_SCOPE_PRIV_H

#define HASH_NONFATAL_OOM        1
#define uthash_nonfatal_oom(elt) ((elt)->hh.tbl = NULL)
#include <uthash.h>

#include "collect/oprooms.h"
#include "collect/scope.h"

struct waiter {
	struct waiter *next;
	bool follows;            /* a status or close behind its post: it needs no room */
	char other[SP_ROOM_MAX]; /* its thread's room, should no call have one */
	struct sp_event ev;
};

/* Calls beyond the first of their kind. */
struct wait_sum {
	struct wait_sum *next;
	int probe;
	char other[SP_ROOM_MAX];
	uint32_t told, failed;
	struct call_sum sum;
};

/* A call that has not returned, and what ran inside it. */
struct node {
	struct node *next;            /* of its thread */
	struct node *before, *behind; /* of all, by age */
	uint32_t pid, tid;
	uint64_t enter_ns, born_ns;
	struct waiter *first, **last;
	struct wait_sum *sums;
	uint32_t posts; /* waiters that are posts, or follow one */
	bool tallied;   /* posts of a tally are among them */
	bool missed;    /* it was not there at the last look */
};

struct thread {
	struct {
		uint32_t pid, tid;
	} key;
	char room[SP_ROOM_MAX]; /* it works for this one, "": for none that is known */
	uint64_t since_ns;
	struct node *nodes;
	UT_hash_handle hh;
};

struct scope {
	const struct profile *p;
	struct calls *calls;
	struct tallies *tallies;
	scope_emit emit;
	void *ctx;
	struct thread *threads;
	struct node *nodes; /* oldest first */
	struct oprooms *ops;
	size_t waiting;
	uint64_t given_up;
};

struct thread *scope_thread(const struct scope *s, uint32_t pid, uint32_t tid);
/* Made when there is none; NULL: out of memory. */
struct thread *scope_thread_get(struct scope *s, uint32_t pid, uint32_t tid);
/* Forget it when there is nothing to know. */
void scope_thread_put(struct scope *s, struct thread *t);
/* The room is decided. */
void scope_out(struct scope *s, const struct sp_event *ev, bool doubtful);

struct node *wait_find(const struct thread *t, uint64_t enter_ns);
/* NULL: out of memory. other: the room if the enclosing calls have none. */
struct node *wait_add(struct scope *s, struct thread *t, uint64_t enter_ns,
		      const struct sp_event *ev, bool follows, const char *other);
/* The call is of this room; "": of none, and there is no other around it: what waits is its
 * thread's where that is known and others is true. The node is gone then. */
void wait_done(struct scope *s, struct node *n, const char *room, bool doubtful, bool others);
/* It has none: what waits is left to the call around it, 0: to its thread. The node is gone then.
 */
void wait_outward(struct scope *s, struct node *n, uint64_t enter_ns);
/* What waits goes on without a room, before it is known. The node is gone then. */
void wait_give_up(struct scope *s, struct node *n);
/* Which of the thread's calls are over, by what it does now? */
void wait_over(struct scope *s, struct thread *t, const struct sp_rec_hit *rec, bool is_scope);
void wait_tick(struct scope *s, uint64_t now_ns);

#endif
