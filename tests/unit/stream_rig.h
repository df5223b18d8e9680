/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two stream decoders say, as a list; fed the plain way (every byte) or the fast way
 * (skips, and words of eight bytes), as the kernel side does. For unit tests and fuzzing.
 */
#ifndef STREAM_RIG_H
#define STREAM_RIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sp_http_step.h"
#include "sp_zmtp_step.h"

/* Compared by memcmp: cleared before it is filled in. */
struct said {
	uint64_t at; /* of the byte that completed it */
	uint64_t num, size;
	uint32_t did, count, code, index;
	int32_t key, is_num;
	uint8_t why, chunked, more, expect, len, major, minor, mechanism;
	char text[64];
};

struct heard {
	struct said *v;
	size_t n, cap;
};

static inline struct said *hear(struct heard *h, uint64_t at, uint32_t did)
{
	struct said *s;

	if (h->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 64;
		h->v = (struct said *)realloc(h->v, h->cap * sizeof(*h->v));
		if (!h->v)
			abort();
	}
	s = &h->v[h->n++];
	memset(s, 0, sizeof(*s));
	s->at = at;
	s->did = did;
	return s;
}

static inline bool heard_same(const struct heard *a, const struct heard *b)
{
	return a->n == b->n && (!a->n || !memcmp(a->v, b->v, a->n * sizeof(*a->v)));
}

/* ---- ZMTP ----------------------------------------------------------------------------------- */

struct zmtp_feed {
	struct sp_zmtp z;
	bool fast;
	uint64_t at;
	struct heard heard;
};

static inline void zmtp_hear(struct heard *heard, uint64_t at, int did, const struct sp_zmtp *z)
{
	struct said *s = hear(heard, at, did);

	if (did == SP_ZMTP_GREETED) {
		s->major = z->major;
		s->minor = z->minor;
		s->mechanism = z->mechanism;
	} else if (did == SP_ZMTP_UNREADABLE) {
		s->why = z->why;
	} else if (did == SP_ZMTP_FRAME || did == SP_ZMTP_COMMAND) {
		s->size = z->size;
		s->len = z->have;
		memcpy(s->text, z->part, z->have);
		if (did == SP_ZMTP_FRAME) {
			s->index = z->index;
			s->more = z->more;
		}
	}
}

static inline void zmtp_feed(struct zmtp_feed *f, const uint8_t *p, size_t n)
{
	while (n) {
		uint64_t skip = f->fast ? sp_zmtp_skip(&f->z) : 0;
		int did;

		if (skip) {
			skip = skip < n ? skip : n;
			sp_zmtp_skipped(&f->z, skip);
			p += skip;
			n -= skip;
			f->at += skip;
			continue;
		}
		did = sp_zmtp_byte(&f->z, *p);
		if (did)
			zmtp_hear(&f->heard, f->at, did, &f->z);
		p++;
		n--;
		f->at++;
	}
}

/* ---- HTTP ----------------------------------------------------------------------------------- */

struct http_feed {
	struct sp_http h;
	const struct sp_http_keys *keys;
	bool fast;
	uint64_t heads; /* bit i: reply number i + 1 is to a HEAD */
	uint64_t at;
	struct heard heard;
};

static inline void http_hear(struct http_feed *f, int did)
{
	const struct sp_http *h = &f->h;
	struct said *s = hear(&f->heard, f->at, did);

	s->count = h->count;
	if (did == SP_HTTP_DID_UNREADABLE || did == SP_HTTP_DID_HEAD)
		s->why = h->why;
	if (did == SP_HTTP_DID_HEAD && h->reply) {
		s->code = h->code;
		s->chunked = !h->has_length || h->chunked;
	} else if (did == SP_HTTP_DID_HEAD) {
		s->expect = h->expect;
		s->len = h->len;
		memcpy(s->text, h->text, h->len);
	} else if (did == SP_HTTP_DID_LIST) {
		s->key = h->key;
	} else if (did == SP_HTTP_DID_VALUE) {
		s->key = h->key;
		s->index = (uint32_t)h->index;
		s->is_num = h->is_num;
		s->num = h->num;
		s->len = h->len;
		memcpy(s->text, h->text, h->len);
	}
}

static inline void http_byte(struct http_feed *f, uint8_t c)
{
	int did = sp_http_byte(&f->h, f->keys, c);

	if (did)
		http_hear(f, did);
	if (did == SP_HTTP_DID_HEAD && f->h.reply && f->h.count <= 64 &&
	    f->heads >> (f->h.count - 1) & 1)
		f->h.head_only = 1;
	if (did >= SP_HTTP_DID_HEAD && did <= SP_HTTP_DID_VALUE && sp_http_bodyless(&f->h))
		http_hear(f, SP_HTTP_DID_END);
	f->at++;
}

static inline void http_feed(struct http_feed *f, const uint8_t *p, size_t n)
{
	while (n) {
		uint64_t skip = f->fast ? sp_http_skip(&f->h) : 0, word = 0, step = 1;

		if (f->fast && n >= 8)
			memcpy(&word, p, 8); /* little endian, as all that silentpin runs on */
		if (skip) {
			step = skip < n ? skip : n;
			sp_http_skipped(&f->h, step);
			f->at += step;
		} else if (f->fast && n >= 8 && sp_http_word(&f->h, word)) {
			step = 8;
			f->at += step;
		} else {
			http_byte(f, *p);
		}
		p += step;
		n -= step;
	}
}

static inline void http_eof(struct http_feed *f)
{
	int did = sp_http_eof(&f->h);

	if (did)
		http_hear(f, did);
}

static inline const struct sp_http_keys *http_keys(void)
{
	static const struct sp_http_keys keys = {
		{{14, "bootstrap_room"}, {14, "bootstrap_host"}, {3, "rid"}, {0, ""}}};
	return &keys;
}

#endif
