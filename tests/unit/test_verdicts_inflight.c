// SPDX-License-Identifier: Apache-2.0
/* Causes of a room whose operations are under way: each shape of docs/model.md as a sequence of
 * events. */
#include "model_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
