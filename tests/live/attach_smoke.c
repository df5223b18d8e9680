// SPDX-License-Identifier: Apache-2.0
/*
 * Attach and the kernel side together, on the running kernel, with a target that obeys: what
 * comes out of the ring must be what the target was told to do. Run as root; with
 * SILENTPIN_UPROBE=perf or multi for one kind of probe.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach_rig.h"

static const char *const smoke_libs[] = {"libsmoke.so", "libsmokexx.so", NULL};

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char scalars_yaml[] =
	RIG_YAML "      - name: scalars\n        library: smoke\n        symbol: smoke_scalars\n"
		 "        on: entry\n"
		 "        args:\n"
		 "          - {name: a, fetch: $arg1, type: s32}\n"
		 "          - {name: b, fetch: $arg2, type: u8}\n"
		 "          - {name: c, fetch: $arg3, type: x64}\n" RIG_CALL
		 "      - name: stack\n        library: smoke\n        symbol: smoke_stack\n"
		 "        on: entry\n"
		 "        args:\n"
		 "          - {name: f, fetch: $arg6, type: u64}\n"
		 "          - {name: g, fetch: $arg7, type: u64}\n"
		 "          - {name: h, fetch: \"+0($arg8)\", type: string, max: 32}\n"
		 "          - {name: i, fetch: $arg9, type: u64}\n"
		 "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n" RIG_CALL
		 "      - name: stack_ret\n        library: smoke\n        symbol: smoke_stack\n"
		 "        on: ret\n"
		 "        args:\n"
		 "          - {name: g, fetch: $arg7, type: u64}\n"
		 "          - {name: h, fetch: \"+0($arg8)\", type: string, max: 16}\n"
		 "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n"
		 "          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
		 "      - name: stack_return\n        library: smoke\n        symbol: smoke_stack\n"
		 "        on: return\n"
		 "        args:\n"
		 "          - {name: g, fetch: $arg7, type: u64}\n"
		 "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n"
		 "          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
		 "      - name: text\n        library: smoke\n        symbol: smoke_text\n"
		 "        on: entry\n"
		 "        args:\n"
		 "          - {name: short, fetch: \"+0($arg1)\", type: string, max: 8}\n"
		 "          - {name: long, fetch: \"+0($arg1)\", type: string, max: 256}\n"
		 "          - {name: bytes, fetch: \"+0($arg1)\", type: bytes, max: 16}\n" RIG_CALL
		 "      - name: bad\n        library: smoke\n        symbol: smoke_release\n"
		 "        on: entry\n"
		 "        args:\n"
		 "          - {name: text, fetch: \"+0(\\\\8)\", type: string, max: 16}\n"
		 "          - {name: value, fetch: \"+0(\\\\16)\", type: u32}\n"
		 "          - {name: good, fetch: \"+0($arg1)\", type: s32}\n"
		 "          - name: other\n            type: s32\n            fetch:\n"
		 "              - {fetch: \"+0(\\\\8)\"}\n"
		 "              - {fetch: \"+0($arg1)\"}\n" RIG_CALL;

static void test_scalars(void **state)
{
	const struct sp_rec_hit *h;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, scalars_yaml);
	rig_add(&rig, target.pid, 6);
	target_say(&target, "scalars 0x123456789abcdef0");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "scalars"), 1);
	h = rig_hit(&rig, "scalars", 0);
	assert_int_equal((int64_t)rig_val(&rig, h, "a"), -5);
	assert_int_equal(rig_val(&rig, h, "b"), 200);
	assert_true(rig_val(&rig, h, "c") == 0x123456789abcdef0);
	assert_int_equal(rig_len(&rig, h, "a"), 0);
	assert_int_equal(h->h.pid, target.pid);
	assert_int_equal(h->h.tid, target.pid);
	assert_true(!attach_has_seq(rig.attach) || h->h.seq > 0);
	assert_int_equal(h->h.nargs, 3);
}

static void test_stack_arguments(void **state)
{
	const struct sp_rec_hit *h;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, scalars_yaml);
	rig_add(&rig, target.pid, 6);
	target_say(&target, "stack");
	rig_pump(&rig);
	h = rig_hit(&rig, "stack", 0);
	assert_int_equal(rig_val(&rig, h, "f"), 6);
	assert_int_equal(rig_val(&rig, h, "g"), 7);
	assert_string_equal(rig_text(&rig, h, "h"), "eight");
	assert_int_equal(rig_val(&rig, h, "h"), 5);
	assert_int_equal(rig_val(&rig, h, "i"), 9);
	assert_int_equal(rig_val(&rig, h, "j"), 1010);
	h = rig_hit(&rig, "stack_ret", 0);
	assert_int_equal(rig_val(&rig, h, "g"), 7);
	assert_string_equal(rig_text(&rig, h, "h"), "eight");
	assert_int_equal(rig_val(&rig, h, "j"), 1011);
	assert_int_equal(rig_val(&rig, h, "rc"), 21 + 7 + 9 + 5);
	h = rig_hit(&rig, "stack_return", 0);
	assert_int_equal(rig_val(&rig, h, "g"), 7);
	assert_int_equal(rig_val(&rig, h, "j"), 1011);
	assert_int_equal(rig_val(&rig, h, "rc"), 21 + 7 + 9 + 5);
	assert_int_equal(rig.nrec, 3);
}

static void test_texts(void **state)
{
	const struct sp_rec_hit *h;
	char text[300];

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, scalars_yaml);
	rig_add(&rig, target.pid, 6);
	memset(text, 'y', sizeof(text));
	text[299] = 0;
	target_say(&target, "text %s", text);
	target_say(&target, "text");
	target_say(&target, "text 1234567");
	rig_pump(&rig);
	h = rig_hit(&rig, "text", 2);
	assert_int_equal(rig_len(&rig, h, "short"), 7);
	assert_int_equal(rig_val(&rig, h, "short"), 7); /* it fits */
	h = rig_hit(&rig, "text", 0);
	assert_int_equal(rig_len(&rig, h, "short"), 7);
	assert_int_equal(rig_val(&rig, h, "short"), 8); /* there is more */
	assert_int_equal(rig_len(&rig, h, "long"), 255);
	assert_int_equal(rig_val(&rig, h, "long"), 256);
	assert_memory_equal(rig_text(&rig, h, "long"), text, 255);
	assert_int_equal(rig_len(&rig, h, "bytes"), 16);
	assert_memory_equal(rig_text(&rig, h, "bytes"), text, 16);
	h = rig_hit(&rig, "text", 1);
	assert_int_equal(rig_len(&rig, h, "short"), SP_LEN_EMPTY);
}

