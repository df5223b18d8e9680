/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP streams on a table: what is said, as a text; fed however cut. */
#ifndef HTTP_RIG_H
#define HTTP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream_rig.h"

static inline int print_said(char *o, size_t max, const struct said *s)
{
	static const char *const why[SP_WHY_MAX] = {
		[SP_WHY_VERSION] = "version", [SP_WHY_UPGRADE] = "upgrade", [SP_WHY_LONG] = "long"};
	char index[16] = "";

	if (s->index != UINT32_MAX)
		snprintf(index, sizeof(index), ".%u", s->index);
	switch (s->did) {
	case SP_HTTP_DID_HEAD:
		if (s->code)
			return snprintf(o, max, "reply %u %u%s;", s->count, s->code,
					s->chunked ? " open" : "");
		return snprintf(o, max, "%u %.*s%s%s;", s->count, s->len, s->text,
				s->expect ? " expects" : "", s->why ? " encoded" : "");
	case SP_HTTP_DID_LIST:
		return snprintf(o, max, "list %d;", s->key);
	case SP_HTTP_DID_VALUE:
		if (s->is_num)
			return snprintf(o, max, "%d%s=%llu;", s->key, index,
					(unsigned long long)s->num);
		return snprintf(o, max, "%d%s='%.*s';", s->key, index, s->len, s->text);
	case SP_HTTP_DID_END:
		return snprintf(o, max, "end;");
	case SP_HTTP_DID_UNREADABLE:
		return snprintf(o, max, "unreadable %s;", why[s->why] ? why[s->why] : "?");
	default:
		return snprintf(o, max, "bad;");
	}
}

static inline void print_heard(const struct heard *heard, char *out, size_t max)
{
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < heard->n && n < max; i++)
		n += print_said(out + n, max - n, &heard->v[i]);
}

struct http_case {
	bool reply, eof;
	uint64_t heads;
};

static inline void http_start(struct http_feed *f, const struct http_case *c, bool fast)
{
	memset(f, 0, sizeof(*f));
	f->keys = http_keys();
	f->fast = fast;
	f->h.reply = c->reply;
	f->heads = c->heads;
}

/* Fed in pieces that end at cut (0: of one byte each): the same, and the same state. */
static inline void http_cut(const uint8_t *p, size_t n, const struct http_case *c, size_t cut,
			    bool fast, const struct http_feed *expect)
{
	struct http_feed f;

	http_start(&f, c, fast);
	for (size_t i = 0; !cut && i < n; i++)
		http_feed(&f, p + i, 1);
	if (cut) {
		http_feed(&f, p, cut);
		http_feed(&f, p + cut, n - cut);
	}
	if (c->eof)
		http_eof(&f);
	assert_true(heard_same(&f.heard, &expect->heard));
	assert_memory_equal(&f.h, &expect->h, sizeof(f.h));
	free(f.heard.v);
}

/* Every byte looked at: *out, to be freed. Then in one piece, byte by byte, and cut in two at every
 * place (every step-th of a long one). */
static inline void http_all_ways(const uint8_t *p, size_t n, const struct http_case *c,
				 struct http_feed *out)
{
	size_t step = n > 2000 ? n / 500 : 1;

	http_start(out, c, false);
	http_feed(out, p, n);
	if (c->eof)
		http_eof(out);
	http_cut(p, n, c, 0, true, out);
	for (size_t cut = 1; cut <= n; cut += step)
		http_cut(p, n, c, cut, true, out);
}

#endif
