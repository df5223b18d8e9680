// SPDX-License-Identifier: Apache-2.0
/* One front, several processes behind it: requests that may be another process's. */
#include "sock_rig.h"

#define RANKS 3

static void on_rank(struct rig *r, int rank)
{
	r->pid = PID + 1000 * (uint32_t)rank;
}

static void arrives_at_all(struct rig *r, double t, const char *room, unsigned int flags)
{
	for (int i = RANKS - 1; i >= 0; i--) {
		on_rank(r, i);
		client(r, t, ROLE_ARRIVE, .room = room, .flags = EV_SHARED | flags);
	}
}

static void replies_to_all(struct rig *r, double t, const char *room, int64_t code)
{
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		client(r, t, ROLE_REPLY, .room = room, .kind = "end", .code = code,
		       .flags = EV_SHARED);
	}
}

/* The same room asked for twice, once for each rank: neither is a reuse, and whose answer is whose
 * is not known. */
static void test_room_of_each_rank(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 2; i++) {
		on_rank(r, i);
		announce(r, 0, "7001", "A", 1);
	}
	arrives_at_all(r, 1, "7001", EV_TRACKED);
	arrives_at_all(r, 2, "7001", EV_TRACKED);
	on_rank(r, 0);
	assert_int_equal(look(r, "7001", 2).found, false);
	replies_to_all(r, 3, "7001", 200);
	on_rank(r, 0);
	assert_true(look(r, "7001", 1).found);
	to(r, 400);
	on_rank(r, 0);
	assert_int_equal(look(r, "7001", 1).v.cause, CAUSE_NEVER_SENT);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

/* Data-parallel ranks: those that were not chosen are no alert, whatever becomes of the room. */
static void test_chosen(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	on_rank(r, 1);
	announce(r, 1, "7001", "A", 1);
	to(r, 400);
	assert_int_equal(alerts(r), 0);
	s = nth(r, ALERT_STUCK, "7001", 1);
	assert_true(has_evidence(s, "has shown itself in another one"));
	assert_int_equal(s->v.confidence, CONF_POSSIBLE);
	assert_int_equal(s->v.pin, -1);
	replies_to_all(r, 401, "7001", 200);
	assert_int_equal(open_lives(r), 0);
	/* announced before it arrived */
	on_rank(r, 2);
	announce(r, 500, "7002", "A", 2);
	arrives_at_all(r, 501, "7002", EV_TRACKED);
	to(r, 900);
	assert_int_equal(alerts(r), 1);
	s = nth(r, ALERT_STUCK, "7002", 1);
	for (size_t i = 0; i < r->nsaid; i++)
		if (r->said[i].type == ALERT_STUCK && r->said[i].v.confidence >= CONF_LIKELY)
			assert_int_equal(r->said[i].pid, PID + 2000);
	rig_free(r);
}

