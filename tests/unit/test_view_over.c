// SPDX-License-Identifier: Apache-2.0
/* The end of a life under the server's own view: how it ended, what comes again, what is taken
 * back. */
#include "view_rig.h"

static void test_outcomes(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* attached late, no native knowledge, was being sent */
	held(r, 1, .room = "7001", .rid = "r-7001", .op = 0x5000 + 7001, .kind = "inflight",
	     .code = MOVING, .flags = EV_CUT);
	let_go(r, 2, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* aborted */
	announce(r, 3, "7002", "A", 1);
	listed(r, 4, "7002", "bootstrap", BOOTSTRAP);
	abort_room(r, 5, "7002");
	let_go(r, 6, "7002");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	/* timed out in bootstrap */
	listed(r, 7, "7003", "bootstrap", BOOTSTRAP);
	let_go(r, 307, "7003");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	/* the status said so */
	listed(r, 308, "7004", "inflight", FAILED);
	let_go(r, 309, "7004");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	listed(r, 310, "7005", "inflight", DONE);
	let_go(r, 311, "7005");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* an abort that came too late changes nothing */
	announce(r, 312, "7006", "A", 1);
	kv_done(r, 312.1, W1, 0xa0, "7006", 0, 1);
	aux_done(r, 312.2, W1, 0xa1, "7006");
	abort_room(r, 312.3, "7006");
	rounds(r, 312.5, 315);
	assert_string_equal(r->last_end.room, "7006");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(open_lives(r), 0);
	/* of somebody unknown */
	let_go(r, 316, "7777");
	assert_int_equal(r->taken_life, 0);
	rig_free(r);
}

/* A pin that is let go and seen again: the same life, with all that was known of it. */
static void test_reopened(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;
	struct look k;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 3, "7001", "inflight", MOVING);
	let_go(r, 4, "7001");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	listed(r, 5, "7001", "inflight", MOVING);
	k = look(r, "7001", 1);
	assert_true(k.found);
	assert_int_equal(k.l.opened_ns, S(1001));
	assert_int_equal(k.l.stage, STAGE_INFLIGHT);
	assert_false(k.l.uncertain);
	assert_string_equal(k.peer, "10.0.0.7:40065");
	assert_non_null(*k.l.user);
	/* its operation is its own again */
	status(r, 5.5, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->taken_life, 1);
	rounds(r, 6, 40);
	s = expect_stuck(r, "7001", 35.5, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	assert_int_equal(s->life, 1);
	/* while it is released there is no alert */
	let_go(r, 41, "7001");
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	to(r, 600);
	assert_int_equal(stuck_lines(r), 1);
	/* too late to be the same */
	listed(r, 700, "7001", "bootstrap", BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* What ended meanwhile was not counted: then it is doubted. */
static void test_reopened_with_a_hole(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	listed(r, 3, "7001", "inflight", MOVING);
	let_go(r, 4, "7001");
	status(r, 4.5, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->taken_life, 0);
	listed(r, 5, "7001", "inflight", MOVING);
	assert_true(look(r, "7001", 1).l.uncertain);
	/* the end of the process ends what is kept aside too */
	let_go(r, 6, "7001");
	target(r, 7, "exited", 0);
	listed(r, 8, "7001", "bootstrap", BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* Held back by nothing: ended in silence at its deadline, once the view has shown that it can. */
static void test_unheld(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* a view that has shown nothing yet proves nothing */
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	rounds(r, 2.5, 40);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	/* now it has */
	announce(r, 41, "7002", "A", 1);
	listed(r, 42, "7002", "bootstrap", READY);
	announce(r, 43, "7003", "A", 1);
	kv(r, 44, W2, 0xb0, "7003", 0, 0);
	rounds(r, 44.5, 73.5);
	assert_true(look(r, "7003", 1).found);
	rounds(r, 74, 76);
	assert_false(look(r, "7003", 1).found);
	assert_string_equal(r->last_end.room, "7003");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	assert_null(nth(r, ALERT_STUCK, "7003", 0));
	rig_free(r);
}

/* An alert from before the view began: withdrawn when the server turns out not to hold the room. */
static void test_view_begins_later(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	announce(r, 0, "7002", "A", 1);
	kv(r, 1, W2, 0xb0, "7002", 0, 0);
	to(r, 35);
	assert_int_equal(stuck_lines(r), 2);
	held(r, 40, .room = "7002", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W2, .flags = EV_CUT | EV_AT);
	rounds(r, 40, 42);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	assert_null(nth(r, ALERT_RECOVERED, "7002", 0));
	/* and the other is certain now */
	assert_int_equal(look(r, "7002", 1).v.confidence, CONF_CERTAIN);
	assert_int_equal(nth(r, ALERT_STUCK, "7002", 1)->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_reopened),
		cmocka_unit_test(test_reopened_with_a_hole),
		cmocka_unit_test(test_unheld),
		cmocka_unit_test(test_view_begins_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
