// SPDX-License-Identifier: Apache-2.0
/* The search in JSON bodies: a table, every body cut at every place and in chunks of every size. */
#include "http_rig.h"
#include "sp_id.h"

struct row {
	const char *body, *expect;
};

#define ROOM "\"bootstrap_room\""
#define HOST "\"bootstrap_host\""
#define NUL  "" /* nothing is found */

static const struct row rows[] = {
	/* numbers */
	{"{" ROOM ":5}", "0=5;"},
	{"{" ROOM ":0}", "0=0;"},
	{"{" ROOM " : 5 }", "0=5;"},
	{"\n{\t" ROOM "\r\n:\n5\n}\n", "0=5;"},
	{"{" ROOM ":9223372036854775807}", "0=9223372036854775807;"},
	{"{" ROOM ":18446744073709551615}", "0=18446744073709551615;"},
	{"{" ROOM ":18446744073709551616}", NUL},
	{"{" ROOM ":18446744073709551620}", NUL},
	{"{" ROOM ":99999999999999999999999999}", NUL},
	{"{" ROOM ":184467440737095516150}", NUL},
	{"{" ROOM ":-5," HOST ":\"a\"}", "1='a';"},
	{"{" ROOM ":-0}", NUL},
	{"{" ROOM ":5.0," HOST ":\"a\"}", "1='a';"},
	{"{" ROOM ":5e3}", NUL},
	{"{" ROOM ":05}", NUL},
	{"{" ROOM ":00}", NUL},
	{"{" ROOM ":0x5}", NUL},
	{"{" ROOM ":5 5}", "0=5;"}, /* not JSON from there on */
	{"{" ROOM ":5\"}", NUL},
	{"{" ROOM ":5", NUL}, /* it may go on */
	/* neither numbers nor strings */
	{"{" ROOM ":null," ROOM ":true," ROOM ":false," ROOM ":NaN," ROOM ":7}", "0=7;"},
	{"{" ROOM ":{}," ROOM ":{\"a\":5}," ROOM ":8}", "0=8;"},
	/* strings */
	{"{" HOST ":\"10.0.0.1\"}", "1='10.0.0.1';"},
	{"{" HOST ":\"\"}", "1='';"},
	{"{" ROOM ":\"123\"}", "0='123';"},
	{"{\"rid\":\"\xc3\xa9{}[]:, \"}", "2='\xc3\xa9{}[]:, ';"},
	{"{\"rid\":\"012345678901234567890123456789012345678901234567890123456789012\"}",
	 "2='012345678901234567890123456789012345678901234567890123456789012';"},
	{"{\"rid\":\"01234567890123456789012345678901234567890123456789012345678901234\"," ROOM
	 ":1}",
	 "2='0123456789012345678901234567890123456789012345678901234567890123';0=1;"},
	{"{\"rid\":\"a\\nb\"," ROOM ":1}", "0=1;"},
	{"{\"rid\":\"\\\"\"," ROOM ":1}", "0=1;"},
	{"{\"rid\":\"ab\\\\\"," ROOM ":1}", "0=1;"},
	{"{\"rid\":\"no end", NUL},
	/* lists */
	{"{" ROOM ":[]," HOST ":[ ]}", "list 0;list 1;"},
	{"{" ROOM ":[1,2,3]}", "list 0;0.0=1;0.1=2;0.2=3;"},
	{"{" ROOM " : [ 1 , 2 ] , \"rid\" : [\"a\" , \"b\" ] }",
	 "list 0;0.0=1;0.1=2;list 2;2.0='a';2.1='b';"},
	{"{" ROOM ":[1,null,-3,4.5,[7],{\"x\":8},\"s\",\"\\u0041\",9]}",
	 "list 0;0.0=1;0.6='s';0.8=9;"},
	{"{" ROOM ":[[1],[2,[3]],4]}", "list 0;0.2=4;"},
	{"{" ROOM ":[1],\"a\":[" ROOM ",2]," ROOM ":3}", "list 0;0.0=1;0=3;"},
	{"{" ROOM ":[1", "list 0;"},
	{"{" ROOM ":[1}", "list 0;0.0=1;"},
	/* keys */
	{"{" ROOM ":1," ROOM ":2}", "0=1;0=2;"},
	{"{\"bootstrap_roo\":1,\"bootstrap_rooms\":2,\"Bootstrap_room\":3,\"ootstrap_room\":4,"
	 "\" bootstrap_room\":5,\"ri\":6,\"\":7,\"r\":8,\"rid\":9}",
	 "2=9;"},
	{"{\"bootstrap_r\\u006fom\":1,\"bootstrap_room\\\\\":2,\"\\\"rid\":3,\"rid\\\"\":4,"
	 "\"\\\\\":5,\"r\\\\id\":6,\"rid\":7}",
	 "2=7;"},
	{"{\"a long key that is longer than any that could be wanted of us\":1,\"rid\":2}", "2=2;"},
	{"{\"rid\"x:1,\"rid\":2}", NUL},
	/* the same text where it is no key */
	{"{\"text\":\"" ROOM ":1\"}", NUL}, /* ends the string: then not JSON */
	{"{\"text\":\"\\\"bootstrap_room\\\":1\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"\\\\\\\"bootstrap_room\\\":1, \\\"\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"\\\\\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"\\\\\\\\\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"\\\\\\\\\\\\\\\\\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"1234567\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"," ROOM ":2}", "0=2;"},
	{"{\"text\":\"1234567\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"," ROOM ":1\"," ROOM ":2}", NUL},
	{"{\"a\":" ROOM "," ROOM ":2}", "0=2;"},
	{"{\"a\":{" ROOM ":1},\"b\":[" ROOM ",{" ROOM ":1}],\"c\":[[" ROOM "]]," ROOM ":2}",
	 "0=2;"},
	{"{\"a\":{\"b\":\"}\",\"c\":\"\\\"}\"," ROOM ":1}," ROOM ":2}", "0=2;"},
	{"{\"a\":[\"]\",\"[\",{\"[\":\"]\\\\\"}]," ROOM ":2}", "0=2;"},
	{"{\"a\":[1,2,3,4,5,6,7,8,9,0,[1,2,3,4,5,6,7,8,9,0,[],[]],{}]," ROOM ":2}", "0=2;"},
	{"{\"a\":1}{" ROOM ":2}", NUL},
	{"[{" ROOM ":2}]", NUL},
	{"\"" ROOM ":1\"", NUL},
	{"\xef\xbb\xbf{" ROOM ":2}", "0=2;"},
	{"bootstrap_room=1&rid=2", NUL},
	{"--x\r\nContent-Disposition: form-data; name=\"bootstrap_room\"\r\n\r\n1\r\n--x--", NUL},
	{"{\"a\":]," ROOM ":1}", NUL},
	{"{,\"rid\":1}", NUL},
	{"{\"a\" 1,\"rid\":1}", NUL},
	{"{\"a\":1:\"rid\":1}", NUL},
	{"{\"a\":\"b\"\"rid\":1}", NUL},
	{"   ", NUL},
	{"{}", NUL},
};

