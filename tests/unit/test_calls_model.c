// SPDX-License-Identifier: Apache-2.0
/* Calls of the transport's surroundings in the model: evidence, never progress. */
#include "calls_rig.h"

/* ---- what they are not ---------------------------------------------------------------------- */

static void test_opens_nothing(void **state)
{
	struct rig *r = calls_rig();

	(void)state;
	copied(r, 1, W1, "7001", 4096, 0);
	inside(r, 2, W1, SYNC, 1.5, "7001");
	left(r, 3, W1, SYNC);
	left(r, 3, W1, SYNC);
	copied(r, 4, W1, "", 4096, 700);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->taken_by_life, 0);
	to(r, 1000);
	assert_int_equal(r->nsaid, 0);
	rig_free(r);
}

static void test_no_progress(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	for (double t = 2; t < 30; t++)
		copied(r, t, W1, "7001", 1 << 20, 0);
	to(r, 40);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "calls: 28, 29360128 bytes, 0 failed; the last was "
				    "cuMemcpyDtoHAsync_v2 (stream 0x7f00) at +29.0 s"));
	/* and a stuck room is not set moving by one */
	copied(r, 41, W1, "7001", 1 << 20, 0);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	rig_free(r);
}

/* The number of calls alone. */
static void test_counts(void **state)
{
	struct rig *r = calls_rig();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	ev = call_event(r, 2, 0, SYNC, "count", "7001");
	ev.count = 1000;
	ev.bytes = 5;
	ev.code = 2;
	feed(r, &ev);
	ev = call_event(r, 2, 0, COPY, "count", "");
	ev.count = 77;
	feed(r, &ev);
	to(r, 40);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0),
				 "calls: 1000, 5 bytes, 2 failed; the last was "
				 "cuStreamSynchronize at +2.0 s"));
	rig_free(r);
}

/* The marks of a thread's work count as no call, and never are the last one. */
static void test_marks(void **state)
{
	struct rig *r = calls_rig();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	copied(r, 2, W1, "7001", 4096, 0);
	ev = call_event(r, 3, W1, SYNC, "end", "7001");
	ev.flags |= EV_MARK;
	ev.bytes = 5;
	feed(r, &ev);
	to(r, 40);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0),
				 "calls: 1, 4096 bytes, 0 failed; the last was "
				 "cuMemcpyDtoHAsync_v2 (stream 0x7f00) at +2.0 s"));
	rig_free(r);
}

/* Told of the next call of the same function, then of the end of the one before. */
static void test_in_the_next(void **state)
{
	struct rig *r = calls_rig();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, SYNC, 0.5, "7001");
	inside(r, 4, W1, SYNC, 3, "7001");
	ev = call_event(r, 4, W1, SYNC, "left", "7001");
	ev.code = (int64_t)S(r->base + 0.5);
	feed(r, &ev);
	/* a return that is older than that */
	ev = call_event(r, 4, W1, SYNC, "sync", "7001");
	ev.took_ns = S(2);
	feed(r, &ev);
	to(r, 301);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "blocked in cuStreamSynchronize "
								 "(stream 0x7f00) for 297.0 s"));
	rig_free(r);
}

static void test_newest_life(void **state)
{
	struct rig *r = calls_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	announce(r, 2, "7001", "A", 1);
	copied(r, 3, W1, "7001", 4096, 0);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* ---- calls under way ------------------------------------------------------------------------ */

/* Its thread is held up on the way to its first post. */
static void test_blocked_by_scope(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, SYNC, 0, "7001");
	to(r, 400);
	s = expect_stuck(r, "7001", 300, CAUSE_NEVER_SENT, CONF_LIKELY, 1);
	decided_by(s, "blocked in cuStreamSynchronize (stream 0x7f00) for 300.0 s, thread 111");
	assert_string_equal(s->v.expected, "return of cuStreamSynchronize, then its first post");
	rig_free(r);
}

/* Entered after the deadline's span began: judged again when it has lasted as long. */
static void test_blocked_later(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	inside(r, 102, W1, SYNC, 100, "7001");
	to(r, 399);
	s = expect_stuck(r, "7001", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "blocked in cuStreamSynchronize (stream 0x7f00) for 200.0 s"));
	to(r, 401);
	s = nth(r, ALERT_STUCK, "7001", 1);
	assert_non_null(s);
	assert_int_equal(s->ns, S(r->base + 400));
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	rig_free(r);
}

