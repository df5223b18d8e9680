// SPDX-License-Identifier: Apache-2.0
/* Rooms that wait behind others, and rooms whose id is used twice. */
#include "model_rig.h"

/* ---- queued behind ------------------------------------------------------------------------ */

/* Decode A stopped in mid-transfer; a room of decode B, partly sent, waits on the same thread. */
static void test_queued_behind(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv_done(r, 1, W1, 0xb0, "7002", 0, 0);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	to(r, 100);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	s = expect_stuck(r, "7002", 32, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	assert_true(s->v.culprit.set);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_int_equal(s->v.culprit.life, 1);
	assert_int_equal(s->v.culprit.tid, W1);
	assert_int_equal(s->v.culprit.pid, PID);
	assert_non_null(strstr(s->v.culprit.state, "op 0xa0 in progress for 30.0 s"));
	/* continued: both go on */
	status(r, 110, W1, 0xa0, OPS_DONE);
	aux_done(r, 110, W1, 0xa1, "7001");
	kv_done(r, 111, W1, 0xb1, "7002", 1, 1);
	aux_done(r, 111, W1, 0xb2, "7002");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 2);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7002", 0)->v.cause, CAUSE_QUEUED_BEHIND);
	rig_free(r);
}

/* The thread has sent the last chunk and gone on to another room, where it is kept: the auxiliary
 * data does not wait for its turn, it will never come. */
