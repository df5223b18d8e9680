// SPDX-License-Identifier: Apache-2.0
/* The HTTP decoder, all but the search in bodies: a table, every case whole and cut at every place.
 */
#include "http_rig.h"

struct row {
	const char *name, *bytes, *expect;
	struct http_case c;
};
#define REQ(name, bytes, expect)                                                                   \
	{                                                                                          \
		name, bytes, expect,                                                               \
		{                                                                                  \
			false, false, 0                                                            \
		}                                                                                  \
	}
#define REPLY(name, bytes, expect)                                                                 \
	{                                                                                          \
		name, bytes, expect,                                                               \
		{                                                                                  \
			true, false, 0                                                             \
		}                                                                                  \
	}
#define REPLY_EOF(name, bytes, expect)                                                             \
	{                                                                                          \
		name, bytes, expect,                                                               \
		{                                                                                  \
			true, true, 0                                                              \
		}                                                                                  \
	}
#define REPLY_HEADS(name, h, bytes, expect)                                                        \
	{                                                                                          \
		name, bytes, expect,                                                               \
		{                                                                                  \
			true, false, h                                                             \
		}                                                                                  \
	}
#define V       " HTTP/1.1\r\n"
#define POST(h) "POST /generate" V h "\r\n"
#define OK(h)   "HTTP/1.1 200 OK\r\n" h "\r\n"

