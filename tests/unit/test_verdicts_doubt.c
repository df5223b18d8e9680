// SPDX-License-Identifier: Apache-2.0
/* What a verdict may still say where events are missing or came before the watch. */
#include "model_rig.h"

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

/* What is posted to some queues is not counted: evidence, no more, is missing. */
static void test_loss_of_counts(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev = event(r, 2, ROLE_LOSS, 0, "");

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	strcpy(ev.kind, SP_LOSS_TALLIES);
	ev.code = 17;
	feed(r, &ev);
	assert_int_equal(nth(r, ALERT_LOSS, NULL, 0)->total_rooms, 0);
	to(r, 100);
	assert_false(
		expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1)->uncertain);
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

/* What is lost is known of when the counters are read: rooms that came meanwhile may miss events,
 * too. */
static void test_loss_in_between(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 2);
	ev = event(r, 1, ROLE_LOSS, 0, "");
	strcpy(ev.kind, "ring-full");
	ev.code = 1;
	ev.op = event(r, 20, ROLE_LOSS, 0, "").ns;
	feed(r, &ev);
	announce(r, 10, "7002", "A", 2);
	announce(r, 21, "7003", "A", 2);
	to(r, 1000);
	assert_true(nth(r, ALERT_STUCK, "7001", 0)->v.confidence == CONF_POSSIBLE);
	assert_true(nth(r, ALERT_STUCK, "7002", 0)->v.confidence == CONF_POSSIBLE);
	assert_true(nth(r, ALERT_STUCK, "7003", 0)->v.confidence == CONF_LIKELY);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_in_between),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_late_is_never_certain),
		cmocka_unit_test(test_straggler),
		cmocka_unit_test(test_loss_of_counts),
		cmocka_unit_test(test_quorum_after_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