static void never_raises(struct rig *r, const char *evidence)
{
	const struct said *s;

	to(r, 1000);
	s = expect_stuck(r, "7001", 300, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_null(nth(r, ALERT_STUCK, "7001", 1));
	if (evidence)
		assert_true(has_evidence(s, evidence));
	else
		assert_false(has_evidence(s, "has been in") || has_evidence(s, "blocked in"));
	rig_free(r);
}

/* A call that is told late, as it had waited for the one around it, has not left a younger one. */
static void test_late_call_leaves_its_own(void **state)
{
	struct rig *r = calls_rig();
	struct said now = {0};
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	inside(r, 6, W1, SYNC, 5, "");
	inside(r, 12, W2, COPY, 11, "");
	ev = call_event(r, 3, W1, SYNC, "sync", "");
	ev.took_ns = S(1);
	ev.code = 700;
	ev.status = OPS_ERROR;
	feed(r, &ev);
	to(r, 40);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0),
				 "thread 111, which posts for this room, has been in "
				 "cuStreamSynchronize (stream 0x7f00) for 26.0 s"));
	/* its own return does */
	ev.ns = S(1041);
	ev.took_ns = S(36);
	feed(r, &ev);
	now.v = look(r, "7001", 1).v;
	assert_true(has_evidence(&now, "in progress for 40.0 s"));
	assert_false(has_evidence(&now, "cuStreamSynchronize (stream 0x7f00)"));
	rig_free(r);
}

/* What is not verified, what waits by its nature, what is over, and what another thread does. */
static void test_blocked_in_doubt(void **state)
{
	struct rig *r = calls_rig();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	ev = call_event(r, 2, W1, SYNC, "inside", "7001");
	ev.code = (int64_t)S(r->base + 0);
	strcpy(ev.note, "arm64: no word to compare");
	feed(r, &ev);
	never_raises(r, "blocked in cuStreamSynchronize for 300.0 s, thread 111 (not verified)");

	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, RECV, 0, "7001");
	never_raises(r, NULL);

	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, SYNC, 0, "7001");
	left(r, 30, W1, SYNC);
	never_raises(r, NULL);

	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, COPY, 0, "7001");
	copied(r, 30, W1, "7001", 1, 0); /* its return tells as well */
	never_raises(r, NULL);

	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, SYNC, 0, "7001");
	thread_exit(r, 30, W1);
	never_raises(r, NULL);

	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, SYNC, 0, "");
	never_raises(r,
		     "in this process thread 111 has been in cuStreamSynchronize (stream 0x7f00) "
		     "for 300.0 s; for which room is not known");

	/* a moment is not worth a line */
	r = calls_rig();
	announce(r, 0, "7001", "A", 1);
	inside(r, 299.9, W1, SYNC, 299.5, "");
	to(r, 301);
	assert_false(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "has been in"));
	rig_free(r);
}

/* Of calls in one another the innermost is named, and of a function the name that people know. */
static void test_innermost(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	inside(r, 2, W1, GLOB, 0, "7001");
	to(r, 301);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_true(has_evidence(s, "blocked in MultiTransport::submitTransfer"));
	inside(r, 302, W1, SYNC, 0.1, "7001");
	to(r, 700);
	assert_true(has_evidence(nth(r, ALERT_STUCK, "7001", 0), "blocked in"));
	assert_true(look(r, "7001", 1).found);
	assert_string_equal(look(r, "7001", 1).v.expected,
			    "return of cuStreamSynchronize, then its first post");
	rig_free(r);
}

/* The thread of a room that waits is in a call for another one. */
static void test_behind_a_call(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7002", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7002", 0, 0);
	announce(r, 2, "7001", "B", 1);
	inside(r, 4, W1, SYNC, 3, "7001");
	to(r, 60);
	s = expect_stuck(r, "7002", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	assert_true(has_evidence(s,
				 "thread 111, which posts for this room, has been in "
				 "cuStreamSynchronize (stream 0x7f00) for 28.0 s for room 7001"));
	/* then it has lasted a deadline */
	s = nth(r, ALERT_STUCK, "7002", 1);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	assert_true(s->v.culprit.set);
	assert_int_equal(s->v.culprit.tid, W1);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_int_equal(s->v.culprit.life, 1);
	assert_string_equal(s->v.culprit.state, "in cuStreamSynchronize for 30.0 s");
	decided_by(s, "thread 111, which posts for this room, has been in cuStreamSynchronize");
	rig_free(r);
}

