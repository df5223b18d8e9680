// SPDX-License-Identifier: Apache-2.0
/* The ZMTP decoder: a table, every case whole and cut at every place; and random streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "stream_rig.h"
#include "zmtp_reference.h"

#define PAD8         "\0\0\0\0\0\0\0\1"
#define ZERO16       "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define NULL20       "NULL" ZERO16
#define ZERO15       "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define FIVE20(name) name ZERO15
#define FILL31       ZERO16 ZERO15
#define SIGN         "\xff" PAD8 "\x7f"
#define GREET        SIGN "\3\0" NULL20 "\0" FILL31
#define READY        "\4\x1a\5READY\xbSocket-Type\0\0\0\4PULL"

struct row {
	const char *name;
	const char *bytes;
	size_t n;
	const char *expect;
	bool middle; /* begins at a frame's boundary */
};
#define ROW(name, bytes, expect)                                                                   \
	{                                                                                          \
		name, bytes, sizeof(bytes) - 1, expect, false                                      \
	}
#define MIDDLE(name, bytes, expect)                                                                \
	{                                                                                          \
		name, bytes, sizeof(bytes) - 1, expect, true                                       \
	}

static const struct row rows[] = {
	ROW("greeting", GREET, "greeted 3.0 N;"),
	ROW("greeting of 3.1", SIGN "\3\1" NULL20 "\0" FILL31, "greeted 3.1 N;"),
	ROW("a later minor", SIGN "\3\7" NULL20 "\0" FILL31, "greeted 3.7 N;"),
	ROW("padding has no meaning",
	    "\xff"
	    "abcdefgh\x7f\3\0" NULL20 "\0" FILL31,
	    "greeted 3.0 N;"),
	ROW("as-server and filler neither", SIGN "\3\0" NULL20 "\1\1" FILL31, "greeted 3.0 N;"),
	ROW("plain", SIGN "\3\0" FIVE20("PLAIN") "\0" FILL31 "\4\1\0", "greeted 3.0 P;bad;"),
	ROW("curve", SIGN "\3\0" FIVE20("CURVE") "\0" FILL31 "\4\5\4PING", "unreadable curve;"),
	ROW("gssapi", SIGN "\3\0GSSAPI" ZERO16, "unreadable mechanism;"),
	ROW("another", SIGN "\3\0NULLX" ZERO16, "unreadable mechanism;"),
	ROW("all 20 bytes", SIGN "\3\0NULL5678901234567890", "unreadable mechanism;"),
	ROW("no mechanism", SIGN "\3\0\0", "unreadable version;"),
	ROW("a name with a hole", SIGN "\3\0NU\0LL", "bad;"),
	ROW("2.0", SIGN "\1\5\0\0", "unreadable version;"),
	ROW("2.1", SIGN "\2", "unreadable version;"),
	ROW("1.0 with a version", SIGN "\0", "unreadable version;"),
	ROW("4", SIGN "\4\0" NULL20, "unreadable version;"),
	ROW("unversioned, no identity", "\1\0\3\1x", "unreadable version;"),
	ROW("unversioned, identity", "\6\0hello", "unreadable version;"),
	ROW("unversioned, long identity", "\xff\0\0\0\0\0\0\1\1\0", "unreadable version;"),
	ROW("mark", "\xff\0\0\0\0\0\0\0\1\x7d", "bad;"),
	ROW("zero", "\0", "bad;"),
	ROW("http", "GET / HTTP/1.1\r\n\r\n", "bad;"),
	ROW("tls", "\x16\3\1\2\0", "bad;"),
	ROW("handshake and message",
	    GREET READY "\1\5ABORT\0\2"
			"12",
	    "greeted 3.0 N;command 26 \5READY\xbSocket-Type;frame 0 more 5 ABORT;frame 1 last 2 "
	    "12;"),
	MIDDLE("hello, welcome, initiate, error",
	       "\4\xe\5HELLO\3bob\3pwd\4\x8\7WELCOME\4\x9\x8INITIATE\4\x7\5ERROR\0",
	       "command 14 \5HELLO\3bob\3pwd;command 8 \7WELCOME;command 9 \x8INITIATE;"
	       "command 7 \5ERROR;"),
	MIDDLE("empty frames", "\1\0\1\0\0\0\0\0",
	       "frame 0 more 0 ;frame 1 more 0 ;frame 2 last 0 ;frame 0 last 0 ;"),
	MIDDLE("long and empty", "\2\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\1x",
	       "frame 0 last 0 ;frame 0 more 1 x;"),
	MIDDLE("a heartbeat between two frames", "\1\1a\4\7\4PING\0\0\4\5\4PONG\0\1b\0\1c",
	       "frame 0 more 1 a;command 7 \4PING;command 5 \4PONG;frame 1 last 1 b;"
	       "frame 0 last 1 c;"),
	MIDDLE("subscriptions",
	       "\4\xb\x9SUBSCRIBEa\4\x7\6"
	       "CANCEL\6\0\0\0\0\0\0\0\7\6"
	       "CANCEL",
	       "command 11 \x9SUBSCRIBEa;command 7 \6"
	       "CANCEL;command 7 \6"
	       "CANCEL;"),
	MIDDLE("a command with more", "\5\5\4PING", "bad;"),
	MIDDLE("an empty command", "\4\0", "bad;"),
	MIDDLE("a command without a name", "\4\1\0", "bad;"),
	MIDDLE("a name longer than its command", "\4\4\4PING", "bad;"),
	MIDDLE("reserved bits", "\0\1a\x8\1", "frame 0 last 1 a;bad;"),
	MIDDLE("the highest bit of the flags", "\x80\1", "bad;"),
	MIDDLE("the highest bit of a length", "\2\x80\0\0\0\0\0\0\1", "bad;"),
	MIDDLE("2^40 + 1", "\2\0\0\1\0\0\0\0\1a", "bad;"),
	MIDDLE("2^40", "\2\0\0\1\0\0\0\0\0aaaa", ""),
	MIDDLE("nothing after bad", "\x40\0\1a", "bad;"),
};

