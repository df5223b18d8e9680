/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The decoder of sp_http.h. No helper, no map: the kernel and the fuzzer run the same code. */
#ifndef SP_HTTP_STEP_H
#define SP_HTTP_STEP_H

#include "sp_http.h"
#include "sp_sock.h" /* enum sp_conn_why */

#ifndef SP_STEP_FN /* the kernel side makes them global functions: verified once each */
#define SP_STEP_FN static inline
#endif

#include "sp_json_step.h"
#include "sp_http_head.h"

static inline void sp_http_json_end(struct sp_http *h)
{
	if (h->json == SP_JSON_TEXT) /* a string without an end: never given */
		sp_json_forget(h);
	h->json = SP_JSON_OFF;
}

/* The message is complete, with a byte that did (or 0): END, or what sp_http_bodyless tells. */
static inline int sp_http_end(struct sp_http *h, int did)
{
	sp_http_json_end(h);
	h->is = did ? SP_HTTP_ENDED : SP_HTTP_START;
	return did ? did : SP_HTTP_DID_END;
}

static inline int sp_http_size_end(struct sp_http *h)
{
	if (!h->sub) /* no digit */
		return sp_http_bad(h);
	h->length = 0;
	h->is = h->left ? SP_HTTP_CHUNK : SP_HTTP_TRAILER;
	return SP_HTTP_NOTHING;
}

static inline int sp_http_size(struct sp_http *h, __u8 c)
{
	__u8 low = c | 0x20;

	if (c == '\n')
		return sp_http_size_end(h);
	if (h->sub && (c == ';' || c == ' ' || c == '\t')) {
		h->is = SP_HTTP_CHUNK_EXT;
		return SP_HTTP_NOTHING;
	}
	if (c >= '0' && c <= '9')
		low = c - '0';
	else if (low >= 'a' && low <= 'f')
		low = low - 'a' + 10;
	else
		return sp_http_bad(h);
	if (h->left >> 56)
		return sp_http_bad(h);
	h->left = h->left << 4 | low;
	h->sub = 1;
	return SP_HTTP_NOTHING;
}

/* The lines around chunks. */
static inline int sp_http_chunk_line(struct sp_http *h, __u8 c)
{
	if (++h->length > SP_HTTP_HEAD_MAX)
		return sp_http_unreadable(h, SP_WHY_LONG);
	if (sp_http_cr(h, c))
		return h->is == SP_HTTP_DEAD ? SP_HTTP_DID_BAD : SP_HTTP_NOTHING;
	switch (h->is) {
	case SP_HTTP_SIZE:
		return sp_http_size(h, c);
	case SP_HTTP_CHUNK_EXT:
		return c == '\n' ? sp_http_size_end(h) : SP_HTTP_NOTHING;
	case SP_HTTP_CHUNK_END:
		if (c != '\n')
			return sp_http_bad(h);
		sp_http_chunk_begin(h);
		return SP_HTTP_NOTHING;
	case SP_HTTP_TRAILER:
		if (c == '\n')
			return sp_http_end(h, 0);
		h->is = SP_HTTP_TRAILER_LINE;
		return SP_HTTP_NOTHING;
	default: /* SP_HTTP_TRAILER_LINE */
		if (c == '\n')
			h->is = SP_HTTP_TRAILER;
		return SP_HTTP_NOTHING;
	}
}

static inline int sp_http_body(struct sp_http *h, const struct sp_http_keys *keys, __u8 c)
{
	int did = h->json == SP_JSON_OFF ? SP_HTTP_NOTHING : sp_json_byte(h, keys, c);

	if (h->left > 1) {
		h->left--;
		return did;
	}
	h->left = 0;
	if (h->is == SP_HTTP_BODY)
		return sp_http_end(h, did);
	h->is = SP_HTTP_CHUNK_END;
	return did;
}

/* Take one byte: enum sp_http_did. keys: the rule's. */
SP_STEP_FN int sp_http_byte(struct sp_http *h, const struct sp_http_keys *keys, __u32 c)
{
	if (!h || !keys)
		return SP_HTTP_DID_BAD;
	switch (h->is) {
	case SP_HTTP_BODY:
	case SP_HTTP_CHUNK:
		return sp_http_body(h, keys, (__u8)c);
	case SP_HTTP_SIZE:
	case SP_HTTP_CHUNK_EXT:
	case SP_HTTP_CHUNK_END:
	case SP_HTTP_TRAILER:
	case SP_HTTP_TRAILER_LINE:
		return sp_http_chunk_line(h, (__u8)c);
	case SP_HTTP_UNTIL_CLOSE:
	case SP_HTTP_DEAD:
		return SP_HTTP_NOTHING;
	default:
		return sp_http_head(h, keys, (__u8)c);
	}
}

/*
 * After DID_HEAD, DID_LIST and DID_VALUE: was that the message's last byte? Then it is complete
 * (count it as END). For a reply: head_only must have been set by the caller when the request was a
 * HEAD. A call at another moment gives 0.
 */
static inline int sp_http_bodyless(struct sp_http *h)
{
	if (h->reply && h->head_only && h->is != SP_HTTP_DEAD) {
		h->head_only = 0;
		h->until_close = 0;
		h->left = 0;
		h->is = SP_HTTP_ENDED;
	}
	if (h->is != SP_HTTP_ENDED)
		return 0;
	h->is = SP_HTTP_START;
	return 1;
}

/* How many of the bytes to come need not be looked at: a body that is not (or no more) searched,
 * its last byte excepted; all, when only the connection's end will end it. */
static inline __u64 sp_http_skip(const struct sp_http *h)
{
	if (h->is == SP_HTTP_UNTIL_CLOSE)
		return ~0ull;
	if ((h->is != SP_HTTP_BODY && h->is != SP_HTTP_CHUNK) || h->json != SP_JSON_OFF ||
	    h->left < 2)
		return 0;
	return h->left - 1;
}

/* n bytes, at most sp_http_skip(), have passed. */
static inline void sp_http_skipped(struct sp_http *h, __u64 n)
{
	if (n < h->left)
		h->left -= n;
}

/*
 * Eight bytes at once (little endian) of a JSON string that cannot be a wanted key or value, or of
 * a nested object or list: true when nothing in them ends it, they belong to the body (or chunk)
 * and are not its end, and have been taken. Else give the next byte to sp_http_byte.
 */
static inline int sp_http_word(struct sp_http *h, __u64 word)
{
	if ((h->is != SP_HTTP_BODY && h->is != SP_HTTP_CHUNK) || h->left <= 8 ||
	    !sp_json_word(h, word))
		return 0;
	h->left -= 8;
	return 1;
}

/* The connection has ended: END when that completes the message (a reply until close), else
 * NOTHING. */
static inline int sp_http_eof(struct sp_http *h)
{
	int did = h->is == SP_HTTP_UNTIL_CLOSE ? SP_HTTP_DID_END : SP_HTTP_NOTHING;

	sp_http_json_end(h);
	h->is = SP_HTTP_DEAD;
	return did;
}

/* Is c a possible first byte of a request's method? The caller's first guess. */
static inline int sp_http_begins(__u32 c)
{
	return c >= 'A' && c <= 'Z';
}

#endif
