/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The decoder of sp_zmtp.h. No helper, no map: the kernel and the fuzzer run the same code. */
#ifndef SP_ZMTP_STEP_H
#define SP_ZMTP_STEP_H

#include "sp_zmtp.h"
#include "sp_sock.h" /* enum sp_conn_why */

#ifndef SP_STEP_FN /* the kernel side makes them global functions: verified once each */
#define SP_STEP_FN static inline
#endif

/* Take one byte: enum sp_zmtp_did. */
SP_STEP_FN int sp_zmtp_byte(struct sp_zmtp *z, __u32 c);
/* How many of the bytes to come need not be looked at: they are the rest of a body of which enough
 * is kept, its last byte excepted (give that one to sp_zmtp_byte). */
static inline __u64 sp_zmtp_skip(const struct sp_zmtp *z);
/* n bytes, at most sp_zmtp_skip(), have passed. */
static inline void sp_zmtp_skipped(struct sp_zmtp *z, __u64 n);
/* Start at a frame's boundary, in the middle of a stream. */
static inline void sp_zmtp_resync(struct sp_zmtp *z);

#endif