static void test_read_errors(void **state)
{
	const struct sp_rec_hit *h;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, scalars_yaml);
	rig_add(&rig, target.pid, 6);
	target_say(&target, "release 77");
	rig_pump(&rig);
	h = rig_hit(&rig, "bad", 0);
	assert_int_equal(rig_len(&rig, h, "text"), -14);
	assert_int_equal(rig_len(&rig, h, "value"), -14);
	assert_int_equal(rig_len(&rig, h, "good"), 0);
	assert_int_equal(rig_val(&rig, h, "good"), 77);
	assert_int_equal(rig_len(&rig, h, "other"), 0); /* the second alternative */
	assert_int_equal(rig_val(&rig, h, "other"), 77);
	assert_int_equal(rig_counter(&rig, SP_C_READ_FAULT), 1); /* counted once a hit */
}

static const char refused_yaml[] = RIG_YAML
	"      - name: forbidden\n        library: smoke\n        symbol: smoke_forbidden\n"
	"        on: entry\n" RIG_CALL
	"      - name: text\n        library: smoke\n        symbol: smoke_text\n"
	"        on: entry\n" RIG_CALL;

static void check_refused(void *ctx, const struct attach_row *row)
{
	int *seen = ctx;
	bool forbidden = !strcmp(row->probe, "forbidden");

	assert_int_equal(row->ok, !forbidden);
	if (forbidden)
		assert_non_null(strstr(row->reason, "allows no probe on this instruction"));
	(*seen)++;
}

/* A link is all or nothing: the probe that the kernel refuses must not cost the others. */
static void test_refused_probe(void **state)
{
	static const char *const libs[] = {"libsmoke.so", NULL};
	int seen = 0;

	target_run(&target, NULL, libs);
	rig_open(&rig, refused_yaml);
	rig_add(&rig, target.pid, 1);
	attach_rows(rig.attach, check_refused, &seen);
	assert_int_equal(seen, 2);
	target_say(&target, "text x");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "text"), 1);
}

/* ---- returns --------------------------------------------------------------------------------- */

