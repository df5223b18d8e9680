// SPDX-License-Identifier: Apache-2.0
/* Lives under the server's own view at their edges: each rule of user/model/ that only a rare order
 * of events shows. */
#include "view_rig.h"

/* ---- whose request -------------------------------------------------------------------------- */

static void test_whose(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* aborted or not, the older one has lost its entry */
	announce(r, 1, "7001", "A", 1);
	abort_room(r, 1.1, "7001");
	announce(r, 1.2, "7001", "A", 1);
	held(r, 2, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	/* what has posted is past the bootstrap queue */
	announce(r, 3, "7002", "A", 1);
	kv(r, 3.1, W1, 0xa0, "7002", 0, 0);
	held(r, 4, .room = "7002", .rid = "y", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP);
	assert_int_equal(r->taken_life, 2);
	assert_false(look(r, "7002", 2).l.observed_late);
	/* a retry with the same id: the address tells them apart from then on */
	held(r, 4, .room = "7004", .rid = "z", .op = 0x30, .kind = "waiting", .code = READY);
	held(r, 4, .room = "7004", .rid = "z", .op = 0x40, .kind = "bootstrap", .code = READY);
	held(r, 4.5, .room = "7004", .rid = "z", .op = 0x40, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 2);
	held(r, 4.5, .room = "7004", .rid = "z", .op = 0x30, .kind = "inflight", .code = READY);
	assert_int_equal(r->taken_life, 1);
	/* posts go to the life that is not complete */
	announce(r, 5, "7003", "A", 1);
	kv_done(r, 5.1, W1, 0xb0, "7003", 0, 1);
	aux_done(r, 5.1, W1, 0xb1, "7003");
	assert_int_equal(look(r, "7003", 1).l.stage, STAGE_RELEASING);
	announce(r, 5.2, "7003", "A", 1);
	kv_done(r, 5.3, W1, 0xc0, "7003", 0, 0);
	kv_done(r, 5.4, W1, 0xc1, "7003", 1, 1);
	assert_int_equal(r->taken_life, 2);
	aux_done(r, 5.5, W1, 0xc2, "7003");
	assert_int_equal(r->taken_life, 2);
	assert_int_equal(look(r, "7003", 2).l.stage, STAGE_RELEASING);
	rig_free(r);
}

/* Announced anew while the server still lists the first: that one has not been given up. */
static void test_not_superseded(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 2);
	listed(r, 1.5, "7001", "bootstrap", BOOTSTRAP);
	rounds(r, 2, 333);
	expect_stuck(r, "7001", 331, CAUSE_QUORUM_INCOMPLETE, CONF_CERTAIN, 0);
	announce(r, 334, "7001", "A", 2);
	assert_int_equal(r->taken_life, 2);
	assert_true(look(r, "7001", 1).found);
	rig_free(r);
}

/* One after the other is no overlap, though the first is still shown when the second comes. */
static void test_no_overlap(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	held(r, 1.5, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = MOVING);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 2, W1, 0xa1, "7001");
	announce(r, 2.1, "7001", "A", 1);
	released(r, 2.5, "7001", "a");
	held(r, 3, .room = "7001", .rid = "b", .op = 0x10, .kind = "inflight", .code = MOVING);
	rounds(r, 3, 35);
	s = expect_stuck(r, "7001", 33, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_int_equal(s->life, 2);
	assert_false(has_evidence(s, "opened again"));
	rig_free(r);
}

/* ---- what moves ----------------------------------------------------------------------------- */

static void test_counts_move(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 1 + 1, .need = 3 + 1);
	held(r, 200, .room = "7001", .rid = "x", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 2 + 1, .need = 3 + 1);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1200));
	/* fewer is no movement: the server forgets them when it is done with them */
	held(r, 210, .room = "7001", .rid = "x", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 0 + 1, .need = 3 + 1);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1200));
	held(r, 220, .room = "7001", .rid = "x", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 3 + 1, .need = 3 + 1);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	rig_free(r);
}

static void test_entry_moves(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	entry(r, 2, "7001", READY);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1001));
	entry(r, 3, "7001", MOVING);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1003));
	entry(r, 4, "7001", NONE);
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(1003));
	rig_free(r);
}