static size_t put_body(char *out, const char *body, size_t n, size_t chunk)
{
	size_t o;

	if (!chunk) {
		o = sprintf(out, "POST / HTTP/1.1\r\nContent-Length: %zu\r\n\r\n", n);
		memcpy(out + o, body, n);
		return o + n;
	}
	o = sprintf(out, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (size_t i = 0; i < n; i += chunk) {
		size_t part = chunk < n - i ? chunk : n - i;

		o += sprintf(out + o, "%zx\r\n", part);
		memcpy(out + o, body + i, part);
		o += part;
		o += sprintf(out + o, "\r\n");
	}
	return o + sprintf(out + o, "0\r\n\r\n");
}

static void test_table(void **state)
{
	const struct http_case c = {0};
	char buf[8192], got[1024], expect[1024];
	struct http_feed f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t body = strlen(rows[i].body);

		snprintf(expect, sizeof(expect), "1 POST /;%send;", rows[i].expect);
		for (size_t chunk = 0; chunk <= body; chunk++) {
			size_t n = put_body(buf, rows[i].body, body, chunk);

			http_all_ways((const uint8_t *)buf, n, &c, &f);
			print_heard(&f.heard, got, sizeof(got));
			if (strcmp(got, expect))
				fail_msg("%s in chunks of %zu: got \"%s\", expected \"%s\"",
					 rows[i].body, chunk, got, expect);
			free(f.heard.v);
		}
	}
}

/* Brackets are counted, not stacked: 2^31 levels and no further. */
static void test_depth(void **state)
{
	struct sp_http h = {.is = SP_HTTP_BODY, .left = 1ull << 40, .json = SP_JSON_START};
	const char *begin = "{\"a\":", *end = "},\"rid\":7,";
	int did = 0;

	(void)state;
	for (const char *p = begin; *p; p++)
		sp_http_byte(&h, http_keys(), (uint8_t)*p);
	for (int i = 0; i < 3000000; i++)
		sp_http_byte(&h, http_keys(), i % 3 ? '[' : '{');
	assert_int_equal(h.depth, 3000001);
	h.depth = (1u << 31) - 2;
	assert_int_equal(sp_http_byte(&h, http_keys(), '['), 0);
	assert_int_equal(h.json, SP_JSON_NEST);
	h.depth = 2;
	for (const char *p = end; *p; p++)
		did = sp_http_byte(&h, http_keys(), (uint8_t)*p);
	assert_int_equal(did, SP_HTTP_DID_VALUE);
	assert_int_equal(h.num, 7);
	for (const char *p = begin + 1; *p; p++)
		sp_http_byte(&h, http_keys(), (uint8_t)*p);
	sp_http_byte(&h, http_keys(), '[');
	h.depth = (1u << 31) - 1;
	sp_http_byte(&h, http_keys(), '[');
	assert_int_equal(h.json, SP_JSON_OFF);
}

