// SPDX-License-Identifier: Apache-2.0
/* Causes before the first post and after the last: each shape of docs/model.md as a sequence of
 * events, with what must be said about it. */
#include "model_rig.h"

/* ---- bootstrap ---------------------------------------------------------------------------- */

static void test_rank_absent(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 2);
	to(r, 329.9);
	assert_int_equal(r->nsaid, 0);
	to(r, 400);
	s = expect_stuck(r, "7001", 330, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	assert_int_equal(s->stage, STAGE_BOOTSTRAP);
	assert_non_null(strstr(s->v.expected, "1 of 2"));
	assert_true(has_evidence(s, "A"));
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 1);
	/* the decode gives up and tries again: the first attempt is over */
	announce(r, 401, "7001", "A", 2);
	assert_int_equal(r->last_end.life, 1);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_FAILED);
	announce(r, 401.1, "7001", "B", 2);
	assert_int_equal(look(r, "7001", 2).l.stage, STAGE_READY);
	rig_free(r);
}

/* One peer, by its address and its agent's name; the list ends with a whole one. */
static void test_names_of_peers(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "10.0.0.7:15001", 5);
	announce(r, 0, "7001", "the-second-with-a-name-of-its-own", 5);
	announce(r, 0, "7001", "the-third-with-a-name-of-its-own", 5);
	to(r, 400);
	s = expect_stuck(r, "7001", 330, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	assert_true(has_evidence(s,
				 "3 of 5 peers announced: 10.0.0.7:40049 (agent 10.0.0.7:15001), "
				 "10.0.0.7:40116 (agent the-second-with-a-name-of-its-own), ..."));
	rig_free(r);
	r = rig_new();
	ev = event(r, 0, ROLE_ANNOUNCE, BOOT, "7001");
	snprintf(ev.peer, sizeof(ev.peer), "10.0.0.7:15001");
	ev.need = 2;
	feed(r, &ev);
	to(r, 400);
	s = expect_stuck(r, "7001", 330, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	assert_true(has_evidence(s, "1 of 2 peers announced: 10.0.0.7:15001"));
	assert_false(has_evidence(s, "(agent"));
	rig_free(r);
}

/* The missing rank comes late: it goes on, and the alert is withdrawn. */
static void test_rank_late(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	to(r, 340);
	announce(r, 341, "7001", "B", 2);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_MOVING);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->stalled_ns, S(341));
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->v.cause, CAUSE_QUORUM_INCOMPLETE);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	rig_free(r);
}

