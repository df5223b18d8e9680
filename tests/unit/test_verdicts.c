// SPDX-License-Identifier: Apache-2.0
/* Causes: each shape of docs/model.md as a sequence of events, with what must be said about it. */
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
	/* where releases are seen it is a pin */
	r = rig_new_with(true);
	announce(r, 0, "7001", "A", 1);
	abort_room(r, 10, "7001");
	to(r, 400);
	expect_stuck(r, "7001", 300, CAUSE_ABORT_NOT_REAPED, CONF_LIKELY, 1);
	rig_free(r);
}

/* ---- inflight ----------------------------------------------------------------------------- */

static void test_transfer_stalled(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	kv(r, 2, W1, 0xb0, "7001", 1, 1);
	status(r, 2.1, W1, 0xb0, OPS_BUSY);
	r->polls = true;
	r->poll_ns = S(1031.9);
	r->poll_tid = W1;
	to(r, 50);
	s = expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_int_equal(s->idle_ns, S(30));
	assert_int_equal(s->age_ns, S(32));
	assert_int_equal(s->v.decisive_ns, S(1002));
	assert_false(s->v.culprit.set);
	assert_non_null(strstr(s->v.last, "kv chunk 1 last"));
	assert_non_null(strstr(s->v.expected, "status done of op 0xb0"));
	assert_true(has_evidence(s, "posted by thread 111"));
	assert_true(has_evidence(s, "in progress for 30.0 s"));
	assert_true(has_evidence(s, "still polls"));
	/* one line per cause, however long it lasts */
	to(r, 500);
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	/* an abort afterwards is evidence, and changes nothing */
	abort_room(r, 510, "7001");
	to(r, 900);
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(look(r, "7001", 1).v.confidence, CONF_LIKELY);
	assert_int_equal(look(r, "7001", 1).v.pin, 1);
	{
		struct look k = look(r, "7001", 1);
		struct said seen = {.v = k.v};

		assert_true(has_evidence(&seen, "did not free it"));
	}
	/* in the end it moves */
	status(r, 1000, W1, 0xb0, OPS_DONE);
	s = nth(r, ALERT_RECOVERED, "7001", 0);
	assert_int_equal(s->outcome, OUTCOME_MOVING);
	assert_int_equal(s->stalled_ns, S(998));
	assert_int_equal(s->v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	rig_free(r);
}

/* The thread no longer looks at it. */
static void test_stalled_not_polled(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 2, W1, 0xb0, "7001", 0, 1);
	r->polls = true;
	r->poll_ns = S(1003);
	r->poll_tid = W1;
	to(r, 50);
	assert_true(
		has_evidence(expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1),
			     "nobody looks"));
	rig_free(r);
}