/* Values of a list are given up to index 32766; the list is still followed to its end. */
static void test_long_list(void **state)
{
	static char body[300000], buf[300100];
	const struct http_case c = {0};
	struct http_feed f;
	size_t n = sprintf(body, "{\"rid\":[0");

	(void)state;
	for (int i = 1; i < 33000; i++)
		n += sprintf(body + n, ",%d", i);
	n += sprintf(body + n, "],\"rid\":1}");
	n = put_body(buf, body, n, 0);
	http_start(&f, &c, true);
	http_feed(&f, (const uint8_t *)buf, n);
	assert_int_equal(f.heard.n, 1 + 1 + 32767 + 1 + 1);
	for (uint32_t i = 0; i < 32767; i++) {
		assert_int_equal(f.heard.v[i + 2].index, i);
		assert_int_equal(f.heard.v[i + 2].num, i);
	}
	assert_int_equal(f.heard.v[f.heard.n - 2].index, UINT32_MAX);
	free(f.heard.v);
}

/* 16 MB of prompt full of everything that a search could take for something else. */
static void test_large(void **state)
{
	static const char bits[] = "\\\"bootstrap_room\\\":666,\\\\\\\\{[}]\\n plain text, ";
	const struct http_case c = {0};
	size_t size = 16 << 20, n = 0, step = 1;
	char *body = malloc(size + 200), *buf = malloc(size + 400), got[256];
	struct http_feed f;

	(void)state;
	assert_true(body && buf);
	n = sprintf(body, "{\"text\":\"");
	while (n < size) {
		memcpy(body + n, bits, sizeof(bits) - 1);
		n += sizeof(bits) - 1;
	}
	n += sprintf(body + n, "\"," ROOM ": 42}");
	n = put_body(buf, body, n, 0);
	http_start(&f, &c, true);
	for (size_t at = 0; at < n; step = step * 3 % 65521) {
		size_t part = step < n - at ? step : n - at;

		http_feed(&f, (const uint8_t *)buf + at, part);
		at += part;
	}
	print_heard(&f.heard, got, sizeof(got));
	assert_string_equal(got, "1 POST /;0=42;end;");
	free(f.heard.v);
	free(body);
	free(buf);
}

/* No byte of a string is in the state once it is known not to be wanted. */
static void test_nothing_of_a_prompt_is_kept(void **state)
{
	static const char *const bodies[] = {
		"{\"text\":\"SECRET99 and more SECRET99\",\"rid\":1}",
		"{\"SECRET99\":1,\"rid SECRET99\":2}",
		"{\"a\":{\"SECRET99\":\"SECRET99\"},\"b\":[\"SECRET99\",[\"SECRET99\"]]}",
		"{" ROOM ":[{\"SECRET99\":\"SECRET99\"},[\"SECRET99\"]]}",
		"SECRET99",
		"[\"SECRET99\"]",
		"\"SECRET99\"",
		"{\"input_ids\":[83698384,83698384]}",
	};
	const struct http_case c = {0};
	char buf[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		size_t n = put_body(buf, bodies[i], strlen(bodies[i]), 0);
		struct http_feed f;

		http_start(&f, &c, false);
		for (size_t k = 0; k < n; k++) {
			http_feed(&f, (const uint8_t *)buf + k, 1);
			assert_null(memmem(&f.h, sizeof(f.h), "SECR", 4));
			assert_true(f.h.num != 83698384);
		}
		free(f.heard.v);
	}
}

/* Of a wanted string that is longer than what is kept: its beginning, and the hash of all of it. */
static void test_long_strings(void **state)
{
	const struct http_case c = {0};
	char id[300], buf[1024];

	(void)state;
	for (size_t len = SP_HTTP_TEXT - 2; len < sizeof(id); len++) {
		uint64_t hash = SP_ID_START;
		struct http_feed f;
		size_t n;

		for (size_t i = 0; i < len; i++) {
			id[i] = (char)('a' + (i * 7 + len) % 26);
			hash = sp_id_step(hash, (uint8_t)id[i]);
		}
		n = (size_t)snprintf(buf + 512, 512, "{\"x\":1,\"rid\":\"%.*s\"}", (int)len, id);
		n = put_body(buf, buf + 512, n, 0);
		http_all_ways((const uint8_t *)buf, n, &c, &f);
		assert_int_equal(f.heard.n, 3);
		assert_int_equal(f.heard.v[1].did, SP_HTTP_DID_VALUE);
		assert_int_equal(f.heard.v[1].len, len < SP_HTTP_TEXT ? len : SP_HTTP_TEXT);
		assert_memory_equal(f.heard.v[1].text, id, f.heard.v[1].len);
		assert_true(f.heard.v[1].num == hash && !f.heard.v[1].is_num);
		free(f.heard.v);
	}
}

