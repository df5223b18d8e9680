// SPDX-License-Identifier: Apache-2.0
/* Operations posted without a room that an address or the view gives one later. */
#include "calls_rig.h"

/* In the inflight queue, its thread at it. */
static void at_work(struct rig *r, double t, const char *room, uint32_t tid)
{
	char rid[16];

	snprintf(rid, sizeof(rid), "r-%s", room);
	held(r, t, .room = room, .rid = rid, .op = 0x5000 + (uint64_t)atoi(room),
	     .kind = "inflight", .code = MOVING, .tid = tid, .flags = EV_AT);
	works_at(r, t, tid, room);
}

/* ---- tied at the post ------------------------------------------------------------------------ */

static void test_tied_at_post(void **state)
{
	struct rig *r = native_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "7001");
	to(r, 40);
	s = expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "op 0xb0 (kv) posted by thread 111 at +1.0 s"));
	batch_over(r, 50, W1, 0xb0, OPS_DONE);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 1);
	/* the handle is in use again at once, for another room */
	batch(r, 51, W1, 0xb0, "7002");
	batch_over(r, 52, W1, 0xb0, OPS_ERROR);
	told(r, 52.1, "7002", OPS_ERROR);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	told(r, 53, "7001", OPS_DONE);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* Several posts of one batch, of which a later one tells the room; and a close that was missed. */
static void test_tied_later(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	batch(r, 1.1, W1, 0xb0, "7001");
	assert_string_equal(r->taken_room, "7001");
	to(r, 32);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	batch(r, 33, W1, 0xb0, "7002");
	to(r, 64);
	expect_stuck(r, "7002", 63, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(look(r, "7001", 1).l.uncertain);
	rig_free(r);
}

/* Closed in progress: given up. */
static void test_given_up(void **state)
{
	struct rig *r = native_rig();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	batch(r, 1, W1, 0xb0, "7001");
	batch_over(r, 2, W1, 0xb0, OPS_BUSY);
	to(r, 60);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* The call that posts has refused it: what its descriptor still holds of an older batch, good or
 * bad, is no second outcome. Without a room it fails as well, once. */
static void test_refused(void **state)
{
	struct rig *r = native_rig();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "7001");
	status(r, 1.1, W1, 0xb0, OPS_BUSY);
	status(r, 1.2, W1, 0xb0, OPS_ERROR);
	batch_over(r, 1.3, W1, 0xb0, OPS_DONE);
	batch(r, 2, W1, 0xb0, "");
	status(r, 2.1, W1, 0xb0, OPS_ERROR);
	batch_over(r, 2.2, W1, 0xb0, OPS_DONE);
	told(r, 3, "7002", OPS_DONE);
	to(r, 60);
	s = expect_stuck(r, "7001", 31.2, CAUSE_TRANSFER_ERROR, CONF_POSSIBLE, -1);
	assert_true(has_evidence(s, "0 done"));
	assert_true(has_evidence(s, "an operation of an unknown room ended with error"));
	rig_free(r);
}

/* ---- tied by the view ------------------------------------------------------------------------ */

static void test_stalled_by_view(void **state)
{
	struct rig *r = seen_rig();
	const struct said *s;

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	held(r, 1.6, .room = "7002", .rid = "r-7002", .op = 0x5002, .kind = "inflight",
	     .code = READY, .tid = W1);
	at_work(r, 1.6, "7001", W1);
	ok(r, 1.6); /* began at 1.1, after the post */
	assert_int_equal(look(r, "7001", 1).l.progress_ns, S(r->base + 1.6));
	ok(r, 2.1);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_INFLIGHT);
	rounds(r, 2.6, 40);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(s->v.confidence, CONF_CERTAIN);
	decided_by(s, "op 0xb0 (kv) posted by thread 111");
	s = nth(r, ALERT_STUCK, "7002", 0);
	assert_int_equal(s->v.cause, CAUSE_QUEUED_BEHIND);
	assert_string_equal(s->v.culprit.room, "7001");
	rig_free(r);
}

/* A server that has no status for what is under way: that the threads are done with all of it, by
 * its counts, is known all the same; without counts the loose one may be what is missing. */
static void test_handed_over(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	announce(r, 0.5, "7003", "A", 1);
	batch(r, 1, W1, 0xb0, "7001");
	batch_over(r, 1.1, W1, 0xb0, OPS_DONE);
	batch(r, 1.2, W1, 0xb0, "7002");
	batch_over(r, 1.3, W1, 0xb0, OPS_DONE);
	batch(r, 1.4, W1, 0xb0, "");
	batch_over(r, 1.5, W1, 0xb0, OPS_DONE);
	held(r, 2, .room = "7001", .rid = "r-7001", .op = 0x5001, .kind = "inflight", .code = READY,
	     .sent = 6 + 1, .total = 6 + 1);
	listed(r, 2, "7002", "inflight", READY);
	held(r, 2, .room = "7003", .rid = "r-7003", .op = 0x5003, .kind = "inflight", .code = READY,
	     .sent = 0 + 1, .total = 6 + 1);
	rounds(r, 2.5, 36);
	expect_stuck(r, "7001", 31.1, CAUSE_SEND_INCOMPLETE, CONF_CERTAIN, 1);
	expect_stuck(r, "7002", 31.3, CAUSE_SEND_INCOMPLETE, CONF_POSSIBLE, 1);
	expect_stuck(r, "7003", 32, CAUSE_NEVER_SENT, CONF_CERTAIN, 1);
	rig_free(r);
}

