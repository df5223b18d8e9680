// SPDX-License-Identifier: Apache-2.0
/*
 * Deadlines: when they fire, what counts as progress, how a stall ends; that an event never leaves
 * one later than it is due; and that none of it depends on how often the model is looked at.
 */
#include "model_heap.h"
#include "random_rig.h"

static void test_next(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	assert_int_equal(model_next(r->m), UINT64_MAX);
	announce(r, 0, "7001", "A", 2);
	assert_int_equal(model_next(r->m), S(1330));
	announce(r, 10, "7002", "A", 1);
	/* ready: 300 s from its own progress */
	assert_int_equal(model_next(r->m), S(1310));
	kv(r, 20, W1, 0xa0, "7002", 0, 1);
	assert_int_equal(model_next(r->m), S(1050));
	/* progress moves the clock, the entry follows when it comes up */
	status(r, 30, W1, 0xa0, OPS_DONE);
	assert_true(model_next(r->m) <= S(1060));
	to(r, 55);
	assert_int_equal(model_next(r->m), S(1060));
	assert_int_equal(r->nsaid, 0);
	to(r, 60);
	assert_int_equal(count_said(r, ALERT_STUCK), 1);
	rig_free(r);
}

static void test_own_instant(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	/* nobody looks for an hour: each fires at its own time, in order */
	for (int i = 9; i >= 0; i--) {
		char room[16];

		snprintf(room, sizeof(room), "70%02d", i);
		announce(r, 10 - i, room, "A", 2);
	}
	to(r, 3600);
	assert_int_equal(count_said(r, ALERT_STUCK), 10);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(nth(r, ALERT_STUCK, NULL, i)->ns, S(1331) + i * 1000000000ull);
	rig_free(r);
}

/* Deadlines of one instant fire in order of opening. */
static void test_same_instant(void **state)
{
	static const char *const rooms[] = {"7005", "7001", "7004", "7002", "7003"};
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 5; i++)
		announce(r, 0, rooms[i], "A", 2);
	to(r, 400);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(nth(r, ALERT_STUCK, NULL, i)->room, rooms[i]);
	rig_free(r);
}

/* A deadline at an event's own time fires before the event. */
static void test_tie(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	status(r, 31, W1, 0xa0, OPS_DONE);
	assert_int_equal(r->said[0].type, ALERT_STUCK);
	assert_int_equal(r->said[0].ns, S(1031));
	assert_int_equal(r->said[1].type, ALERT_RECOVERED);
	assert_int_equal(r->said[1].stalled_ns, S(30));
	rig_free(r);
}

static void test_no_deadline(void **state)
{
	struct rig *r = rig_new();
	struct model_stats st;

	(void)state;
	model_free(r->m);
	r->profile.stage_ns[STAGE_BOOTSTRAP] = 0;
	r->profile.stage_ns[STAGE_INFLIGHT] = 0;
	r->m = rig_model(r, false);
	announce(r, 0, "7001", "A", 2);
	announce(r, 0, "7002", "A", 1);
	kv(r, 1, W1, 0xa0, "7002", 0, 1);
	to(r, 1e6);
	assert_int_equal(r->nsaid, 0);
	/* the stage after it has one */
	announce(r, 1e6, "7001", "B", 2);
	to(r, 2e6);
	expect_stuck(r, "7001", 1e6 + 300, CAUSE_QUEUED_BEHIND, CONF_POSSIBLE, -1);
	/* a dead bootstrap thread is told without a deadline */
	announce(r, 2e6, "7003", "A", 2);
	thread_exit(r, 2e6, BOOT);
	to(r, 3e6);
	expect_stuck(r, "7003", 2e6 + 5, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	model_stats(r->m, &st);
	assert_int_equal(st.open_lives, 3);
	rig_free(r);
}

/* What does not move a life: polls, repeats, aborts, control, peers, answers that do not change. */
static void test_no_progress(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	for (int i = 2; i < 30; i++)
		status(r, i, W1, 0xa0, OPS_BUSY);
	post(r, 30, W1, 0xa0, OPS_BUSY);
	ev = event(r, 30.1, ROLE_CONTROL, W1, "7001");
	strcpy(ev.kind, "staging_req");
	feed(r, &ev);
	ev = event(r, 30.2, ROLE_PEER, W1, "7001");
	strcpy(ev.kind, "opened");
	feed(r, &ev);
	ev = event(r, 30.3, ROLE_CALL, W1, "7001");
	feed(r, &ev);
	to(r, 100);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	rig_free(r);
}

/* ---- how a stall ends --------------------------------------------------------------------- */

static void test_recovered(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	to(r, 50);
	status(r, 60, W1, 0xa0, OPS_DONE);
	s = nth(r, ALERT_RECOVERED, "7001", 0);
	assert_int_equal(s->outcome, OUTCOME_MOVING);
	assert_int_equal(s->stalled_ns, S(59));
	assert_int_equal(s->ns, S(1060));
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_NONE);
	assert_true(look(r, "7001", 1).l.ever_stuck);
	assert_int_equal(model_stuck(r->m, CONF_POSSIBLE), 0);
	/* the same cause alerts again */
	kv(r, 61, W1, 0xa0, "7001", 1, 1);
	aux(r, 61, W1, 0xa1, "7001");
	to(r, 100);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->v.cause, CAUSE_TRANSFER_STALLED);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", 1)->ns, S(1091));
	status(r, 110, W1, 0xa0, OPS_DONE);
	/* its end needs no second line */
	status(r, 111, W1, 0xa1, OPS_DONE);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 2);
	assert_int_equal(count_said(r, ALERT_ENDED), 1);
	/* the progress that ends it */
	announce(r, 200, "7002", "A", 1);
	kv_done(r, 201, W1, 0xb0, "7002", 0, 1);
	aux(r, 201, W1, 0xb1, "7002");
	to(r, 300);
	status(r, 301, W1, 0xb1, OPS_DONE);
	s = nth(r, ALERT_RECOVERED, "7002", 0);
	assert_int_equal(s->outcome, OUTCOME_DONE);
	assert_null(nth(r, ALERT_RECOVERED, "7002", 1));
	/* the end of the process */
	announce(r, 400, "7003", "A", 2);
	to(r, 800);
	target(r, 801, "exited", 0);
	assert_int_equal(nth(r, ALERT_RECOVERED, "7003", 0)->outcome, OUTCOME_FAILED);
	rig_free(r);
}

