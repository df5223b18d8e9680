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

#define HEAD                                                                                       \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: smoke\n"                                                                        \
	"    match: {cmdline: \"*smoke_target*\"}\n"                                               \
	"    room: {type: u64}\n"                                                                  \
	"    libraries:\n"                                                                         \
	"      smoke: {file: \"libsmoke*.so\"}\n"                                                  \
	"      zmq: {file: \"libzmq*.so*\"}\n"                                                     \
	"    probes:\n"
#define EVENT "        event: {role: call}\n"

static const char *const smoke_libs[] = {"libsmoke.so", "libsmokexx.so", NULL};

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	target_end(&target);
	if (rig.attach)
		rig_close(&rig);
	return 0;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char scalars_yaml[] =
	HEAD "      - name: scalars\n        library: smoke\n        symbol: smoke_scalars\n"
	     "        on: entry\n"
	     "        args:\n"
	     "          - {name: a, fetch: $arg1, type: s32}\n"
	     "          - {name: b, fetch: $arg2, type: u8}\n"
	     "          - {name: c, fetch: $arg3, type: x64}\n" EVENT
	     "      - name: stack\n        library: smoke\n        symbol: smoke_stack\n"
	     "        on: entry\n"
	     "        args:\n"
	     "          - {name: f, fetch: $arg6, type: u64}\n"
	     "          - {name: g, fetch: $arg7, type: u64}\n"
	     "          - {name: h, fetch: \"+0($arg8)\", type: string, max: 32}\n"
	     "          - {name: i, fetch: $arg9, type: u64}\n"
	     "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n" EVENT
	     "      - name: stack_ret\n        library: smoke\n        symbol: smoke_stack\n"
	     "        on: ret\n"
	     "        args:\n"
	     "          - {name: g, fetch: $arg7, type: u64}\n"
	     "          - {name: h, fetch: \"+0($arg8)\", type: string, max: 16}\n"
	     "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n"
	     "          - {name: rc, fetch: $retval, type: s64}\n" EVENT
	     "      - name: stack_return\n        library: smoke\n        symbol: smoke_stack\n"
	     "        on: return\n"
	     "        args:\n"
	     "          - {name: g, fetch: $arg7, type: u64}\n"
	     "          - {name: j, fetch: \"+0($arg10)\", type: s32}\n"
	     "          - {name: rc, fetch: $retval, type: s64}\n" EVENT
	     "      - name: text\n        library: smoke\n        symbol: smoke_text\n"
	     "        on: entry\n"
	     "        args:\n"
	     "          - {name: short, fetch: \"+0($arg1)\", type: string, max: 8}\n"
	     "          - {name: long, fetch: \"+0($arg1)\", type: string, max: 256}\n"
	     "          - {name: bytes, fetch: \"+0($arg1)\", type: bytes, max: 16}\n" EVENT
	     "      - name: bad\n        library: smoke\n        symbol: smoke_release\n"
	     "        on: entry\n"
	     "        args:\n"
	     "          - {name: text, fetch: \"+0(\\\\8)\", type: string, max: 16}\n"
	     "          - {name: value, fetch: \"+0(\\\\16)\", type: u32}\n"
	     "          - {name: good, fetch: \"+0($arg1)\", type: s32}\n"
	     "          - name: other\n            type: s32\n            fetch:\n"
	     "              - {fetch: \"+0(\\\\8)\"}\n"
	     "              - {fetch: \"+0($arg1)\"}\n" EVENT;

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
	rig_pump(&rig);
	h = rig_hit(&rig, "text", 0);
	assert_int_equal(rig_len(&rig, h, "short"), 7);
	assert_int_equal(rig_len(&rig, h, "long"), 255);
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

/* ---- returns --------------------------------------------------------------------------------- */

static const char returns_yaml[] = HEAD
	"      - name: ways\n        library: smoke\n        symbol: smoke_ways\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: n, fetch: $arg1, type: s64}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" EVENT
	"      - name: tail\n        library: smoke\n        symbol: smoke_tail\n"
	"        on: ret\n        required: false\n"
	"        args:\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" EVENT
	"      - name: made\n        library: smoke\n        symbol: smoke_make\n"
	"        on: return\n        skip_negative: true\n"
	"        args:\n"
	"          - {name: op, fetch: \"+0($arg2)\", type: x64}\n"
	"          - {name: rc, fetch: $retval, type: s32}\n" EVENT
	"      - name: thrower\n        library: smoke\n        symbol: \"_Z11smoke_throw*\"\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: n, fetch: $arg1, type: s64}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" EVENT
	"      - name: strings\n        library: smoke\n        symbol: \"_Z12smoke_string*\"\n"
	"        on: ret\n"
	"        args:\n"
	"          - {name: s, fetch: \"+0($arg1)\", type: stdstring, max: 128}\n"
	"          - {name: note, fetch: \"+8($arg2)\", type: stdstring, max: 64,\n"
	"             if: \"+40($arg2):u8\"}\n"
	"          - {name: rc, fetch: $retval, type: s64}\n" EVENT;

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
	/* Nested calls: the innermost is told, the outer ones are counted, none is told wrongly. */
	rig_clear(&rig);
	target_say(&target, "ways 4");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "ways"), 1);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "ways", 0), "n"), 2);
	assert_int_equal(rig_counter(&rig, SP_C_NO_ENTRY), 2);
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

