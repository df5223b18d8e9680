// SPDX-License-Identifier: Apache-2.0
/* Deadlines and what is only pressure from ahead: links, loops, threads that are busy with others.
 */
#include "model_rig.h"

static void slow_post(struct rig *r, double t, int n)
{
	uint32_t tid = 200 + (uint32_t)n % 6;
	uint64_t op = 0xa000 + (uint64_t)n * 16;
	char room[16];

	snprintf(room, sizeof(room), "%d", 7000 + n);
	announce(r, t, room, "A", 1);
	kv(r, t, tid, op, room, 0, 1);
	aux(r, t, tid, op + 1, room);
}

/* A slow link with six transfers under way, one of which is over every 10 s, in order: each takes a
 * minute, with a deadline of 30 s. Nothing is stuck. */
static void test_slow_link(void **state)
{
	struct rig *r = rig_new();
	int posted = 0, over = 0;
	struct look k;

	(void)state;
	for (int step = 0; step < 60; step++) {
		for (int part = 0; step && part < 2; part++)
			status(r, step * 10, 1, 0xa000 + (uint64_t)over * 16 + (uint64_t)part,
			       OPS_DONE);
		over += step > 0;
		for (int n = step < 5 ? 2 : 1; n; n--)
			slow_post(r, step * 10, posted++);
	}
	assert_int_equal(posted - over, 6);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	to(r, 615);
	k = look(r, "7061", 1);
	assert_int_equal(k.v.cause, CAUSE_BACKPRESSURE);
	assert_int_equal(k.v.confidence, CONF_POSSIBLE);
	assert_int_equal(model_stuck(r->m, CONF_POSSIBLE), 0);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	/* now it stands still for good */
	to(r, 700);
	assert_int_equal(count_said(r, ALERT_STUCK), 6);
	expect_stuck(r, "7061", 620, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(nth(r, ALERT_STUCK, "7061", 0)->idle_ns > S(49));
	rig_free(r);
}

/* One transfer hangs while all others to the same peer go on: they must not hide it. */
static void test_pin_on_a_busy_peer(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 0, W2, 0xdead, "7001", 0, 1);
	for (int i = 0; i < 400; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		healthy(r, i * 0.25 + 0.01, W1, 0xa000, room, "A");
	}
	s = expect_stuck(r, "7001", 30, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	assert_true(has_evidence(s, "operations posted later to the same peer"));
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	rig_free(r);
}

/* Rooms wait for a slow forward pass, in order: the queue moves, so none is stuck. */
static void test_slow_forward(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 40; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 7000 + i);
		announce(r, 0, room, "A", 1);
	}
	/* one room every 60 s: the last waits 2400 s, with a deadline of 300 s */
	for (int i = 0; i < 20; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 7000 + i);
		kv_done(r, (i + 1) * 60, W1, 0xa0, room, 0, 1);
		aux_done(r, (i + 1) * 60, W1, 0xa1, room);
	}
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(look(r, "7039", 1).v.cause, CAUSE_BACKPRESSURE);
	/* rooms that come later and go past them are no sign of life for them */
	for (int i = 0; i < 20; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 9000 + i);
		healthy(r, 1210 + i * 60, W1, 0xa0, room, "A");
	}
	assert_int_equal(count_said(r, ALERT_STUCK), 20);
	expect_stuck(r, "7020", 1500.01, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

/* A thread that serves rooms queued earlier is working towards this one. */
static void test_busy_thread(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	for (int i = 0; i < 6; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		announce(r, 0.1, room, "B", 1);
	}
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	/* 20 s each, on its thread, of rooms that were there before its next chunk was queued */
	for (int i = 0; i < 6; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		kv(r, 2 + i * 20, W1, 0xb0, room, 0, 1);
		aux(r, 2 + i * 20, W1, 0xb1, room);
		status(r, 21 + i * 20, W1, 0xb0, OPS_DONE);
		status(r, 21 + i * 20, W1, 0xb1, OPS_DONE);
	}
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_BACKPRESSURE);
	/* and now nothing is ahead of it */
	to(r, 200);
	expect_stuck(r, "7001", 151, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

/* Its thread waits for an older room's transfer, which itself is only waiting its turn at its peer:
 * that queue moves, so neither is stuck. */
static void test_behind_a_slow_peer(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "B", 1);
	announce(r, 0, "7003", "A", 1);
	announce(r, 0, "7004", "A", 1);
	kv(r, 1, W2, 0xa0, "7003", 0, 1);
	kv(r, 1, W3, 0xa1, "7004", 0, 1);
	kv_done(r, 1, W1, 0xb0, "7002", 0, 0);
	kv(r, 2, W1, 0xc0, "7001", 0, 1);
	status(r, 20, W2, 0xa0, OPS_DONE);
	aux_done(r, 20, W2, 0xa2, "7003");
	status(r, 45, W3, 0xa1, OPS_DONE);
	aux_done(r, 45, W3, 0xa3, "7004");
	to(r, 74);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(look(r, "7002", 1).v.cause, CAUSE_BACKPRESSURE);
	to(r, 100);
	/* what is over within a 64th of the deadline counts as over together: 45.01 */
	expect_stuck(r, "7001", 75.01, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	expect_stuck(r, "7002", 75.01, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	rig_free(r);
}

/* The last chunk is missing on a node under load: the load must not hide it. */
static void test_pin_under_load(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xdead, "7001", 0, 0);
	for (int i = 0; i < 400; i++) {
		char room[16];

		snprintf(room, sizeof(room), "%d", 8000 + i);
		healthy(r, i * 0.25 + 1.1, i % 2 ? W1 : W2, 0xa000, room, "A");
	}
	expect_stuck(r, "7001", 31.01, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

/* Its thread got stuck on a younger room shortly before its deadline: it may just be queued. One
 * more deadline tells. */
static void test_suspicious_thread(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	announce(r, 10, "7002", "B", 1);
	kv(r, 11, W1, 0xb0, "7002", 0, 1);
	to(r, 35);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_BACKPRESSURE);
	to(r, 100);
	s = expect_stuck(r, "7001", 41, CAUSE_QUEUED_BEHIND, CONF_LIKELY, 1);
	assert_string_equal(s->v.culprit.room, "7002");
	assert_int_equal(count_said(r, ALERT_STUCK), 2);
	rig_free(r);
	/* the same, but the other one goes on: no second delay */
	r = rig_new();
	announce(r, 0, "7001", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	announce(r, 10, "7002", "B", 1);
	kv(r, 11, W1, 0xb0, "7002", 0, 1);
	status(r, 35, W1, 0xb0, OPS_DONE);
	aux(r, 35, W1, 0xb1, "7002");
	to(r, 41);
	expect_stuck(r, "7001", 41, CAUSE_SEND_INCOMPLETE, CONF_LIKELY, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_link),
		cmocka_unit_test(test_pin_on_a_busy_peer),
		cmocka_unit_test(test_slow_forward),
		cmocka_unit_test(test_busy_thread),
		cmocka_unit_test(test_behind_a_slow_peer),
		cmocka_unit_test(test_pin_under_load),
		cmocka_unit_test(test_suspicious_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
