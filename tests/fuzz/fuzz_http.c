// SPDX-License-Identifier: Apache-2.0
/*
 * The HTTP decoder on any bytes, byte by byte and in pieces with skips and words: the same events
 * and the same state; and no byte of a text that is not wanted makes a difference to the state,
 * so that none can be in it. Input: a byte of switches, a seed of the pieces, the stream. With
 * PLANTED, the stream is built about the input: a request with a marker in many strings, and one
 * room. With BODY, the input is a request's body, and jansson must read the same in it.
 */
#include "fuzz.h"
#include "sp_id.h"

#include <jansson.h>

#define F_REPLY   1
#define F_PLANTED 2
#define F_EOF     4
#define F_HEADS   8 /* every other reply is to a HEAD */
#define F_BODY    16

#define MARK     "\xfe\xfd\xfc\xfb"
#define IN_MAX   8192
#define DOC_MAX  (IN_MAX * 8 + 1024)
#define WIRE_MAX (DOC_MAX * 12)

static char last_text[SP_HTTP_TEXT]; /* given with the last head or value */

/* The byte is of no interest where it stands: any other would do. */
static bool is_passed_over(const struct sp_http *h, uint8_t c)
{
	if (h->is == SP_HTTP_UNTIL_CLOSE || h->is == SP_HTTP_DEAD)
		return true;
	if (h->is != SP_HTTP_BODY && h->is != SP_HTTP_CHUNK)
		return false;
	switch (h->json) {
	case SP_JSON_OFF:
		return true;
	case SP_JSON_KEY:
		return !h->cand && c != '"' && c != '\\';
	case SP_JSON_STRING:
	case SP_JSON_NEST_STRING:
		return h->esc || (c != '"' && c != '\\');
	case SP_JSON_NEST:
		return !memchr("\"[]{}", c, 5);
	default:
		return false;
	}
}

static void check_text(const struct sp_http *h)
{
	bool in_head = (h->is > SP_HTTP_ENDED && h->is < SP_HTTP_BODY) || h->is == SP_HTTP_DEAD;

	CHECK(fuzz_zero(h->text + h->len, SP_HTTP_TEXT - h->len));
	if (in_head || !h->len || h->json == SP_JSON_TEXT)
		return;
	CHECK(!memcmp(h->text, last_text, SP_HTTP_TEXT));
}

static void check(const struct sp_http *h)
{
	CHECK(h->is <= SP_HTTP_DEAD);
	CHECK(h->json <= SP_JSON_NEST_STRING);
	CHECK(h->len <= SP_HTTP_TEXT);
	CHECK(h->key <= SP_HTTP_KEYS);
	CHECK(h->at <= 31 && h->hdr <= SP_HTTP_H_NONE && h->lines <= 1 && h->esc <= 1);
	CHECK(h->why < SP_WHY_MAX && h->cand < 16 && h->chunked <= 2);
	CHECK(h->next <= SP_JSON_INDEX_MAX && h->index >= -1);
	CHECK(h->depth <= SP_JSON_DEPTH_MAX);
	CHECK(h->code < 1000 && (h->reply || !h->code));
	CHECK(h->length <= SP_HTTP_HEAD_MAX + 1);
	CHECK(!h->reply || h->json == SP_JSON_OFF);
	CHECK((h->is != SP_HTTP_BODY && h->is != SP_HTTP_CHUNK) || h->left);
	CHECK(h->is == SP_HTTP_UNTIL_CLOSE || !sp_http_skip(h) || sp_http_skip(h) < h->left);
	check_text(h);
}

static void remember(const struct heard *heard)
{
	for (size_t i = heard->n; i; i--) {
		if (heard->v[i - 1].did != SP_HTTP_DID_HEAD &&
		    heard->v[i - 1].did != SP_HTTP_DID_VALUE)
			continue;
		memcpy(last_text, heard->v[i - 1].text, SP_HTTP_TEXT);
		return;
	}
}

