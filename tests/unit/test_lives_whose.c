// SPDX-License-Identifier: Apache-2.0
/* Lives: which event belongs to which. */
#include "model_rig.h"
#include "util/cleanup.h"

/* The same address for a new operation, with and without the old one's release. */
static void test_handle_reuse(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	announce(r, 0, "7002", "A", 1);
	kv_done(r, 1, W1, 0xa0, "7001", 0, 0);
	close_op(r, 1.5, W1, 0xa0);
	kv(r, 2, W1, 0xa0, "7002", 0, 1);
	assert_int_equal(r->taken_life, 1);
	assert_string_equal(r->taken_room, "7002");
	status(r, 2.1, W1, 0xa0, OPS_DONE);
	assert_string_equal(r->taken_room, "7002");
	/* final, not closed, replaced */
	kv(r, 3, W1, 0xa0, "7001", 1, 1);
	status(r, 3.1, W1, 0xa0, OPS_DONE);
	assert_string_equal(r->taken_room, "7001");
	assert_false(look(r, "7002", 1).l.uncertain);
	/* in progress, replaced: its end was missed */
	aux(r, 4, W1, 0xa1, "7002");
	aux(r, 4.1, W1, 0xa1, "7001");
	assert_true(look(r, "7002", 1).l.uncertain);
	status(r, 4.2, W1, 0xa1, OPS_DONE);
	assert_string_equal(r->last_end.room, "7001");
	rig_free(r);
}

static void seen_done(struct rig *r, double t, uint64_t op, const char *kind, int chunk, int last)
{
	struct sp_event ev = create_event(r, t, W1, op, "7001", kind, chunk, last, -1);

	ev.flags = 0;
	ev.status = OPS_DONE;
	feed(r, &ev);
}

/* What has come, one after the other, at one address: the room's own next work, and no repetition.
 */
static void test_handle_reuse_same_room(void **state)
{
	static const uint64_t handles[] = {0xa0, 0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(handles); i++) {
		struct rig *r = rig_new();

		announce(r, 0, "7001", "A", 1);
		seen_done(r, 1, handles[i], "kv", 0, 0);
		seen_done(r, 2, handles[i], "kv", 1, 1);
		assert_int_equal(open_lives(r), 1);
		seen_done(r, 3, handles[i], "aux", -1, -1);
		assert_int_equal(open_lives(r), 0);
		assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
		rig_free(r);
	}
}

/* Posted again with the text of its creation: one operation. */
static void test_post_repeats_itself(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev;

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	ev = create_event(r, 2, W1, 0xa0, "7001", "kv", 0, 1, 0);
	ev.flags = 0;
	ev.status = OPS_BUSY;
	feed(r, &ev);
	ev.ns = S(r->base + 2.5);
	ev.kind[0] = '\0';
	ev.chunk = ev.rank = ev.last = -1;
	feed(r, &ev);
	assert_false(look(r, "7001", 1).l.uncertain);
	status(r, 3, W1, 0xa0, OPS_DONE);
	aux_done(r, 4, W1, 0xa1, "7001");
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* The same handle in two processes is two operations. */
static void test_two_processes(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 0, W1, 0xa0, "7001", 0, 1);
	r->pid = 200;
	announce(r, 0, "7001", "A", 1);
	kv(r, 0, W1, 0xa0, "7001", 0, 1);
	aux_done(r, 1, W1, 0xa1, "7001");
	status(r, 1.5, W1, 0xa0, OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	target(r, 2, "exited", 0);
	assert_int_equal(open_lives(r), 1);
	r->pid = PID;
	target(r, 3, "exited", 0);
	assert_int_equal(open_lives(r), 0);
	assert_int_equal(r->last_end.outcome, OUTCOME_FAILED);
	assert_int_equal(count_said(r, ALERT_TARGET), 2);
	assert_string_equal(nth(r, ALERT_TARGET, NULL, 0)->what, "exited");
	rig_free(r);
}

/* An operation that outlives its room keeps its thread, and opens nothing. */
static void test_op_outlives_room(void **state)
{
	struct rig *r = rig_new_with(true);

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 1);
	abort_room(r, 2, "7001");
	plain(r, 2.1, ROLE_RELEASE, PID, "7001");
	assert_int_equal(open_lives(r), 0);
	status(r, 3, W1, 0xa0, OPS_BUSY);
	assert_int_equal(r->taken_life, 0);
	status(r, 4, W1, 0xa0, OPS_DONE);
	close_op(r, 5, W1, 0xa0);
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

/* Posted twice: the second announcement opens life 2; what life 1 has had goes to life 2. */
static void test_second_opening(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 2);
	announce(r, 0.1, "7001", "A", 2);
	assert_int_equal(r->taken_life, 2);
	announce(r, 0.2, "7001", "B", 2);
	assert_int_equal(r->taken_life, 1);
	announce(r, 0.3, "7001", "B", 2);
	assert_int_equal(r->taken_life, 2);
	create(r, 1, W1, 0xa0, "7001", "kv", 0, 1, 0);
	assert_int_equal(r->taken_life, 1);
	create(r, 1, W1, 0xa1, "7001", "kv", 0, 1, 1);
	assert_int_equal(r->taken_life, 1);
	create(r, 1, W1, 0xa2, "7001", "aux", -1, -1, -1);
	create(r, 1, W1, 0xa3, "7001", "aux", -1, -1, -1);
	assert_int_equal(r->taken_life, 1);
	create(r, 2, W1, 0xb0, "7001", "kv", 0, 1, 0);
	assert_int_equal(r->taken_life, 2);
	create(r, 2, W1, 0xb1, "7001", "kv", 0, 1, 1);
	assert_int_equal(r->taken_life, 2);
	create(r, 2, W1, 0xb2, "7001", "aux", -1, -1, -1);
	assert_int_equal(r->taken_life, 2);
	rig_free(r);
}

