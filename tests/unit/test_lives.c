// SPDX-License-Identifier: Apache-2.0
/* Lives: how they open, move through their stages and end. */
#include "model_rig.h"

static void test_healthy(void **state)
{
	struct rig *r = rig_new();
	struct look k;

	(void)state;
	announce(r, 0, "7001", "A", 2);
	k = look(r, "7001", 1);
	assert_true(k.found);
	assert_int_equal(k.l.stage, STAGE_BOOTSTRAP);
	assert_false(k.l.observed_late);
	assert_string_equal(k.peer, "10.0.0.7:40065");
	announce(r, 0.1, "7001", "B", 2);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	kv(r, 2, W1, 0xa0, "7001", 0, 0);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_INFLIGHT);
	create(r, 2, W1, 0xa1, "7001", "kv", 0, 0, 1);
	post(r, 2, W1, 0xa1, OPS_DONE);
	status(r, 2.1, W1, 0xa0, OPS_DONE);
	close_op(r, 3, W1, 0xa0);
	close_op(r, 3, W1, 0xa1);
	kv(r, 3, W1, 0xa0, "7001", 1, 1);
	create(r, 3, W1, 0xa1, "7001", "kv", 1, 1, 1);
	post(r, 3, W1, 0xa1, OPS_BUSY);
	aux(r, 3, W1, 0xa2, "7001");
	aux(r, 3, W1, 0xa3, "7001");
	status(r, 3.1, W1, 0xa0, OPS_DONE);
	status(r, 3.1, W1, 0xa1, OPS_DONE);
	status(r, 3.1, W1, 0xa2, OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	status(r, 3.2, W1, 0xa3, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(r->last_end.ns, S(1003.2));
	/* later closes belong to operations, and open nothing */
	close_op(r, 9, W1, 0xa2);
	close_op(r, 9, W1, 0xa3);
	assert_int_equal(r->taken_life, 0);
	to(r, 5000);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(count_said(r, ALERT_STUCK), 0);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 0);
	assert_int_equal(count_said(r, ALERT_ENDED), 1);
	rig_free(r);
}

/* A terminal life waits for its release where a source shows it. */
static void test_releasing(void **state)
{
	struct rig *r = rig_new_with(true);

	(void)state;
	healthy(r, 0, W1, 0xa0, "7001", "A");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	told_as(r, 1, ROLE_REPLY, "7001", OPS_UNKNOWN);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	plain(r, 2, ROLE_RELEASE, W1, "7001");
	assert_int_equal(open_lives(r), 0);
	/* an abort that the server acts on */
	announce(r, 3, "7002", "A", 1);
	abort_room(r, 4, "7002");
	plain(r, 5, ROLE_RELEASE, PID, "7002");
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	/* an explicit error to the peer, then the release */
	announce(r, 6, "7003", "A", 1);
	kv(r, 6, W1, 0xb0, "7003", 0, 1);
	told_as(r, 7, ROLE_TOLD, "7003", OPS_ERROR);
	assert_int_equal(open_lives(r), 1);
	told_as(r, 8, ROLE_REPLY, "7003", OPS_UNKNOWN);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	rig_free(r);
}

/* Without a source of releases the end status told to every peer is the end. */
static void test_told(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	announce(r, 0, "7001", "B", 2);
	told_as(r, 1, ROLE_TOLD, "7001", OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	told_as(r, 1, ROLE_TOLD, "7001", OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	announce(r, 2, "7001", "A", 2);
	told_as(r, 3, ROLE_TOLD, "7001", OPS_ERROR);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	assert_int_equal(r->last_end.life, 2);
	/* an operation whose end was not seen does not keep what every peer was told of */
	announce(r, 4, "7001", "A", 1);
	create(r, 5, 50, 0xa1, "7001", "kv", 0, 1, 0);
	post(r, 5, 50, 0xa1, OPS_BUSY);
	told_as(r, 6, ROLE_TOLD, "7001", OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* Only arrive, held, announce and post open. */
static void test_openers(void **state)
{
	static const enum sp_role never[] = {ROLE_REGISTER, ROLE_STATUS, ROLE_CLOSE,   ROLE_ABORT,
					     ROLE_TOLD,     ROLE_REPLY,  ROLE_RELEASE, ROLE_CONTROL,
					     ROLE_CALL,     ROLE_PEER,   ROLE_THREAD,  ROLE_TARGET,
					     ROLE_LOSS,     ROLE_STALL,  ROLE_NONE};
	struct rig *r = rig_new();

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++) {
		plain(r, (double)i, never[i], W1, "7001");
		assert_int_equal(open_lives(r), 0);
	}
	plain(r, 100, ROLE_ARRIVE, PID, "7001");
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_BOOTSTRAP);
	/* in no queue: only an entry of the status table */
	plain(r, 100, ROLE_HELD, PID, "7002");
	assert_false(look(r, "7002", 1).found);
	{
		struct sp_event ev = event(r, 100, ROLE_HELD, PID, "7002");

		strcpy(ev.kind, "bootstrap");
		feed(r, &ev);
	}
	assert_true(look(r, "7002", 1).found);
	announce(r, 100, "7003", "A", 1);
	assert_false(look(r, "7003", 1).l.observed_late);
	kv(r, 100, W1, 0xa0, "7004", 3, 0);
	assert_true(look(r, "7004", 1).l.observed_late);
	assert_int_equal(open_lives(r), 4);
	/* a creation that failed is no post */
	{
		struct sp_event ev = create_event(r, 101, W1, 0, "7005", "kv", 0, 1, 0);

		ev.status = OPS_ERROR;
		ev.code = -2;
		feed(r, &ev);
	}
	assert_int_equal(open_lives(r), 4);
	rig_free(r);
}

static void test_life_numbers(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 5; i++) {
		healthy(r, i, W1, 0xa0, "7001", "A");
		assert_int_equal(r->last_end.life, i + 1);
	}
	/* another process, another count */
	r->pid = 200;
	healthy(r, 10, W1, 0xa0, "7001", "A");
	assert_int_equal(r->last_end.life, 1);
	rig_free(r);
}

static void test_quorum(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	/* a peer without data counts for the quorum, and nothing is sent to it */
	announce_as(r, 0, "7001", "A", 2, EV_NODATA);
	announce(r, 0, "7001", "B", 2);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_READY);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	aux(r, 1, W1, 0xa1, "7001");
	status(r, 1, W1, 0xa0, OPS_DONE);
	status(r, 1, W1, 0xa1, OPS_DONE);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* without names the address is the peer */
	for (int i = 0; i < 2; i++) {
		struct sp_event ev = event(r, 2, ROLE_ANNOUNCE, BOOT, "7002");

		snprintf(ev.peer, sizeof(ev.peer), "10.0.0.%d:5000", i);
		ev.need = 2;
		feed(r, &ev);
	}
	assert_int_equal(look(r, "7002", 1).l.stage, STAGE_READY);
	rig_free(r);
}