/* An entry that was told of before the room had a life here. */
static void test_entry_before(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 0.1, "7009", "A", 1);
	listed(r, 0.5, "7009", "waiting", READY);
	entry(r, 1, "7001", MOVING);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	rounds(r, 2.5, 40);
	expect_stuck(r, "7001", 32.01, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* A request that leaves the waiting queue by its end has moved too. */
static void test_end_moves_the_queue(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "waiting", FAILED);
	listed(r, 1, "7002", "waiting", READY);
	rounds(r, 1.5, 200);
	let_go(r, 200, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	rounds(r, 200.5, 320);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(look(r, "7002", 1).v.cause, CAUSE_BACKPRESSURE);
	rig_free(r);
}

/* ---- over ----------------------------------------------------------------------------------- */

/* Stuck, then neither listed nor in the table. */
static void test_stuck_and_gone(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	listed(r, 1.5, "7001", "waiting", READY);
	in_forward(r, 2, "7001", READY);
	kv(r, 2.5, W1, 0xa0, "7001", 0, 0);
	rounds(r, 3, 40);
	/* its own operation in progress is told, forward pass or not */
	expect_stuck(r, "7001", 32.5, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	entry(r, 41, "7001", NONE);
	rounds(r, 41, 43);
	assert_false(look(r, "7001", 1).found);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	rig_free(r);
}

/* Told before the view had proved anything; ended once it has. */
static void test_proved_later(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	rounds(r, 2.5, 40);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	announce(r, 41, "7002", "A", 1);
	listed(r, 42, "7002", "bootstrap", READY);
	rounds(r, 42, 70);
	assert_false(look(r, "7001", 1).found);
	rig_free(r);
}

/* Known by the view alone, last in the waiting queue: its own listing is proof enough. */
static void test_left_waiting(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "waiting", READY);
	in_forward(r, 2, "7001", NONE);
	rounds(r, 2.5, 301.5);
	assert_true(look(r, "7001", 1).found);
	rounds(r, 302, 302);
	assert_int_equal(model_asks(r->m), 1);
	/* answered: it is not held; what is left needs no haste */
	ok(r, 302.5);
	assert_int_equal(model_asks(r->m), 0);
	rounds(r, 303, 304);
	assert_false(look(r, "7001", 1).found);
	assert_int_equal(stuck_lines(r), 0);
	/* it was in its forward pass after all */
	listed(r, 310, "7001", "inflight", NONE);
	assert_int_equal(r->taken_life, 1);
	rounds(r, 310, 345);
	expect_stuck(r, "7001", 340, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* The entry goes with the request, whatever it last said. */
static void test_entry_goes_along(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	listed(r, 1.5, "7001", "inflight", MOVING);
	let_go(r, 3, "7001");
	/* opened by what its thread still did */
	kv(r, 4, W1, 0xa0, "7001", 0, 0);
	rounds(r, 4.5, 40);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	/* nor is an entry remembered from before the view was lost */
	announce(r, 41, "7002", "A", 1);
	entry(r, 42, "7002", READY);
	kv_done(r, 43, W1, 0xb0, "7002", 0, 0);
	view(r, 44, "lost", 0);
	rounds(r, 45, 80);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

static void test_outcomes(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	/* the status knows better than what was missed */
	announce(r, 1, "7001", "A", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 3, "7001", "inflight", DONE);
	let_go(r, 4, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* begun before the watch */
	kv_done(r, 5, W1, 0xb0, "7002", 3, 0);
	listed(r, 6, "7002", "inflight", MOVING);
	let_go(r, 7, "7002");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* seen from its start, and not all of it was sent */
	announce(r, 8, "7003", "A", 1);
	kv_done(r, 9, W1, 0xc0, "7003", 0, 0);
	listed(r, 10, "7003", "inflight", MOVING);
	let_go(r, 11, "7003");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	rig_free(r);
}

/* An operation that its thread had given up is followed no longer. */
static void test_reopened_without_its_operation(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1, "7002", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	kv(r, 3, W1, 0xb0, "7002", 0, 1);
	listed(r, 4, "7001", "inflight", MOVING);
	let_go(r, 5, "7001");
	listed(r, 6, "7001", "inflight", MOVING);
	assert_true(look(r, "7001", 1).l.uncertain);
	rig_free(r);
}

/* Ten minutes later it is another one. */
static void test_parked_for_a_time(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", MOVING);
	listed(r, 1, "7002", "inflight", MOVING);
	let_go(r, 2, "7001");
	let_go(r, 2, "7002");
	listed(r, 601, "7001", "inflight", MOVING);
	assert_int_equal(r->taken_life, 1);
	listed(r, 603, "7002", "inflight", MOVING);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* Kept aside within bounds. */
static void test_parked_bound(void **state)
{
	struct rig *r = view_rig();
	struct model_stats st;
	char room[16];

	(void)state;
	ok(r, 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(room, sizeof(room), "%d", 10000 + i);
		listed(r, 1, room, "inflight", MOVING);
		let_go(r, 1, room);
	}
	listed(r, 2, "10000", "inflight", MOVING); /* forgotten: a new life */
	assert_int_equal(r->taken_life, 2);
	listed(r, 2, "14999", "inflight", MOVING);
	assert_int_equal(r->taken_life, 1);
	for (int i = 0; i < 200; i++) {
		char rid[16];

		snprintf(rid, sizeof(rid), "q%d", i);
		held(r, 3, .room = "7001", .rid = rid, .op = 0x10, .kind = "inflight",
		     .code = MOVING);
		released(r, 3, "7001", rid);
	}
	model_stats(r->m, &st);
	assert_int_equal(st.open_lives, 2);
	assert_int_equal(st.lives, st.open_lives + st.ended);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_not_superseded),
		cmocka_unit_test(test_no_overlap),
		cmocka_unit_test(test_counts_move),
		cmocka_unit_test(test_entry_moves),
		cmocka_unit_test(test_entry_before),
		cmocka_unit_test(test_end_moves_the_queue),
		cmocka_unit_test(test_stuck_and_gone),
		cmocka_unit_test(test_proved_later),
		cmocka_unit_test(test_left_waiting),
		cmocka_unit_test(test_entry_goes_along),
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_reopened_without_its_operation),
		cmocka_unit_test(test_parked_for_a_time),
		cmocka_unit_test(test_parked_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