/* The retry after an abort is another life, and what is posted from then on is the retry's. */
static void test_announce_after_abort(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	abort_room(r, 1, "7001");
	announce(r, 1.1, "7001", "B", 1);
	assert_int_equal(r->taken_life, 2);
	kv_done(r, 2, W1, 0xa0, "7001", 0, 1);
	assert_int_equal(r->taken_life, 2);
	aux_done(r, 2, W1, 0xa1, "7001");
	assert_int_equal(r->last_end.life, 2);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	assert_int_equal(open_lives(r), 1);
	rig_free(r);
}

/* A restarted decode has a new name: it does not join the life of the old one. */
static void test_new_agent_same_room(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	kv(r, 1, W1, 0xa0, "7001", 0, 0);
	status(r, 1.5, W1, 0xa0, OPS_ERROR);
	announce(r, 2, "7001", "B", 1);
	assert_int_equal(r->taken_life, 2);
	kv_done(r, 3, W1, 0xb0, "7001", 0, 0);
	kv_done(r, 3.1, W1, 0xb1, "7001", 1, 1);
	assert_int_equal(r->taken_life, 2);
	aux_done(r, 3.2, W1, 0xb2, "7001");
	assert_int_equal(r->last_end.life, 2);
	assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
	rig_free(r);
}

/* The handle becomes known with the post on the same thread (entry probes alone). */
static void test_handle_known_later(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	announce(r, 0, "7001", "A", 1);
	create(r, 1, W1, 0, "7001", "kv", 0, 1, 0);
	create(r, 1, W2, 0, "7001", "aux", -1, -1, -1);
	post(r, 1, W2, 0xa1, OPS_BUSY);
	post(r, 1, W1, 0xa0, OPS_BUSY);
	status(r, 2, W1, 0xa0, OPS_DONE);
	assert_int_equal(open_lives(r), 1);
	status(r, 2, W2, 0xa1, OPS_DONE);
	assert_int_equal(open_lives(r), 0);
	/* a failed creation is followed by another one */
	announce(r, 3, "7002", "A", 1);
	create(r, 3, W1, 0, "7002", "kv", 0, 1, 0);
	create(r, 3, W1, 0, "7002", "kv", 0, 1, 0);
	post(r, 3, W1, 0xb0, OPS_DONE);
	aux_done(r, 3, W1, 0xb1, "7002");
	assert_int_equal(open_lives(r), 0);
	rig_free(r);
}

static void test_string_rooms(void **state)
{
	struct rig *r = rig_new();
	char longest[SP_ROOM_MAX];

	(void)state;
	memset(longest, 'r', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	healthy(r, 0, W1, 0xa0, "cmpl-6f1c", "A");
	assert_string_equal(r->last_end.room, "cmpl-6f1c");
	healthy(r, 1, W1, 0xa0, longest, "A");
	assert_string_equal(r->last_end.room, longest);
	longest[62] = '\0';
	healthy(r, 2, W1, 0xa0, longest, "A");
	assert_int_equal(r->last_end.life, 1);
	rig_free(r);
}

static void test_rid_and_ids(void **state)
{
	struct rig *r = rig_new();
	struct sp_event ev = event(r, 0, ROLE_ARRIVE, PID, "7001");
	struct look a, b;

	(void)state;
	strcpy(ev.rid, "req-17");
	feed(r, &ev);
	announce(r, 1, "7001", "A", 1);
	assert_int_equal(r->taken_life, 1);
	announce(r, 1, "7002", "A", 1);
	a = look(r, "7001", 1);
	b = look(r, "7002", 1);
	assert_string_equal(a.rid, "req-17");
	assert_string_equal(b.rid, "");
	assert_int_not_equal(a.l.id, b.l.id);
	assert_ptr_not_equal(a.l.user, b.l.user);
	assert_non_null(*a.l.user);
	rig_free(r);
}

/* An event older than the model's time is taken at the model's time. */
static void test_old_event(void **state)
{
	struct rig *r = rig_new();

	(void)state;
	to(r, 50);
	announce(r, 10, "7001", "A", 2);
	assert_int_equal(look(r, "7001", 1).l.opened_ns, S(1050));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handle_reuse),
		cmocka_unit_test(test_handle_reuse_same_room),
		cmocka_unit_test(test_post_repeats_itself),
		cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_op_outlives_room),
		cmocka_unit_test(test_second_opening),
		cmocka_unit_test(test_announce_after_abort),
		cmocka_unit_test(test_new_agent_same_room),
		cmocka_unit_test(test_handle_known_later),
		cmocka_unit_test(test_string_rooms),
		cmocka_unit_test(test_rid_and_ids),
		cmocka_unit_test(test_old_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
