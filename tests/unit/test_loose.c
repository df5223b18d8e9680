// SPDX-License-Identifier: Apache-2.0
/* Operations posted without a room, as a transport that only knows addresses shows them: whose they
 * are, and what may be said where nobody knows. */
#include "calls_rig.h"

/* ---- no view, no address -------------------------------------------------------------------- */

static void test_healthy(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	for (int i = 0; i < 20; i++) {
		batch(r, 1 + i, W1, 0xb0, "");
		batch_over(r, 1.1 + i, W1, 0xb0, OPS_DONE);
	}
	told(r, 30, "7001", OPS_DONE);
	assert_string_equal(r->last_end.room, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	told(r, 31, "7002", OPS_ERROR);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	to(r, 2000);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* Operations without a kind: nothing is said of which was the newest. */
static void test_no_kind(void **state)
{
	struct rig *r = native_rig();
	const struct said *s;
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	ev = op_event(r, 1, ROLE_POST, W1, 0xb0, OPS_BUSY);
	strcpy(ev.room, "7001");
	feed(r, &ev);
	batch_over(r, 1.1, W1, 0xb0, OPS_DONE);
	to(r, 200);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_false(has_evidence(s, "newest operation"));
	rig_free(r);
}

/* Two peers: told to each. */
static void test_told_to_each(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	announce(r, 0, "7001", "B", 2);
	batch(r, 1, W1, 0xb0, "7001");
	batch_over(r, 1.1, W1, 0xb0, OPS_DONE);
	/* one chunk over is not the room over: how many there are is not known */
	assert_int_equal(open_lives(r), 1);
	told(r, 2, "7001", OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	told(r, 2, "7001", OPS_DONE);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* It stands still, and may be either's: no cause for one of them, no culprit. */
static void test_of_two_rooms(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	batch_over(r, 1.1, W1, 0xb0, OPS_DONE);
	batch(r, 2, W1, 0xb0, "");
	to(r, 2000);
	for (int i = 1; i <= 2; i++) {
		const struct said *s = expect_stuck(r, i == 1 ? "7001" : "7002", 300,
						    CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);

		assert_true(has_evidence(s, "an operation of an unknown room, op 0xb0, has been in "
					    "progress for 298.0 s on thread 111"));
		assert_true(has_evidence(s, "what is missing may be among them"));
		assert_false(s->v.culprit.set);
	}
	assert_int_equal(stuck_lines(r), 2);
	rig_free(r);
}

/* Only one room can have it: possible, never more. */
static void test_of_one_room(void **state)
{
	struct rig *r = native_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 2);
	batch(r, 2, W1, 0xb0, "");
	announce(r, 10, "7003", "A", 1); /* after the post */
	to(r, 301);
	s = expect_stuck(r, "7001", 300, CAUSE_TRANSFER_STALLED, CONF_POSSIBLE, -1);
	decided_by(s, "an operation of an unknown room, op 0xb0, has been in progress for 298.0 s");
	assert_string_equal(s->v.expected, "the end of what is in progress");
	to(r, 311);
	assert_int_equal(nth(r, ALERT_STUCK, "7003", 0)->v.cause, CAUSE_NEVER_SENT);
	assert_false(has_evidence(nth(r, ALERT_STUCK, "7003", 0), "op 0xb0"));
	rig_free(r);
}

/* What is missing may be among them: of the room that was open then, not of a later one. */
static void test_absence_proves_less(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	batch(r, 2, W2, 0xb0, "");
	batch_over(r, 2.1, W2, 0xb0, OPS_DONE);
	to(r, 40);
	s = expect_stuck(r, "7001", 31.01, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "what is missing may be among them"));
	announce(r, 50, "7002", "A", 1);
	kv_done(r, 51, W3, 0xa1, "7002", 0, 1);
	to(r, 100);
	expect_stuck(r, "7002", 81.01, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_failed_of_unknown(void **state)
{
	struct rig *r = native_rig();
	struct sp_event ev;
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	ev = op_event(r, 2, ROLE_CLOSE, W1, 0xb0, OPS_ERROR);
	ev.code = 5;
	strcpy(ev.note, "failed");
	feed(r, &ev);
	to(r, 400);
	s = expect_stuck(r, "7001", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s,
				 "an operation of an unknown room ended with error 5 (failed) at "
				 "+2.0 s, thread 111"));
	rig_free(r);
}

/* It does not teach whose thread it is, and nobody is behind it. */
static void test_teaches_nothing(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	batch(r, 1, W1, 0xb1, "7001");
	batch_over(r, 1.1, W1, 0xb1, OPS_DONE);
	batch(r, 2, W1, 0xb0, "");
	to(r, 33);
	/* its own thread: the operation may be its own */
	expect_stuck(r, "7001", 31.1, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, -1);
	to(r, 70);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_POSSIBLE);
	assert_false(nth(r, ALERT_STUCK, "7001", 1)->v.culprit.set);
	rig_free(r);
}

/* ---- the ends, with the view ------------------------------------------------------------------
 */

/* All sent, told, and its entry is gone while the queue holds it. */
static void test_status_lost(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	batch(r, 1.1, W1, 0xb0, "7001");
	batch_over(r, 1.2, W1, 0xb0, OPS_DONE);
	told(r, 1.3, "7001", OPS_DONE);
	listed(r, 2, "7001", "inflight", NONE);
	rounds(r, 2, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_STATUS_LOST);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_CERTAIN);
	rig_free(r);
}

/* All batches are over, and nobody is told. */
static void test_never_told(void **state)
{
	struct rig *r = seen_rig();
	const struct said *s;

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	held(r, 1, .room = "7001", .rid = "r", .op = 0x51, .kind = "inflight", .code = MOVING,
	     .sent = 5, .total = 5);
	batch(r, 1.1, W1, 0xb0, "");
	batch_over(r, 1.2, W1, 0xb0, OPS_DONE);
	rounds(r, 2, 60);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_SEND_INCOMPLETE);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	assert_string_equal(s->v.expected, "its peers are told how it ended");
	rig_free(r);

	/* told, and held all the same */
	r = seen_rig();
	announce(r, 0.5, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", DONE);
	told(r, 1.5, "7001", OPS_DONE);
	rounds(r, 2, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_DONE_NOT_RELEASED);
	rig_free(r);
}

static void test_failed_and_held(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", MOVING);
	batch(r, 1.1, W1, 0xb0, "");
	batch_over(r, 1.2, W1, 0xb0, OPS_ERROR);
	told(r, 1.3, "7001", OPS_ERROR);
	rounds(r, 2, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_TRANSFER_ERROR);
	rig_free(r);
}

/* Nothing of it was seen to be posted, and that is no proof; the server's own status is one. */
static void test_never_sent(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	listed(r, 1, "7001", "inflight", READY);
	held(r, 1, .room = "7002", .rid = "r", .op = 0x52, .kind = "inflight",
	     .code = HELD_UNKNOWN);
	batch(r, 1.1, W1, 0xb0, "");
	batch_over(r, 1.2, W1, 0xb0, OPS_DONE);
	rounds(r, 2, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_NEVER_SENT);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_CERTAIN);
	assert_int_equal(nth(r, ALERT_STUCK, "7002", 0)->v.cause, CAUSE_NEVER_SENT);
	assert_int_equal(nth(r, ALERT_STUCK, "7002", 0)->v.confidence, CONF_POSSIBLE);
	rig_free(r);
}

