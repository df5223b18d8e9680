/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many calls are events of their own. A call with a room is one, up to CALLS_TOLD a second for
 * each (room, probe), of a call without one only a failure is, up to CALLS_FAILED for each
 * (process, probe); the others are counted, and told once a second as one event of kind count.
 */
#ifndef SP_COLLECT_CALLS_H
#define SP_COLLECT_CALLS_H

#include "event/event.h"

#define CALLS_TOLD    64
#define CALLS_FAILED  16    /* beside CALLS_TOLD */
#define CALLS_ENTRIES 32768 /* rooms beyond are counted with their process */

/* What is counted and not told one by one. */
struct call_sum {
	uint64_t n, bytes, failed;
	uint64_t ns; /* the newest of them */
};
void call_sum_add(struct call_sum *s, const struct sp_event *ev);
void call_sum_join(struct call_sum *s, const struct call_sum *more);

/* doubtful: a loss that was not noticed yet may take the event's room away. */
typedef void (*calls_emit)(void *ctx, const struct sp_event *ev, bool doubtful);
struct calls;
struct calls *calls_new(calls_emit emit, void *ctx);
void calls_free(struct calls *c);
/* A call that has its room, or will never have one. */
void calls_take(struct calls *c, const struct sp_event *ev, bool doubtful);
/* Only count it: for what is never an event of its own. */
void calls_count(struct calls *c, uint32_t pid, int probe, const char *room,
		 const struct call_sum *sum, bool doubtful);
/* Tell what was counted, at now_ns; a new second begins. */
void calls_flush(struct calls *c, uint64_t now_ns);
/* The process has ended, or become another program: tell what was counted, at its own time. */
void calls_gone(struct calls *c, uint32_t pid);
/* What was counted for rooms by doubtful means is the process's. pid 0: of all. */
void calls_doubt(struct calls *c, uint32_t pid);
size_t calls_entries(const struct calls *c);

#endif
