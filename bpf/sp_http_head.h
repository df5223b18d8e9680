/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The head of a message: included by sp_http_step.h only. */
#ifndef SP_HTTP_HEAD_H
#define SP_HTTP_HEAD_H

#include "sp_json_step.h"

enum sp_http_is {
	SP_HTTP_START = 0, /* before a message: empty lines are passed over */
	SP_HTTP_ENDED,     /* the same; that the last one has ended is told by sp_http_bodyless */
	SP_HTTP_IN_METHOD,
	SP_HTTP_TARGET,
	SP_HTTP_VERSION,
	SP_HTTP_CODE,
	SP_HTTP_REASON,
	SP_HTTP_LINE, /* the first byte of a header's line */
	SP_HTTP_NAME,
	SP_HTTP_NAME_END, /* blanks before the colon: a reply's only */
	SP_HTTP_FIELD,    /* a header's value */
	SP_HTTP_BODY,     /* by Content-Length */
	SP_HTTP_SIZE,     /* a chunk's line */
	SP_HTTP_CHUNK_EXT,
	SP_HTTP_CHUNK,
	SP_HTTP_CHUNK_END, /* the line end behind it */
	SP_HTTP_TRAILER,   /* the first byte of a line */
	SP_HTTP_TRAILER_LINE,
	SP_HTTP_UNTIL_CLOSE,
	SP_HTTP_DEAD,
};

/* Headers that matter: bit of cand while the name is read, then hdr. */
enum sp_http_hdr {
	SP_HTTP_H_LENGTH = 0,
	SP_HTTP_H_TRANSFER,
	SP_HTTP_H_ENCODING,
	SP_HTTP_H_EXPECT,
	SP_HTTP_H_NONE,
};
#define SP_HTTP_NAME_MAX  18
#define SP_HTTP_TOKEN_MAX 14

/* Where in a value: list elements (RFC 9110 5.6.1), parameters of one are passed over. */
enum sp_http_sub { SP_HTTP_BEFORE = 0, SP_HTTP_TOKEN, SP_HTTP_BEHIND, SP_HTTP_PARAM };

/* Where in a target: "/path?query", "http://host/path?query", "*". */
enum sp_http_part {
	SP_HTTP_T_FIRST = 0,
	SP_HTTP_T_PATH,
	SP_HTTP_T_SCHEME,
	SP_HTTP_T_SLASHES,
	SP_HTTP_T_HOST,
	SP_HTTP_T_QUERY,
};

static inline int sp_http_bad(struct sp_http *h)
{
	h->is = SP_HTTP_DEAD;
	return SP_HTTP_DID_BAD;
}

static inline int sp_http_unreadable(struct sp_http *h, __u8 why)
{
	h->is = SP_HTTP_DEAD;
	h->why = why;
	return SP_HTTP_DID_UNREADABLE;
}

static inline int sp_http_go(struct sp_http *h, __u8 state)
{
	h->is = state;
	return SP_HTTP_NOTHING;
}

/* A CR is passed over and may only be followed by LF, which ends a line with or without it. True:
 * the byte is dealt with, perhaps by DEAD. */
static inline int sp_http_cr(struct sp_http *h, __u8 c)
{
	if (h->cr && c != '\n') {
		h->is = SP_HTTP_DEAD;
		return 1;
	}
	h->cr = c == '\r';
	return h->cr;
}