static void test_abort_and_reuse(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	listed(r, 1, "7001", "inflight", READY);
	abort_room(r, 2, "7001");
	listed(r, 2.5, "7001", "inflight", FAILED);
	rounds(r, 3, 60);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_ABORT_NOT_REAPED);
	rig_free(r);

	r = native_rig();
	announce(r, 0, "7001", "A", 1);
	announce(r, 1, "7001", "A", 1);
	told(r, 2, "7001", OPS_DONE);
	to(r, 400);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->life, 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_ROOM_REUSED);
	rig_free(r);
}

/* Let go by the view, and how it ended was not seen. */
static void test_released(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	listed(r, 1, "7001", "waiting", READY);
	batch(r, 1.1, W1, 0xb0, "");
	batch_over(r, 1.2, W1, 0xb0, OPS_DONE);
	let_go(r, 2, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* ---- bounds -----------------------------------------------------------------------------------
 */

static void test_bounds(void **state)
{
	struct rig *r = native_rig();
	struct model_stats st, now;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	model_stats(r->m, &st);
	for (uint64_t i = 1; i < 20000; i++)
		batch(r, 1, W1, i, "");
	model_stats(r->m, &now);
	assert_true(now.bytes < st.bytes + 300000);
	/* the oldest are forgotten */
	batch_over(r, 2, W1, 1, OPS_DONE);
	model_stats(r->m, &st);
	assert_int_equal(st.unknown_ops, 1);
	thread_exit(r, 3, W1);
	target(r, 4, "exited", 0);
	model_stats(r->m, &st);
	assert_int_equal(st.open_lives, 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_no_kind),
		cmocka_unit_test(test_told_to_each),
		cmocka_unit_test(test_of_two_rooms),
		cmocka_unit_test(test_of_one_room),
		cmocka_unit_test(test_absence_proves_less),
		cmocka_unit_test(test_failed_of_unknown),
		cmocka_unit_test(test_teaches_nothing),
		cmocka_unit_test(test_status_lost),
		cmocka_unit_test(test_never_told),
		cmocka_unit_test(test_failed_and_held),
		cmocka_unit_test(test_never_sent),
		cmocka_unit_test(test_abort_and_reuse),
		cmocka_unit_test(test_released),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
