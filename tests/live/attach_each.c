// SPDX-License-Identifier: Apache-2.0
/*
 * Probes that look at several elements: lists, arrays, lists of arrays; and what they count. Run as
 * root; SILENTPIN_UPROBE as in attach_smoke.
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

static const char *const libs[] = {"libsmokecalls.so", NULL};

static struct rig rig;
static struct target target;

static const char yaml[] = RIG_YAML
	"      - name: post\n        library: smoke\n        symbol: calls_post\n        on: ret\n"
	"        each: {list: $arg2, next: 8}\n"
	"        args:\n"
	"          - {name: qp, fetch: \"+0($arg1)\", type: s32}\n"
	"          - {name: value, fetch: \"+0($each)\", type: s64}\n"
	"          - {name: rc, fetch: $retval, type: s32}\n"
	"          - {name: device, fetch: \"+16($arg1)\", type: u64}\n"
	"        tally: {name: queue, key: qp, within: device, posts: true,\n"
	"          refused: \"+8($arg1)\", if: {fetch: \"+16($each):s32\", mask: 1}}\n" RIG_CALL
	"      - name: some\n        library: smoke\n        symbol: calls_post\n"
	"        on: return\n"
	"        each: {list: $arg2, next: 8}\n"
	"        only: {fetch: \"+16($each):s32\", mask: 2}\n"
	"        args: [{name: value, fetch: \"+0($each)\", type: s64}]\n" RIG_CALL
	"      - name: first\n        library: smoke\n        symbol: calls_post\n"
	"        on: entry\n"
	"        each: {list: $arg2, next: 8}\n"
	"        only: \"+16($each):s32\"\n        events: first\n"
	"        args: [{name: value, fetch: \"+0($each)\", type: s64}]\n" RIG_CALL
	"      - name: count\n        library: smoke\n        symbol: calls_post\n"
	"        on: return\n        each: {list: $arg2, next: 8}\n        events: first\n"
	"        args: [{name: qp, fetch: \"+0($arg1)\", type: s32}]\n"
	"        tally: {name: other, key: qp, posts: true, refused: \"+8($arg1)\"}\n" RIG_CALL
	"      - name: two\n        library: smoke\n        symbol: calls_post\n        on: ret\n"
	"        each:\n"
	"          - {list: $arg2, next: 8}\n"
	"          - {array: \"+24($each)\", count: \"+20($each):s32\", stride: 16}\n"
	"        args:\n"
	"          - {name: value, fetch: \"+0($each)\", type: s64}\n"
	"          - {name: outer, fetch: \"+0($outer)\", type: s64}\n" RIG_CALL
	"      - name: poll\n        library: smoke\n        symbol: calls_poll\n        on: ret\n"
	"        skip_negative: true\n"
	"        each: {array: $arg3, count: \"$retval:s32\", stride: 8}\n"
	"        only: \"+0($each):s32\"\n"
	"        args:\n"
	"          - {name: status, fetch: \"+0($each)\", type: s32}\n"
	"          - {name: qp, fetch: \"+4($each)\", type: s32}\n"
	"          - {name: device, fetch: \"+16($arg1)\", type: u64}\n"
	"        tally: {name: queue, key: qp, within: device, completes: true}\n" RIG_CALL
	"      - name: end\n        library: smoke\n        symbol: calls_end\n        on: entry\n"
	"        each: {array: $arg1, count: \\1, stride: 1}\n"
	"        only: {fetch: $arg2, mask: 2}\n"
	"        args:\n"
	"          - {name: qp, fetch: \"+0($arg1)\", type: s32}\n"
	"          - {name: device, fetch: \"+16($arg1)\", type: u64}\n"
	"        tally: {name: queue, key: qp, within: device, ends: true,\n"
	"          if: {fetch: $arg2, mask: 1}}\n" RIG_CALL
	"      - name: batch\n        library: smoke\n        symbol: calls_batch\n"
	"        on: entry\n"
	"        each: {array: \"+0($arg1)\", end: \"+8($arg1)\", number: \"+16($arg1)\"}\n"
	"        args: [{name: value, fetch: \"+0($each)\", type: s64}]\n" RIG_CALL;
#define PROBES 8

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

enum { PLAIN, CYCLIC, BROKEN, REFUSED, PART, ELSEWHERE };

static void post(int queue, int how, int n)
{
	rig_clear(&rig);
	target_say(&target, "call calls_do_post 0x%x", queue << 16 | how << 12 | n);
	rig_pump(&rig);
}

static void poll_done(int queue, int n)
{
	rig_clear(&rig);
	target_say(&target, "call calls_do_poll 0x%x", queue << 16 | (n & 0xffff));
	rig_pump(&rig);
}

/* The values of a probe's records are these, in this order. */
static void check_values(const char *probe, const char *arg, const long *want, int n)
{
	assert_int_equal(rig_count(&rig, probe), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(rig_val(&rig, rig_hit(&rig, probe, i), arg), want[i]);
}

static void check_run(const char *probe, long from, int n)
{
	long want[SP_EACH_MAX];

	for (int i = 0; i < n; i++)
		want[i] = from + i;
	check_values(probe, "value", want, n);
}

static void test_list(void **state)
{
	const struct sp_rec_hit *h;

	rig_start(&rig);
	post(7, PLAIN, 3);
	check_run("post", 100, 3);
	for (int i = 0; i < 3; i++) {
		h = rig_hit(&rig, "post", i);
		assert_int_equal(rig_val(&rig, h, "qp"), 7);
		assert_int_equal(rig_val(&rig, h, "rc"), 0);
		assert_int_equal(h->h.count, 1);
		assert_true(h->h.enter_ns && h->h.enter_ns <= h->h.ns);
	}
	post(7, PLAIN, 1);
	check_run("post", 100, 1);
	post(7, PLAIN, 0);
	assert_int_equal(rig.nrec, 0);
	assert_int_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
	assert_int_equal(rig_gained(&rig, SP_C_EACH_CUT), 0);
	post(7, BROKEN, 3); /* the fourth is nowhere */
	check_run("post", 100, 3);
	assert_int_not_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
	assert_int_equal(rig_gained(&rig, SP_C_EACH_CUT), 0);
}

static void test_long_lists(void **state)
{
	rig_start(&rig);
	post(7, PLAIN, SP_EACH_MAX);
	check_run("post", 100, SP_EACH_MAX);
	assert_int_equal(rig_hit(&rig, "first", 0)->h.count, SP_EACH_MAX);
	post(7, PLAIN, SP_EACH_MAX + 1);
	check_run("post", 100, SP_EACH_MAX);
	assert_int_not_equal(rig_gained(&rig, SP_C_EACH_CUT), 0);
	post(7, CYCLIC, 5);
	assert_int_equal(rig_count(&rig, "post"), SP_EACH_MAX);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "post", 63), "value"), 103);
	assert_int_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
}