/* A stall after a long one has its own deadline: looks at the long one were far apart by then. */
static void test_second_stall(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	to(r, 520);
	expect_stuck(r, "7001", 31, CAUSE_TRANSFER_STALLED, CONF_LIKELY, 1);
	status(r, 520, W1, 0xa0, OPS_DONE);
	assert_int_equal(count_said(r, ALERT_RECOVERED), 1);
	to(r, 551);
	s = nth(r, ALERT_STUCK, "7001", 1);
	assert_non_null(s);
	assert_int_equal(s->ns, S(1550));
	assert_int_equal(s->v.cause, CAUSE_SEND_INCOMPLETE);
	assert_int_equal(s->v.confidence, CONF_LIKELY);
	assert_int_equal(s->v.pin, 1);
	rig_free(r);
}

/* ---- independent of how it is looked at --------------------------------------------------- */

static void test_independent_of_looking(void **state)
{
	size_t stuck = 0, recovered = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct rig *a = rig_new_with(seed % 3 == 0), *b = rig_new_with(seed % 3 == 0);
		uint64_t ns = S(1000);
		struct sp_event ev;

		rnd_state = seed;
		for (int i = 0; i < 1500; i++) {
			uint64_t before = ns;

			/* mostly quick, now and then a silence longer than a deadline */
			ns += rnd(40) ? rnd(2000) * 1000000ull : rnd(500) * 1000000000ull;
			random_event(&ev, ns);
			assert_int_equal(model_event(a->m, &ev), 0);
			for (uint32_t k = rnd(6); k; k--) {
				uint64_t keep = rnd_state;

				rnd_state = ns ^ k * 0x9e3779b97f4a7c15ull;
				model_advance(b->m, before + (ns - before) / 1000 * rnd(1001));
				rnd_state = keep;
			}
			assert_int_equal(model_event(b->m, &ev), 0);
		}
		model_advance(a->m, ns + S(2000));
		for (uint64_t t = ns; t < ns + S(2000); t += S(7))
			model_advance(b->m, t);
		model_advance(b->m, ns + S(2000));
		assert_int_equal(a->nsaid, b->nsaid);
		for (size_t i = 0; i < a->nsaid; i++)
			assert_true(same_said(&a->said[i], &b->said[i]));
		stuck += count_said(a, ALERT_STUCK);
		recovered += count_said(a, ALERT_RECOVERED);
		rig_free(a);
		rig_free(b);
	}
	/* the streams did reach what is compared */
	assert_true(stuck > 1000);
	assert_true(recovered > 500);
}

/* Every stall that was alerted ends at most once, and with a line; no cause twice in one stall. */
static void test_alert_rules(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 130; seed++) {
		struct rig *r = rig_new_with(seed % 2);
		uint64_t ns = S(1000);
		struct sp_event ev;

		rnd_state = seed;
		for (int i = 0; i < 1500; i++) {
			ns += rnd(40) ? rnd(2000) * 1000000ull : rnd(500) * 1000000000ull;
			random_event(&ev, ns);
			assert_int_equal(model_event(r->m, &ev), 0);
			deadlines_are_kept(r->m);
		}
		for (size_t i = 0; i < r->nsaid; i++) {
			const struct said *s = &r->said[i];
			bool open = false;

			if (s->type != ALERT_STUCK && s->type != ALERT_RECOVERED)
				continue;
			for (size_t k = i; k-- > 0;) {
				const struct said *p = &r->said[k];

				if (strcmp(p->room, s->room) || p->life != s->life ||
				    p->pid != s->pid)
					continue;
				if (p->type == ALERT_RECOVERED)
					break;
				if (p->type != ALERT_STUCK)
					continue;
				open = true;
				if (s->type == ALERT_STUCK && p->v.cause == s->v.cause)
					assert_true(s->v.confidence > p->v.confidence);
			}
			if (s->type == ALERT_RECOVERED)
				assert_true(open);
			else
				assert_true(s->v.confidence >= CONF_POSSIBLE);
			if (i)
				assert_true(r->said[i - 1].ns <= s->ns);
		}
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next),         cmocka_unit_test(test_own_instant),
		cmocka_unit_test(test_same_instant), cmocka_unit_test(test_tie),
		cmocka_unit_test(test_no_deadline),  cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_recovered),    cmocka_unit_test(test_independent_of_looking),
		cmocka_unit_test(test_alert_rules),  cmocka_unit_test(test_second_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
