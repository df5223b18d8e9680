/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The search for keys of the outermost object in a JSON body (sp_http.h): included by
 * sp_http_step.h only. Nested objects and lists are stepped over by counting brackets, strings by
 * their end. Whatever is not JSON ends the search.
 */
#ifndef SP_JSON_STEP_H
#define SP_JSON_STEP_H

#include "sp_http.h"
#include "sp_id.h"

enum sp_json_is {
	SP_JSON_OFF = 0, /* not, or no more, searched */
	SP_JSON_START,
	SP_JSON_WANT_KEY, /* '"', or '}' */
	SP_JSON_KEY,      /* inside */
	SP_JSON_COLON,
	SP_JSON_VALUE,  /* its first byte, or ']' in a list */
	SP_JSON_SCALAR, /* number, true, false, null */
	SP_JSON_TEXT,   /* inside a wanted string */
	SP_JSON_STRING, /* inside one that is not */
	SP_JSON_AFTER,  /* ',', '}', or ']' in a list */
	SP_JSON_NEST,   /* in an object or list of which nothing is wanted */
	SP_JSON_NEST_STRING,
};

#define SP_JSON_DEPTH_MAX 0x80000000u
#define SP_JSON_INDEX_MAX 0x7fff /* values of a list from here on are not given */

static inline int sp_json_space(__u8 c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline int sp_json_go(struct sp_http *h, __u8 state)
{
	h->json = state;
	return SP_HTTP_NOTHING;
}

static inline void sp_json_forget(struct sp_http *h)
{
	__builtin_memset(h->text, 0, sizeof(h->text));
	h->len = 0;
	h->num = 0;
}

static inline int sp_json_give(const struct sp_http *h)
{
	if (h->key >= SP_HTTP_KEYS || h->bad_value || h->next == SP_JSON_INDEX_MAX)
		return SP_HTTP_NOTHING;
	return SP_HTTP_DID_VALUE;
}

static inline int sp_json_start(struct sp_http *h, __u8 c)
{
	/* Python's json takes a byte order mark, too */
	if (sp_json_space(c) || c == 0xef || c == 0xbb || c == 0xbf)
		return SP_HTTP_NOTHING;
	h->depth = 1;
	h->in_list = 0;
	return sp_json_go(h, c == '{' ? SP_JSON_WANT_KEY : SP_JSON_OFF);
}

static inline int sp_json_want_key(struct sp_http *h, __u8 c)
{
	if (sp_json_space(c))
		return SP_HTTP_NOTHING;
	h->cand = (1 << SP_HTTP_KEYS) - 1;
	h->at = 0;
	h->esc = 0;
	h->next = 0;
	return sp_json_go(h, c == '"' ? SP_JSON_KEY : SP_JSON_OFF);
}

static inline void sp_json_key_end(struct sp_http *h, const struct sp_http_keys *keys)
{
	__u8 cand = h->cand, at = h->at, found = SP_HTTP_KEYS;

#pragma GCC unroll 4
	for (int i = SP_HTTP_KEYS - 1; i >= 0; i--)
		if (cand >> i & 1 && at && keys->key[i].len == at)
			found = i;
	h->key = found;
	h->json = SP_JSON_COLON;
}

/* The bytes of a key. Escapes are not undone: a key that is written with one is not recognised. */
static inline int sp_json_key(struct sp_http *h, const struct sp_http_keys *keys, __u8 c)
{
	__u8 at = h->at, cand = h->cand;

	if (h->esc || c == '\\') {
		h->esc = !h->esc;
		h->cand = 0;
		return SP_HTTP_NOTHING;
	}
	if (c == '"') {
		sp_json_key_end(h, keys);
		return SP_HTTP_NOTHING;
	}
	if (!cand)
		return SP_HTTP_NOTHING;
	if (at >= SP_HTTP_KEY_LEN) {
		h->cand = 0;
		return SP_HTTP_NOTHING;
	}
#pragma GCC unroll 4
	for (int i = 0; i < SP_HTTP_KEYS; i++)
		if (at >= keys->key[i].len || (__u8)keys->key[i].name[at] != c)
			cand &= ~(1 << i);
	h->cand = cand;
	h->at = at + 1;
	return SP_HTTP_NOTHING;
}

static inline int sp_json_after(struct sp_http *h, __u8 c)
{
	if (sp_json_space(c))
		return sp_json_go(h, SP_JSON_AFTER);
	if (c == ',' && !h->in_list)
		return sp_json_go(h, SP_JSON_WANT_KEY);
	if (c == ',') {
		if (h->next < SP_JSON_INDEX_MAX)
			h->next++;
		return sp_json_go(h, SP_JSON_VALUE);
	}
	if (c != ']' || !h->in_list)
		return sp_json_go(h, SP_JSON_OFF); /* '}': the end; else not JSON */
	h->in_list = 0;
	h->depth = 1;
	return sp_json_go(h, SP_JSON_AFTER);
}

/* The first byte of a value. */
static inline int sp_json_value(struct sp_http *h, __u8 c)
{
	int wanted = h->key < SP_HTTP_KEYS;

	if (sp_json_space(c))
		return SP_HTTP_NOTHING;
	sp_json_forget(h);
	h->index = h->in_list ? (__s16)h->next : -1;
	h->esc = 0;
	h->is_num = 0;
	h->bad_value = 1;
	if (c == '"') {
		h->bad_value = !wanted;
		h->num = wanted ? SP_ID_START : 0;
		return sp_json_go(h, wanted ? SP_JSON_TEXT : SP_JSON_STRING);
	}
	if (c == '[' && wanted && !h->in_list) {
		h->in_list = 1;
		h->depth = 2;
		return SP_HTTP_DID_LIST; /* and a value is expected again, or its end */
	}
	if (c == '{' || c == '[') {
		h->depth++;
		return sp_json_go(h, SP_JSON_NEST);
	}
	if (c == ']' && h->in_list)
		return sp_json_after(h, c);
	if (c == ',' || c == ':' || c == '}' || c == ']')
		return sp_json_go(h, SP_JSON_OFF);
	if (wanted && c >= '0' && c <= '9') {
		h->bad_value = 0;
		h->is_num = 1;
		h->num = c - '0';
	}
	return sp_json_go(h, SP_JSON_SCALAR);
}

/* A number without sign, fraction, exponent and leading zeros, below 2^64; nothing else counts. */
static inline int sp_json_scalar(struct sp_http *h, __u8 c)
{
	__u64 num = h->num;
	int did;

	if (sp_json_space(c) || c == ',' || c == ']' || c == '}') {
		did = sp_json_give(h);
		sp_json_after(h, c);
		return did;
	}
	if (c == '"' || c == '{' || c == '[' || c == ':')
		return sp_json_go(h, SP_JSON_OFF);
	if (h->bad_value)
		return SP_HTTP_NOTHING;
	if (c < '0' || c > '9' || !num || num > ~0ull / 10 ||
	    (num == ~0ull / 10 && c - '0' > (int)(~0ull % 10))) {
		h->bad_value = 1;
		h->is_num = 0;
		h->num = 0;
		return SP_HTTP_NOTHING;
	}
	h->num = num * 10 + (c - '0');
	return SP_HTTP_NOTHING;
}

/* A wanted string: its beginning, and the hash of all of it. What was kept is forgotten as soon as
 * it is known not to be given. */
static inline int sp_json_text(struct sp_http *h, __u8 c)
{
	__u8 len = h->len;

	if (c == '"') {
		h->json = SP_JSON_AFTER;
		return sp_json_give(h);
	}
	if (c == '\\') {
		sp_json_forget(h);
		h->bad_value = 1;
		h->esc = 1;
		return sp_json_go(h, SP_JSON_STRING);
	}
	h->num = sp_id_step(h->num, c);
	if (len < SP_HTTP_TEXT) {
		h->text[len & (SP_HTTP_TEXT - 1)] = (char)c;
		h->len = len + 1;
	}
	return SP_HTTP_NOTHING;
}

static inline int sp_json_string(struct sp_http *h, __u8 c, __u8 then)
{
	if (h->esc || c == '\\')
		h->esc = !h->esc;
	else if (c == '"')
		h->json = then;
	return SP_HTTP_NOTHING;
}

static inline int sp_json_nest(struct sp_http *h, __u8 c)
{
	if (c == '"') {
		h->esc = 0;
		h->json = SP_JSON_NEST_STRING;
	} else if (c == '{' || c == '[') {
		h->depth++;
		if (h->depth >= SP_JSON_DEPTH_MAX)
			h->json = SP_JSON_OFF;
	} else if (c == '}' || c == ']') {
		h->depth--;
		if (h->depth <= 1u + h->in_list)
			h->json = SP_JSON_AFTER;
	}
	return SP_HTTP_NOTHING;
}

/* Take one byte of a body that is searched: NOTHING, DID_LIST, DID_VALUE. */
SP_STEP_FN int sp_json_byte(struct sp_http *h, const struct sp_http_keys *keys, __u32 byte)
{
	__u8 c = (__u8)byte;

	if (!h || !keys)
		return SP_HTTP_NOTHING;
	switch (h->json) {
	case SP_JSON_START:
		return sp_json_start(h, c);
	case SP_JSON_WANT_KEY:
		return sp_json_want_key(h, c);
	case SP_JSON_KEY:
		return sp_json_key(h, keys, c);
	case SP_JSON_COLON:
		if (c == ':' || !sp_json_space(c))
			h->json = c == ':' ? SP_JSON_VALUE : SP_JSON_OFF;
		return SP_HTTP_NOTHING;
	case SP_JSON_VALUE:
		return sp_json_value(h, c);
	case SP_JSON_SCALAR:
		return sp_json_scalar(h, c);
	case SP_JSON_TEXT:
		return sp_json_text(h, c);
	case SP_JSON_STRING:
		return sp_json_string(h, c, SP_JSON_AFTER);
	case SP_JSON_AFTER:
		return sp_json_after(h, c);
	case SP_JSON_NEST:
		return sp_json_nest(h, c);
	case SP_JSON_NEST_STRING:
		return sp_json_string(h, c, SP_JSON_NEST);
	default:
		return SP_HTTP_NOTHING;
	}
}

/* Exact: not 0 when, and only when, one of the eight bytes is c. */
static inline __u64 sp_json_has(__u64 word, __u8 c)
{
	word ^= 0x0101010101010101ull * c;
	return (word - 0x0101010101010101ull) & ~word & 0x8080808080808080ull;
}

/* Is the byte after the word escaped? An odd number of backslashes at the word's end; when it is
 * all backslashes (an even number), as before the word. */
static inline __u8 sp_json_escaped(__u64 word, __u8 esc)
{
	__u64 w = word ^ 0x5c5c5c5c5c5c5c5cull; /* 0: a backslash */

	if (w >> 56)
		return 0;
	if (w >> 48)
		return 1;
	if (w >> 40)
		return 0;
	if (w >> 32)
		return 1;
	if (w >> 24)
		return 0;
	if (w >> 16)
		return 1;
	if (w >> 8)
		return 0;
	return w ? 1 : esc;
}

/* Eight bytes, of which the first is the lowest, when they only are to be stepped over. */
static inline int sp_json_word(struct sp_http *h, __u64 word)
{
	__u8 json = h->json;

	/* brackets, all of 0x5b 0x5d 0x7b 0x7d, differ in the bits of 0x26 only; 'Y', '_', 'y' and
	 * 0x7f, which do too, are left to the bytes */
	if (json == SP_JSON_NEST)
		return !sp_json_has(word, '"') && !sp_json_has(word & 0xd9d9d9d9d9d9d9d9ull, 0x59);
	if (json != SP_JSON_STRING && json != SP_JSON_NEST_STRING &&
	    (json != SP_JSON_KEY || h->cand))
		return 0;
	if (sp_json_has(word, '"'))
		return 0;
	h->esc = sp_json_escaped(word, h->esc);
	return 1;
}

#endif
