// SPDX-License-Identifier: Apache-2.0
/*
 * Random documents, in which jansson must find the same, and random streams of messages, of which
 * the generator knows what must be said.
 */
#include "http_rig.h"

#include <jansson.h>

static uint64_t seed = 20261130;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

struct text {
	char s[1 << 16];
	size_t n;
};

static void put(struct text *t, const char *s)
{
	size_t n = strlen(s);

	assert_true(t->n + n < sizeof(t->s));
	memcpy(t->s + t->n, s, n + 1);
	t->n += n;
}

static void blanks(struct text *t)
{
	static const char *const s[] = {"", "", "", "", " ", "\n", "\t ", "\r\n  "};

	put(t, s[rnd(8)]);
}

/* Pieces of strings that look like everything else. */
static void string(struct text *t, const char *begin, bool plain)
{
	static const char *const bits[] = {
		"a",   "bootstrap_room", "12",         ":",       "{",    "]",
		",",   "\xc3\xb6",       "plain text", "rid",     "\\\"", "\\\\",
		"\\n", "\\u0041",        "\\u00e9",    "\\\\\\\""};

	put(t, "\"");
	put(t, begin);
	for (uint32_t n = rnd(rnd(5) ? 4 : 30); n; n--)
		put(t, bits[rnd(plain ? 10 : 16)]);
	put(t, "\"");
}

static void number(struct text *t)
{
	static const char *const s[] = {
		"0", "-1", "1.5", "2e3", "-0.0", "9223372036854775807", "true", "false", "null"};
	char b[32];

	if (rnd(2))
		return put(t, s[rnd(9)]);
	snprintf(b, sizeof(b), "%llu",
		 ((unsigned long long)rnd(1u << 31) << 32 | rnd(1u << 31)) >> rnd(63));
	put(t, b);
}

static const char *const wanted[] = {"bootstrap_room", "bootstrap_host", "rid"};

static void key(struct text *t)
{
	static const char *const near[] = {"bootstrap_roo", "bootstrap_room_", "ri", "ridd",
					   "text"};
	char b[40];

	if (rnd(3) == 0) {
		snprintf(b, sizeof(b), "\"%s\"", near[rnd(5)]);
		put(t, b);
	} else {
		string(t, "k", rnd(2)); /* none that is wanted */
	}
}

static void value(struct text *t, int depth)
{
	uint32_t kind = rnd(depth > 5 ? 2 : 4), n = rnd(5);

	if (kind == 0)
		return string(t, "", rnd(2));
	if (kind == 1)
		return number(t);
	put(t, kind == 2 ? "[" : "{");
	for (uint32_t i = 0; i < n; i++) {
		char b[40];

		put(t, i ? "," : "");
		blanks(t);
		if (kind == 3) {
			snprintf(b, sizeof(b), "\"%s\"", wanted[rnd(3)]);
			if (rnd(2))
				put(t, b);
			else
				key(t);
			blanks(t);
			put(t, ":");
			blanks(t);
		}
		value(t, depth + 1);
		blanks(t);
	}
	put(t, kind == 2 ? "]" : "}");
}

/* An object with each wanted key at most once, anywhere among others. */
static void document(struct text *t)
{
	uint32_t n = rnd(8), left = 7;

	t->n = 0;
	blanks(t);
	put(t, "{");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = rnd(5);
		char b[40];

		put(t, i ? "," : "");
		blanks(t);
		if (k < 3 && left >> k & 1) {
			left &= ~(1u << k);
			snprintf(b, sizeof(b), "\"%s\"", wanted[k]);
			put(t, b);
		} else {
			key(t);
		}
		blanks(t);
		put(t, ":");
		blanks(t);
		value(t, 1);
		blanks(t);
	}
	put(t, "}");
	blanks(t);
}

/* One value as jansson has it. A string that had escapes has characters that only they give. */
static void say_value(struct text *out, int k, int index, const json_t *v)
{
	char at[16] = "", b[160] = "";
	const char *s = json_is_string(v) ? json_string_value(v) : NULL;

	if (index >= 0)
		snprintf(at, sizeof(at), ".%d", index);
	if (json_is_integer(v) && json_integer_value(v) >= 0)
		snprintf(b, sizeof(b), "%d%s=%lld;", k, at, (long long)json_integer_value(v));
	else if (s && !strpbrk(s, "\"\\\nA") && !strstr(s, "\xc3\xa9"))
		snprintf(b, sizeof(b), "%d%s='%.*s';", k, at, SP_HTTP_TEXT,
			 s); /* a long one's beginning */
	put(out, b);
}

