/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a transport's surroundings (CUDA, verbs): those under way, those of no room. */
#ifndef SP_CLI_WATCH_CALLS_H
#define SP_CLI_WATCH_CALLS_H

#include "event/event.h"

struct watch;

/* Calls that belong to no room, by process and probe. */
#define WATCH_CALLS_MAX 256
struct watch_calls {
	struct watch_call {
		uint32_t pid;
		int probe;
		uint64_t n, bytes, failed;
	} of[WATCH_CALLS_MAX];
	int n;
	bool more; /* there was no room for all */
	uint64_t next_ns;
};

/* Twice a second: what is entered and not left, posted and not completed, goes to collect. */
void watch_calls_turn(struct watch *w, uint64_t now_ns);
/* Every event: those of kind count are added up. */
void watch_calls_event(struct watch *w, const struct sp_event *ev);
/* What was called outside of any room, a line for each process. */
void watch_calls_tell(const struct watch *w);

#endif
