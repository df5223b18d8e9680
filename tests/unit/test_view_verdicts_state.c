// SPDX-License-Identifier: Apache-2.0
/* Verdicts on lives that the server's own view lists, about what the server holds: its status
 * table, its queues, its counts, its other ranks. */
#include "view_rig.h"

/* ---- what the server's state alone tells ---------------------------------------------------- */

static void test_status_lost(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	old_pin(r, .room = "7001", .kind = "inflight", .code = NONE);
	rounds(r, 1, 28);
	loss(r, 29, 5);
	rounds(r, 29.5, 32);
	s = expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	decided_by(s, "status table has no entry");
	assert_true(has_evidence(s, "in the server's queue inflight since +0.0 s"));
	assert_true(has_tid(s, PID));
	assert_true(s->uncertain && s->late);
	/* the traffic around it changes nothing */
	rig_free(r);
	r = view_rig();
	ok(r, 0);
	for (int i = 0; i < 100; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		announce(r, 0.1, room, "A", 1);
	}
	listed(r, 1, "7001", "inflight", NONE);
	for (int i = 0; i < 100; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		kv_done(r, 1.5 + i * 0.5, W1, 0xa0, room, 0, 1);
		ok(r, 1.6 + i * 0.5);
	}
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* Announced and aborted before the scheduler knew the request, which waits in bootstrap for what
 * will not come again: the server's own timeout ends it. */
static void test_aborted_before_it_was_known(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	abort_room(r, 1.1, "7001");
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	rounds(r, 2.5, 400);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_ABORT_BEFORE_OPEN);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	assert_int_equal(s->v.pin, 0);
	rig_free(r);
}

/* Posted twice: the view names the life that is pinned, and what became of the other. */
static void test_reused(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1.1, "7001", "A", 1);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = READY);
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = READY);
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	held(r, 3.5, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = MOVING);
	{
		struct sp_event ev = event(r, 4, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "a");
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rounds(r, 4, 35);
	s = expect_stuck(r, "7001", 33.5, CAUSE_ROOM_REUSED, CONF_CERTAIN, 1);
	assert_int_equal(s->life, 2);
	assert_true(has_evidence(s, "life 1 ended well"));
	assert_true(has_evidence(s, "held both at once"));
	rig_free(r);
}

