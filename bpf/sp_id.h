/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The hash of a room's or request's id that is too long to be kept: FNV-1a of all its bytes, which
 * needs them one after the other and once only. What it is used for: user/event/id.h. */
#ifndef SP_ID_H
#define SP_ID_H

#ifndef __BPF__
#include <linux/types.h>
#endif

#define SP_ID_START 0xcbf29ce484222325ull

static inline __u64 sp_id_step(__u64 hash, __u8 byte)
{
	return (hash ^ byte) * 0x100000001b3ull;
}

#endif
