// SPDX-License-Identifier: Apache-2.0
/*
 * Calls within calls, calls that have been entered and not left, probes that are off: what the
 * kernel side and attach say of a target that obeys. Run as root; SILENTPIN_UPROBE as in
 * attach_smoke.
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
#include "util/clock.h"

#if defined(__x86_64__)
#define X86 true
#else
#define X86 false /* what an exception has ended is told by the stack pointer only */
#endif

static const char *const libs[] = {"libsmokecalls.so", NULL};

static struct rig rig;
static struct target target;

#define PROBE(name, symbol, on)                                                                    \
	"      - {name: " name ", library: smoke, symbol: " symbol ", on: " on ",\n"
#define ROOM "         args: [{name: room, fetch: $arg1, type: u64}], event: {role: call}}\n"
#define ROOM_IN_CALL                                                                               \
	"         scope: call, args: [{name: room, fetch: $arg1, type: u64}], event: {role: "      \
	"call}}\n"
#define IN_CALL "         scope: call, event: {role: call}}\n"

static const char yaml[] = RIG_YAML PROBE("outer", "calls_outer", "return")
	ROOM PROBE("middle", "calls_middle", "ret") ROOM_IN_CALL PROBE("nest", "calls_nest", "ret")
		ROOM PROBE("throwing", "\"_Z14calls_throwingl\"", "ret")
			ROOM PROBE("jumping", "calls_jumping", "ret") ROOM
	"      - {name: inner, library: smoke, symbol: calls_inner, on: entry, scope: call,\n"
	"         args: [{name: n, fetch: $arg1, type: s64}], event: {role: call}}\n" PROBE(
		"inner_return", "calls_inner", "return")
		IN_CALL PROBE("inner_ret", "calls_inner", "ret") IN_CALL
	"      - {name: answer, library: smoke, symbol: calls_answer, on: return,\n"
	"         skip_zero: true, skip_negative: true, event: {role: call}}\n"
	"      - {name: wait, library: smoke, symbol: calls_wait, on: return, scope: call,\n"
	"         args: [{name: n, fetch: $arg1, type: s64}], event: {role: call}}\n"
	"      - {name: wait_ret, library: smoke, symbol: calls_wait, on: ret,\n"
	"         args: [{name: n, fetch: $arg1, type: s64}], event: {role: call}}\n"
	"      - {name: spin, library: smoke, symbol: calls_spin, on: return,\n"
	"         args: [{name: n, fetch: $arg1, type: s64}], event: {role: call}}\n"
	"      - {name: spin_ret, library: smoke, symbol: calls_spin, on: ret, event: {role: "
	"call}}\n"
	"      - {name: quiet, library: smoke, symbol: calls_answer, on: entry, enabled: false,\n"
	"         event: {role: call}}\n";
#define PROBES 13 /* all but quiet */

static int attach(void **state)
{
	rig_attach(&rig, &target, libs, yaml, PROBES);
	return 0;
}

