// SPDX-License-Identifier: Apache-2.0
/* A deadline under the server's own view: the model asks, and judges by the answer, or without. */
#include "model_heap.h"
#include "view_rig.h"

static void test_asks(void **state)
{
	struct rig *r = view_rig();
	uint64_t taken;

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	taken = r->taken;
	rounds(r, 1.5, 30.5);
	/* rounds without effect are handed on now and then only, for replays that ask otherwise */
	assert_in_range(r->taken - taken, 1, 15);
	taken = r->taken;
	to(r, 31);
	assert_int_equal(model_asks(r->m), 1);
	assert_int_equal(stuck_lines(r), 0);
	/* of the two looks that agree, one was before the deadline: it may have gone since */
	view(r, 31.05, "ok", 0.06);
	assert_int_equal(r->taken, taken);
	assert_int_equal(model_asks(r->m), 1);
	view(r, 31.1, "ok", 0.05);
	assert_int_equal(r->taken, taken + 1);
	assert_int_equal(model_asks(r->m), 0);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
	/* let go just before the deadline: the first look after it confirms what was before */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	view(r, 31.05, "ok", 0.1);
	let_go(r, 31.1, "7001");
	rounds(r, 31.1, 60);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
	/* it moved after all */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", READY);
	to(r, 31.2);
	listed(r, 31.3, "7001", "inflight", MOVING);
	assert_int_equal(model_asks(r->m), 0);
	rounds(r, 31.3, 60);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* What is told already is not told anew by what an older look has seen, either. */
static void test_asks_again(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	works_at(r, 1, W1, "7000");
	for (uint64_t op = 0x10; op <= 0x20; op += 0x10)
		held(r, 1, .room = "7001", .rid = op == 0x10 ? "a" : "b", .op = op,
		     .kind = "inflight", .code = READY, .tid = W1);
	rounds(r, 1, 32);
	assert_int_equal(stuck_lines(r), 2);
	works_at(r, 45, W1, "7001");
	rounds(r, 45, 60.5);
	to(r, 61);
	assert_int_equal(model_asks(r->m), 2);
	view(r, 61.05, "ok", 0.06);
	let_go_of(r, 61.1, "7001", "b", 0x20);
	view(r, 61.1, "ok", 0.05);
	assert_int_equal(stuck_lines(r), 3);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 2)->life, 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 2)->v.cause, CAUSE_ROOM_REUSED);
	rig_free(r);
}

/* The server is stopped, all of it: that is no fault of a room. When it goes on, so do the
 * deadlines. */
static void test_halted(void **state)
{
	struct rig *r = view_rig();
	struct sp_event ev;

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	listed(r, 30, "7002", "inflight", NONE);
	rounds(r, 30, 31.5);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	ev = event(r, 40, ROLE_TARGET, 0, "");
	strcpy(ev.kind, "stopped");
	assert_int_equal(model_event(r->m, &ev), 0);
	listed(r, 50, "7003", "inflight", NONE); /* the view is slower than the signal */
	rounds(r, 50, 500);
	assert_int_equal(stuck_lines(r), 1);
	ev = event(r, 500, ROLE_TARGET, 0, "");
	strcpy(ev.kind, "continued");
	assert_int_equal(model_event(r->m, &ev), 0);
	rounds(r, 500, 529.5);
	assert_int_equal(stuck_lines(r), 1);
	rounds(r, 530, 531);
	expect_stuck(r, "7002", 530, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	expect_stuck(r, "7003", 530, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* No answer, or none that says anything: judged without certainty, and again when there is one. */
static void test_no_answer(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	rounds(r, 1.5, 30.5);
	to(r, 40);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 50);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_int_equal(model_asks(r->m), 0);
	ok(r, 51);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_CERTAIN);
	rig_free(r);
	/* the watch itself was stopped: nobody could look, and what it missed is told late */
	for (int held = 0; held <= 1; held++) {
		struct sp_event ev;

		r = view_rig();
		ok(r, 0);
		listed(r, 1, "7001", "inflight", NONE);
		ev = event(r, 30, ROLE_STALL, 0, "");
		ev.code = S(30);
		assert_int_equal(model_event(r->m, &ev), 0);
		to(r, 60);
		assert_int_equal(stuck_lines(r), 0);
		view(r, 60.1, "ok", 30.2); /* with one before the stop */
		if (!held)
			let_go(r, 60.6, "7001");
		view(r, 60.6, "ok", 0.5);
		if (held)
			expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
		to(r, 80);
		assert_int_equal(stuck_lines(r), held);
		rig_free(r);
	}
	/* unstable */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	to(r, 31);
	view(r, 31.2, "unstable", 0);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "could not be read"));
	rig_free(r);
	/* lost: what it said is no longer believed */
	r = view_rig();
	ok(r, 0);
	listed(r, 1, "7001", "inflight", NONE);
	to(r, 31);
	view(r, 31.2, "lost", 0);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_POSSIBLE);
	rig_free(r);
}