/* Both looks must have begun after the post, and two rounds agree. */
static void test_looks_too_old(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	works_at(r, 1, W1, "7001");
	ok(r, 1);
	batch(r, 1.2, W1, 0xb0, "");
	ok(r, 1.5);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	/* the thread has moved on to 7002 with it before the looks saw that */
	works_at(r, 2, W1, "7002");
	ok(r, 2);
	ok(r, 2.5);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	assert_int_equal(look(r, "7002", 1).l.stage, STAGE_INFLIGHT);
	rig_free(r);
}

/* Left behind by its thread, its end not seen: the thread is on the move. */
static void test_left_behind(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	works_at(r, 1.6, W1, "7001");
	ok(r, 1.6);
	works_at(r, 2.1, W1, "7002");
	ok(r, 2.1);
	rounds(r, 2.6, 20);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	assert_int_equal(look(r, "7002", 1).l.stage, STAGE_READY);
	rig_free(r);

	/* its thread was on none: nor is it told later */
	r = seen_rig();
	announce(r, 0.5, "7001", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	ok(r, 1.6);
	works_at(r, 2.1, W1, "7001");
	rounds(r, 2.1, 20);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	rig_free(r);

	/* events were lost since */
	r = seen_rig();
	announce(r, 0.5, "7001", "A", 1);
	batch(r, 1, W1, 0xb0, "");
	works_at(r, 1.6, W1, "7001");
	ok(r, 1.6);
	{
		struct sp_event ev = event(r, 1.7, ROLE_LOSS, 0, "");

		strcpy(ev.kind, "ring-full");
		ev.op = ev.ns;
		feed(r, &ev);
	}
	rounds(r, 2.1, 20);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	rig_free(r);
}

/* Two rooms in chunks on one thread, as quick as that: the looks name no room, and no life is
 * given what is not its own. */
static void test_chunks_in_turn(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	announce(r, 0.5, "7001", "A", 1);
	announce(r, 0.5, "7002", "A", 1);
	for (int i = 0; i < 40; i++) {
		batch(r, 1 + i * 0.5, W1, 0xb0, "");
		batch_over(r, 1.01 + i * 0.5, W1, 0xb0, OPS_DONE);
		works_at(r, 1.4 + i * 0.5, W1, i & 1 ? "7001" : "7002");
		ok(r, 1.4 + i * 0.5);
	}
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	assert_int_equal(look(r, "7002", 1).l.stage, STAGE_READY);
	told(r, 30, "7001", OPS_DONE);
	told(r, 30, "7002", OPS_DONE);
	rounds(r, 30.5, 60);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(stuck_lines(r), 0);
	rig_free(r);
}

/* Its next chunk waits in the backlog of a thread that hangs in what may well be its own: nobody's
 * culprit, and no certainty. */
static void test_behind_a_loose_one(void **state)
{
	struct rig *r = seen_rig();
	const struct said *s;

	(void)state;
	thread_is(r, 0.1, "unsure", 0);
	announce(r, 0.5, "7001", "A", 1);
	held(r, 1, .room = "7001", .rid = "r", .op = 0x51, .kind = "inflight", .code = MOVING,
	     .tid = W1);
	batch(r, 1.1, W1, 0xb0, "");
	rounds(r, 2, 60);
	s = nth(r, ALERT_STUCK, "7001", 0);
	assert_non_null(s);
	assert_int_equal(s->v.cause, CAUSE_QUEUED_BEHIND);
	assert_int_equal(s->v.confidence, CONF_POSSIBLE);
	assert_int_equal(s->v.pin, -1);
	assert_false(s->v.culprit.set);
	assert_true(has_evidence(s, "an operation of an unknown room, op 0xb0"));
	rounds(r, 60, 300);
	for (size_t i = 0; i < r->nsaid; i++)
		assert_true(r->said[i].v.confidence <= CONF_POSSIBLE);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tied_at_post),   cmocka_unit_test(test_tied_later),
		cmocka_unit_test(test_refused),        cmocka_unit_test(test_handed_over),
		cmocka_unit_test(test_given_up),       cmocka_unit_test(test_stalled_by_view),
		cmocka_unit_test(test_looks_too_old),  cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_chunks_in_turn), cmocka_unit_test(test_behind_a_loose_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
