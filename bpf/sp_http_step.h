/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The decoder of sp_http.h. No helper, no map: the kernel and the fuzzer run the same code. */
#ifndef SP_HTTP_STEP_H
#define SP_HTTP_STEP_H

#include "sp_http.h"
#include "sp_sock.h" /* enum sp_conn_why */

#ifndef SP_STEP_FN /* the kernel side makes them global functions: verified once each */
#define SP_STEP_FN static inline
#endif

/* Take one byte: enum sp_http_did. keys: the rule's, SP_HTTP_KEYS of them. */
SP_STEP_FN int sp_http_byte(struct sp_http *h, const struct sp_http_key *keys, __u32 c);
/* After DID_HEAD: has the message no body? Then it is complete (count it as END). For a reply:
 * head_only must have been set by the caller when the request was a HEAD. */
static inline int sp_http_bodyless(struct sp_http *h);
/* How many of the bytes to come need not be looked at: a body that is not searched (replies), its
 * last byte excepted. A body being searched: 0. */
static inline __u64 sp_http_skip(const struct sp_http *h);
static inline void sp_http_skipped(struct sp_http *h, __u64 n);
/* Eight bytes at once (little endian) of the inside of a JSON string that cannot be a wanted key or
 * value: true when they hold neither a quote nor a backslash, belong to the body whole, and have
 * been taken. */
static inline int sp_http_word(struct sp_http *h, __u64 word);
/* The connection has ended: END when that completes the message (a reply until close), else
 * NOTHING. */
static inline int sp_http_eof(struct sp_http *h);
/* Is c a possible first byte of a request's method? The caller's first guess. */
static inline int sp_http_begins(__u32 c);

#endif