static void test_abort_before_open(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	abort_room(r, 0, "7001");
	assert_int_equal(open_lives(r), 0);
	announce(r, 5, "7001", "A", 2);
	to(r, 400);
	s = expect_stuck(r, "7001", 335, CAUSE_ABORT_BEFORE_OPEN, CONF_LIKELY, 0);
	assert_true(has_evidence(s, "5.0 s before"));
	/* kept for 60 s only, and for one life */
	abort_room(r, 1000, "7002");
	announce(r, 1060.1, "7002", "A", 2);
	abort_room(r, 1100, "7003");
	healthy(r, 1101, W1, 0xa0, "7003", "A");
	announce(r, 1102, "7003", "A", 2);
	to(r, 2000);
	expect_stuck(r, "7002", 1390.1, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	expect_stuck(r, "7003", 1432, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
	rig_free(r);
}

/* An abort that came first and did no harm. */
static void test_abort_before_open_harmless(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	abort_room(r, 0, "7001");
	announce(r, 5, "7001", "A", 1);
	kv_done(r, 6, W1, 0xa0, "7001", 0, 0);
	to(r, 100);
	expect_stuck(r, "7001", 36.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_abort_in_bootstrap(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	abort_room(r, 5, "7001");
	/* its companion had already sent: a new life in name only */
	announce(r, 5.1, "7001", "B", 2);
	to(r, 500);
	expect_stuck(r, "7001", 330, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->life, 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.confidence, CONF_POSSIBLE);
	assert_int_equal(model_stuck(r->m, CONF_LIKELY), 0);
	rig_free(r);
}

static void test_decode_absent(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	plain(r, 0, ROLE_ARRIVE, PID, "7001");
	to(r, 400);
	expect_stuck(r, "7001", 330, CAUSE_DECODE_ABSENT, CONF_LIKELY, 0);
	rig_free(r);
}

static void test_bootstrap_thread_dies(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 2);
	announce(r, 8, "7003", "A", 2);
	announce(r, 9, "7004", "A", 2);
	abort_room(r, 9.5, "7004");
	thread_exit(r, 10, BOOT);
	s = nth(r, ALERT_TARGET, NULL, 0);
	assert_string_equal(s->what, "thread-exited");
	assert_int_equal(s->tid, BOOT);
	assert_int_equal(s->ns, S(1010));
	/* a room that only arrives now waits in vain too */
	plain(r, 12, ROLE_ARRIVE, PID, "7005");
	to(r, 14.9);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	to(r, 20);
	s = expect_stuck(r, "7002", 15, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "101"));
	expect_stuck(r, "7003", 15, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	expect_stuck(r, "7004", 15, CAUSE_THREAD_DIED, CONF_POSSIBLE, -1);
	expect_stuck(r, "7005", 17, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	/* ready already: it needs that thread no longer */
	assert_null(nth(r, ALERT_STUCK, "7001", 0));
	rig_free(r);
}

/* Another thread takes over: rooms are announced again. */
static void test_bootstrap_thread_replaced(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 2);
	thread_exit(r, 10, BOOT);
	ev = event(r, 11, ROLE_ANNOUNCE, BOOT + 50, "7002");
	strcpy(ev.agent, "A");
	ev.need = 2;
	feed(r, &ev);
	to(r, 300);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	/* a thread that has nothing to do with rooms */
	thread_exit(r, 310, 9999);
	assert_int_equal(count_said(r, ALERT_TARGET), 1);
	rig_free(r);
}

static void test_whole_process_exits(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	announce(r, 0, "7002", "A", 1);
	kv(r, 1, W1, 0xa0, "7002", 0, 1);
	thread_exit(r, 10, BOOT);
	thread_exit(r, 10, W1);
	target(r, 11, "exited", 0);
	to(r, 1000);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* ---- ready -------------------------------------------------------------------------------- */

static void test_never_sent(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	to(r, 400);
	s = expect_stuck(r, "7001", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_int_equal(s->stage, STAGE_READY);
	assert_true(has_evidence(s, "forward pass"));
	/* the server's own list shows it as being sent */
	announce(r, 500, "7002", "A", 1);
	{
		struct sp_event ev = event(r, 510, ROLE_HELD, PID, "7002");

		strcpy(ev.kind, "inflight");
		ev.code = 2;
		feed(r, &ev);
	}
	to(r, 600);
	expect_stuck(r, "7002", 540, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_abort_when_ready(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	abort_room(r, 10, "7001");
	to(r, 400);
	s = expect_stuck(r, "7001", 300, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	assert_int_equal(s->v.decisive_ns, S(1010));
	rig_free(r);
	/* where releases are seen it is held: but the abort may have come before the server knew it
	 */
	r = rig_new_with(true);
	announce(r, 0, "7001", "A", 1);
	abort_room(r, 10, "7001");
	to(r, 400);
	expect_stuck(r, "7001", 300, CAUSE_ABORT_NOT_REAPED, CONF_LIKELY, -1);
	rig_free(r);
}

/* ---- others ------------------------------------------------------------------------------- */

static void test_fake_room(void **state)
{
	struct rig *r = rig_new();
	struct look k;

	(void)state;
	announce(r, 0, "0", "A", 1);
	announce(r, 0, "63", "A", 2);
	announce(r, 0, "64", "A", 2);
	thread_exit(r, 1, BOOT);
	to(r, 1000);
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	assert_string_equal(nth(r, ALERT_STUCK, NULL, 0)->room, "64");
	k = look(r, "0", 1);
	assert_true(k.l.fake);
	assert_int_equal(k.v.cause, CAUSE_FAKE_ROOM);
	assert_int_equal(k.v.confidence, CONF_POSSIBLE);
	assert_int_equal(model_stuck(r->m, CONF_POSSIBLE), 1);
	/* and it may be used again, and end */
	kv_done(r, 1001, W1, 0xa0, "0", 0, 1);
	aux_done(r, 1001, W1, 0xa1, "0");
	assert_false(look(r, "0", 1).found);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	rig_free(r);
}

static void test_done_not_released(void **state)
{
	struct rig *r = rig_new_with(true);

	(void)state;
	healthy(r, 0, W1, 0xa0, "7001", "A");
	to(r, 100);
	expect_stuck(r, "7001", 10.2, CAUSE_DONE_NOT_RELEASED, CONF_LIKELY, 1);
	plain(r, 101, ROLE_RELEASE, PID, "7001");
	assert_int_equal(nth(r, ALERT_RECOVERED, "7001", 0)->outcome, OUTCOME_DONE);
	rig_free(r);
}

static void test_control_lost(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 1, W2, 0xb0, "7002", 0, 0);
	ev = event(r, 2, ROLE_CONTROL, W1, "7001");
	strcpy(ev.kind, "staging_req");
	feed(r, &ev);
	snprintf(ev.room, sizeof(ev.room), "7002");
	feed(r, &ev);
	strcpy(ev.kind, "staging_rsp");
	feed(r, &ev);
	to(r, 100);
	expect_stuck(r, "7001", 31.01, CAUSE_CONTROL_LOST, CONF_LIKELY, 1);
	expect_stuck(r, "7002", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_status_lost(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev = event(r, 0, ROLE_HELD, PID, "7001");

	(void)state;
	strcpy(ev.kind, "inflight");
	ev.code = -1;
	feed(r, &ev);
	/* equal snapshots are no progress */
	for (int i = 1; i < 29; i++) {
		ev.ns = S(r->base + i);
		feed(r, &ev);
	}
	loss(r, 29, 5);
	to(r, 100);
	expect_stuck(r, "7001", 30, CAUSE_STATUS_LOST, CONF_CERTAIN, 1);
	rig_free(r);
}

static void test_peer_gone(void **state)
{
	struct rig *r = rig_new_with(true);
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	ev = event(r, 5, ROLE_PEER, PID, "");
	strcpy(ev.kind, "closed");
	strcpy(ev.agent, "A");
	feed(r, &ev);
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	strcpy(ev.agent, "stranger");
	feed(r, &ev);
	assert_int_equal(count_said(r, ALERT_PEER), 1);
	to(r, 400);
	expect_stuck(r, "7001", 300, CAUSE_PEER_GONE, CONF_LIKELY, 1);
	expect_stuck(r, "7002", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* What another rank did with the same room is said. */
static void test_other_rank(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	r->pid = 200;
	healthy(r, 1, W1, 0xa0, "7001", "A");
	to(r, 100);
	assert_true(
		has_evidence(expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1),
			     "process 200 has ended the same room"));
	rig_free(r);
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(sp_cause_name(CAUSE_TRANSFER_STALLED), "transfer-stalled");
	assert_string_equal(sp_cause_name(CAUSE_MAX), "none");
	for (int c = 0; c < CAUSE_MAX; c++)
		assert_true(strlen(sp_cause_name(c)) > 3);
	assert_int_equal(sp_confidence_parse("likely"), CONF_LIKELY);
	assert_int_equal(sp_confidence_parse("none"), CONF_NONE);
	assert_int_equal(sp_confidence_parse("sure"), CONF_NONE);
	assert_string_equal(sp_confidence_name(CONF_CERTAIN), "certain");
	assert_string_equal(sp_outcome_name(OUTCOME_MOVING), "moving");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_absent),
		cmocka_unit_test(test_names_of_peers),
		cmocka_unit_test(test_rank_late),
		cmocka_unit_test(test_abort_before_open),
		cmocka_unit_test(test_abort_before_open_harmless),
		cmocka_unit_test(test_abort_in_bootstrap),
		cmocka_unit_test(test_decode_absent),
		cmocka_unit_test(test_bootstrap_thread_dies),
		cmocka_unit_test(test_bootstrap_thread_replaced),
		cmocka_unit_test(test_whole_process_exits),
		cmocka_unit_test(test_never_sent),
		cmocka_unit_test(test_abort_when_ready),
		cmocka_unit_test(test_fake_room),
		cmocka_unit_test(test_done_not_released),
		cmocka_unit_test(test_control_lost),
		cmocka_unit_test(test_status_lost),
		cmocka_unit_test(test_peer_gone),
		cmocka_unit_test(test_other_rank),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