static const struct row requests[] = {
	REQ("no body", "GET /health" V "Host: a\r\n\r\n", "1 GET /health;end;"),
	REQ("no headers", "GET /" V "\r\n", "1 GET /;end;"),
	REQ("1.0", "GET / HTTP/1.0\r\n\r\n", "1 GET /;end;"),
	REQ("LF only", "GET /a HTTP/1.1\nHost: a\nContent-Length:3\n\nabcGET /b HTTP/1.1\n\n",
	    "1 GET /a;end;2 GET /b;end;"),
	REQ("query", "GET /a/b?c=/d?e" V "\r\n", "1 GET /a/b;end;"),
	REQ("fragment", "GET /a#b" V "\r\n", "1 GET /a;end;"),
	REQ("absolute form", "GET http://h:80/a?b" V "\r\n", "1 GET /a;end;"),
	REQ("absolute form, no path", "GET http://h" V "\r\n", "1 GET /;end;"),
	REQ("absolute form, query only", "GET https://h?a=/b" V "\r\n", "1 GET /;end;"),
	REQ("asterisk", "OPTIONS *" V "\r\n", "1 OPTIONS *;end;"),
	REQ("any method", "M-SEARCH /x" V "\r\n", "1 M-SEARCH /x;end;"),
	REQ("a long path is cut",
	    "GET /0123456789012345678901234567890123456789012345678901234567890123456789" V "\r\n",
	    "1 GET /01234567890123456789012345678901234567890123456789012345678;end;"),
	REQ("a method of 31", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDE /" V "\r\n",
	    "1 ABCDEFGHIJKLMNOPQRSTUVWXYZABCDE /;end;"),
	REQ("a method of 32", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF /" V "\r\n", "bad;"),
	REQ("empty lines before", "\r\n\n\r\nGET /" V "\r\n", "1 GET /;end;"),
	REQ("length", POST("Content-Length: 4\r\n") "abcdGET /" V "\r\n",
	    "1 POST /generate;end;2 GET /;end;"),
	REQ("length in another case", POST("CONTENT-length:\t 1 \t\r\n") "a",
	    "1 POST /generate;end;"),
	REQ("length 0", POST("Content-Length: 0\r\n"), "1 POST /generate;end;"),
	REQ("length with leading zeros", POST("Content-Length: 0002\r\n") "ab",
	    "1 POST /generate;end;"),
	REQ("equal lengths", POST("Content-Length: 2\r\nContent-Length: 2\r\n") "ab",
	    "1 POST /generate;end;"),
	REQ("equal lengths, zero", POST("Content-Length: 0\r\nContent-Length: 0\r\n"),
	    "1 POST /generate;end;"),
	REQ("a list of equal lengths", POST("Content-Length: 2, 2 ,2\r\n") "ab",
	    "1 POST /generate;end;"),
	REQ("different lengths", POST("Content-Length: 2\r\nContent-Length: 3\r\n"), "bad;"),
	REQ("different lengths, zero first", POST("Content-Length: 0\r\nContent-Length: 3\r\n"),
	    "bad;"),
	REQ("a list of different lengths", POST("Content-Length: 2, 3\r\n"), "bad;"),
	REQ("an empty length", POST("Content-Length:\r\n"), "bad;"),
	REQ("an empty element", POST("Content-Length: 2,\r\n"), "bad;"),
	REQ("a sign", POST("Content-Length: +2\r\n"), "bad;"),
	REQ("hexadecimal", POST("Content-Length: 0x2\r\n"), "bad;"),
	REQ("two numbers", POST("Content-Length: 2 2\r\n"), "bad;"),
	REQ("a length beyond all", POST("Content-Length: 99999999999999999999\r\n"), "bad;"),
	REQ("a folded length", POST("Content-Length:\r\n 2\r\n\t\r\n") "ab",
	    "1 POST /generate;end;"),
	REQ("a fold ends a number", POST("Content-Length: 1\r\n 2\r\n"), "bad;"),
	REQ("a fold of another header",
	    POST("X: a\r\n Content-Length: 9\r\nContent-Length: 1\r\n") "a",
	    "1 POST /generate;end;"),
	REQ("nothing to fold", "GET /" V " x: y\r\n\r\n", "bad;"),
	REQ("longer names",
	    POST("Content-Lengths: 9\r\nXContent-Length: 9\r\nContent-Lengt: 9\r\n"
		 "Content-Length-Of-The-Rest: 9\r\n"),
	    "1 POST /generate;end;"),
	REQ("a blank before the colon", POST("Content-Length : 1\r\n") "a", "bad;"),
	REQ("no colon", POST("Content-Length\r\n"), "bad;"),
	REQ("no name", POST(": 1\r\n"), "bad;"),
	REQ("a name with a bracket", POST("a(b: 1\r\n"), "bad;"),
	REQ("bytes above 127 in a value", POST("x: \xc3\xa9\r\n"), "1 POST /generate;end;"),
	REQ("a control in a value", POST("x: \x01\r\n"), "bad;"),
	REQ("a bare CR", POST("x: a\rb\r\n"), "bad;"),
	REQ("a bare CR before the end", "GET /" V "\r\r\n", "bad;"),
	REQ("a CR in the request line", "GET /\r HTTP/1.1\r\n\r\n", "bad;"),
	REQ("chunked",
	    POST("Transfer-Encoding: chunked\r\n") "3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
						   "GET /" V "\r\n",
	    "1 POST /generate;end;2 GET /;end;"),
	REQ("chunked, LF only",
	    "POST / HTTP/1.1\nTransfer-Encoding:Chunked\n\n1\na\n0\n\nGET /" V "\r\n",
	    "1 POST /;end;2 GET /;end;"),
	REQ("extensions and trailers",
	    POST("Transfer-Encoding: chunked\r\n") "1;a=\"b;c\"\r\nx\r\n00 ;y\r\nT: 1\r\nU: "
						   "0\r\n\r\n",
	    "1 POST /generate;end;"),
	REQ("chunked wins", POST("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
	    "1 POST /generate;end;"),
	REQ("chunked last of two headers",
	    POST("Transfer-Encoding: gzip\r\nTransfer-Encoding: ,chunked,\r\n") "1\r\n{"
										"\r\n0\r\n\r\n",
	    "1 POST /generate encoded;end;"),
	REQ("chunked not last", POST("Transfer-Encoding: chunked, gzip\r\n"), "bad;"),
	REQ("nearly chunked", POST("Transfer-Encoding: chunkedx\r\n"), "bad;"),
	REQ("two words", POST("Transfer-Encoding: chunked x\r\n"), "bad;"),
	REQ("a word in two", POST("Transfer-Encoding: chun ked\r\n"), "bad;"),
	REQ("a parameter", POST("Transfer-Encoding: x;chunked;y, chunked;q=1\r\n") "0\r\n\r\n",
	    "1 POST /generate encoded;end;"),
	REQ("no chunk size", POST("Transfer-Encoding: chunked\r\n") ";a\r\n",
	    "1 POST /generate;bad;"),
	REQ("an empty chunk line", POST("Transfer-Encoding: chunked\r\n") "\r\n",
	    "1 POST /generate;bad;"),
	REQ("not a hex digit", POST("Transfer-Encoding: chunked\r\n") "1g\r\n",
	    "1 POST /generate;bad;"),
	REQ("a chunk beyond all", POST("Transfer-Encoding: chunked\r\n") "1000000000000000\r\n",
	    "1 POST /generate;bad;"),
	REQ("a chunk longer than its size", POST("Transfer-Encoding: chunked\r\n") "1\r\nab\r\n",
	    "1 POST /generate;bad;"),
	REQ("expect", POST("Expect: 100-Continue\r\nContent-Length: 1\r\n") "a",
	    "1 POST /generate expects;end;"),
	REQ("expects something else", POST("Expect: 200-ok, 100-continued\r\n"),
	    "1 POST /generate;end;"),
	REQ("compressed",
	    POST("Content-Encoding: gzip\r\nContent-Length: 18\r\n") "{\"bootstrap_room\":1}",
	    "1 POST /generate encoded;end;bad;"),
	REQ("compressed, no body", POST("Content-Encoding: gzip\r\n"), "1 POST /generate;end;"),
	REQ("identity",
	    POST("Content-Encoding: Identity\r\nContent-Length: 20\r\n") "{\"bootstrap_room\":1}",
	    "1 POST /generate;0=1;end;"),
	REQ("identity and gzip",
	    POST("Content-Encoding: identity, gzip\r\nContent-Length: 1\r\n") "{",
	    "1 POST /generate encoded;end;"),
	REQ("pipelined",
	    "GET /a" V "\r\nPOST /b" V "Content-Length: 1\r\n\r\nxGET /c" V "\r\n"
	    "\r\nGET /d" V "\r\n",
	    "1 GET /a;end;2 POST /b;end;3 GET /c;end;4 GET /d;end;"),
	REQ("connect", "CONNECT h:443" V "\r\nxyz", "unreadable upgrade;"),
	REQ("nearly connect", "CONNECTS h:443" V "\r\n", "1 CONNECTS ;end;"),
	REQ("http/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "unreadable version;"),
	REQ("http/0.9", "GET /\r\n", "bad;"),
	REQ("no target", "GET  HTTP/1.1\r\n\r\n", "bad;"),
	REQ("not a version", "GET / HTTQ/1.1\r\n\r\n", "bad;"),
	REQ("a longer version", "GET / HTTP/1.10\r\n\r\n", "bad;"),
	REQ("tls", "\x16\3\1", "bad;"),
	REQ("zmtp", "\xff\1\1", "bad;"),
	REQ("a reply", "HTTP/1.1 200 OK\r\n\r\n", "bad;"),
	REQ("cut short", POST("Content-Length: 10\r\n") "abc", "1 POST /generate;"),
};

static const struct row replies[] = {
	REPLY("length", OK("Content-Length: 2\r\n") "ab" OK("Content-Length: 0\r\n"),
	      "reply 1 200;end;reply 2 200;end;"),
	REPLY("chunked", OK("transfer-encoding: chunked\r\n") "2\r\nab\r\n0\r\n\r\n",
	      "reply 1 200 open;end;"),
	REPLY_EOF("until close", OK("") "anything", "reply 1 200 open;end;"),
	REPLY_EOF("until close, nothing", "HTTP/1.0 500 Oh no\r\n\r\n", "reply 1 500 open;end;"),
	REPLY_EOF("coded until close", OK("Transfer-Encoding: chunked, gzip\r\n") "0\r\n\r\n",
		  "reply 1 200 open;end;"),
	REPLY_EOF("closed too early", OK("Content-Length: 9\r\n") "a", "reply 1 200;"),
	REPLY_EOF("closed in a head", "HTTP/1.1 200 OK\r\n", ""),
	REPLY_EOF("closed between", OK("Content-Length: 1\r\n") "a", "reply 1 200;end;"),
	REPLY("no reason", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", "reply 1 404;end;"),
	REPLY("an empty reason", "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", "reply 1 404;end;"),
	REPLY("100 and others",
	      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n" OK(
		      "Content-Length: 0\r\n"),
	      "reply 1 200;end;"),
	REPLY("100 with a length",
	      "HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n" OK("Content-Length: 0\r\n"),
	      "reply 1 200;end;"),
	REPLY("101", "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x81\1a",
	      "unreadable upgrade;"),
	REPLY("204", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n" OK("Content-Length: 0\r\n"),
	      "reply 1 204;end;reply 2 200;end;"),
	REPLY("304",
	      "HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n" OK("Content-Length: 0\r\n"),
	      "reply 1 304 open;end;reply 2 200;end;"),
	REPLY_HEADS("to HEAD", 5,
		    OK("Content-Length: 7\r\n") OK("Content-Length: 1\r\n") "a" OK(
			    "Transfer-Encoding: chunked\r\n") OK("Content-Length: 1\r\n") "b",
		    "reply 1 200;end;reply 2 200;end;reply 3 200 open;end;reply 4 200;end;"),
	REPLY_HEADS("to HEAD, no length", 1, OK("") OK("Content-Length: 0\r\n"),
		    "reply 1 200 open;end;reply 2 200;end;"),
	REPLY("a blank before the colon", OK("Content-Length \t: 1\r\n") "a", "reply 1 200;end;"),
	REPLY("nothing is searched", OK("Content-Length: 20\r\n") "{\"bootstrap_room\":1}",
	      "reply 1 200;end;"),
	REPLY("http/2", "HTTP/2 200\r\n", "unreadable version;"),
	REPLY("two digits", "HTTP/1.1 20\r\n\r\n", "bad;"),
	REPLY("four digits", "HTTP/1.1 2000\r\n\r\n", "bad;"),
	REPLY("below 100", "HTTP/1.1 099 x\r\n\r\n", "bad;"),
	REPLY("a request", "GET / HTTP/1.1\r\n\r\n", "bad;"),
	REPLY("different lengths", OK("Content-Length: 1\r\nContent-Length: 2\r\n"), "bad;"),
};

static void check(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct http_feed f;
		char got[1024];

		http_all_ways((const uint8_t *)r->bytes, strlen(r->bytes), &r->c, &f);
		print_heard(&f.heard, got, sizeof(got));
		if (strcmp(got, r->expect))
			fail_msg("%s: got \"%s\", expected \"%s\"", r->name, got, r->expect);
		free(f.heard.v);
	}
}

static void test_requests(void **state)
{
	(void)state;
	check(requests, sizeof(requests) / sizeof(requests[0]));
}

static void test_replies(void **state)
{
	(void)state;
	check(replies, sizeof(replies) / sizeof(replies[0]));
}

/* 64 KB of head are followed, and not a byte more; the same for a chunk's line and trailers. */
static void test_long(void **state)
{
	static const struct {
		const char *before, *after;
		bool head;
	} t[] = {
		{"GET /" V "x: ", "\n\n", true},
		{"GET /", V "\n", true},
		{POST("Transfer-Encoding: chunked\r\n") "1;", "\nx\n0\n\n", false},
		{POST("Transfer-Encoding: chunked\r\n") "0\r\nt: ", "\n\n", false},
	};
	static char buf[70000];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int over = 0; over < 2; over++) {
			struct http_case c = {0};
			size_t n = strlen(t[i].before), fill = over ? 66000 : 65000;
			struct http_feed f;

			memcpy(buf, t[i].before, n);
			memset(buf + n, 'y', fill);
			strcpy(buf + n + fill, t[i].after);
			http_start(&f, &c, true);
			http_feed(&f, (const uint8_t *)buf, strlen(buf));
			assert_int_equal(f.heard.n, over && t[i].head ? 1 : 2);
			assert_int_equal(f.heard.v[f.heard.n - 1].did,
					 over ? SP_HTTP_DID_UNREADABLE : SP_HTTP_DID_END);
			assert_int_equal(f.h.why, over ? SP_WHY_LONG : 0);
			free(f.heard.v);
		}
	}
}