/* ---- polls ----------------------------------------------------------------------------------- */

static const char polls_yaml[] =
	HEAD "      - name: made\n        library: smoke\n        symbol: smoke_make\n"
	     "        on: ret\n"
	     "        args:\n"
	     "          - {name: op, fetch: \"+0($arg2)\", type: x64}\n"
	     "          - {name: rc, fetch: $retval, type: s32}\n"
	     "        event: {role: post, error: rc}\n"
	     "      - name: polled\n        library: smoke\n        symbol: smoke_status\n"
	     "        on: ret\n        on_change: op\n"
	     "        args:\n"
	     "          - {name: op, fetch: $arg1, type: x64}\n"
	     "          - {name: rc, fetch: $retval, type: s32}\n"
	     "        event: {role: status, status: rc}\n"
	     "      - name: released\n        library: smoke\n        symbol: smoke_release\n"
	     "        on: entry\n"
	     "        args:\n"
	     "          - {name: op, fetch: $arg1, type: x64}\n"
	     "        event: {role: close}\n";

static void test_on_change(void **state)
{
	struct sp_poll poll;
	uint64_t op;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, polls_yaml);
	rig_add(&rig, target.pid, 3);
	target_say(&target, "polls 100 1 1");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	op = rig_val(&rig, rig_hit(&rig, "polled", 0), "op");
	assert_true(attach_last_poll(rig.attach, (uint32_t)target.pid, op, &poll));
	assert_int_equal(poll.count, 100);
	assert_int_equal(poll.answer, 1);
	assert_int_equal(poll.tid, target.pid);
	rig_clear(&rig);
	target_say(&target, "polls 50 0 0"); /* another answer */
	target_say(&target, "polls 50 0 0");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "polled", 0), "rc"), 0);
	rig_clear(&rig);
	target_say(&target, "polls 5 0 1"); /* the handle is made anew: the same answer is news */
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	target_say(&target, "polls 5 0 2"); /* and released */
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "released"), 1);
	assert_false(attach_last_poll(rig.attach, (uint32_t)target.pid, op, &poll));
}

/* ---- frames ---------------------------------------------------------------------------------- */

static const char frames_yaml[] = HEAD
	"      - name: received\n        library: zmq\n        symbol: zmq_msg_recv\n"
	"        on: return\n        skip_negative: true\n"
	"        args:\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"          - {name: sock, fetch: $arg2, type: x64}\n"
	"        frame: frame\n        socket: sock\n"
	"        messages:\n"
	"          - name: guard\n"
	"            frames: [Guard, \"{room}\", \"{ip:ip}\", \"{n:len}\", \"*\", \"{agent}\"]\n"
	"            event: {role: announce, peer: \"{ip}\"}\n"
	"          - name: abort\n"
	"            frames: [ABORT, \"{room}\"]\n"
	"            event: {role: abort}\n"
	"      - name: sent\n        library: zmq\n        symbol: zmq_msg_send\n"
	"        on: entry\n"
	"        args:\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"          - {name: sock, fetch: $arg2, type: x64}\n"
	"          - {name: flags, fetch: $arg3, type: u32}\n"
	"        frame: frame\n        socket: sock\n"
	"        more: {arg: flags, mask: 2}\n"
	"        messages:\n"
	"          - name: abort\n"
	"            frames: [ABORT, \"{room}\"]\n"
	"            event: {role: control, kind: abort}\n";

static void start_zmq(void)
{
	static const char *const libs[] = {"libzmq.so.5", NULL};

	target_run(&target, NULL, libs);
	assert_string_equal(target_say(&target, "zmq"), "ok");
}

static bool has_received(struct rig *r, long n)
{
	return rig_count(r, "received") >= n;
}

static bool has_dropped(struct rig *r, long n)
{
	return rig_counter(r, SP_C_FRAMES_DROPPED) >= (uint64_t)n;
}