/* Every byte; and where it is passed over, another in its place first. */
static void feed_plain(struct http_feed *f, const uint8_t *p, size_t n, bool planted)
{
	for (size_t i = 0; i < n; i++) {
		struct sp_http other = f->h;
		bool same = is_passed_over(&f->h, p[i]);

		if (same)
			CHECK(sp_http_byte(&other, f->keys, p[i] == 'x' ? 'y' : 'x') >= 0);
		http_feed(f, p + i, 1);
		remember(&f->heard);
		if (same) /* f may have been asked for the end */
			CHECK(sp_http_bodyless(&other) >= 0 &&
			      !memcmp(&other, &f->h, sizeof(other)));
		if (planted)
			CHECK(!memmem(&f->h, sizeof(f->h), MARK, 4));
		check(&f->h);
	}
}

struct doc {
	uint8_t s[DOC_MAX];
	size_t n;
};

static void put(struct doc *d, const void *s, size_t n)
{
	memcpy(d->s + d->n, s, n);
	d->n += n;
}
#define PUT(d, s) put(d, s, sizeof(s) - 1)

/* Any bytes as the inside of a string that ends where it should. */
static void put_string(struct doc *d, const uint8_t *p, size_t n)
{
	bool esc = false;

	for (size_t i = 0; i < n; i++) {
		if (p[i] == '"' && !esc)
			PUT(d, "\\");
		put(d, p + i, 1);
		esc = p[i] == '\\' && !esc;
	}
	if (esc)
		PUT(d, "\\");
}

static void build(struct doc *d, const uint8_t *p, size_t n)
{
	size_t half = n / 2;

	d->n = 0;
	PUT(d, "{\"text\":\"");
	put_string(d, p, half);
	PUT(d, MARK);
	put_string(d, p + half, n - half);
	PUT(d, MARK "\",\"k" MARK);
	put_string(d, p, n);
	PUT(d, "\":{\"bootstrap_room\":\"");
	put_string(d, p, n);
	PUT(d, MARK "\",\"rid\":[\"" MARK "\",8]},\"bootstrap_host\":[[\"" MARK);
	put_string(d, p + half, n - half);
	PUT(d, "\"],{\"rid\":\"" MARK "\"}],\"bootstrap_room\" :7}");
}

/* In chunks of sizes drawn from seed. */
static size_t wire(const struct doc *d, uint32_t seed, uint8_t *out)
{
	static const char head[] = "POST /generate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
	size_t n = sizeof(head) - 1;

	memcpy(out, head, n);
	for (size_t at = 0, piece; at < d->n; at += piece) {
		piece = fuzz_piece(&seed, d->n - at);
		n += (size_t)sprintf((char *)out + n, "%zx\r\n", piece);
		memcpy(out + n, d->s + at, piece);
		n += piece;
		n += (size_t)sprintf((char *)out + n, "\r\n");
	}
	return n + (size_t)sprintf((char *)out + n, "0\r\n\r\n");
}

static void check_planted(const struct heard *h)
{
	CHECK(h->n == 4);
	CHECK(h->v[0].did == SP_HTTP_DID_HEAD && h->v[1].did == SP_HTTP_DID_LIST);
	CHECK(h->v[2].did == SP_HTTP_DID_VALUE && h->v[2].key == 0 && h->v[2].num == 7);
	CHECK(h->v[3].did == SP_HTTP_DID_END);
}

/* What was said of key: of its value number index, or (-1) of the value itself. */
static const struct said *said_of(const struct heard *h, uint32_t did, int key, uint32_t index)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].did == did && h->v[i].key == key && h->v[i].index == index)
			return &h->v[i];
	return NULL;
}

static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t hash = SP_ID_START;

	for (size_t i = 0; i < len; i++)
		hash = sp_id_step(hash, (uint8_t)s[i]);
	return hash;
}