static int detach(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

static uint64_t enter_of(const char *probe, int i)
{
	const struct sp_rec_hit *h = rig_hit(&rig, probe, i);

	assert_non_null(h);
	assert_true(h->h.enter_ns && h->h.enter_ns <= h->h.ns);
	return h->h.enter_ns;
}

static uint64_t scope_of(const char *probe, int i)
{
	const struct sp_rec_hit *h = rig_hit(&rig, probe, i);

	assert_non_null(h);
	return h->h.scope_ns;
}

/* ---- calls within calls -------------------------------------------------------------------- */

static void test_nested_calls(void **state)
{
	uint64_t before = mono_ns(), outer, middle;

	rig_start(&rig);
	target_say(&target, "call calls_outer 7");
	rig_pump(&rig);
	outer = enter_of("outer", 0);
	middle = enter_of("middle", 0);
	assert_true(before < outer && outer < middle && middle < mono_ns());
	assert_int_equal(scope_of("outer", 0), 0);
	assert_int_equal(scope_of("middle", 0), outer);
	assert_int_equal(rig_count(&rig, "inner"), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(scope_of("inner", i), i == 1 ? middle : outer);
		assert_int_equal(scope_of("inner_return", i), i == 1 ? middle : outer);
		assert_int_equal(scope_of("inner_ret", i), i == 1 ? middle : outer);
		assert_true(enter_of("inner_return", i) >= (i == 1 ? middle : outer));
		assert_int_equal(rig_hit(&rig, "inner", i)->h.enter_ns, 0);
		assert_int_equal(rig_hit(&rig, "inner", i)->h.count, 1);
	}
	/* behind it, nothing encloses */
	rig_clear(&rig);
	target_say(&target, "call calls_inner 7");
	rig_pump(&rig);
	assert_int_equal(scope_of("inner", 0), 0);
	assert_int_equal(scope_of("inner_ret", 0), 0);
	assert_int_equal(rig_gained(&rig, SP_C_NO_ENTRY), 0);
	assert_int_equal(rig_gained(&rig, SP_C_SCOPE_FULL), 0);
}

/* More than are kept: the outermost and the innermost are told, the rest is counted as lost. */
static void test_deep_calls(void **state)
{
	rig_start(&rig);
	target_say(&target, "call calls_nest 9");
	target_say(&target, "call calls_inner 5");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "nest"), SP_SAVED_LEVELS);
	for (int i = 0; i < SP_SAVED_LEVELS; i++)
		assert_int_equal(rig_val(&rig, rig_hit(&rig, "nest", i), "room"), i ? 6 + i : 1);
	assert_int_equal(rig_gained(&rig, SP_C_SAVE_FULL), 9 - SP_SAVED_LEVELS);
	assert_int_equal(scope_of("inner", 0), enter_of("nest", 0));
	assert_int_equal(scope_of("inner", 1), 0);
}

static void test_zero_is_no_event(void **state)
{
	rig_start(&rig);
	target_say(&target, "call calls_answer 0");
	target_say(&target, "call calls_answer -1");
	target_say(&target, "call calls_answer 3");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "answer"), 1);
	assert_true(enter_of("answer", 0) > 0);
}

/* ---- calls under way ------------------------------------------------------------------------ */

#define MAX_INSIDE 16
static struct {
	struct attach_inside in[MAX_INSIDE];
	int n;
} under_way;

static void take(void *ctx, const struct attach_inside *in)
{
	assert_true(under_way.n < MAX_INSIDE);
	under_way.in[under_way.n++] = *in;
}

/* The call of a probe that is under way and was entered before older; NULL: none. */
static const struct attach_inside *inside(const char *probe, uint64_t older)
{
	int p = rig_probe(&rig, probe);

	under_way.n = 0;
	assert_int_equal(attach_inside(rig.attach, older, take, NULL), 0);
	for (int i = 0; i < under_way.n; i++)
		if (under_way.in[i].probe == p)
			return &under_way.in[i];
	return NULL;
}

/* Verified, with the thread asleep in it. */
static bool waits(struct rig *r, long arg)
{
	const struct attach_inside *in = inside("wait_ret", mono_ns());

	return in && !in->unsure;
}

static bool waits_no_more(struct rig *r, long arg)
{
	return !inside("wait_ret", mono_ns());
}

static bool spins(struct rig *r, long arg)
{
	return inside("spin", mono_ns()) && inside("spin_ret", mono_ns());
}

static void test_call_that_does_not_return(void **state)
{
	uint64_t before = mono_ns(), enter;
	const struct attach_inside *in;

	rig_start(&rig);
	target_say(&target, "thread calls_wait 77");
	rig_until(&rig, waits, 0, "the call to be seen");
	in = inside("wait_ret", mono_ns());
	assert_int_equal(in->pid, target.pid);
	assert_int_not_equal(in->tid, target.pid);
	assert_int_equal(in->nargs, 1);
	assert_int_equal(in->arg[0], 77);
	assert_int_equal(in->bad, 0);
	assert_int_equal(in->scope_ns, 0);
	assert_true(before < in->enter_ns && in->enter_ns < mono_ns());
	enter = in->enter_ns;
	in = inside("wait", mono_ns());
	assert_non_null(in); /* behind a return probe */
	assert_int_equal(in->arg[0], 77);
	assert_false(in->unsure);
	assert_int_equal(under_way.n, 2);
	assert_null(inside("wait_ret", enter)); /* not older than that */
	target_say(&target, "call calls_release 0");
	target_say(&target, "ended");
	assert_null(inside("wait_ret", mono_ns()));
	assert_int_equal(under_way.n, 0);
	rig_pump(&rig);
	assert_int_equal(enter_of("wait_ret", 0), enter);
}