/* Of the flags, which are 0 and 1 in turn, one probe asks for bit 1 and the other for bit 0. */
static void test_only(void **state)
{
	rig_start(&rig);
	post(7, PLAIN, 4);
	assert_int_equal(rig_count(&rig, "some"), 0);
	assert_int_equal(rig_count(&rig, "first"), 1);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "first", 0), "value"), 101);
	assert_int_equal(rig_hit(&rig, "first", 0)->h.count, 4);
	post(7, PLAIN, 1); /* none qualifies */
	assert_int_equal(rig_count(&rig, "first"), 0);
}

static void test_two_levels(void **state)
{
	/* the items have 0, 1, 2, 0, 1 parts, of which the first is the item's own */
	static const long values[] = {1001, 1002, 1003, 1004}, outer[] = {101, 102, 102, 104};

	rig_start(&rig);
	post(7, PLAIN, 5);
	check_values("two", "value", values, 4);
	check_values("two", "outer", outer, 4);
	post(7, PLAIN, 1);
	assert_int_equal(rig_count(&rig, "two"), 0);
	assert_int_equal(rig_gained(&rig, SP_C_EACH_CUT), 0);
	post(7, PLAIN,
	     257); /* three items have three parts: 512 are the 257th item and 255 parts */
	assert_int_equal(rig_count(&rig, "two"), 255);
	assert_int_equal(rig_gained(&rig, SP_C_EACH_CUT), 1);
}

static void test_arrays(void **state)
{
	rig_start(&rig);
	poll_done(7, 3);
	assert_int_equal(rig_count(&rig, "poll"), 1); /* the one that has failed */
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "poll", 0), "status"), 5);
	poll_done(7, 0);
	assert_int_equal(rig.nrec, 0);
	poll_done(7, -1);
	assert_int_equal(rig.nrec, 0);
	/* whatever the size of an element */
	for (int stride = 8; stride <= 56; stride += 24) {
		rig_clear(&rig);
		target_say(&target, "call calls_do_batch 0x%x", stride << 8 | 5);
		rig_pump(&rig);
		check_run("batch", 500, 5);
	}
	rig_clear(&rig);
	target_say(&target, "call calls_do_batch 0x%x", 8 << 8);
	rig_pump(&rig);
	assert_int_equal(rig.nrec, 0);
	assert_int_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
}

/* ---- tallies -------------------------------------------------------------------------------- */

struct tally_of {
	uint64_t key, within;
	struct sp_tally n;
	int seen;
};

static void take(void *ctx, const struct attach_tally *t)
{
	struct tally_of *want = ctx;

	assert_int_equal(t->pid, target.pid);
	if (t->id || t->key != want->key || t->within != want->within)
		return;
	want->n = t->n;
	want->seen++;
}

/* Of device << 8 | id, as post() takes it. */
static struct sp_tally tally(uint64_t queue)
{
	struct tally_of t = {.key = queue & 255, .within = queue >> 8};

	assert_int_equal(attach_tallies(rig.attach, take, &t), 0);
	assert_true(t.seen <= 1);
	return t.n;
}