/* plain: without an escape in the body. What is written with one is not found; nor is "-0". */
static void check_value(const struct said *v, const json_t *j, bool plain)
{
	bool number = json_is_integer(j) && json_integer_value(j) >= 0;
	bool text = json_is_string(j);
	size_t len = text ? json_string_length(j) : 0;

	if (v && v->is_num)
		CHECK(number && v->num == (uint64_t)json_integer_value(j));
	else if (v)
		CHECK(text && v->len == (len < SP_HTTP_TEXT ? len : SP_HTTP_TEXT) &&
		      !memcmp(v->text, json_string_value(j), v->len) &&
		      v->num == hash_of(json_string_value(j), len));
	else
		CHECK(!plain || (!text && (!number || !json_integer_value(j))));
}

static void check_list(const struct heard *h, int key, const json_t *j, bool plain)
{
	CHECK(json_is_array(j) && !said_of(h, SP_HTTP_DID_VALUE, key, UINT32_MAX));
	for (size_t i = 0; i < json_array_size(j); i++)
		check_value(said_of(h, SP_HTTP_DID_VALUE, key, (uint32_t)i), json_array_get(j, i),
			    plain);
	CHECK(!said_of(h, SP_HTTP_DID_VALUE, key, (uint32_t)json_array_size(j)));
}

/* A body that jansson takes, without a key that is there twice. Nor a NUL: JSON has none, but
 * jansson passes over one behind a number. */
static void check_body(const struct heard *h, const uint8_t *p, size_t n)
{
	json_t *root = memchr(p, 0, n) ? NULL
				       : json_loadb((const char *)p, n,
						    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	bool plain = !memchr(p, '\\', n);

	for (int key = 0; key < 3 && json_is_object(root); key++) {
		const json_t *j = json_object_get(root, http_keys()->key[key].name);
		const struct said *v = said_of(h, SP_HTTP_DID_VALUE, key, UINT32_MAX);

		if (said_of(h, SP_HTTP_DID_LIST, key, 0))
			check_list(h, key, j, plain);
		else if (j)
			check_value(v, j, plain && !json_is_array(j));
		else
			CHECK(!v);
		CHECK(!plain || !json_is_array(j) || said_of(h, SP_HTTP_DID_LIST, key, 0));
	}
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t built[WIRE_MAX];
	static struct doc doc;
	struct http_feed plain = {.keys = http_keys()}, fast;
	const uint8_t *p = data + 2;
	size_t n = size - 2;
	bool planted, body;
	uint32_t seed;

	if (size < 2 || size > IN_MAX)
		return 0;
	seed = data[1];
	planted = data[0] & F_PLANTED;
	body = !planted && data[0] & F_BODY;
	plain.h.reply = data[0] & F_REPLY && !planted && !body;
	plain.heads = data[0] & F_HEADS ? 0x5555555555555555ull : 0;
	fast = plain;
	fast.fast = true;
	memset(last_text, 0, sizeof(last_text));
	if (planted) {
		build(&doc, p, n);
	} else if (body) {
		doc.n = 0;
		put(&doc, p, n);
	}
	if (planted || body) {
		n = wire(&doc, seed, built);
		p = built;
	}
	feed_plain(&plain, p, n, planted);
	for (size_t at = 0, piece; at < n; at += piece) {
		piece = fuzz_piece(&seed, n - at);
		http_feed(&fast, p + at, piece);
	}
	if (data[0] & F_EOF) {
		http_eof(&plain);
		http_eof(&fast);
	}
	CHECK(heard_same(&plain.heard, &fast.heard));
	CHECK(!memcmp(&plain.h, &fast.h, sizeof(plain.h)));
	if (planted)
		check_planted(&plain.heard);
	if (body)
		check_body(&plain.heard, doc.s, doc.n);
	free(plain.heard.v);
	free(fast.heard.v);
	return 0;
}
