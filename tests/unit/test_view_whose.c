// SPDX-License-Identifier: Apache-2.0
/* A request that the view shows is taken for a life that only native events know: which one it is
 * may turn out later. Ends are told to the peers, as in a Mooncake profile. */
#include "calls_rig.h"

/* The older one is in its forward pass, and has never been in a queue that the view has seen. */
static struct rig *younger_first(int announcements)
{
	struct rig *r = seen_rig();

	for (int i = 0; i < announcements; i++)
		announce(r, 0.5, "7001", "A", 1);
	held(r, 1, .room = "7001", .rid = "b", .op = 0x20, .kind = "waiting", .code = READY);
	assert_int_equal(r->taken_life, 1);
	kv_done(r, 1.1, W1, 0xa0, "7001", 0, 0);
	kv_done(r, 1.2, W1, 0xa1, "7001", 1, 1);
	told(r, 1.3, "7001", OPS_DONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(look(r, "7001", 1).l.stage, STAGE_RELEASING);
	return r;
}

static void test_younger_seen_first(void **state)
{
	(void)state;
	for (int announcements = 1; announcements <= 2; announcements++) {
		struct rig *r = younger_first(announcements);

		held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight",
		     .code = NONE);
		assert_int_equal(r->taken_life, 2);
		assert_string_equal(look(r, "7001", 2).rid, "b");
		assert_string_equal(look(r, "7001", 1).rid, "");
		rounds(r, 2, 4);
		assert_int_equal(open_lives(r), 1);
		assert_int_equal(r->last_end.life, 1);
		assert_int_equal(r->last_end.outcome, OUTCOME_DONE);
		rounds(r, 4.5, 60);
		assert_int_equal(stuck_lines(r), 1);
		assert_int_equal(nth(r, ALERT_STUCK, "7001", 0)->life, 2);
		rig_free(r);
	}
}

/* With its entry it may still be the one that is complete. */
static void test_complete_and_held(void **state)
{
	struct rig *r = younger_first(1);

	(void)state;
	held(r, 2, .room = "7001", .rid = "b", .op = 0x20, .kind = "inflight", .code = DONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 1);
	rig_free(r);
}

/* A request that was known by its id before it was complete is no other. */
static void test_known_by_its_id(void **state)
{
	struct rig *r = seen_rig();

	(void)state;
	held(r, 1, .room = "7001", .rid = "a", .op = 0x10, .kind = "bootstrap", .code = BOOTSTRAP);
	announce(r, 1.1, "7001", "A", 1);
	kv_done(r, 1.2, W1, 0xa0, "7001", 0, 1);
	told(r, 1.3, "7001", OPS_DONE);
	held(r, 2, .room = "7001", .rid = "a", .op = 0x10, .kind = "inflight", .code = NONE);
	assert_int_equal(r->taken_life, 1);
	assert_int_equal(open_lives(r), 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_younger_seen_first),
		cmocka_unit_test(test_complete_and_held),
		cmocka_unit_test(test_known_by_its_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
