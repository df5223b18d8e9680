/* SPDX-License-Identifier: Apache-2.0 */
/* Which room an operation (pid, handle) works for, learnt from events that have both, until it is
 * closed. Handles are reused: a new creation makes what was known void. */
#ifndef SP_COLLECT_OPROOMS_H
#define SP_COLLECT_OPROOMS_H

#include "event/event.h"

#define OPROOMS_MAX 65536 /* the oldest are forgotten */

struct op_room {
	char room[SP_ROOM_MAX]; /* "": its post waits for the call that encloses it: */
	uint32_t tid;
	uint64_t enter_ns;
};
struct oprooms;
struct oprooms *oprooms_new(void);
void oprooms_free(struct oprooms *o);
/* NULL: nothing is known. */
struct op_room *oprooms_find(const struct oprooms *o, uint32_t pid, uint64_t op);
/* NULL: out of memory. */
struct op_room *oprooms_get(struct oprooms *o, uint32_t pid, uint64_t op);
void oprooms_forget(struct oprooms *o, uint32_t pid, uint64_t op);
/* All of a process, or (0) of all. */
void oprooms_clear(struct oprooms *o, uint32_t pid);
size_t oprooms_count(const struct oprooms *o);

#endif