/* A wanted string that turns out to have escapes, or no end, is forgotten at once. */
static void test_given_up_strings_are_forgotten(void **state)
{
	static const char *const bodies[] = {
		"{\"rid\":\"SECRET99\\n\",\"x\":1}",
		"{\"rid\":"
		"\"SECRET99SECRET99SECRET99SECRET99SECRET99SECRET99SECRET99SECRET99SE\\\"\"}",
		"{\"rid\":\"SECRET99",
	};
	static const size_t kept[] = {16, 75, 16};
	const struct http_case c = {0};
	char buf[512];

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		size_t n = put_body(buf, bodies[i], strlen(bodies[i]), 0);
		size_t from = n - strlen(bodies[i]) + kept[i];
		struct http_feed f;

		http_start(&f, &c, false);
		for (size_t k = 0; k < n; k++) {
			http_feed(&f, (const uint8_t *)buf + k, 1);
			if (k >= from || k + 1 == n)
				assert_null(memmem(&f.h, sizeof(f.h), "SECR", 4));
		}
		free(f.heard.v);
	}
}

/* Eight bytes at once: only where no quote is among them, and with the right parity after it. */
static void test_words(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 6561 * 2; i++) { /* every word of three kinds of bytes */
		struct sp_http a = {.is = SP_HTTP_BODY, .json = SP_JSON_STRING, .left = 9}, b;
		uint64_t word = 0;
		bool quote = false;

		a.esc = i & 1;
		b = a;
		for (uint32_t k = 0, d = i / 2; k < 8; k++, d /= 3) {
			uint8_t byte = (uint8_t) "x\\\""[d % 3];

			word |= (uint64_t)byte << 8 * k;
			quote |= byte == '"';
			sp_http_byte(&b, http_keys(), byte);
		}
		assert_int_equal(sp_http_word(&a, word), !quote);
		if (!quote)
			assert_memory_equal(&a, &b, sizeof(a));
	}
	for (int at = 0; at < 8; at++) {
		for (uint64_t c = 0; c < 256; c++) {
			struct sp_http h = {.is = SP_HTTP_BODY, .left = 9, .depth = 5};
			uint64_t word = 0x6161616161616161ull;
			bool ends = c == '"' || c == '[' || c == ']' || c == '{' || c == '}';

			word ^= (c ^ 0x61) << 8 * at;
			h.json = SP_JSON_NEST;
			assert_true(!ends || !sp_http_word(&h, word));
			assert_true(ends || c == '_' || c == 0x7f || (c & 0xdf) == 'Y' ||
				    sp_http_word(&h, word));
			h.left = 9;
			h.json = SP_JSON_NEST_STRING;
			assert_int_equal(sp_http_word(&h, word), c != '"');
		}
	}
}

/* Keys of every length up to the longest, all of them in use; and no key: nothing to look for. */
static void test_keys(void **state)
{
	static const struct sp_http_keys four = {{{31, "0123456789012345678901234567890"},
						  {30, "012345678901234567890123456789"},
						  {1, "0"},
						  {1, "\""}}},
					 none = {{{0, ""}}};
	static const char body[] = "{\"0123456789012345678901234567890\":1,\"0\":3,"
				   "\"012345678901234567890123456789\":2,\"01\":4,"
				   "\"01234567890123456789012345678901\":5,\"\\\"\":6}";
	const struct http_case c = {0};
	char buf[512], got[256];
	struct http_feed f;
	size_t n = put_body(buf, body, sizeof(body) - 1, 0);

	(void)state;
	http_start(&f, &c, true);
	f.keys = &four;
	http_feed(&f, (const uint8_t *)buf, n);
	print_heard(&f.heard, got, sizeof(got));
	assert_string_equal(got, "1 POST /;0=1;2=3;1=2;end;");
	free(f.heard.v);
	http_start(&f, &c, true);
	f.keys = &none;
	http_feed(&f, (const uint8_t *)buf, n - sizeof(body) + 1);
	assert_int_equal(sp_http_skip(&f.h), sizeof(body) - 2);
	free(f.heard.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_long_list),
		cmocka_unit_test(test_long_strings),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_nothing_of_a_prompt_is_kept),
		cmocka_unit_test(test_given_up_strings_are_forgotten),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