static void print(const struct heard *heard, char *out, size_t max)
{
	static const char *const why[SP_WHY_MAX] = {[SP_WHY_CURVE] = "curve",
						    [SP_WHY_MECHANISM] = "mechanism",
						    [SP_WHY_VERSION] = "version"};
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < heard->n; i++) {
		const struct said *s = &heard->v[i];
		char *o = out + n;

		if (s->did == SP_ZMTP_GREETED)
			n += snprintf(o, max - n, "greeted %d.%d %c;", s->major, s->minor,
				      s->mechanism);
		else if (s->did == SP_ZMTP_FRAME)
			n += snprintf(o, max - n, "frame %u %s %llu %.*s;", s->index,
				      s->more ? "more" : "last", (unsigned long long)s->size,
				      s->len, s->text);
		else if (s->did == SP_ZMTP_COMMAND)
			n += snprintf(o, max - n, "command %llu %.*s;", (unsigned long long)s->size,
				      s->len, s->text);
		else if (s->did == SP_ZMTP_UNREADABLE)
			n += snprintf(o, max - n, "unreadable %s;", why[s->why]);
		else
			n += snprintf(o, max - n, "bad;");
	}
}

static void begin(struct zmtp_feed *f, bool middle, bool fast)
{
	memset(f, 0, sizeof(*f));
	f->fast = fast;
	if (middle)
		sp_zmtp_resync(&f->z);
}

/* In one piece, byte by byte, and cut in two at every place. */
static void same_however_cut(const uint8_t *p, size_t n, bool middle, const struct heard *expect)
{
	struct zmtp_feed f;

	for (size_t cut = 0; cut <= n; cut++) {
		begin(&f, middle, true);
		zmtp_feed(&f, p, cut);
		zmtp_feed(&f, p + cut, n - cut);
		assert_true(heard_same(&f.heard, expect));
		free(f.heard.v);
	}
	begin(&f, middle, true);
	for (size_t i = 0; i < n; i++)
		zmtp_feed(&f, p + i, 1);
	assert_true(heard_same(&f.heard, expect));
	free(f.heard.v);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		const uint8_t *p = (const uint8_t *)r->bytes;
		struct heard ref = {0};
		struct zmtp_feed f;
		char got[1024];

		begin(&f, r->middle, false);
		zmtp_feed(&f, p, r->n);
		print(&f.heard, got, sizeof(got));
		if (strcmp(got, r->expect))
			fail_msg("%s: got \"%s\", expected \"%s\"", r->name, got, r->expect);
		same_however_cut(p, r->n, r->middle, &f.heard);
		zmtp_reference(p, r->n, r->middle, &ref);
		if (!heard_same(&ref, &f.heard))
			fail_msg("%s: the reference says something else", r->name);
		free(ref.v);
		free(f.heard.v);
	}
}

/* Bodies are skipped by length: of a frame of 2^40 bytes 64 and the last are looked at. */
static void test_a_huge_frame(void **state)
{
	const uint8_t head[] = {3, 0, 0, 1, 0, 0, 0, 0, 0}, next[] = {0, 1, 'n'};
	uint8_t body[SP_ZMTP_PART];
	struct zmtp_feed f;
	uint64_t left = 1ull << 40;

	(void)state;
	memset(body, 'b', sizeof(body));
	begin(&f, true, true);
	zmtp_feed(&f, head, sizeof(head));
	assert_int_equal(sp_zmtp_skip(&f.z), 0);
	zmtp_feed(&f, body, sizeof(body));
	left -= sizeof(body);
	for (uint64_t step = 1; left > 1; step *= 3) {
		assert_int_equal(sp_zmtp_skip(&f.z), left - 1);
		step = step < left - 1 ? step : left - 1;
		sp_zmtp_skipped(&f.z, step);
		left -= step;
	}
	assert_int_equal(sp_zmtp_skip(&f.z), 0);
	assert_int_equal(f.heard.n, 0);
	zmtp_feed(&f, body, 1);
	assert_int_equal(f.heard.n, 1);
	assert_int_equal(f.heard.v[0].size, 1ull << 40);
	assert_int_equal(f.heard.v[0].len, SP_ZMTP_PART);
	assert_memory_equal(f.heard.v[0].text, body, SP_ZMTP_PART);
	zmtp_feed(&f, next, sizeof(next));
	assert_int_equal(f.heard.n, 2);
	assert_int_equal(f.heard.v[1].index, 1);
	free(f.heard.v);
}

