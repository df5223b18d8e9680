// SPDX-License-Identifier: Apache-2.0
/* Rooms at their bound: what an event lets go makes room for itself by forgetting the longest idle,
 * never the room that the event is about. */
#include "model/bounds.h"
#include "view_rig.h"

/* As many idle rooms as are remembered; "mine" is the longest idle. */
static void fill_up(struct rig *r, double t)
{
	char room[32];

	abort_room(r, t, "mine");
	for (uint32_t i = 1; i < MAX_IDLE_ROOMS; i++) {
		snprintf(room, sizeof(room), "other-%u", i);
		abort_room(r, t, room);
	}
}

/* A life that may have come back until now is given up while the room is looked for. */
static void test_parked_is_dropped(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	listed(r, 1, "7001", "inflight", MOVING);
	let_go(r, 2, "7001");
	fill_up(r, 3);
	held(r, 700, .room = "mine", .kind = "", .op = 0x10, .code = MOVING);
	held(r, 701, .room = "mine", .kind = "inflight", .op = 0x10, .code = MOVING);
	assert_true(look(r, "mine", 1).found);
	rig_free(r);
}

/* So is a thread, when there are too many, and with it the room that it was at. */
static void test_thread_is_dropped(void **state)
{
	struct rig *r = view_rig();

	(void)state;
	ok(r, 0);
	works_at(r, 1, 1000, "7001");
	for (uint32_t i = 1; i < MAX_WORKERS; i++)
		works_at(r, 1, 1000 + i, "");
	fill_up(r, 2);
	announce(r, 3, "mine", "A", 1);
	assert_true(look(r, "mine", 1).found);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parked_is_dropped),
		cmocka_unit_test(test_thread_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