static void test_incomplete(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	/* older than the watch: by what the server has counted */
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .flags = EV_CUT, .sent = 5 + 1, .total = 6 + 1);
	held(r, 1, .room = "7002", .rid = "b", .op = 0x20, .kind = "inflight", .code = MOVING,
	     .flags = EV_CUT, .sent = 6 + 1, .total = 6 + 1);
	held(r, 1, .room = "7003", .rid = "c", .op = 0x30, .kind = "inflight", .code = MOVING,
	     .flags = EV_CUT);
	/* seen whole */
	announce(r, 1, "7004", "A", 1);
	announce(r, 1, "7005", "A", 1);
	announce(r, 1, "7006", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7004", 0, 0);
	kv_done(r, 1, W2, 0xb0, "7005", 0, 1);
	kv_done(r, 1, W3, 0xc0, "7006", 0, 1);
	listed(r, 1.1, "7004", "inflight", MOVING);
	listed(r, 1.1, "7005", "inflight", MOVING);
	listed(r, 1.1, "7006", "inflight", READY);
	rounds(r, 1.5, 30);
	loss(r, 30.2, 1);
	rounds(r, 30.5, 33);
	expect_stuck(r, "7001", 31, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	assert_string_equal(
		expect_stuck(r, "7002", 31, CAUSE_AUX_MISSING, CONF_CERTAIN, 1)->v.expected,
		"post aux");
	expect_stuck(r, "7003", 31, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	/* events were lost: the claim of the native events is likely, the second source holds it */
	expect_stuck(r, "7004", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	expect_stuck(r, "7006", 31.01, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	rig_free(r);
	r = view_rig();
	ok(r, 0);
	announce(r, 1, "7005", "A", 1);
	kv_done(r, 1, W2, 0xb0, "7005", 0, 1);
	listed(r, 1.1, "7005", "inflight", MOVING);
	rounds(r, 1.5, 33);
	expect_stuck(r, "7005", 31.01, CAUSE_AUX_MISSING, CONF_CERTAIN, 1);
	rig_free(r);
}

static void test_done(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	old_pin(r, .room = "7001", .kind = "inflight", .code = DONE);
	ok(r, 1);
	announce(r, 1, "7002", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7002", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7002");
	listed(r, 1.1, "7002", "inflight", MOVING);
	rounds(r, 1.5, 33);
	s = expect_stuck(r, "7001", 31, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	assert_true(has_evidence(s, "status 4 (done)"));
	assert_true(has_tid(s, PID));
	expect_stuck(r, "7002", 11.01, CAUSE_DONE_NOT_RELEASED, CONF_CERTAIN, 1);
	rig_free(r);
}

static void test_abort(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	old_pin(r, .room = "7001", .kind = "inflight", .code = FAILED);
	announce(r, 1, "7002", "A", 1);
	listed(r, 1.5, "7002", "inflight", READY);
	abort_room(r, 2, "7002");
	/* aborted and gone: nothing to say */
	announce(r, 1, "7003", "A", 1);
	listed(r, 1.5, "7003", "inflight", READY);
	abort_room(r, 2, "7003");
	let_go(r, 3, "7003");
	/* in bootstrap the server's timeout is left */
	listed(r, 4, "7004", "bootstrap", BOOTSTRAP);
	abort_room(r, 5, "7004");
	rounds(r, 3, 340);
	expect_stuck(r, "7001", 31, CAUSE_ABORT_NOT_REAPED, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 31.5, CAUSE_ABORT_NOT_REAPED, CONF_CERTAIN, 1);
	assert_null(nth(r, ALERT_STUCK, "7003", 0));
	expect_stuck(r, "7004", 334, CAUSE_ABORT_NOT_REAPED, CONF_CERTAIN, 0);
	rig_free(r);
}

/* The abort made the room stuck only after it was: the root stays. */
static void test_abort_of_a_pin(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	old_pin(r, .room = "7001", .kind = "inflight", .code = NONE);
	rounds(r, 1, 32);
	abort_room(r, 33, "7001");
	rounds(r, 33.5, 100);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_STATUS_LOST);
	rig_free(r);
}

static void test_never_sent(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	old_pin(r, .room = "7001", .kind = "inflight", .code = READY);
	held(r, 1, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .flags = EV_CUT,
	     .code = HELD_UNKNOWN);
	rounds(r, 1, 32);
	expect_stuck(r, "7001", 31, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 31, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	rig_free(r);
}

/* The waiting queue as a queue. */
static void test_waiting(void **state)
{
	struct rig *r = view_rig();
	char room[16];

	(void)state;
	ok(r, 0);
	for (int i = 0; i < 10; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		listed(r, 1, room, "waiting", READY);
	}
	/* one leaves every 100 s */
	for (int i = 0; i < 5; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		rounds(r, 2 + i * 100, 100 + i * 100);
		listed(r, 101 + i * 100, room, "inflight", READY);
		let_go(r, 102 + i * 100, room);
	}
	rounds(r, 502, 790);
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(look(r, "7009", 1).v.cause, CAUSE_BACKPRESSURE);
	/* nothing moves any more; what comes later and is let past does not count */
	for (int i = 0; i < 5; i++) {
		snprintf(room, sizeof(room), "%d", 7100 + i);
		listed(r, 790.5, room, "waiting", READY);
		listed(r, 791, room, "inflight", READY);
		let_go(r, 791.5, room);
	}
	rounds(r, 791.5, 804);
	/* the flow merges what happened in a 64th of the deadline */
	assert_int_equal(stuck_lines(r), 5);
	assert_int_equal(nth(r, ALERT_STUCK, "7009", 0)->v.cause, CAUSE_NEVER_SENT);
	assert_int_equal(nth(r, ALERT_STUCK, "7009", 0)->v.confidence, CONF_LIKELY);
	assert_int_equal(nth(r, ALERT_STUCK, "7009", 0)->v.pin, -1);
	rig_free(r);
}

/* ---- bootstrap ------------------------------------------------------------------------------ */

static void test_bootstrap(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* older than the watch, by what the server counts */
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP,
	     .flags = EV_CUT, .announced = 0 + 1);
	held(r, 1, .room = "7002", .rid = "b", .op = 0x20, .kind = "bootstrap", .code = BOOTSTRAP,
	     .flags = EV_CUT, .announced = 1 + 1, .need = 2 + 1);
	held(r, 1, .room = "7003", .rid = "c", .op = 0x30, .kind = "bootstrap", .code = BOOTSTRAP,
	     .flags = EV_CUT);
	/* from its start */
	listed(r, 1, "7004", "bootstrap", BOOTSTRAP);
	abort_room(r, 1, "7005");
	announce(r, 1, "7006", "A", 2);
	listed(r, 1, "7006", "bootstrap", BOOTSTRAP);
	listed(r, 2, "7005", "bootstrap", BOOTSTRAP);
	/* announced to a request before it, whose end took that with it */
	announce(r, 1, "7007", "A", 1);
	announce(r, 1, "7008", "A", 1);
	abort_room(r, 1, "7008");
	held(r, 2, .room = "7007", .rid = "g", .op = 0x70, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 0 + 1);
	held(r, 2, .room = "7008", .rid = "h", .op = 0x80, .kind = "bootstrap", .code = BOOTSTRAP,
	     .announced = 0 + 1);
	rounds(r, 2, 335);
	expect_stuck(r, "7007", 302, CAUSE_DECODE_ABSENT, CONF_CERTAIN, 0);
	expect_stuck(r, "7008", 302, CAUSE_ABORT_BEFORE_OPEN, CONF_CERTAIN, 0);
	s = expect_stuck(r, "7001", 331, CAUSE_DECODE_ABSENT, CONF_CERTAIN, 0);
	assert_non_null(strstr(s->v.expected, "0 of 1 so far"));
	s = expect_stuck(r, "7002", 331, CAUSE_QUORUM_INCOMPLETE, CONF_CERTAIN, 0);
	assert_non_null(strstr(s->v.expected, "1 of 2 so far"));
	decided_by(s, "1 of 2 peers announced");
	expect_stuck(r, "7003", 331, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	expect_stuck(r, "7004", 331, CAUSE_DECODE_ABSENT, CONF_CERTAIN, 0);
	expect_stuck(r, "7005", 332, CAUSE_ABORT_BEFORE_OPEN, CONF_CERTAIN, 0);
	expect_stuck(r, "7006", 331, CAUSE_QUORUM_INCOMPLETE, CONF_CERTAIN, 0);
	rig_free(r);
}

/* ---- others --------------------------------------------------------------------------------- */

static void test_fake(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "1", .rid = "x", .op = 0x10, .kind = "bootstrap", .code = NONE);
	held(r, 1, .room = "2", .rid = "y", .op = 0x20, .kind = "waiting", .code = NONE);
	rounds(r, 1.5, 400);
	assert_int_equal(stuck_lines(r), 0);
	held(r, 401, .room = "1", .rid = "x", .op = 0x10, .kind = "inflight", .code = NONE);
	rounds(r, 401.5, 433);
	expect_stuck(r, "1", 431, CAUSE_STATUS_LOST, CONF_LIKELY, 1);
	assert_int_equal(stuck_lines(r), 1);
	rig_free(r);
}

static void test_ranks(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* process 200 is stuck in its transfer, 100 has done its part and waits */
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING);
	r->pid = 200;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv(r, 2, 211, 0xa0, "7001", 0, 1);
	held(r, 2, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = 211, .flags = EV_AT);
	r->pid = PID;
	kv_done(r, 3, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 3, W1, 0xa1, "7001");
	for (double t = 3.5; t < 100; t += 0.5) {
		r->pid = PID;
		ok(r, t);
		r->pid = 200;
		ok(r, t);
	}
	/* slower is not stuck */
	s = nth(r, ALERT_STUCK, NULL, 0);
	assert_int_equal(s->v.cause, CAUSE_RANK_DIVERGED);
	assert_int_equal(s->v.confidence, CONF_POSSIBLE);
	s = nth(r, ALERT_STUCK, NULL, 1);
	assert_int_equal(s->pid, 200);
	assert_int_equal(s->v.cause, CAUSE_TRANSFER_STALLED);
	s = nth(r, ALERT_STUCK, NULL, 2);
	assert_int_equal(s->pid, PID);
	assert_int_equal(s->v.cause, CAUSE_RANK_DIVERGED);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	assert_int_equal(s->v.culprit.pid, 200);
	assert_int_equal(s->v.culprit.life, 1);
	assert_string_equal(s->v.culprit.room, "7001");
	rig_free(r);
	/* one rank has ended it, the other never got it */
	r = view_rig();
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY);
	r->pid = 200;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = DONE);
	{
		struct sp_event ev = event(r, 5, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "x");
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	r->pid = PID;
	rounds(r, 5.5, 32);
	s = expect_stuck(r, "7001", 31, CAUSE_RANK_DIVERGED, CONF_CERTAIN, 1);
	assert_int_equal(s->v.culprit.pid, 200);
	decided_by(s, "process 200 ended the same room");
	rig_free(r);
}

static void test_control_lost(void **state)
{
	struct rig *r = view_rig();
	struct sp_event ev;

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	listed(r, 1.5, "7001", "inflight", MOVING);
	ev = event(r, 2, ROLE_CONTROL, W1, "7001");
	strcpy(ev.kind, "staging_req");
	feed(r, &ev);
	rounds(r, 2.5, 33);
	expect_stuck(r, "7001", 31.01, CAUSE_CONTROL_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

/* A profile that gives the values no meaning: nothing is certain by them. */
static void test_no_meaning(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	r->profile.python = NULL;
	old_pin(r, .room = "7001", .kind = "inflight", .code = DONE);
	old_pin(r, .room = "7002", .kind = "inflight", .code = NONE);
	rounds(r, 1, 32);
	expect_stuck(r, "7001", 31, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	expect_stuck(r, "7002", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_aborted_before_it_was_known),
		cmocka_unit_test(test_status_lost),
		cmocka_unit_test(test_reused),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_done),
		cmocka_unit_test(test_abort),
		cmocka_unit_test(test_abort_of_a_pin),
		cmocka_unit_test(test_never_sent),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_bootstrap),
		cmocka_unit_test(test_fake),
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_control_lost),
		cmocka_unit_test(test_no_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
