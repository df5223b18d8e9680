// SPDX-License-Identifier: Apache-2.0
/* Verdicts on lives that the server's own view lists, about threads and transfers: from the view
 * alone (a pin older than the watch), from both sources, and what is left where it cannot be sure.
 */
#include "view_rig.h"

/* ---- thread-died ---------------------------------------------------------------------------- */

static void test_orphan(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY,
	     .flags = EV_CUT | EV_ORPHAN, .sent = 3 + 1, .total = 3 + 1);
	rounds(r, 1, 32);
	s = expect_stuck(r, "7001", 31, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	decided_by(s, "no thread serves");
	rig_free(r);
}

static void test_worker_exits(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* at work on it when it ended: nothing of it is in a backlog, nobody is at it */
	old_pin(r, .room = "7001", .kind = "inflight", .code = MOVING, .tid = W1);
	works_at(r, 1, W1, "7001");
	ok(r, 1);
	held(r, 2, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_AT);
	thread_exit(r, 3, W1);
	held(r, 4, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING);
	rounds(r, 4, 32);
	s = expect_stuck(r, "7001", 31, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	decided_by(s, "has exited");
	rig_free(r);
	/* one that has sent its chunks before */
	r = view_rig();
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 3, "7001", "inflight", MOVING);
	thread_exit(r, 4, W1);
	rounds(r, 4, 34);
	expect_stuck(r, "7001", 32.01, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	rig_free(r);
	/* after the stall began it is evidence at most */
	r = view_rig();
	old_pin(r, .room = "7001", .kind = "inflight", .code = NONE);
	rounds(r, 1, 32);
	held(r, 33, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = NONE,
	     .flags = EV_ORPHAN);
	assert_int_equal(stuck_lines(r), 1);
	expect_stuck(r, "7001", 31, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

static void test_bootstrap_thread(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* gone before the watch: nobody knows when */
	thread_is(r, 0, "missing", 0);
	ok(r, 0);
	listed(r, 1, "7001", "bootstrap", BOOTSTRAP);
	rounds(r, 1.5, 10);
	s = expect_stuck(r, "7001", 6, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	decided_by(s, "not there");
	assert_string_equal(nth(r, ALERT_TARGET, NULL, 0)->what, "thread-missing");
	/* it is there again: no more of that */
	thread_is(r, 11, "found", BOOT);
	listed(r, 12, "7002", "bootstrap", BOOTSTRAP);
	rounds(r, 12.5, 30);
	assert_null(nth(r, ALERT_STUCK, "7002", 0));
	/* and gone again: it had been there */
	thread_is(r, 40, "missing", BOOT);
	rounds(r, 40.5, 50);
	expect_stuck(r, "7002", 45, CAUSE_THREAD_DIED, CONF_CERTAIN, 1);
	/* an announcement shows that somebody receives */
	announce(r, 51, "7003", "A", 2);
	listed(r, 52, "7003", "bootstrap", BOOTSTRAP);
	rounds(r, 52.5, 70);
	assert_null(nth(r, ALERT_STUCK, "7003", 0));
	rig_free(r);
}

/* ---- transfers ------------------------------------------------------------------------------ */

static void test_transfer_error(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1, "7002", "A", 1);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	kv(r, 2, W2, 0xb0, "7002", 0, 0);
	listed(r, 3, "7001", "inflight", MOVING);
	listed(r, 3, "7002", "inflight", NONE);
	status(r, 4, W1, 0xa0, OPS_ERROR);
	status(r, 4, W2, 0xb0, OPS_ERROR);
	rounds(r, 4, 35);
	expect_stuck(r, "7001", 34, CAUSE_TRANSFER_ERROR, CONF_CERTAIN, 1);
	/* without an entry the failure could not be recorded */
	assert_true(has_evidence(expect_stuck(r, "7002", 34, CAUSE_STATUS_LOST, CONF_CERTAIN, 1),
				 "error -10"));
	rig_free(r);
}

static void test_stalled(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* a thread at work on it, nothing known of before */
	held(r, 1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_CUT | EV_AT);
	works_at(r, 1, W1, "7001");
	/* from both sources; natively alone, whole, and the status says so, or not */
	announce(r, 1, "7002", "A", 1);
	announce(r, 1, "7003", "A", 1);
	announce(r, 1, "7004", "A", 1);
	kv(r, 2, W2, 0xb0, "7002", 0, 1);
	kv(r, 2, W3, 0xc0, "7003", 0, 1);
	kv(r, 2, 114, 0xd0, "7004", 0, 1);
	held(r, 2.5, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .code = MOVING,
	     .tid = W2, .flags = EV_AT);
	listed(r, 2.5, "7003", "inflight", MOVING);
	listed(r, 2.5, "7004", "inflight", READY);
	rounds(r, 3, 34);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	decided_by(s, "at work on it");
	assert_true(has_tid(s, W1));
	assert_true(s->late);
	s = expect_stuck(r, "7002", 32, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	decided_by(s, "in progress for 30.5 s");
	/* the profile would show the thread that is at it */
	s = expect_stuck(r, "7003", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "no thread is at work on it"));
	expect_stuck(r, "7004", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
	/* it would not */
	r = view_rig();
	r->profile.python->backlog.n = 0;
	ok(r, 0);
	announce(r, 1, "7003", "A", 1);
	kv(r, 2, W3, 0xc0, "7003", 0, 1);
	listed(r, 2.5, "7003", "inflight", MOVING);
	rounds(r, 3, 34);
	expect_stuck(r, "7003", 32, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	r->profile.python->backlog.n = 1;
	rig_free(r);
}

/* The view comes late to it: the thread at work posted what is in progress, so it has been for as
 * long. */
static void test_seen_late_at_its_own(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	announce(r, 1, "7001", "A", 1);
	announce(r, 1, "7002", "A", 1);
	kv(r, 2, W1, 0xb0, "7001", 0, 1);
	kv(r, 2, W2, 0xc0, "7002", 0, 1);
	ok(r, 2.5);
	/* behind the deadline; one at another thread than has posted for it */
	held(r, 32.1, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = READY,
	     .tid = W1, .flags = EV_AT);
	held(r, 32.1, .room = "7002", .rid = "y", .op = 0x20, .kind = "inflight", .code = READY,
	     .tid = W3, .flags = EV_AT);
	rounds(r, 33, 36);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

/* The thread took it only a moment ago: that is movement. */
static void test_just_taken(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	old_pin(r, .room = "7001", .kind = "inflight", .code = MOVING, .tid = W1);
	works_at(r, 1, W1, "7999");
	rounds(r, 1, 20);
	works_at(r, 20, W1, "7001");
	held(r, 20, .room = "7001", .rid = "x", .op = 0x10, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_AT);
	rounds(r, 20.5, 49);
	assert_int_equal(stuck_lines(r), 0);
	rounds(r, 49.5, 52);
	expect_stuck(r, "7001", 50, CAUSE_TRANSFER_STALLED, CONF_CERTAIN, 1);
	rig_free(r);
}

/* ---- queued-behind -------------------------------------------------------------------------- */

static void test_behind(void **state)
{
	struct rig *r = view_rig();
	const struct said *s;

	(void)state;
	/* the culprit has ended: its write goes on, and the thread with it */
	held(r, 0.5, .room = "7001", .rid = "c", .op = 0x30, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_CUT | EV_AT);
	works_at(r, 0.5, W1, "7001");
	{
		struct sp_event ev = event(r, 1, ROLE_RELEASE, 0, "7001");

		strcpy(ev.rid, "c");
		ev.op = 0x30;
		ev.flags = EV_INFERRED;
		feed(r, &ev);
	}
	old_pin(r, .room = "7002", .kind = "inflight", .code = READY, .tid = W1);
	rounds(r, 1, 32);
	s = expect_stuck(r, "7002", 31, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, 1);
	decided_by(s, "thread 111, which has been at room 7001");
	assert_true(s->v.culprit.set);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_int_equal(s->v.culprit.life, 1);
	assert_int_equal(s->v.culprit.tid, W1);
	assert_int_equal(s->v.culprit.pid, PID);
	assert_non_null(strstr(s->v.culprit.state, "31.0 s"));
	assert_int_equal(s->v.ntids, 1);
	assert_true(has_tid(s, W1));
	rig_free(r);
}

/* Told of the thread before it was told of the room it is at; and of a room that has no life here.
 */
static void test_behind_at_the_attach(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	works_at(r, 1, W1, "7001");
	works_at(r, 1, W2, "7009");
	old_pin(r, .room = "7001", .kind = "inflight", .code = MOVING, .tid = W1);
	old_pin(r, .room = "7002", .kind = "inflight", .code = READY, .tid = W1);
	old_pin(r, .room = "7003", .kind = "inflight", .code = READY, .tid = W2);
	rounds(r, 1, 32);
	assert_int_equal(
		expect_stuck(r, "7002", 31, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, 1)->v.culprit.life,
		1);
	assert_int_equal(
		expect_stuck(r, "7003", 31, CAUSE_QUEUED_BEHIND, CONF_CERTAIN, 1)->v.culprit.life,
		0);
	rig_free(r);
}

/* Deep queues: the thread goes from room to room, nobody is stuck, however long it takes. */
static void test_backlog_moves(void **state)
{
	struct rig *r = view_rig();
	char room[16];

	(void)state;
	ok(r, 0);
	for (int i = 0; i < 12; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		held(r, 1, .room = room, .rid = room, .op = 0x100 + (uint64_t)i, .kind = "inflight",
		     .code = READY, .tid = W1);
	}
	for (int i = 0; i < 12; i++) {
		snprintf(room, sizeof(room), "%d", 7000 + i);
		works_at(r, 2 + i * 20, W1, room);
		held(r, 2 + i * 20, .room = room, .rid = room, .op = 0x100 + (uint64_t)i,
		     .kind = "inflight", .code = MOVING, .tid = W1, .flags = EV_AT);
		rounds(r, 2 + i * 20, 20 + i * 20);
		{
			struct sp_event ev = event(r, 21 + i * 20, ROLE_RELEASE, 0, room);

			strcpy(ev.rid, room);
			ev.op = 0x100 + (uint64_t)i;
			ev.flags = EV_INFERRED;
			feed(r, &ev);
		}
	}
	assert_int_equal(stuck_lines(r), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The view says that it is in no backlog: what a busy thread suggests is not so. */
static void test_not_behind(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1, "7002", "B", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 2.5, "7001", "inflight", MOVING);
	kv(r, 3, W1, 0xb0, "7002", 0, 1);
	held(r, 3.5, .room = "7002", .rid = "b", .op = 0x20, .kind = "inflight", .code = MOVING,
	     .tid = W1, .flags = EV_AT);
	rounds(r, 4, 34);
	expect_stuck(r, "7001", 32.01, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	rig_free(r);
	/* where the profile tells nothing of backlogs, it is what the native events say */
	r = view_rig();
	r->profile.python->backlog.n = 0;
	ok(r, 0);
	announce(r, 1, "7001", "A", 1);
	announce(r, 1, "7002", "B", 1);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 0);
	listed(r, 2.005, "7001", "inflight", MOVING);
	kv(r, 2.01, W1, 0xb0, "7002", 0, 1);
	listed(r, 3.5, "7002", "inflight", MOVING);
	rounds(r, 4, 34);
	assert_string_equal(
		expect_stuck(r, "7001", 32.01, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1)->v.culprit.room,
		"7002");
	r->profile.python->backlog.n = 1;
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orphan),
		cmocka_unit_test(test_worker_exits),
		cmocka_unit_test(test_bootstrap_thread),
		cmocka_unit_test(test_transfer_error),
		cmocka_unit_test(test_stalled),
		cmocka_unit_test(test_seen_late_at_its_own),
		cmocka_unit_test(test_just_taken),
		cmocka_unit_test(test_behind),
		cmocka_unit_test(test_behind_at_the_attach),
		cmocka_unit_test(test_backlog_moves),
		cmocka_unit_test(test_not_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