/* Where nothing would end it, it does not stay for ever. */
static void test_not_chosen_untracked(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	for (int i = 0; i < 100; i++) {
		arrives_at_all(r, i, "7001", 0);
		on_rank(r, 0);
		native_room(r, i + 0.1, "7001");
	}
	to(r, 1000);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(alerts(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_NONE);
	rig_free(r);
}

/* It shows itself nowhere: one alert, of the first process; when that has gone, of the next. */
static void test_nowhere(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	to(r, 400);
	assert_int_equal(alerts(r), 1);
	assert_int_equal(stuck_lines(r), RANKS);
	for (size_t i = 0; i < RANKS; i++) {
		s = nth(r, ALERT_STUCK, "7001", i);
		assert_int_equal(s->v.cause, CAUSE_DECODE_ABSENT);
		assert_int_equal(s->v.confidence, s->pid == PID ? CONF_LIKELY : CONF_POSSIBLE);
	}
	on_rank(r, 0);
	target(r, 401, "exited", 0);
	to(r, 1100);
	assert_int_equal(alerts(r), 2);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", RANKS)->pid, PID + 1000);
	replies_to_all(r, 1101, "7001", 500);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The process whose bootstrap thread is dead is the one; but not before the deadline. */
static void test_nowhere_dead_thread(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	on_rank(r, 2);
	announce(r, 0, "7000", "A", 2);
	thread_exit(r, 1, BOOT);
	arrives_at_all(r, 2, "7001", EV_TRACKED);
	arrives_at_all(r, 2, "7002", EV_TRACKED);
	to(r, 100);
	assert_int_equal(alerts(r), 1); /* of 7000 */
	on_rank(r, 0);
	announce(r, 101, "7002", "A", 2);
	to(r, 335);
	for (size_t i = 0; i < r->nsaid; i++) {
		const struct said *s = &r->said[i];

		if (s->type != ALERT_STUCK || !strcmp(s->room, "7000"))
			continue;
		if (s->pid == PID + 2000 && !strcmp(s->room, "7001")) {
			assert_int_equal(s->v.cause, CAUSE_THREAD_DIED);
			assert_int_equal(s->v.confidence, CONF_LIKELY);
		} else {
			assert_int_equal(s->v.confidence, CONF_POSSIBLE);
		}
	}
	assert_int_equal(alerts(r), 2);
	rig_free(r);
}

/* It shows itself where the bootstrap thread is dead: from then on it is late there. */
static void test_own_of_dead_thread(void **state)
{
	struct rig *r = rig_new();
	const struct said *s;

	(void)state;
	on_rank(r, 2);
	announce(r, 0, "7000", "A", 2);
	thread_exit(r, 1, BOOT);
	arrives_at_all(r, 2, "7001", EV_TRACKED);
	to(r, 8);
	assert_int_equal(alerts(r), 1); /* of 7000 */
	on_rank(r, 2);
	conn(r, 10, "unread", "A", "7001");
	to(r, 10.1);
	/* the deadline's own time, though it was not known to be one */
	s = expect_stuck(r, "7001", 7, CAUSE_THREAD_DIED, CONF_LIKELY, 1);
	assert_int_equal(s->pid, PID + 2000);
	rig_free(r);
}

/* All ranks of one instance have the room: each is followed on its own. */
static void test_every_rank(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		announce(r, 1, "7001", "A", 1);
		kv(r, 2, W1, 0xa0, "7001", 0, 1);
	}
	for (int i = 0; i < RANKS - 1; i++) {
		on_rank(r, i);
		status(r, 3, W1, 0xa0, OPS_DONE);
		aux_done(r, 4, W1, 0xa1, "7001");
	}
	to(r, 13.9);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 60);
	assert_int_equal(alerts(r), RANKS);
	assert_int_equal(nth(r, ALERT_STUCK, "7001", RANKS - 1)->v.cause, CAUSE_TRANSFER_STALLED);
	replies_to_all(r, 61, "7001", 200);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* The view of a rank shows that it does not hold the room: that is no failure of it. */
static void test_unheld_elsewhere(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	on_rank(r, 1);
	ok(r, 0);
	announce(r, 1, "7000", "A", 1); /* the view shows what probes have shown */
	listed(r, 1, "7000", "inflight", MOVING);
	let_go(r, 2, "7000");
	announce(r, 2, "7003", "A", 1);
	on_rank(r, 0);
	announce(r, 2, "7001", "A", 1);
	arrives_at_all(r, 3, "7001", EV_TRACKED);
	on_rank(r, 1);
	entry(r, 3, "7001", NONE);
	rounds(r, 3.5, 340);
	expect_end(r, "7001", 1, OUTCOME_NONE);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

/* A client of several processes' front that goes is nobody's own sign. */
static void test_shared_client_gone(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	arrives_at_all(r, 0, "7001", EV_TRACKED);
	for (int i = 0; i < RANKS; i++) {
		on_rank(r, i);
		client(r, 1, ROLE_ABORT, .room = "7001", .kind = "client-gone", .flags = EV_SHARED);
	}
	to(r, 2000);
	assert_int_equal(alerts(r), 0);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_room_of_each_rank),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_not_chosen_untracked),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_nowhere_dead_thread),
		cmocka_unit_test(test_own_of_dead_thread),
		cmocka_unit_test(test_every_rank),
		cmocka_unit_test(test_unheld_elsewhere),
		cmocka_unit_test(test_shared_client_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