static void test_tallies(void **state)
{
	uint64_t before = mono_ns();
	struct sp_tally t;

	rig_start(&rig);
	post(11, PLAIN, 3);
	t = tally(11);
	assert_int_equal(t.posted, 3);
	assert_int_equal(t.asked, 1);
	assert_int_equal(t.completed, 0);
	assert_int_equal(t.tid, target.pid);
	assert_true(before < t.post_ns && t.post_ns < mono_ns());
	assert_int_equal(t.done_ns, 0);
	post(11, REFUSED, 4); /* not posted, and told */
	assert_int_equal(rig_count(&rig, "post"), 4);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "post", 0), "rc"), 12);
	t = tally(11);
	assert_int_equal(t.posted, 3);
	assert_int_equal(t.asked, 1);
	poll_done(11, 2); /* the second fails */
	t = tally(11);
	assert_int_equal(t.completed, 2);
	assert_int_equal(t.failed, 1);
	assert_true(t.post_ns < t.done_ns && t.done_ns < mono_ns());
	poll_done(11, -1);
	assert_int_equal(tally(11).completed, 2);
	/* of another, whose work was posted before the attach */
	poll_done(13, 5);
	t = tally(13);
	assert_int_equal(t.posted, 0);
	assert_int_equal(t.completed, 5);
	assert_int_equal(t.failed, 1);
	assert_int_equal(tally(11).posted, 3);
	/* of these all were; what is posted now does not make them fewer */
	assert_int_equal(t.early, 5);
	assert_int_equal(t.early_asked, 5);
	post(13, PLAIN, 3);
	poll_done(13, 2);
	t = tally(13);
	assert_int_equal(t.posted, 3);
	assert_int_equal(t.completed, 7);
	assert_int_equal(t.early, 5);
	assert_int_equal(t.early_asked, 6); /* one of the three asks */
	assert_int_equal(tally(11).early, 0);
	assert_int_equal(tally(11).early_asked, 1);
	assert_int_equal(rig_gained(&rig, SP_C_TALLY_FULL), 0);
	/* many in one call */
	post(29, PLAIN, 500);
	poll_done(29, 500);
	t = tally(29);
	assert_int_equal(t.posted, 500);
	assert_int_equal(t.completed, 500);
}

static void check_posted(int how, int n, unsigned posted, unsigned asked)
{
	struct sp_tally before = tally(19), t;

	post(19, how, n);
	t = tally(19);
	assert_int_equal(t.posted - before.posted, posted);
	assert_int_equal(t.asked - before.asked, asked);
}

/* Of a call that fails half-way, only what lies before the first that it refused. */
static void test_posted_in_part(void **state)
{
	rig_start(&rig);
	check_posted(PART, 5, 3, 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rig_hit(&rig, "post", i)->h.posted, i < 3);
	assert_int_equal(rig_hit(&rig, "count", 0)->h.count, 5);
	assert_int_equal(rig_hit(&rig, "count", 0)->h.posted, 3);
	check_posted(REFUSED, 5, 0, 0);
	check_posted(ELSEWHERE, 5, 0, 0);
	assert_int_equal(rig_hit(&rig, "count", 0)->h.posted, 0);
	assert_int_equal(rig_gained(&rig, SP_C_EACH_CUT), 0);
	check_posted(ELSEWHERE, SP_EACH_MAX + 1, SP_EACH_MAX, SP_EACH_MAX / 2);
	assert_int_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
}

static void end(int queue, int how)
{
	rig_clear(&rig);
	target_say(&target, "call calls_do_end 0x%x", queue << 16 | how);
	rig_pump(&rig);
}

/* A key that is over counts anew; the same number of another device is another key. */
static void test_tally_ends(void **state)
{
	const int here = 23, there = 1 << 8 | 23;
	struct sp_tally t;

	rig_start(&rig);
	post(here, PLAIN, 3);
	post(there, PLAIN, 2);
	end(here, 1);
	assert_int_equal(rig_count(&rig, "end"), 0);
	end(here, 2);
	assert_int_equal(tally(here).posted, 3);
	assert_int_equal(tally(there).posted, 2);
	end(here, 3);
	assert_int_equal(rig_count(&rig, "end"), 1);
	assert_int_equal(tally(here).posted, 0);
	assert_int_equal(tally(there).posted, 2);
	post(here, PLAIN, 1);
	poll_done(there, 2);
	t = tally(here);
	assert_int_equal(t.posted, 1);
	assert_int_equal(t.completed, 0);
	assert_int_equal(tally(there).completed, 2);
	assert_int_equal(rig_gained(&rig, SP_C_READ_FAULT), 0);
}

static bool forgotten(struct rig *r, long arg)
{
	struct tally_of t = {.key = 17};

	attach_tallies(r->attach, take, &t);
	return !t.seen;
}

static void test_tallies_of_the_dead(void **state)
{
	rig_start(&rig);
	post(17, PLAIN, 3);
	assert_int_equal(tally(17).posted, 3);
	target_end(&target);
	rig_until(&rig, forgotten, 0, "the process to end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_long_lists),
		cmocka_unit_test(test_only),
		cmocka_unit_test(test_two_levels),
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_tallies),
		cmocka_unit_test(test_posted_in_part),
		cmocka_unit_test(test_tally_ends),
		cmocka_unit_test(test_tallies_of_the_dead), /* the last */
	};

	return cmocka_run_group_tests_name("each", tests, attach, detach);
}