static inline __u8 sp_http_lower(__u8 c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* token: RFC 9110 5.6.2 */
static inline int sp_http_tchar(__u8 c)
{
	const __u64 low = 0x03ff6cfa00000000ull, high = 0x57ffffffc7fffffeull;

	return c < 64 ? low >> c & 1 : c < 128 ? high >> (c - 64) & 1 : 0;
}

static inline void sp_http_keep(struct sp_http *h, __u8 c)
{
	__u8 len = h->len;

	if (len >= SP_HTTP_TEXT)
		return;
	h->text[len & (SP_HTTP_TEXT - 1)] = (char)c;
	h->len = len + 1;
}

/* The first byte of a message. */
static inline int sp_http_begin(struct sp_http *h, __u8 c)
{
	sp_json_forget(h);
	h->left = 0;
	h->length = 1;
	h->code = 0;
	h->index = -1;
	h->key = SP_HTTP_KEYS;
	h->is_num = h->why = h->chunked = h->has_length = h->until_close = h->expect = 0;
	h->encoded = h->bad_value = h->hdr = h->sub = h->at = h->lines = h->connect = 0;
	h->hdr = SP_HTTP_H_NONE;
	if (h->reply) {
		h->at = 1;
		h->is = SP_HTTP_VERSION;
		return c == 'H' ? SP_HTTP_NOTHING : sp_http_bad(h);
	}
	if (!sp_http_tchar(c))
		return sp_http_bad(h);
	sp_http_keep(h, c);
	return sp_http_go(h, SP_HTTP_IN_METHOD);
}

static inline int sp_http_is_connect(const char *t)
{
	return t[0] == 'C' && t[1] == 'O' && t[2] == 'N' && t[3] == 'N' && t[4] == 'E' &&
	       t[5] == 'C' && t[6] == 'T' && t[7] == ' ';
}

static inline int sp_http_method(struct sp_http *h, __u8 c)
{
	if (c == ' ') {
		sp_http_keep(h, c);
		h->connect = sp_http_is_connect(h->text);
		h->sub = SP_HTTP_T_FIRST;
		return sp_http_go(h, SP_HTTP_TARGET);
	}
	if (!sp_http_tchar(c) || h->len >= SP_HTTP_METHOD)
		return sp_http_bad(h);
	sp_http_keep(h, c);
	return SP_HTTP_NOTHING;
}

static inline int sp_http_target(struct sp_http *h, __u8 c)
{
	__u8 part = h->sub;

	if (c == ' ' && part != SP_HTTP_T_FIRST) {
		if (part == SP_HTTP_T_HOST) /* no path */
			sp_http_keep(h, '/');
		h->at = 0;
		return sp_http_go(h, SP_HTTP_VERSION);
	}
	if (c <= ' ' || c == 0x7f)
		return sp_http_bad(h);
	if (part == SP_HTTP_T_QUERY)
		return SP_HTTP_NOTHING;
	if (part == SP_HTTP_T_FIRST) {
		part = c == '/' || c == '*' ? SP_HTTP_T_PATH : SP_HTTP_T_SCHEME;
	} else if (part == SP_HTTP_T_SCHEME) {
		part = c == '/' ? SP_HTTP_T_SLASHES : part;
	} else if (part == SP_HTTP_T_SLASHES) {
		part = SP_HTTP_T_HOST;
	} else if (c == '?' || c == '#') {
		if (part == SP_HTTP_T_HOST)
			sp_http_keep(h, '/');
		part = SP_HTTP_T_QUERY;
	} else if (c == '/') {
		part = SP_HTTP_T_PATH;
	}
	if (part == SP_HTTP_T_PATH)
		sp_http_keep(h, c);
	h->sub = part;
	return SP_HTTP_NOTHING;
}

/* "HTTP/1.x": the line end follows in a request, a blank and the code in a reply. */
static inline int sp_http_version(struct sp_http *h, __u8 c)
{
	__u8 at = h->at;

	h->at = at + 1;
	switch (at) {
	case 0:
		return c == 'H' ? SP_HTTP_NOTHING : sp_http_bad(h);
	case 1:
	case 2:
		return c == 'T' ? SP_HTTP_NOTHING : sp_http_bad(h);
	case 3:
		return c == 'P' ? SP_HTTP_NOTHING : sp_http_bad(h);
	case 4:
		return c == '/' ? SP_HTTP_NOTHING : sp_http_bad(h);
	case 5:
		if (c < '0' || c > '9')
			return sp_http_bad(h);
		return c == '1' ? SP_HTTP_NOTHING : sp_http_unreadable(h, SP_WHY_VERSION);
	case 6:
		return c == '.' ? SP_HTTP_NOTHING : sp_http_bad(h);
	case 7:
		return c >= '0' && c <= '9' ? SP_HTTP_NOTHING : sp_http_bad(h);
	default:
		h->at = 0;
		if (c != (h->reply ? ' ' : '\n'))
			return sp_http_bad(h);
		return sp_http_go(h, h->reply ? SP_HTTP_CODE : SP_HTTP_LINE);
	}
}

static inline int sp_http_code(struct sp_http *h, __u8 c)
{
	if (h->at == 3) {
		if (h->code < 100 || (c != ' ' && c != '\n'))
			return sp_http_bad(h);
		return sp_http_go(h, c == ' ' ? SP_HTTP_REASON : SP_HTTP_LINE);
	}
	if (c < '0' || c > '9')
		return sp_http_bad(h);
	h->code = h->code * 10 + (c - '0');
	h->at++;
	return SP_HTTP_NOTHING;
}

/* A header's name: its bytes strike out the candidates. */
static inline int sp_http_name(struct sp_http *h, __u8 c)
{
	static const char name[4][SP_HTTP_NAME_MAX] = {"content-length", "transfer-encoding",
						       "content-encoding", "expect"};
	__u8 at = h->at, cand = h->cand, low = sp_http_lower(c);

	if (c == ':' || ((c == ' ' || c == '\t') && h->reply)) {
		if (at < SP_HTTP_NAME_MAX) {
			for (int i = 0; i < 4; i++)
				if (cand >> i & 1 && !name[i][at])
					h->hdr = i;
		}
		h->at = 0;
		h->sub = SP_HTTP_BEFORE;
		h->num = 0;
		return sp_http_go(h, c == ':' ? SP_HTTP_FIELD : SP_HTTP_NAME_END);
	}
	if (!sp_http_tchar(c))
		return sp_http_bad(h);
	if (at >= SP_HTTP_NAME_MAX) {
		h->cand = 0;
		return SP_HTTP_NOTHING;
	}
	for (int i = 0; i < 4; i++)
		if ((__u8)name[i][at] != low)
			cand &= ~(1 << i);
	h->cand = cand;
	h->at = at + 1;
	return SP_HTTP_NOTHING;
}

/* One number of Content-Length is complete. All must say the same. */
static inline int sp_http_number(struct sp_http *h)
{
	if (h->sub == SP_HTTP_BEFORE || (h->has_length && h->left != h->num))
		return sp_http_bad(h);
	h->left = h->num;
	h->num = 0;
	h->has_length = 1;
	return SP_HTTP_NOTHING;
}

static inline int sp_http_digit(struct sp_http *h, __u8 c)
{
	if (c == ' ' || c == '\t') {
		h->sub = h->sub == SP_HTTP_BEFORE ? SP_HTTP_BEFORE : SP_HTTP_BEHIND;
		return SP_HTTP_NOTHING;
	}
	if (c == ',') {
		int did = sp_http_number(h);

		h->sub = SP_HTTP_BEFORE;
		return did;
	}
	if (c < '0' || c > '9' || h->sub == SP_HTTP_BEHIND || h->num > 1ull << 56)
		return sp_http_bad(h);
	h->sub = SP_HTTP_TOKEN;
	h->num = h->num * 10 + (c - '0');
	return SP_HTTP_NOTHING;
}

/* One element of a list of tokens is complete. */
static inline void sp_http_token(struct sp_http *h)
{
	__u8 hdr = h->hdr;
	__u8 len = hdr == SP_HTTP_H_TRANSFER ? 7 : hdr == SP_HTTP_H_ENCODING ? 8 : 12;
	int fits = h->at == len; /* of the tokens in sp_http_element */

	if (h->sub == SP_HTTP_BEFORE)
		return; /* empty: does not count */
	if (hdr == SP_HTTP_H_TRANSFER) {
		h->chunked = fits ? 1 : 2;
		h->encoded |= !fits;
	} else if (hdr == SP_HTTP_H_ENCODING) {
		h->encoded |= !fits;
	} else {
		h->expect |= fits;
	}
	h->at = 0;
	h->sub = SP_HTTP_BEFORE;
}

static inline void sp_http_element(struct sp_http *h, __u8 c)
{
	static const char token[4][SP_HTTP_TOKEN_MAX] = {"", "chunked", "identity", "100-continue"};
	__u8 at = h->at;

	if (c == ',') {
		sp_http_token(h);
	} else if (c == ' ' || c == '\t') {
		if (h->sub == SP_HTTP_TOKEN)
			h->sub = SP_HTTP_BEHIND;
	} else if (c == ';' && h->sub != SP_HTTP_BEFORE) {
		h->sub = SP_HTTP_PARAM;
	} else if (h->sub != SP_HTTP_PARAM) {
		/* a second word behind the first fits nothing either */
		if (h->sub == SP_HTTP_BEHIND || at >= SP_HTTP_TOKEN_MAX ||
		    (__u8)token[h->hdr & 3][at] != sp_http_lower(c))
			h->at = SP_HTTP_TOKEN_MAX;
		else
			h->at = at + 1;
		h->sub = SP_HTTP_TOKEN;
	}
}

static inline int sp_http_field(struct sp_http *h, __u8 c)
{
	if (c == '\n') {
		h->lines = 1;
		return sp_http_go(h, SP_HTTP_LINE);
	}
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return sp_http_bad(h);
	if (h->hdr == SP_HTTP_H_LENGTH)
		return sp_http_digit(h, c);
	if (h->hdr != SP_HTTP_H_NONE)
		sp_http_element(h, c);
	return SP_HTTP_NOTHING;
}

static inline void sp_http_chunk_begin(struct sp_http *h)
{
	h->left = 0;
	h->sub = 0; /* no digit yet; the search in the body goes on with at, cand... */
	h->length = 0;
	h->is = SP_HTTP_SIZE;
}

/* What follows a request's head. */
static inline int sp_http_request(struct sp_http *h, const struct sp_http_keys *keys)
{
	if (h->connect)
		return sp_http_unreadable(h, SP_WHY_UPGRADE);
	if (h->chunked == 2)
		return sp_http_bad(h);
	if (h->chunked)
		sp_http_chunk_begin(h);
	else
		h->is = h->left ? SP_HTTP_BODY : SP_HTTP_ENDED;
	if (h->encoded && h->is != SP_HTTP_ENDED)
		h->why = SP_WHY_ENCODED;
	if (h->is != SP_HTTP_ENDED && !h->encoded &&
	    (keys->key[0].len | keys->key[1].len | keys->key[2].len | keys->key[3].len))
		h->json = SP_JSON_START;
	h->count++;
	return SP_HTTP_DID_HEAD;
}

/* What follows a reply's: RFC 9112 6.3. */
static inline int sp_http_reply(struct sp_http *h)
{
	if (h->code == 101)
		return sp_http_unreadable(h, SP_WHY_UPGRADE);
	if (h->code < 200)
		return sp_http_go(h, SP_HTTP_START);
	h->is = SP_HTTP_ENDED;
	if (h->code == 204 || h->code == 304) {
		h->left = 0;
	} else if (h->chunked == 1) {
		sp_http_chunk_begin(h);
	} else if (h->chunked || !h->has_length) {
		h->until_close = 1;
		h->left = 0;
		h->is = SP_HTTP_UNTIL_CLOSE;
	} else if (h->left) {
		h->is = SP_HTTP_BODY;
	}
	h->count++;
	return SP_HTTP_DID_HEAD;
}

/* The first byte of a line: only here it is known that the header before is complete. */
static inline int sp_http_line(struct sp_http *h, const struct sp_http_keys *keys, __u8 c)
{
	if (c == ' ' || c == '\t') { /* folded */
		if (!h->lines)
			return sp_http_bad(h);
		h->is = SP_HTTP_FIELD;
		return sp_http_field(h, c);
	}
	if (h->hdr == SP_HTTP_H_LENGTH) {
		if (sp_http_number(h))
			return SP_HTTP_DID_BAD;
	} else if (h->hdr != SP_HTTP_H_NONE) {
		sp_http_token(h);
	}
	h->hdr = SP_HTTP_H_NONE;
	h->json = SP_JSON_OFF;
	if (c == '\n')
		return h->reply ? sp_http_reply(h) : sp_http_request(h, keys);
	h->at = 0;
	h->cand = (1 << SP_HTTP_H_NONE) - 1;
	if (c == ':')
		return sp_http_bad(h);
	h->is = SP_HTTP_NAME;
	return sp_http_name(h, c);
}

static inline int sp_http_head_byte(struct sp_http *h, const struct sp_http_keys *keys, __u8 c)
{
	switch (h->is) {
	case SP_HTTP_IN_METHOD:
		return sp_http_method(h, c);
	case SP_HTTP_TARGET:
		return sp_http_target(h, c);
	case SP_HTTP_VERSION:
		return sp_http_version(h, c);
	case SP_HTTP_CODE:
		return sp_http_code(h, c);
	case SP_HTTP_REASON:
		return c == '\n' ? sp_http_go(h, SP_HTTP_LINE) : SP_HTTP_NOTHING;
	case SP_HTTP_LINE:
		return sp_http_line(h, keys, c);
	case SP_HTTP_NAME:
		return sp_http_name(h, c);
	case SP_HTTP_NAME_END:
		if (c == ' ' || c == '\t')
			return SP_HTTP_NOTHING;
		return c == ':' ? sp_http_go(h, SP_HTTP_FIELD) : sp_http_bad(h);
	case SP_HTTP_FIELD:
		return sp_http_field(h, c);
	default:
		return sp_http_bad(h);
	}
}

static inline int sp_http_head(struct sp_http *h, const struct sp_http_keys *keys, __u8 c)
{
	if (sp_http_cr(h, c))
		return h->is == SP_HTTP_DEAD ? SP_HTTP_DID_BAD : SP_HTTP_NOTHING;
	if (h->is == SP_HTTP_START || h->is == SP_HTTP_ENDED) {
		h->is = SP_HTTP_START;
		return c == '\n' ? SP_HTTP_NOTHING : sp_http_begin(h, c);
	}
	if (++h->length > SP_HTTP_HEAD_MAX)
		return sp_http_unreadable(h, SP_WHY_LONG);
	return sp_http_head_byte(h, keys, c);
}

#endif
