// SPDX-License-Identifier: Apache-2.0
/* The server's own view makes no false alarm. */
#include "view_rig.h"

/* In its forward pass it is in no list, for as long as that takes. */
static void test_forward_pass(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "waiting", READY);
	held(r, 2, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "", .code = READY);
	/* a chunk is sent in between: the rest is still being computed */
	kv_done(r, 3, W1, 0xa0, "7001", 0, 0);
	rounds(r, 3.5, 100);
	s = expect_stuck(r, "7001", 33.01, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "forward pass"));
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 0);
	rig_free(r);
}

/* Done, but the server's one loop is in another room's forward pass for 20 s. */
static void test_loop_is_busy(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	listed(r, 1, "7002", "waiting", READY);
	held(r, 2, .room = "7002", .rid = "r-7002", .op = 0x5000 + 7002, .kind = "", .code = READY);
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	rounds(r, 3.5, 20);
	expect_stuck(r, "7001", 13.01, CAUSE_DONE_NOT_RELEASED, CONF_POSSIBLE, -1);
	let_go(r, 23, "7001");
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_DONE);
	rig_free(r);
	/* the loop went on and left it where it is */
	r = view_rig();
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	listed(r, 1, "7002", "waiting", READY);
	held(r, 2, .room = "7002", .rid = "r-7002", .op = 0x5000 + 7002, .kind = "", .code = READY);
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	listed(r, 6, "7003", "waiting", READY);
	listed(r, 7, "7003", "inflight", READY);
	rounds(r, 7.5, 20);
	expect_stuck(r, "7001", 13.01, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* The same room again and again, one after the other: no overlap, and each done. */
static void test_sequential_reuse(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	for (int i = 0; i < 20; i++) {
		double t = 1 + i * 0.6;

		native_room(r, t, "7001");
		assert_int_equal(r->taken_life, i + 1);
		ok(r, t + 0.4);
	}
	rounds(r, 13.5, 16);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->ended, 20);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Abort and retry, both handled well by the server. */
static void test_abort_and_retry(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "waiting", .code = READY);
	abort_room(r, 3, "7001");
	announce(r, 4, "7001", "A", 1);
	assert_int_equal(r->taken_life, 2);
	held(r, 4.5, .room = "7001", .rid = "b", .op = 0x20, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 2);
	{
		struct sp_event ev = event(r, 5, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "a");
		ev.op = 0x10;
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	kv_done(r, 6, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 6, W1, 0xa1, "7001");
	assert_int_equal(r->taken_life, 2);
	rounds(r, 6.5, 6.5);
	{
		struct sp_event ev = event(r, 7, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "b");
		ev.op = 0x20;
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	assert_int_equal(r->last_end.life, 2);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	to(r, 2000);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* A watcher that did not run for 8 s: what it then sees decides. */
static void test_watcher_stalled(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", MOVING);
	rounds(r, 1.5, 29.5);
	let_go(r, 38, "7001");
	ok(r, 38);
	to(r, 200);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Ten thousand healthy rooms, all slower than the deadline of what they wait for is not. */
static void test_many(void **state)
{
	struct rig *r = view_rig();
	struct model_stats st;
	const int n = 10000;
	char room[16];

	(void)state;
	ok(r, 0);
	for (int i = 0; i < n; i++) {
		snprintf(room, sizeof(room), "%d", 100000 + i);
		announce(r, 1, room, "A", 1);
		listed(r, 2, room, "waiting", READY);
	}
	ok(r, 2);
	model_stats(r->m, &st);
	assert_true(st.bytes / (size_t)n <= 1024);
	/* ten every half second: the last waits 500 s, with a deadline of 300 s */
	for (int i = 0; i < n; i++) {
		double t = 3 + (i / 10) * 0.5;

		snprintf(room, sizeof(room), "%d", 100000 + i);
		listed(r, t, room, "inflight", MOVING);
		if (i >= 10) {
			snprintf(room, sizeof(room), "%d", 100000 + i - 10);
			let_go(r, t, room);
		}
		if (i % 10 == 9)
			ok(r, t);
	}
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 10);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward_pass),     cmocka_unit_test(test_loop_is_busy),
		cmocka_unit_test(test_sequential_reuse), cmocka_unit_test(test_abort_and_retry),
		cmocka_unit_test(test_watcher_stalled),  cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
