/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a request's wanted keys while it comes in, and the rooms that they make up. */
#ifndef SP_COLLECT_VALUES_H
#define SP_COLLECT_VALUES_H

#include "event/event.h"
#include "profile/sockets.h"
#include "sp_sock.h"

#define VALUES_MAX 4096 /* of one key in one request */

struct value {
	uint16_t index;
	char text[SP_ROOM_MAX]; /* a long one's name, see event/id.h */
};
struct values {
	bool list;
	uint32_t n;
	struct value *v;
};
struct http_room {
	char room[SP_ROOM_MAX], rid[SP_ROOM_MAX], host[SP_ROOM_MAX];
};

void values_free(struct values *v);
/* One VALUE record. A key that comes again replaces what it said before. 1: kept, 0: of no use
 * here, -ENOSPC: one too many, -ENOMEM. numeric: only a number will do. */
int values_take(struct values *v, const struct sp_rec_http *rec, bool numeric);
/* The value that goes with element `index` of another list: its own element of that number, or the
 * one value there is. "": none. at: where the last search ended, 0 at first; indices only rise. */
const char *values_at(const struct values *v, uint16_t index, uint32_t *at);

#endif