static void assert_frame(const char *probe, int i, int index, int flags, const char *text)
{
	const struct sp_rec_hit *h = rig_hit(&rig, probe, i);

	assert_non_null(h);
	assert_int_equal(h->h.frame, index);
	assert_int_equal(h->h.flags, flags);
	if (text)
		assert_string_equal(rig_text(&rig, h, "frame"), text);
	else
		assert_int_equal(rig_len(&rig, h, "frame"), SP_LEN_UNSET);
}

static void test_frames(void **state)
{
	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	/* The reader was inside the call before its probe was there: frame 0 is not seen. */
	target_say(&target, "send Guard|123|10.0.0.1|*500|*70|agent-1");
	rig_until(&rig, has_received, 5, "the rest of the first message");
	assert_frame("received", 0, 0, SP_RF_CUT | SP_RF_MORE, "123");
	assert_frame("received", 1, 1, SP_RF_CUT | SP_RF_MORE, "10.0.0.1");
	assert_frame("received", 2, 2, SP_RF_CUT | SP_RF_MORE, NULL);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 2), "frame"), 500);
	assert_frame("received", 3, 3, SP_RF_CUT | SP_RF_MORE, NULL); /* over 64 bytes */
	assert_frame("received", 4, 4, SP_RF_CUT, "agent-1");
	rig_clear(&rig);
	/* Then the beginning is known. */
	target_say(&target, "send Guard|456|10.0.0.2|*33|secret words|agent-2");
	rig_until(&rig, has_received, 6, "the second message");
	assert_frame("received", 0, 0, SP_RF_MORE, "Guard");
	assert_frame("received", 1, 1, SP_RF_MORE, "456");
	assert_frame("received", 2, 2, SP_RF_MORE, "10.0.0.2");
	assert_frame("received", 3, 3, SP_RF_MORE, NULL); /* only its length is wanted */
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 3), "frame"), 33);
	assert_frame("received", 4, 4, SP_RF_MORE, NULL);
	assert_frame("received", 5, 5, 0, "agent-2");
	assert_int_equal(rig_count(&rig, "sent"), 0); /* none of them was an ABORT */
}

static void test_frames_dropped(void **state)
{
	uint64_t before;

	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	target_say(&target, "send whatever|first");
	rig_until(&rig, has_dropped, 2 + 1, "the first message, half seen, and what was sent");
	before = rig_counter(&rig, SP_C_FRAMES_DROPPED);
	/* A room number first is a prompt's business now that the boundary is known. */
	target_say(&target, "send 12345|prompt|Guard|77");
	target_say(&target, "send ABORT|99");
	rig_until(&rig, has_received, 2, "the abort");
	assert_int_equal(rig_count(&rig, "received"), 2);
	assert_frame("received", 0, 0, SP_RF_MORE, "ABORT");
	assert_frame("received", 1, 1, 0, "99");
	assert_int_equal(rig_count(&rig, "sent"), 2);
	assert_frame("sent", 1, 1, 0, "99");
	assert_int_equal(rig_counter(&rig, SP_C_FRAMES_DROPPED) - before, 8);
	for (int i = 0; i < rig.nrec; i++)
		assert_null(memmem(rig.rec[i].hit.data, 64, "prompt", 6));
}

/* A cut message's words that could be anybody's text do not leave the target. */
static void test_frames_cut_private(void **state)
{
	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	target_say(&target, "send Guard|123|tell me a story|ok_word");
	rig_until(&rig, has_received, 3, "the cut message");
	assert_frame("received", 0, 0, SP_RF_CUT | SP_RF_MORE, "123");
	assert_frame("received", 1, 1, SP_RF_CUT | SP_RF_MORE, NULL);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 1), "frame"), 15);
	assert_frame("received", 2, 2, SP_RF_CUT, "ok_word");
	for (int i = 0; i < rig.nrec; i++)
		assert_null(memmem(rig.rec[i].hit.data, 64, "story", 5));
	target_say(&target, "empty 1000");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "received"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_scalars, clean),
		cmocka_unit_test_teardown(test_stack_arguments, clean),
		cmocka_unit_test_teardown(test_texts, clean),
		cmocka_unit_test_teardown(test_read_errors, clean),
		cmocka_unit_test_teardown(test_every_return, clean),
		cmocka_unit_test_teardown(test_registers_survive, clean),
		cmocka_unit_test_teardown(test_exceptions_pass, clean),
		cmocka_unit_test_teardown(test_negative_dropped, clean),
		cmocka_unit_test_teardown(test_cxx_strings, clean),
		cmocka_unit_test_teardown(test_on_change, clean),
		cmocka_unit_test_teardown(test_frames, clean),
		cmocka_unit_test_teardown(test_frames_dropped, clean),
		cmocka_unit_test_teardown(test_frames_cut_private, clean),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
