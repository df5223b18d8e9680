// SPDX-License-Identifier: Apache-2.0
/* Verdicts by the server's own view at their edges: each rule of user/model/ that only a rare order
 * of events shows. */
#include "view_rig.h"

/* ---- forward passes and the loop ------------------------------------------------------------ */

static void done_at(struct rig *r, double t, const char *room)
{
	announce(r, t, room, "A", 1);
	kv_done(r, t, W1, 0xa0, room, 0, 1);
	aux_done(r, t, W1, 0xa1, room);
	listed(r, t + 0.5, room, "inflight", DONE);
}

static void test_forward_is_over(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* ended in its forward pass: the loop is free, and has not moved since */
	listed(r, 1, "7002", "waiting", READY);
	in_forward(r, 2, "7002", READY);
	let_go(r, 3, "7002");
	done_at(r, 4, "7001");
	rounds(r, 5, 17);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_CERTAIN);
	/* out of its forward pass */
	listed(r, 20, "7003", "waiting", READY);
	in_forward(r, 21, "7003", READY);
	listed(r, 22, "7003", "inflight", READY);
	done_at(r, 24, "7004");
	rounds(r, 25, 37);
	assert_int_equal(nth(r, ALERT_STUCK, "7004", 0)->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

/* An entry that stays for ever is no forward pass for ever. */
static void test_forward_for_ever(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7002", "waiting", READY);
	in_forward(r, 2, "7002", READY);
	rounds(r, 2.5, 290);
	done_at(r, 290, "7001");
	rounds(r, 291, 303);
	expect_stuck(r, "7001", 300.01, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	rounds(r, 303.5, 345);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Another thread took over from the one that exited. */
static void test_taken_over(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_AT);
	works_at(r, 1, W1, "7001");
	thread_exit(r, 2, W1);
	held(r, 3, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W2, .flags = EV_AT);
	works_at(r, 3, W2, "7001");
	rounds(r, 3.5, 35);
	expect_stuck(r, "7001", 33, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* Complete: what became of a thread does not matter any more. */
static void test_complete_and_orphan(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	held(r, 2, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .flags = EV_ORPHAN);
	rounds(r, 2, 14);
	expect_stuck(r, "7001", 11.01, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* In the backlog of a thread that moves, or that nobody knows. */
static void test_queued(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY,
	     .tid = 999);
	held(r, 1, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .code = READY);
	rounds(r, 1.5, 33);
	expect_stuck(r, "7001", 31, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 31, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	/* handed to a thread that has just taken another room */
	works_at(r, 35, W1, "7999");
	held(r, 35, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .code = READY,
	     .tid = W1);
	rounds(r, 35.5, 50);
	assert_int_equal(look(r, "7002", 1).v.cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(look(r, "7002", 1).v.confidence, CONF_POSSIBLE);
	rig_free(r);
}

/* Of two lives of the culprit's room, the one that the thread is at. */
static void test_culprits_life(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = MOVING);
	held(r, 1, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_AT);
	works_at(r, 1, W1, "7001");
	held(r, 1, .room = "7002", .rid = "c", .op = 0x30, .kind = "inflight", .code = READY,
	     .tid = W1);
	rounds(r, 1.5, 33);
	s = expect_stuck(r, "7002", 31, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, 1);
	assert_int_equal(s->v.culprit.life, 2);
	rig_free(r);
}

/* Exited, and then missing: one line, and the time of the exit. */
static void test_bootstrap_thread_once(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 2);
	listed(r, 1.5, "7001", "bootstrap", BOOTSTRAP);
	thread_exit(r, 2, BOOT);
	thread_is(r, 3, "missing", BOOT);
	rounds(r, 3, 10);
	assert_int_equal(count_said(r, ALERT_TARGET), 1);
	expect_stuck(r, "7001", 7, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* ---- causes --------------------------------------------------------------------------------- */

/* Announced twice, one listed: likely, whatever the other is. And the older may be the pinned one.
 */
static void test_reused(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1.1, "7001", "A", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	held(r, 2.5, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = MOVING);
	rounds(r, 2.5, 35);
	expect_stuck(r, "7001", 32.01, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
	rig_free(r);
	r = view_rig();
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = MOVING);
	held(r, 1, .room = "7001", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = MOVING);
	released(r, 2, "7001", "b");
	rounds(r, 2, 33);
	assert_int_equal(expect_stuck(r, "7001", 31, CAUSE_ROOM_REUSED, CONF_CERTAIN, 1)->life, 1);
	rig_free(r);
}

/* Announced in full and still in the bootstrap queue: it waits for something else. */
static void test_bootstrap_with_quorum(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	listed(r, 1.5, "7001", "bootstrap", READY);
	rounds(r, 2, 303);
	expect_stuck(r, "7001", 301, CAUSE_NEVER_SENT, CONF_LIKELY, -1);
	rig_free(r);
}

/* The same number on another process need not be the same request, nor of this time. */
static void test_other_ranks(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	r->pid = 200;
	held(r, 0.5, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = DONE);
	released(r, 0.6, "7001", "x");
	held(r, 0.7, .room = "7002", .rid = "other", .op = 0x10, .kind = "inflight",
	     .code = MOVING);
	r->pid = PID;
	ok(r, 0.8);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY);
	held(r, 1, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .code = DONE);
	rounds(r, 1.5, 33);
	expect_stuck(r, "7001", 31, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	s = nth(r, ALERT_STUCK, "7002", 1);
	assert_int_equal(s->pid, PID);
	assert_int_equal(s->v.cause, CAUSE_DONE_NOT_RELEASED);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward_is_over),
		cmocka_unit_test(test_forward_for_ever),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_complete_and_orphan),
		cmocka_unit_test(test_queued),
		cmocka_unit_test(test_culprits_life),
		cmocka_unit_test(test_bootstrap_thread_once),
		cmocka_unit_test(test_reused),
		cmocka_unit_test(test_bootstrap_with_quorum),
		cmocka_unit_test(test_other_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