static void say_document(struct text *out, const struct text *doc)
{
	json_error_t err;
	json_t *root = json_loadb(doc->s, doc->n, 0, &err), *v;
	const char *name;

	if (!root)
		fail_msg("the generator made \"%s\": %s", doc->s, err.text);
	json_object_foreach(root, name, v)
	{
		for (int k = 0; k < 3; k++) {
			char b[32];

			if (strcmp(name, wanted[k]))
				continue;
			if (!json_is_array(v)) {
				say_value(out, k, -1, v);
				continue;
			}
			snprintf(b, sizeof(b), "list %d;", k);
			put(out, b);
			for (size_t i = 0; i < json_array_size(v); i++)
				say_value(out, k, (int)i, json_array_get(v, i));
		}
	}
	json_decref(root);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void headers(struct text *t)
{
	static const char *const s[] = {"Host: a\r\n",
					"Accept: */*\n",
					"X-Y:\r\n",
					"content-type: a;b\r\n",
					"X: content-length: 5\r\n",
					"Y: a\r\n  b\r\n",
					"Te: trailers\r\n"};

	for (uint32_t n = rnd(4); n; n--)
		put(t, s[rnd(7)]);
}

static void chunks(struct text *t, const char *body, size_t n)
{
	static const char *const end[] = {"\r\n", "\n", ";a=b\r\n", " \r\n"};
	char b[80];

	for (size_t at = 0, part; at < n; at += part) {
		part = 1 + rnd(rnd(2) ? 3 : 60);
		part = part < n - at ? part : n - at;
		snprintf(b, sizeof(b), rnd(2) ? "%zx%s" : "0%zX%s", part, end[rnd(4)]);
		put(t, b);
		snprintf(b, sizeof(b), "%.*s\r\n", (int)part, body + at);
		put(t, b);
	}
	put(t, rnd(2) ? "0\r\n" : "000;x\n");
	put(t, rnd(2) ? "" : "Trailer: 1\r\nContent-Length: 7\r\n");
	put(t, rnd(2) ? "\r\n" : "\n");
}

static void framed(struct text *t, const struct text *body)
{
	static const char *const name[] = {
		"Content-Length: ", "content-length:", "CONTENT-LENGTH:\t"};
	char b[80];

	headers(t);
	if (rnd(2)) {
		put(t, rnd(2) ? "Transfer-Encoding: chunked\r\n" : "transfer-encoding:CHUNKED \n");
		put(t, rnd(4) ? "" : "Content-Length: 5\r\n");
		headers(t);
		put(t, "\r\n");
		return chunks(t, body->s, body->n);
	}
	put(t, name[rnd(3)]);
	for (uint32_t n = rnd(3); n; n--) {
		snprintf(b, sizeof(b), "%zu, ", body->n);
		put(t, b);
	}
	snprintf(b, sizeof(b), rnd(2) ? "%zu\r\n" : "0%zu \n", body->n);
	put(t, b);
	headers(t);
	put(t, "\r\n");
	put(t, body->s);
}

static void request(struct text *t, struct text *expect, int count)
{
	static struct text doc;
	char b[80];

	put(t, rnd(5) ? "" : "\r\n");
	snprintf(b, sizeof(b), "%d POST /p%d;", count, count);
	put(expect, b);
	snprintf(b, sizeof(b), "POST /p%d%s HTTP/1.%d\r\n", count, rnd(2) ? "" : "?a=/b", rnd(2));
	put(t, b);
	if (rnd(4)) {
		document(&doc);
		framed(t, &doc);
		say_document(expect, &doc);
	} else {
		headers(t);
		put(t, "\r\n");
	}
	put(expect, "end;");
}

static void reply(struct text *t, struct text *expect, int count)
{
	static struct text doc;
	size_t before = t->n;
	char b[80];
	bool open;

	put(t, rnd(5) ? "" : "HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\n");
	put(t, "HTTP/1.1 200 OK\r\n");
	doc.n = 0;
	doc.s[0] = '\0';
	if (rnd(3))
		document(&doc);
	framed(t, &doc);
	open = strcasestr(t->s + before, "\ntransfer-encoding") != NULL;
	snprintf(b, sizeof(b), "reply %d 200%s;end;", count, open ? " open" : "");
	put(expect, b);
}

static void test_streams(void **state)
{
	static struct text t, expect;
	static char got[1 << 16];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct http_case c = {.reply = round % 4 == 3};
		struct http_feed f;

		t.n = expect.n = 0;
		t.s[0] = expect.s[0] = '\0';
		for (int i = 1 + (int)rnd(8), count = 1; i; i--, count++)
			(c.reply ? reply : request)(&t, &expect, count);
		for (int fast = 0; fast < 2; fast++) {
			http_start(&f, &c, fast);
			for (size_t at = 0, part; at < t.n; at += part) {
				part = 1 + rnd(rnd(2) ? 9 : 700);
				part = part < t.n - at ? part : t.n - at;
				http_feed(&f, (const uint8_t *)t.s + at, part);
			}
			print_heard(&f.heard, got, sizeof(got));
			if (strcmp(got, expect.s))
				fail_msg("\"%s\": got \"%s\", expected \"%s\"", t.s, got, expect.s);
			free(f.heard.v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