static const char returns_yaml[] = RIG_YAML
	"      - name: ways\n        library: smoke\n        symbol: smoke_ways\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: n, fetch: $arg1, type: s64}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
	"      - name: tail\n        library: smoke\n        symbol: smoke_tail\n"
	"        on: ret\n        required: false\n"
	"        args:\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
	"      - name: made\n        library: smoke\n        symbol: smoke_make\n"
	"        on: return\n        skip_negative: true\n"
	"        args:\n"
	"          - {name: op, fetch: \"+0($arg2)\", type: x64}\n"
	"          - {name: rc, fetch: $retval, type: s32}\n" RIG_CALL
	"      - name: thrower\n        library: smoke\n        symbol: \"_Z11smoke_throw*\"\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: n, fetch: $arg1, type: s64}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL
	"      - name: strings\n        library: smoke\n        symbol: \"_Z12smoke_string*\"\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: s, fetch: \"+0($arg1)\", type: stdstring, max: 128}\n"
	"          - {name: note, fetch: \"+8($arg2)\", type: stdstring, max: 64,\n"
	"             if: \"+40($arg2):u8\"}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" RIG_CALL;

static void test_every_return(void **state)
{
	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, returns_yaml);
	rig_add(&rig, target.pid, 4); /* all but tail */
	assert_true(rig_noticed(&rig, NOTICE_FAILED, target.pid));
	target_say(&target, "ways -3");
	target_say(&target, "ways 1");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "ways"), 2);
	assert_int_equal((int64_t)rig_val(&rig, rig_hit(&rig, "ways", 0), "n"), -3);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "ways", 1), "n"), 1);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "ways", 1), "rc"), 1);
	/* Calls of one function inside each other: each is told, the innermost first. */
	rig_clear(&rig);
	target_say(&target, "ways 4");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "ways"), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_val(&rig, rig_hit(&rig, "ways", i), "n"), 2 + i);
	assert_int_equal(rig_counter(&rig, SP_C_NO_ENTRY), 0);
}

static void test_registers_survive(void **state)
{
	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, returns_yaml);
	rig_add(&rig, target.pid, 4);
	for (int n = -1; n < 4; n++)
		assert_string_equal(target_say(&target, "registers %d", n), "bad=0 ok");
	rig_pump(&rig);
	assert_true(rig_count(&rig, "ways") >= 4);
}

static void test_exceptions_pass(void **state)
{
	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, returns_yaml);
	rig_add(&rig, target.pid, 4);
	for (int i = 0; i < 20; i++) {
		assert_string_equal(target_say(&target, "throw 3"), "thrown=1 ok");
		assert_string_equal(target_say(&target, "throw 8"), "thrown=0 ok");
	}
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "thrower"), 20);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "thrower", 19), "n"), 8);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "thrower", 19), "rc"), 4);
}

static void test_negative_dropped(void **state)
{
	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, returns_yaml);
	rig_add(&rig, target.pid, 4);
	target_say(&target, "make -1");
	target_say(&target, "make 0");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "made"), 1);
	assert_true(rig_val(&rig, rig_hit(&rig, "made", 0), "op") != 0);
}

static void test_cxx_strings(void **state)
{
	char text[201];
	const struct sp_rec_hit *h;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, returns_yaml);
	rig_add(&rig, target.pid, 4);
	memset(text, 'z', sizeof(text));
	text[200] = 0;
	target_say(&target, "string hello 77_kv_0_1_0");
	target_say(&target, "string %s", text);
	rig_pump(&rig);
	h = rig_hit(&rig, "strings", 0);
	assert_string_equal(rig_text(&rig, h, "s"), "hello");
	assert_string_equal(rig_text(&rig, h, "note"), "77_kv_0_1_0");
	assert_int_equal(rig_val(&rig, h, "rc"), 11);
	h = rig_hit(&rig, "strings", 1);
	assert_int_equal(rig_len(&rig, h, "s"), 128);
	assert_int_equal(rig_val(&rig, h, "s"), 200);
	assert_int_equal(rig_len(&rig, h, "note"), SP_LEN_UNSET); /* not engaged */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_scalars, clean),
		cmocka_unit_test_teardown(test_stack_arguments, clean),
		cmocka_unit_test_teardown(test_texts, clean),
		cmocka_unit_test_teardown(test_read_errors, clean),
		cmocka_unit_test_teardown(test_refused_probe, clean),
		cmocka_unit_test_teardown(test_every_return, clean),
		cmocka_unit_test_teardown(test_registers_survive, clean),
		cmocka_unit_test_teardown(test_exceptions_pass, clean),
		cmocka_unit_test_teardown(test_negative_dropped, clean),
		cmocka_unit_test_teardown(test_cxx_strings, clean),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