static void test_aux_missing_is_not_queued(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv_done(r, 1, W1, 0xb0, "7002", 0, 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	to(r, 100);
	expect_stuck(r, "7002", 32, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

/* Nothing posted yet, but its peer's rooms have always been served by the thread that is kept. */
static void test_queued_behind_by_peer(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	for (int i = 0; i < 5; i++) {
		char room[16];

		snprintf(room, sizeof(room), "80%02d", i);
		healthy(r, i, W1, 0xc0, room, "B");
		snprintf(room, sizeof(room), "81%02d", i);
		healthy(r, i + 0.5, W2, 0xd0, room, "C");
	}
	announce(r, 10, "7001", "A", 1);
	kv(r, 11, W1, 0xa0, "7001", 0, 1);
	announce(r, 12, "7002", "B", 1);
	announce(r, 12, "7003", "C", 1);
	to(r, 400);
	s = expect_stuck(r, "7002", 312, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_true(has_evidence(s, "rule that all 11 rooms"));
	/* served by another thread, which is free */
	expect_stuck(r, "7003", 312, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* The same where the room's number chooses the thread: peers go to all of them. */
static void test_queued_behind_by_modulo(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	for (int i = 0; i < 24; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 9000 + i * 7);
		healthy(r, i / 4.0, (9000 + i * 7) % 3 ? W1 : W2, 0xc0, room, i % 2 ? "B" : "C");
	}
	announce(r, 10, "9301", "A", 1);
	kv(r, 11, W1, 0xa0, "9301", 0, 1);
	announce(r, 12, "9304", "B", 1);
	announce(r, 12, "9303", "B", 1);
	to(r, 400);
	s = expect_stuck(r, "9304", 312, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	assert_string_equal(s->v.culprit.room, "9301");
	expect_stuck(r, "9303", 312, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* A few rooms are no rule; rooms that follow none are none either. */
static void test_inference_needs_history(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	healthy(r, 0, W1, 0xc0, "8001", "B");
	healthy(r, 1, W1, 0xc0, "8002", "B");
	announce(r, 10, "7001", "A", 1);
	kv(r, 11, W1, 0xa0, "7001", 0, 1);
	announce(r, 12, "7002", "B", 1);
	to(r, 400);
	expect_stuck(r, "7002", 312, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	assert_false(nth(r, ALERT_STUCK, "7002", 0)->v.culprit.set);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7002", 0), "not known"));
	rig_free(r);

	r = rig_new();
	for (int i = 0; i < 64; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		healthy(r, i / 8.0, i / 16 % 2 ? W2 : W1, 0xc0, room, "B");
	}
	announce(r, 10, "7001", "A", 1);
	kv(r, 11, W1, 0xa0, "7001", 0, 1);
	announce(r, 12, "7002", "B", 1);
	to(r, 400);
	expect_stuck(r, "7002", 312, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* Every thread is kept: whichever is the room's, it waits. Only the threads seen so far, though. */
static void test_all_workers_blocked(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 16; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		healthy(r, i / 16.0, i / 2 % 2 ? W2 : W1, 0xc0, room, i / 8 ? "D" : "C");
		snprintf(room, sizeof(room), "%d", 8000 + i + 32);
		healthy(r, i / 16.0, i / 2 % 2 ? W1 : W2, 0xc0, room, i / 8 ? "C" : "D");
	}
	announce(r, 10, "7001", "A", 1);
	announce(r, 10, "7002", "A", 1);
	kv(r, 11, W1, 0xa0, "7001", 0, 1);
	kv(r, 12, W2, 0xa1, "7002", 0, 1);
	announce(r, 13, "7003", "B", 1);
	to(r, 400);
	assert_string_equal(
		expect_stuck(r, "7003", 313, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1)->v.culprit.room,
		"7001");
	rig_free(r);

	r = rig_new();
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	announce(r, 3, "7003", "B", 1);
	to(r, 400);
	expect_stuck(r, "7003", 303, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* The culprit may be gone: its room was let go, its write goes on. */
static void test_behind_an_ended_room(void **state)
{
	struct rig *r = rig_new_with(true);
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv_done(r, 1, W1, 0xb0, "7002", 0, 0);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	abort_room(r, 3, "7001");
	plain(r, 3.1, ROLE_RELEASE, PID, "7001");
	to(r, 100);
	s = expect_stuck(r, "7002", 32, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_true(has_evidence(s, "has ended"));
	rig_free(r);
}

/* After an error the thread gives the whole batch up: its other operations keep nobody. */
static void test_error_frees_the_thread(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	announce(r, 0, "7001", "B", 2);
	announce(r, 0, "7002", "C", 1);
	kv_done(r, 1, W1, 0xb0, "7002", 0, 0);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	create(r, 2, W1, 0xa1, "7001", "kv", 0, 1, 1);
	post(r, 2, W1, 0xa1, OPS_BUSY);
	status(r, 3, W1, 0xa0, OPS_ERROR);
	to(r, 100);
	expect_stuck(r, "7001", 33, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 33, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

/* A thread that has gone on to another room has given up what it held before. */
static void test_given_up_holds_nobody(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	abort_room(r, 3, "7001");
	kv_done(r, 4, W1, 0xb0, "7002", 0, 0);
	to(r, 100);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 34.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
	/* the same after its room was released */
	r = rig_new_with(true);
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 1);
	abort_room(r, 3, "7001");
	plain(r, 3.1, ROLE_RELEASE, PID, "7001");
	kv_done(r, 4, W1, 0xb0, "7002", 0, 0);
	status(r, 5, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->taken_life, 0);
	to(r, 100);
	expect_stuck(r, "7002", 34.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

/* First stuck for its own reason, then behind another: the cause follows, once each. */
static void test_cause_changes(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	to(r, 40);
	expect_stuck(r, "7001", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	announce(r, 41, "7002", "B", 1);
	kv(r, 42, W1, 0xb0, "7002", 0, 1);
	to(r, 500);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.cause, CAUSE_QUEUED_BEHIND);
	/* as soon as the thread has stood still for a deadline */
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->ns, S(1072));
	assert_null(nth(r, ALERT_STUCK, "7001", 2));
	rig_free(r);
}

/* One thread is kept, then the other too: the same cause, with more confidence, is told again. */
static void test_confidence_rises(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	for (int i = 0; i < 32; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		healthy(r, i / 4.0, i / 16 ? W2 : W1, 0xc0, room, "C");
	}
	announce(r, 10, "7001", "A", 1);
	announce(r, 10, "7002", "A", 1);
	kv(r, 11, W1, 0xa0, "7001", 0, 1);
	announce(r, 12, "7003", "C", 1);
	to(r, 350);
	expect_stuck(r, "7003", 312, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	kv(r, 350, W2, 0xa1, "7002", 0, 1);
	to(r, 5000);
	s = nth(r, ALERT_STUCK, "7003", 1);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	assert_null(nth(r, ALERT_STUCK, "7003", 2));
	rig_free(r);
}

/* ---- reuse -------------------------------------------------------------------------------- */

/* Posted twice, two chunks: the first life clears the entry, the second's chunks are dropped. */
static void test_room_posted_twice(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0.1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 1.1, W1, 0xb0, "7001", 0, 0);
	kv_done(r, 2, W1, 0xa1, "7001", 1, 1);
	aux_done(r, 2, W1, 0xa2, "7001");
	assert_int_equal(r->last_end.life, 1);
	to(r, 400);
	/* what life 1 did until 2.01 was ahead of it */
	s = expect_stuck(r, "7001", 32.01, CAUSE_ROOM_REUSED, CONF_LIKELY, 1);
	assert_int_equal(s->life, 2);
	assert_true(has_evidence(s, "ended well"));
	assert_int_equal(s->v.decisive_ns, S(1000.1));
	rig_free(r);
	/* the second has posted nothing */
	r = rig_new();
	announce(r, 0, "7001", "A", 1);
	announce(r, 0.1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 2, W1, 0xa1, "7001", 1, 1);
	aux_done(r, 2, W1, 0xa2, "7001");
	to(r, 400);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_int_equal(s->life, 2);
	assert_int_equal(s->v.cause, CAUSE_ROOM_REUSED);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	rig_free(r);
}

/* Both small enough for one forward pass: the server may have ended both at one look. */
static void test_room_posted_twice_in_one_pass(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0.1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	assert_int_equal(r->last_end.life, 1);
	to(r, 400);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_int_equal(s->life, 2);
	assert_int_equal(s->v.cause, CAUSE_ROOM_REUSED);
	assert_int_equal(s->v.confidence, CONF_POSSIBLE);
	assert_int_equal(s->v.pin, -1);
	assert_true(has_evidence(s, "life 1 was sent in one chunk"));
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 0);
	rig_free(r);
	/* half sent, it is in no such pass */
	r = rig_new();
	announce(r, 0, "7001", "A", 1);
	announce(r, 0.1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	kv_done(r, 1, W1, 0xb0, "7001", 0, 0);
	aux_done(r, 1, W1, 0xa1, "7001");
	to(r, 400);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	rig_free(r);
}

/* Used again at once, and well. */
static void test_room_reused_well(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	announce(r, 1.5, "7001", "A", 1);
	aux_done(r, 2, W1, 0xa1, "7001");
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	to(r, 1000);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	rig_free(r);
}

/* Aborted and tried again within one forward pass: from here, a pin or nothing at all. */
static void test_abort_and_retry(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	abort_room(r, 0.5, "7001");
	announce(r, 0.6, "7001", "A", 1);
	to(r, 700);
	expect_stuck(r, "7001", 300, CAUSE_ROOM_REUSED, CONF_POSSIBLE, -1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->life, 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->life, 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.cause, CAUSE_ROOM_REUSED);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_POSSIBLE);
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 0);
	assert_int_equal(model_stuck(r->m, CONF_POSSIBLE), 2);
	rig_free(r);
}

/* Decode killed in mid-transfer, then the room comes again from its successor. */
static void test_killed_then_reused(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	status(r, 2, W1, 0xa0, OPS_ERROR);
	announce(r, 3, "7001", "B", 1);
	kv_done(r, 4, W1, 0xb0, "7001", 0, 0);
	to(r, 400);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->life, 1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.cause, CAUSE_TRANSFER_ERROR);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->v.confidence, CONF_POSSIBLE);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->life, 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.cause, CAUSE_ROOM_REUSED);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_POSSIBLE);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queued_behind),
		cmocka_unit_test(test_aux_missing_is_not_queued),
		cmocka_unit_test(test_queued_behind_by_peer),
		cmocka_unit_test(test_queued_behind_by_modulo),
		cmocka_unit_test(test_inference_needs_history),
		cmocka_unit_test(test_all_workers_blocked),
		cmocka_unit_test(test_behind_an_ended_room),
		cmocka_unit_test(test_error_frees_the_thread),
		cmocka_unit_test(test_given_up_holds_nobody),
		cmocka_unit_test(test_cause_changes),
		cmocka_unit_test(test_confidence_rises),
		cmocka_unit_test(test_room_posted_twice),
		cmocka_unit_test(test_room_posted_twice_in_one_pass),
		cmocka_unit_test(test_room_reused_well),
		cmocka_unit_test(test_abort_and_retry),
		cmocka_unit_test(test_killed_then_reused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
