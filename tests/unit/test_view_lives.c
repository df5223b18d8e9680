// SPDX-License-Identifier: Apache-2.0
/* Lives under the server's own view: whose request it is, what opens a life, what moves it. */
#include "view_rig.h"

/* Quicker than the snapshots: never listed, done by what was posted, over after two rounds. */
static void test_too_quick(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	native_room(r, 0.1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	ok(r, 0.5); /* begun before its end */
	ok(r, 1);
	assert_int_equal(open_lives(r), 1);
	ok(r, 1.5);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	to(r, 1000);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	rig_free(r);
}

/* A whole life, as both sources show it. */
static void test_whole(void **state)
{
	struct rig *r = view_rig();
	struct look k;

	(void)state;
	ok(r, 0);
	announce(r, 0.2, "7001", "A", 1);
	listed(r, 1, "7001", "bootstrap", BOOTSTRAP);
	k = look(r, "7001", 1);
	assert_int_equal(k.l.stage, STAGE_READY); /* the quorum is not taken back */
	assert_string_equal(k.rid, "r-7001");
	listed(r, 2, "7001", "waiting", READY);
	held(r, 3, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "", .code = READY);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	kv_done(r, 60, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 60, W1, 0xa1, "7001");
	listed(r, 60.5, "7001", "inflight", DONE);
	rounds(r, 60.5, 62);
	assert_int_equal(open_lives(r), 1);
	let_go(r, 62.5, "7001");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Two requests with one room: told apart by rid, then by address. */
static void test_two_requests(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 1, .room = "7001", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	assert_int_equal(open_lives(r), 2);
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 2);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = READY);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(look(r, "7001", 2).l.stage, STAGE_READY);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_INFLIGHT);
	/* another object, the same request */
	held(r, 3, .room = "7001", .rid = "a", .op = 0x30, .kind = "inflight", .code = MOVING);
	assert_int_equal(r->taken_life, 1);
	/* without ids the address tells */
	held(r, 4, .room = "7002", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 4, .room = "7002", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	held(r, 5, .room = "7002", .op = 0x10, .kind = "waiting", .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 4);
	rig_free(r);
}

/* A client that posts the same again after an abort: another object, or one at the same address, is
 * in the first queue anew. What was announced to the first one was not announced to it. */
static void test_retry_with_the_same_id(void **state)
{
	for (uint64_t op = 0x10; op <= 0x20; op += 0x10) {
		struct rig *r = view_rig();

		(void)state;
		ok(r, 0);
		announce(r, 0.5, "7001", "A", 1);
		held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "waiting", .code = READY,
		     .announced = 2, .need = 2);
		held(r, 2, .room = "7001", .rid = "a", .op = op, .kind = "bootstrap",
		     .code = BOOTSTRAP, .announced = 1);
		assert_int_equal(r->taken_life, 2);
		assert_int_equal(open_lives(r), op == 0x10 ? 1 : 2);
		if (op != 0x10) /* in no queue, but the room has an entry */
			held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "",
			     .code = BOOTSTRAP);
		rounds(r, 2, 331);
		assert_int_equal(open_lives(r), 1);
		rounds(r, 331.5, 333);
		assert_int_equal(
			expect_stuck(r, "7001", 332, CAUSE_DECODE_ABSENT, CONF_CERTAIN, 0)->life,
			2);
		assert_int_equal(stuck_lines(r), 1);
		/* the second one was announced to first: so it is that life, and the first is over
		 */
		announce(r, 333, "7002", "A", 1);
		held(r, 333, .room = "7002", .rid = "a", .op = 0x10, .kind = "inflight",
		     .code = READY, .announced = 2, .need = 2);
		announce(r, 333.1, "7002", "A", 1);
		held(r, 334, .room = "7002", .rid = "a", .op = op, .kind = "bootstrap",
		     .code = READY, .announced = 2);
		assert_int_equal(r->taken_life, 2);
		assert_int_equal(open_lives(r), op == 0x10 ? 2 : 3);
		/* and once more when that has ended */
		let_go_of(r, 340, "7001", "a", op);
		assert_int_equal(open_lives(r), op == 0x10 ? 1 : 2);
		held(r, 341, .room = "7001", .rid = "a", .op = 0x30, .kind = "bootstrap",
		     .code = BOOTSTRAP);
		assert_int_equal(r->taken_life, 3);
		rig_free(r);
	}
}

/* A request that native events know already: no entry is the older's, an aborted one's the
 * younger's.
 */
