// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "event/id.h"
#include "sp_id.h"

#define HASH_LEN 17 /* "~" and 16 digits */

/* Ids that differ in their last bytes only differ in few bits of the hash: spread them. */
static uint64_t spread(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdull; /* the finalizer of MurmurHash3 */
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 33;
}

void sp_id_name_long(char out[SP_ROOM_MAX], const char *begin, uint64_t hash)
{
	size_t n = strnlen(begin, SP_ROOM_MAX - 1 - HASH_LEN);

	/* no half of a character: its later bytes are 10xxxxxx, three at most */
	for (int i = 0; i < 3 && n && (begin[n] & 0xc0) == 0x80; i++)
		n--;
	snprintf(out, SP_ROOM_MAX, "%.*s~%016" PRIx64, (int)n, begin, spread(hash));
}

void sp_id_name(char out[SP_ROOM_MAX], const char *id, size_t len)
{
	uint64_t hash = SP_ID_START;

	if (len < SP_ROOM_MAX) {
		snprintf(out, SP_ROOM_MAX, "%.*s", (int)len, id);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hash = sp_id_step(hash, (uint8_t)id[i]);
	sp_id_name_long(out, id, hash);
}
