/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which room an event without one belongs to: that of its operation (a call's `op`), of the call
 * that encloses it on its thread (`scope: call`), or the one that its thread works for between two
 * events
 * (`scope: thread`, `work: begin` and `end`). When nothing says so: none; never a guess.
 *
 * The record of an enclosing call comes when it returns, so that what ran inside waits for it: at
 * most SCOPE_WAIT_NS, a post SCOPE_POST_NS (its operation's status and close behind it), at most
 * SCOPE_WAITERS events; then it is an event without a room. What has waited longer than
 * COLLECT_SLACK_NS keeps its time though younger events have been handed on: the model takes it
 * when it comes, a timeline shows it where it belongs. An enclosing call without a record (its
 * outcome is no event) is known to be over by what its thread does next.
 *
 * After a loss what threads work for and operations belong to is forgotten: what would have changed
 * it may be what was lost.
 */
#ifndef SP_COLLECT_SCOPE_H
#define SP_COLLECT_SCOPE_H

#include "collect/calls.h"
#include "collect/fields.h"
#include "collect/tallies.h"
#include "profile/profile.h"

#define SCOPE_WAIT_NS 10000000000ull
#define SCOPE_POST_NS 2000000000ull
#define SCOPE_WAITERS 16384
#define SCOPE_THREADS 16384

/* Any event, its room decided. */
typedef void (*scope_emit)(void *ctx, const struct sp_event *ev, bool doubtful);
struct scope;
/* calls: counts those that are not told one by one; tallies hears of posts and their rooms; emit
 * gets all that is told. */
struct scope *scope_new(const struct profile *p, struct calls *calls, struct tallies *tallies,
			scope_emit emit, void *ctx);
void scope_free(struct scope *s);
/* Each record of a probe, in the order of the ring, with the event that was made of it (NULL:
 * none): it is emitted, now or later. */
void scope_record(struct scope *s, const struct sp_rec_hit *rec, const struct sp_event *ev,
		  const struct event_more *more);
/* An event that comes from elsewhere and tells which room an operation works for. */
void scope_learn(struct scope *s, const struct sp_event *ev);
/* Events may have gone missing. pid 0: of any process. */
void scope_loss(struct scope *s, uint32_t pid);
/* tid 0: the whole process has ended, or become another program. */
void scope_gone(struct scope *s, uint32_t pid, uint32_t tid);
/* What has waited too long. */
void scope_tick(struct scope *s, uint64_t now_ns);
/* All that waits goes on as it is. */
void scope_finish(struct scope *s);

/* What a call in progress may ask. NULL: not known. */
const char *scope_op_room(const struct scope *s, uint32_t pid, uint64_t op);
const char *scope_thread_room(const struct scope *s, uint32_t pid, uint32_t tid, uint64_t enter_ns);
/* The call that this thread entered then is of this room, although it has not returned. */
void scope_resolve(struct scope *s, uint32_t pid, uint32_t tid, uint64_t enter_ns,
		   const char *room);
/* Each call that is waited for: false: it is no more. */
void scope_check(struct scope *s, uint64_t older_than_ns,
		 bool (*is_there)(void *ctx, uint32_t pid, uint32_t tid, uint64_t enter_ns),
		 void *ctx);

struct scope_stats {
	size_t threads, waiting;
	uint64_t given_up; /* events that waited too long, or were too many */
};
void scope_stats(const struct scope *s, struct scope_stats *st);

#endif