static void test_parts_and_covers(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	for (int i = 0; i < 3; i++) {
		ev = create_event(r, 1, W1, 0xa0 + (uint64_t)i, "7001", "kv", 0, 1, 0);
		ev.part = i;
		ev.parts = 3;
		if (i == 2) {
			/* everything else is over first */
			aux_done(r, 1, W1, 0xb0, "7001");
			status(r, 1.5, W1, 0xa0, OPS_DONE);
			status(r, 1.5, W1, 0xa1, OPS_DONE);
			assert_int_equal(open_lives(r), 1);
			ev.ns = S(r->base + 2);
		}
		feed(r, &ev);
		post(r, 2, W1, ev.op, OPS_BUSY);
	}
	assert_int_equal(open_lives(r), 1);
	status(r, 2.1, W1, 0xa2, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	/* a part of an earlier chunk is missing, all the rest is there */
	announce(r, 2.5, "7009", "A", 1);
	ev = create_event(r, 2.5, W1, 0xd0, "7009", "kv", 0, 0, 0);
	ev.part = 0;
	ev.parts = 2;
	feed(r, &ev);
	post(r, 2.5, W1, 0xd0, OPS_DONE);
	kv_done(r, 2.6, W1, 0xd1, "7009", 1, 1);
	aux_done(r, 2.7, W1, 0xd2, "7009");
	assert_int_equal(open_lives(r), 1);
	ev.ns = S(r->base + 2.8);
	ev.part = 1;
	ev.op = 0xd3;
	feed(r, &ev);
	post(r, 2.9, W1, 0xd3, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	/* one operation that stands for both needs */
	announce(r, 3, "7002", "A", 1);
	ev = create_event(r, 3, W1, 0xc0, "7002", "nokv", -1, -1, 0);
	ev.covers = 3;
	feed(r, &ev);
	post(r, 3, W1, 0xc0, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* Attached in mid-transfer: the last chunk went by, only aux is seen. */
static void test_late(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	target(r, 0, "attached", EV_GAP);
	aux(r, 1, W1, 0xa1, "7001");
	assert_true(look(r, "7001", 1).l.observed_late);
	status(r, 1, W1, 0xa1, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	/* the second half of a split last chunk */
	{
		struct sp_event ev = create_event(r, 2, W1, 0xb0, "7002", "kv", 4, 1, 0);

		ev.part = 1;
		ev.parts = 2;
		feed(r, &ev);
		post(r, 2, W1, 0xb0, OPS_DONE);
	}
	aux_done(r, 2, W1, 0xb1, "7002");
	assert_int_equal(open_lives(r), 0);
	/* two ranks seen: both must have everything */
	kv_done(r, 3, W1, 0xc0, "7003", 4, 1);
	create(r, 3.1, W1, 0xc1, "7003", "kv", 4, 1, 1);
	post(r, 3.1, W1, 0xc1, OPS_DONE);
	aux_done(r, 3.2, W1, 0xc2, "7003");
	assert_int_equal(open_lives(r), 1);
	aux_done(r, 3.3, W1, 0xc3, "7003");
	assert_int_equal(open_lives(r), 0);
	/* answers for operations from before the watch belong to nobody */
	status(r, 4, W1, 0xdd, OPS_DONE);
	close_op(r, 4, W1, 0xdd);
	assert_int_equal(open_lives(r), 0);
	{
		struct model_stats st;

		model_stats(r->m, &st);
		assert_int_equal(st.unknown_ops, 2);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_releasing),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_openers),
		cmocka_unit_test(test_life_numbers),
		cmocka_unit_test(test_quorum),
		cmocka_unit_test(test_parts_and_covers),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