/* What it had told with certainty stays so: no weaker claim takes its place. */
static void test_lost_after_the_alert(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.5, "7001", "A", 1);
	kv_done(r, 0.6, W1, 0xa0, "7001", 0, 0);
	listed(r, 1, "7001", "inflight", NONE);
	rounds(r, 1.5, 40);
	expect_stuck(r, "7001", 30.61, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	view(r, 41, "lost", 0);
	to(r, 500);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_STATUS_LOST);
	assert_int_equal(look(r, "7001", 1).v.confidence, CONF_CERTAIN);
	/* it is back and does not show the room: let go meanwhile */
	rounds(r, 501, 503);
	assert_false(look(r, "7001", 1).found);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->stalled_ns > S(400), 1);
	rig_free(r);
}

/* Lost in the middle: a terminal life does not wait for a release that nobody will see. */
static void test_lost(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7001", "A", 1);
	listed(r, 0.5, "7001", "bootstrap", BOOTSTRAP);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	view(r, 2, "lost", 0);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* as without a view from now on */
	native_room(r, 3, "7002");
	assert_int_equal(open_lives(r), 0);
	/* the view is back: it was a pin after all */
	listed(r, 5, "7001", "inflight", MOVING);
	ok(r, 5);
	assert_true(look(r, "7001", 1).found);
	rounds(r, 5.5, 20);
	expect_stuck(r, "7001", 15, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* Deadlines shorter than the wait for an answer. */
static struct rig *quick_rig(void)
{
	struct rig *r = view_rig();
	struct model_cfg cfg = {.profile = &r->profile};

	memcpy(cfg.stage_ns, r->profile.stage_ns, sizeof(cfg.stage_ns));
	cfg.stage_ns[STAGE_INFLIGHT] = S(4);
	return rig_with(r, &cfg);
}

/* It moves before there is an answer: its next deadline does not wait for the old question. */
static void test_moves_while_asked(void **state)
{
	struct rig *r = quick_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", READY);
	to(r, 5.2);
	assert_int_equal(model_asks(r->m), 1);
	listed(r, 5.3, "7001", "inflight", NONE);
	to(r, 9.2);
	assert_int_equal(model_asks(r->m), 0);
	to(r, 9.4);
	assert_int_equal(model_asks(r->m), 1);
	ok(r, 10);
	expect_stuck(r, "7001", 9.3, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* The answer: what is ahead of it has moved. The deadline from then on likewise. */
static void test_ahead_moves_while_asked(void **state)
{
	struct rig *r = quick_rig();

	(void)state;
	ok(r, 0);
	works_at(r, 1, W1, "7000");
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = READY,
	     .tid = W1);
	to(r, 5.1);
	assert_int_equal(model_asks(r->m), 1);
	works_at(r, 5.2, W1, "7002");
	ok(r, 6);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 9.3);
	assert_int_equal(model_asks(r->m), 1);
	ok(r, 10);
	expect_stuck(r, "7001", 9.2, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, 1);
	rig_free(r);
}

/* What was listed was another request: of the room's own the question is still to be asked. */
static void test_mistaken_while_asked(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	native_room(r, 0.1, "7001");
	held(r, 1, .room = "7001", .op = 0x10, .kind = "inflight", .code = MOVING);
	to(r, 10.5);
	assert_int_equal(model_asks(r->m), 1);
	held(r, 11, .room = "7001", .op = 0x10, .kind = "inflight", .code = NONE);
	deadlines_are_kept(r->m);
	to(r, 11.1);
	assert_int_equal(model_asks(r->m), 1);
	rounds(r, 12, 14);
	assert_int_equal(model_asks(r->m), 0);
	assert_false(look(r, "7001", 1).found);
	assert_true(look(r, "7001", 2).found);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks),
		cmocka_unit_test(test_asks_again),
		cmocka_unit_test(test_halted),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_lost_after_the_alert),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_moves_while_asked),
		cmocka_unit_test(test_ahead_moves_while_asked),
		cmocka_unit_test(test_mistaken_while_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