/* A body that is not searched is skipped by length but for its last byte. */
static void test_skip(void **state)
{
	static const char head[] = OK("Content-Length: 1000000000000\r\n");
	static const char open[] = OK("");
	struct http_case c = {.reply = true};
	struct http_feed f;

	(void)state;
	http_start(&f, &c, true);
	http_feed(&f, (const uint8_t *)head, sizeof(head) - 1);
	assert_int_equal(sp_http_skip(&f.h), 999999999999);
	sp_http_skipped(&f.h, 999999999000);
	assert_int_equal(sp_http_skip(&f.h), 999);
	sp_http_skipped(&f.h, 999);
	assert_int_equal(sp_http_skip(&f.h), 0);
	assert_int_equal(f.heard.n, 1);
	http_feed(&f, (const uint8_t *)"x", 1);
	assert_int_equal(f.heard.n, 2);
	assert_int_equal(f.heard.v[1].did, SP_HTTP_DID_END);
	http_feed(&f, (const uint8_t *)open, sizeof(open) - 1);
	assert_true(sp_http_skip(&f.h) > 1ull << 60);
	free(f.heard.v);
}

static void test_null_and_begins(void **state)
{
	struct sp_http h = {0};
	int n = 0;

	(void)state;
	assert_int_equal(sp_http_byte(NULL, http_keys(), 'G'), SP_HTTP_DID_BAD);
	assert_int_equal(sp_http_byte(&h, NULL, 'G'), SP_HTTP_DID_BAD);
	assert_int_equal(sp_json_byte(NULL, NULL, '{'), SP_HTTP_NOTHING);
	for (uint32_t i = 0; i < 300; i++)
		n += sp_http_begins(i);
	assert_int_equal(n, 26);
	assert_true(sp_http_begins('G') && sp_http_begins('P') && !sp_http_begins(0xff));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_null_and_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