static void test_which_native_life(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	abort_room(r, 2, "7001");
	announce(r, 3, "7001", "A", 1);
	held(r, 4, .room = "7001", .rid = "retry", .op = 0x20, .kind = "bootstrap", .code = READY);
	assert_int_equal(r->taken_life, 2);
	held(r, 4, .room = "7001", .rid = "first", .op = 0x10, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 2);
	announce(r, 5, "7002", "A", 1);
	announce(r, 5, "7002", "A", 1);
	held(r, 6, .room = "7002", .rid = "x", .op = 0x30, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	rig_free(r);
}

/* Complete, and unseen: a request without an entry is another one, of which nothing was known. */
static void test_second_request_unannounced(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	native_room(r, 1, "7001");
	held(r, 1.5, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 2);
	rounds(r, 1.5, 3);
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rounds(r, 3.5, 33);
	assert_int_equal(expect_stuck(r, "7001", 31.5, CAUSE_STATUS_LOST, CONF_CERTAIN, 1)->life,
			 2);
	/* announced for each: the second is the younger */
	announce(r, 40, "7002", "A", 1);
	announce(r, 40, "7002", "A", 1);
	kv_done(r, 40.1, W1, 0xa0, "7002", 0, 1);
	aux_done(r, 40.1, W1, 0xa1, "7002");
	held(r, 41, .room = "7002", .rid = "b", .op = 0x20, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* Failed and gone before it was seen; its room is used again: the entry there is the next one's. */
static void test_failed_and_used_again(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 1.1, W1, 0xa0, "7001", 0, 1);
	status(r, 1.2, W1, 0xa0, OPS_ERROR);
	announce(r, 1.4, "7001", "B", 1);
	kv_done(r, 1.5, W2, 0xb0, "7001", 0, 1);
	aux_done(r, 1.5, W2, 0xb1, "7001");
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = DONE);
	assert_int_equal(r->taken_life, 2);
	rounds(r, 2, 40);
	assert_int_equal(
		expect_stuck(r, "7001", 11.51, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1)->life, 2);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	rig_free(r);
}

static void test_opens(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	listed(r, 1, "7001", "bootstrap", BOOTSTRAP);
	assert_false(look(r, "7001", 1).l.observed_late);
	held(r, 1, .room = "7002", .rid = "x", .kind = "bootstrap", .code = BOOTSTRAP,
	     .flags = EV_CUT);
	assert_true(look(r, "7002", 1).l.observed_late);
	listed(r, 1, "7003", "inflight", MOVING);
	assert_true(look(r, "7003", 1).l.observed_late);
	assert_int_equal(look(r, "7003", 1).l.stage, STAGE_INFLIGHT);
	entry(r, 1, "7004", MOVING);
	held(r, 1, .room = "7005", .rid = "y", .op = 0x10, .kind = "", .code = READY);
	assert_int_equal(open_lives(r), 3);
	/* announced before the watch */
	held(r, 1, .room = "7006", .rid = "z", .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 2 + 1, .need = 2 + 1);
	assert_int_equal(look(r, "7006", 1).l.stage, STAGE_READY);
	assert_int_equal(model_open_lives(r->m, PID), 4);
	assert_int_equal(model_open_lives(r->m, 999), 0);
	rig_free(r);
}

/* What moves a life: its queue, its status, peers, chunks. A thread is no progress. */
static void test_progress(void **state)
{
	struct rig *r = view_rig();
	struct seen_as s = {
		.room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY};

	(void)state;
	ok(r, 0);
	held_at(r, 1, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1001));
	s.tid = W1;
	held_at(r, 2, s);
	s.flags = EV_AT;
	held_at(r, 3, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1001));
	s.code = MOVING;
	held_at(r, 4, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1004));
	s.sent = 3 + 1;
	s.total = 9 + 1;
	held_at(r, 5, s); /* first sight of a number */
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1004));
	s.sent = 5 + 1;
	held_at(r, 6, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1006));
	/* said again after the view was lost: nothing new */
	view(r, 7, "lost", 0);
	s.flags |= EV_CUT;
	held_at(r, 9, s);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1006));
	/* what native events had told before is no progress either */
	announce(r, 20, "7002", "A", 1);
	kv(r, 20.1, W1, 0xa0, "7002", 0, 0);
	listed(r, 21, "7002", "inflight", MOVING);
	assert_int_equal(look(r, "7002", 1).l.progress_ns, S(1020.1));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_quick),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_two_requests),
		cmocka_unit_test(test_retry_with_the_same_id),
		cmocka_unit_test(test_which_native_life),
		cmocka_unit_test(test_second_request_unannounced),
		cmocka_unit_test(test_failed_and_used_again),
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
