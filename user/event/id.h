/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of rooms and requests. An id of up to 63 bytes is its own name. A longer one keeps its
 * beginning, and the hash of the whole id takes the place of the rest:
 * "chatcmpl-___prefill_addr_10.0.0.1:20001___deco~4e1f0c6a90b37d52". So different ids have
 * different names, and one id has the same wherever it was read.
 */
#ifndef SP_EVENT_ID_H
#define SP_EVENT_ID_H

#include <stddef.h>
#include <stdint.h>

#include "event/event.h"

#define SP_ID_MAX 1024 /* longest id that is read whole, where that needs a bound */

/* The name of the id at [id, id+len); what lies behind a NUL is not part of a short one's name. */
void sp_id_name(char out[SP_ROOM_MAX], const char *id, size_t len);
/* Of one of which only the beginning is at hand, at least SP_ROOM_MAX bytes, and the hash
 * (bpf/sp_id.h) of all its bytes. */
void sp_id_name_long(char out[SP_ROOM_MAX], const char *begin, uint64_t hash);

#endif