/* In a call of no known room: no culprit. */
static void test_no_culprit_of_unknown(void **state)
{
	struct rig *r = calls_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7002", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7002", 0, 0);
	announce(r, 2, "7001", "B", 1);
	inside(r, 2, W1, SYNC, 1.1, "");
	to(r, 200);
	s = nth(r, ALERT_STUCK, "7002", 0);
	assert_int_equal(s->v.cause, CAUSE_SEND_INCOMPLETE);
	assert_false(s->v.culprit.set);
	assert_true(has_evidence(s, "thread 111, which posts for this room, has been in"));
	assert_null(nth(r, ALERT_STUCK, "7002", 1));
	rig_free(r);
}

/* ---- with the server's own view ------------------------------------------------------------- */

static void test_blocked_by_view(void **state)
{
	struct rig *r = calls_view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	held(r, 1, .room = "7001", .rid = "r-1", .op = 0x51, .kind = "inflight", .code = READY,
	     .tid = W1, .flags = EV_AT);
	works_at(r, 1, W1, "7001");
	held(r, 1, .room = "7002", .rid = "r-2", .op = 0x52, .kind = "inflight", .code = READY,
	     .tid = W1);
	inside(r, 2, W1, SYNC, 0.8, "");
	rounds(r, 2, 40);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	assert_true(has_evidence(s, "blocked in cuStreamSynchronize (stream 0x7f00) for 30.7 s, "
				    "thread 111"));
	assert_string_equal(s->v.expected,
			    "return of cuStreamSynchronize, then the end of what the thread is at");
	s = nth(r, ALERT_STUCK, "7002", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_QUEUED_BEHIND);
	assert_string_equal(s->v.culprit.room, "7001");
	assert_string_equal(s->v.culprit.state, "in cuStreamSynchronize for 30.7 s");
	assert_false(has_evidence(s, "for which room is not known"));
	rig_free(r);
}

/* What the view said before the call began may be old. */
static void test_view_older_than_call(void **state)
{
	struct rig *r = calls_view_rig();
	const struct said *s;

	(void)state;
	ok(r, 0);
	announce(r, 0.5, "7001", "A", 1);
	works_at(r, 1, W1, "7001");
	ok(r, 1);
	inside(r, 5, W1, SYNC, 4, "");
	/* nobody has looked since */
	to(r, 330);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_true(has_evidence(s, "for which room is not known"));
	assert_false(has_evidence(s, "blocked in"));
	rig_free(r);
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void test_bounds(void **state)
{
	struct rig *r = calls_rig();
	struct model_stats st, now;
	struct sp_event ev;

	(void)state;
	model_stats(r->m, &st);
	for (int i = 0; i < 5000; i++) {
		inside(r, 1, 1000 + (uint32_t)i, SYNC, 0.5, "");
		ev = call_event(r, 1, W1, POLL, "completion", "");
		snprintf(ev.object, sizeof(ev.object), "queue pair %d", i);
		ev.status = OPS_ERROR;
		feed(r, &ev);
	}
	model_stats(r->m, &now);
	assert_true(now.bytes < st.bytes + 400000);
	target(r, 2, "exited", 0);
	model_stats(r->m, &now);
	assert_true(now.bytes < st.bytes + 2000);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens_nothing),
		cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_in_the_next),
		cmocka_unit_test(test_newest_life),
		cmocka_unit_test(test_blocked_by_scope),
		cmocka_unit_test(test_blocked_later),
		cmocka_unit_test(test_late_call_leaves_its_own),
		cmocka_unit_test(test_blocked_in_doubt),
		cmocka_unit_test(test_innermost),
		cmocka_unit_test(test_behind_a_call),
		cmocka_unit_test(test_no_culprit_of_unknown),
		cmocka_unit_test(test_blocked_by_view),
		cmocka_unit_test(test_view_older_than_call),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