/* Aborted while its transfer was in progress: most likely gone. */
static void test_stalled_after_abort(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 2, W1, 0xb0, "7001", 0, 1);
	abort_room(r, 3, "7001");
	to(r, 100);
	expect_stuck(r, "7001", 32, CAUSE_TRANSFER_STALLED, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* Decode killed: an error, failed at once by the server, which cannot be seen. */
static void test_transfer_error(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	kv(r, 1, W1, 0xa1, "7001", 0, 0);
	{
		struct sp_event ev = op_event(r, 2, ROLE_STATUS, W1, 0xa0, OPS_ERROR);

		strcpy(ev.note, "remote disconnect");
		feed(r, &ev);
	}
	to(r, 100);
	s = expect_stuck(r, "7001", 32, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "-10 (remote disconnect)"));
	rig_free(r);
	r = rig_new_with(true);
	announce(r, 0, "7001", "A", 1);
	create(r, 1, W1, 0xa0, "7001", "kv", 0, 1, 0);
	post(r, 1, W1, 0xa0, OPS_ERROR);
	to(r, 100);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_ERROR, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_create_failed(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	ev = create_event(r, 1, W1, 0, "7001", "kv", 0, 1, 0);
	ev.status = OPS_ERROR;
	ev.code = -4;
	feed(r, &ev);
	/* what follows it makes up for it */
	announce(r, 1, "7002", "A", 1);
	ev = create_event(r, 1, W1, 0, "7002", "kv", 0, 1, 0);
	ev.status = OPS_ERROR;
	feed(r, &ev);
	kv_done(r, 1.1, W1, 0xa0, "7002", 0, 1);
	to(r, 400);
	expect_stuck(r, "7001", 301, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 31.11, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_closed_in_progress(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	close_op(r, 2, W1, 0xa0);
	to(r, 100);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	/* sent anew */
	kv_done(r, 101, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 101, W1, 0xa1, "7001");
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

static void test_last_chunk_missing(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 2, W1, 0xa1, "7001", 1, 0);
	to(r, 100);
	s = expect_stuck(r, "7001", 32.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_non_null(strstr(s->v.expected, "kv, last chunk"));
	assert_non_null(strstr(s->v.last, "status done of op 0xa1 (kv chunk 1"));
	/* rank 1's last chunk is missing */
	announce(r, 200, "7002", "A", 2);
	announce(r, 200, "7002", "B", 2);
	kv_done(r, 201, W1, 0xb0, "7002", 0, 1);
	aux_done(r, 201, W1, 0xb1, "7002");
	aux_done(r, 201, W1, 0xb2, "7002");
	to(r, 300);
	expect_stuck(r, "7002", 231.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

static void test_created_never_posted(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	create(r, 1, W1, 0xa0, "7001", "kv", 0, 1, 0);
	to(r, 100);
	s = expect_stuck(r, "7001", 31, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_non_null(strstr(s->v.expected, "post of op 0xa0"));
	rig_free(r);
}

static void test_part_missing(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	ev = create_event(r, 1, W1, 0xa0, "7001", "kv", 0, 1, 0);
	ev.part = 0;
	ev.parts = 3;
	feed(r, &ev);
	post(r, 1, W1, 0xa0, OPS_DONE);
	aux_done(r, 1, W1, 0xa1, "7001");
	to(r, 100);
	assert_non_null(strstr(
		expect_stuck(r, "7001", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1)->v.expected,
		"2 more of the 3 parts"));
	rig_free(r);
}

static void test_aux_missing(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 1);
	to(r, 100);
	s = expect_stuck(r, "7001", 31.01, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	assert_non_null(strstr(s->v.expected, "aux"));
	rig_free(r);
}

/* An abort explains what is missing, and may have been handled well. */
static void test_incomplete_after_abort(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	abort_room(r, 2, "7001");
	announce(r, 0, "7002", "A", 1);
	kv_done(r, 2, W1, 0xb0, "7002", 0, 1);
	abort_room(r, 2.5, "7002");
	to(r, 400);
	expect_stuck(r, "7001", 31.01, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 32.01, CAUSE_ABORT_NOT_REAPED, CONF_POSSIBLE, -1);
	rig_free(r);
}

static void test_worker_dies(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	announce(r, 0, "7003", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 1, W1, 0xa1, "7002", 0, 0);
	kv(r, 2, W2, 0xa2, "7003", 0, 0);
	thread_exit(r, 5, W1);
	assert_int_equal(count_said(r, ALERT_TARGET), 0);
	/* its number comes again, for another thread */
	announce(r, 6, "7004", "B", 1);
	kv(r, 7, W1, 0xa4, "7004", 0, 1);
	to(r, 100);
	s = expect_stuck(r, "7001", 31, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "thread 111"));
	assert_int_equal(s->v.decisive_ns, S(1005));
	expect_stuck(r, "7002", 31.01, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	expect_stuck(r, "7003", 32, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	expect_stuck(r, "7004", 37, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

/* A thread's end after the stall is not its cause. */
static void test_worker_dies_later(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	to(r, 40);
	thread_exit(r, 50, W1);
	to(r, 200);
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

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

/* ---- doubt -------------------------------------------------------------------------------- */

static void test_loss(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	loss(r, 2, 17);
	s = nth(r, ALERT_LOSS, NULL, 0);
	assert_int_equal(s->lost, 17);
	assert_string_equal(s->why, "ring-full");
	assert_string_equal(s->rooms, "7001,7002,");
	assert_int_equal(s->total_rooms, 2);
	announce(r, 3, "7003", "A", 1);
	kv(r, 3, W2, 0xb0, "7003", 0, 1);
	to(r, 100);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_POSSIBLE, -1);
	assert_true(s->uncertain);
	assert_true(has_evidence(s, "lost"));
	/* opened after the loss */
	expect_stuck(r, "7003", 33, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	/* a loss after the alert takes the confidence back, and the recovery is still told */
	loss(r, 110, 1);
	assert_int_equal(nth(r, ALERT_LOSS, NULL, 1)->total_rooms, 1);
	assert_int_equal(look(r, "7003", 1).v.confidence, CONF_POSSIBLE);
	status(r, 120, W2, 0xb0, OPS_DONE);
	s = nth(r, ALERT_RECOVERED, "7003", 0);
	assert_non_null(s);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	rig_free(r);
}

static void test_late_is_never_certain(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	kv(r, 1, W1, 0xa0, "7001", 3, 0);
	to(r, 100);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(s->late);
	assert_true(has_evidence(s, "half-way"));
	rig_free(r);
}

/* One operation more than was asked for, right after the end: no alert about that. */
static void test_straggler(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	healthy(r, 0, W1, 0xa0, "7001", "A");
	kv_done(r, 0.5, W1, 0xb0, "7001", 0, 1);
	healthy(r, 10, W1, 0xa0, "7002", "A");
	kv_done(r, 12, W1, 0xb1, "7002", 0, 1);
	to(r, 100);
	expect_stuck(r, "7001", 30.51, CAUSE_AUX_MISSING, CONF_POSSIBLE, -1);
	expect_stuck(r, "7002", 42.01, CAUSE_AUX_MISSING, CONF_LIKELY, 1);
	rig_free(r);
}

/* The companion's announcement may have come a moment before the probes did. */
static void test_quorum_after_gap(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	target(r, 0, "lib", EV_GAP);
	announce(r, 0.1, "7001", "A", 2);
	announce(r, 0.3, "7002", "A", 2);
	to(r, 400);
	expect_stuck(r, "7001", 330.1, CAUSE_QUORUM_INCOMPLETE, CONF_POSSIBLE, 0);
	expect_stuck(r, "7002", 330.3, CAUSE_QUORUM_INCOMPLETE, CONF_LIKELY, 0);
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
		cmocka_unit_test(test_transfer_stalled),
		cmocka_unit_test(test_stalled_not_polled),
		cmocka_unit_test(test_stalled_after_abort),
		cmocka_unit_test(test_transfer_error),
		cmocka_unit_test(test_create_failed),
		cmocka_unit_test(test_closed_in_progress),
		cmocka_unit_test(test_last_chunk_missing),
		cmocka_unit_test(test_created_never_posted),
		cmocka_unit_test(test_part_missing),
		cmocka_unit_test(test_aux_missing),
		cmocka_unit_test(test_incomplete_after_abort),
		cmocka_unit_test(test_worker_dies),
		cmocka_unit_test(test_worker_dies_later),
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
		cmocka_unit_test(test_fake_room),
		cmocka_unit_test(test_done_not_released),
		cmocka_unit_test(test_control_lost),
		cmocka_unit_test(test_status_lost),
		cmocka_unit_test(test_peer_gone),
		cmocka_unit_test(test_other_rank),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_late_is_never_certain),
		cmocka_unit_test(test_straggler),
		cmocka_unit_test(test_quorum_after_gap),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