/* Sizes about what is kept, and about a short frame's longest. */
static void test_sizes(void **state)
{
	static uint8_t buf[70000];

	(void)state;
	for (uint32_t size = 0; size < 66000; size += size < 600 ? 1 : 9973) {
		for (int is_long = size > 255; is_long < 2; is_long++) {
			struct zmtp_feed f;
			size_t n = 0;

			buf[n++] = is_long ? SP_ZMTP_F_LONG : 0;
			for (int b = is_long ? 7 : 0; b >= 0; b--)
				buf[n++] = (uint8_t)((uint64_t)size >> 8 * b);
			for (uint32_t i = 0; i < size; i++)
				buf[n++] = (uint8_t)i;
			begin(&f, true, true);
			zmtp_feed(&f, buf, n);
			assert_int_equal(f.heard.n, 1);
			assert_int_equal(f.heard.v[0].at, n - 1);
			assert_int_equal(f.heard.v[0].size, size);
			assert_int_equal(f.heard.v[0].len, size < 64 ? size : 64);
			free(f.heard.v);
		}
	}
}

static uint64_t seed = 20261130;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

/* A valid frame, or now and then a broken one. */
static size_t put_frame(uint8_t *p, bool *more)
{
	bool command = rnd(6) == 0;
	uint32_t size = rnd(4) ? rnd(20) : rnd(400);
	bool is_long = size > 255 || rnd(4) == 0;
	size_t n = 0;

	size += command && !size;
	*more = command ? *more : rnd(2) != 0;
	p[n++] = (uint8_t)((command ? SP_ZMTP_F_COMMAND : *more) | (is_long ? SP_ZMTP_F_LONG : 0));
	if (rnd(300) == 0)
		p[0] ^= (uint8_t)(1 << rnd(8));
	for (int b = is_long ? 7 : 0; b >= 0; b--)
		p[n++] = (uint8_t)((uint64_t)size >> 8 * b);
	for (uint32_t i = 0; i < size; i++)
		p[n++] = (uint8_t)rnd(256);
	if (command)
		p[n - size] = (uint8_t)(rnd(size < 9 ? size : 9) + (rnd(100) != 0));
	return n;
}

static void test_random_streams(void **state)
{
	static uint8_t buf[1 << 16];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		bool middle = rnd(2), more = false;
		struct heard ref = {0};
		struct zmtp_feed f;
		size_t n = 0;

		if (!middle) {
			memcpy(buf, GREET, SP_ZMTP_GREET);
			n = SP_ZMTP_GREET;
			if (rnd(10) == 0)
				buf[rnd(SP_ZMTP_GREET)] = (uint8_t)rnd(256);
		}
		for (uint32_t frames = rnd(60); frames; frames--)
			n += put_frame(buf + n, &more);
		n -= rnd(n < 10 ? n + 1 : 10);
		zmtp_reference(buf, n, middle, &ref);
		begin(&f, middle, true);
		for (size_t at = 0; at < n;) {
			size_t part = 1 + rnd(rnd(2) ? 4 : 700);

			part = part < n - at ? part : n - at;
			zmtp_feed(&f, buf + at, part);
			at += part;
		}
		assert_true(heard_same(&ref, &f.heard));
		free(f.heard.v);
		begin(&f, middle, false);
		zmtp_feed(&f, buf, n);
		assert_true(heard_same(&ref, &f.heard));
		free(f.heard.v);
		free(ref.v);
	}
}

/* Nothing of a frame is left when the next begins. */
static void test_part_is_cleared(void **state)
{
	const uint8_t stream[] = "\0\6secret\0\0";
	struct zmtp_feed f;

	(void)state;
	begin(&f, true, true);
	zmtp_feed(&f, stream, 8);
	assert_memory_equal(f.z.part, "secret", 7);
	zmtp_feed(&f, stream + 8, 1);
	for (int i = 0; i < SP_ZMTP_PART; i++)
		assert_int_equal(f.z.part[i], 0);
	free(f.heard.v);
}

static void test_null(void **state)
{
	(void)state;
	assert_int_equal(sp_zmtp_byte(NULL, 0), SP_ZMTP_BAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),           cmocka_unit_test(test_a_huge_frame),
		cmocka_unit_test(test_sizes),           cmocka_unit_test(test_random_streams),
		cmocka_unit_test(test_part_is_cleared), cmocka_unit_test(test_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