/* The thread runs, so that its stack pointer cannot be had. */
static void test_call_that_spins(void **state)
{
	rig_start(&rig);
	target_say(&target, "thread calls_spin 5");
	rig_until(&rig, spins, 0, "the call to be seen");
	assert_int_equal(inside("spin", mono_ns())->unsure, !X86);
	assert_true(inside("spin_ret", mono_ns())->unsure);
	target_say(&target, "call calls_release 1");
	target_say(&target, "ended");
	assert_null(inside("spin", mono_ns()));
	assert_int_equal(under_way.n, 0);
}

static void test_calls_of_the_dead(void **state)
{
	rig_start(&rig);
	target_say(&target, "thread calls_wait 77");
	rig_until(&rig, waits, 0, "the call to be seen");
	target_end(&target);
	rig_until(&rig, waits_no_more, 0, "the process to end");
	assert_int_equal(under_way.n, 0);
}

/* ---- calls that have ended without a return ------------------------------------------------- */

/* command calls probe's function, which leaves by another way than its end when the number is odd.
 */
static void leave(const char *command, const char *probe)
{
	rig_start(&rig);
	target_say(&target, "call %s 2", command); /* returns */
	target_say(&target, "call %s 1", command); /* does not */
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, probe), 1);
	assert_int_equal(rig_count(&rig, "inner"), 6);
	for (int i = 0; i < 6; i++) {
		uint64_t scope = scope_of("inner", i);

		if (i % 3) /* behind it: directly, and one call deeper */
			assert_int_equal(scope, 0);
		else
			assert_int_not_equal(scope, 0);
	}
	assert_int_equal(scope_of("inner", 0), enter_of(probe, 0));
	assert_null(inside(probe, mono_ns()));

	/* asleep, deeper in the stack than it was: the stack pointer alone says nothing */
	target_say(&target, "thread %s 1001", command);
	rig_until(&rig, waits, 0, "the call behind it to be seen");
	if (X86) {
		assert_null(inside(probe, mono_ns()));
		assert_int_equal(inside("wait", mono_ns())->scope_ns, 0);
		assert_int_equal(under_way.n, 2);
	}
	target_say(&target, "call calls_release 0");
	target_say(&target, "ended");
	target_say(&target, "thread %s 2001", command);
	rig_until(&rig, spins, 0, "the call behind it to be seen");
	if (X86) {
		assert_null(inside(probe, mono_ns()));
	} else {
		assert_non_null(inside(probe, mono_ns()));
		assert_true(inside(probe, mono_ns())->unsure);
	}
	target_say(&target, "call calls_release 1");
	target_say(&target, "ended");
}

static void test_exception(void **state)
{
	leave("calls_catch", "throwing");
}

static void test_longjmp(void **state)
{
	leave("calls_jump", "jumping");
}

/* ---- probes that are off -------------------------------------------------------------------- */

static void check_off(void *ctx, const struct attach_row *row)
{
	int *seen = ctx;

	assert_int_equal(row->off, !strcmp(row->probe, "quiet"));
	assert_int_equal(row->ok, !row->off);
	if (!row->off)
		return;
	assert_string_equal(row->reason, "off: --enable quiet");
	(*seen)++;
}

static void test_probe_that_is_off(void **state)
{
	int seen = 0;

	rig_start(&rig);
	attach_rows(rig.attach, check_off, &seen);
	assert_int_equal(seen, 1);
	assert_false(rig_noticed(&rig, NOTICE_FAILED, target.pid));
	target_say(&target, "call calls_answer 3");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "quiet"), 0);
	assert_int_equal(rig_count(&rig, "answer"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_calls),
		cmocka_unit_test(test_deep_calls),
		cmocka_unit_test(test_zero_is_no_event),
		cmocka_unit_test(test_call_that_does_not_return),
		cmocka_unit_test(test_call_that_spins),
		cmocka_unit_test(test_exception),
		cmocka_unit_test(test_longjmp),
		cmocka_unit_test(test_probe_that_is_off),
		cmocka_unit_test(test_calls_of_the_dead), /* the last */
	};

	return cmocka_run_group_tests_name("calls", tests, attach, detach);
}
