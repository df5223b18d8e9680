// SPDX-License-Identifier: Apache-2.0
/* Sockets alone, attached in the middle of things. */
#include "sock_rig.h"

/* Attached while rooms are on their way: the request, and what else was said of them, came before.
 * A room of which only the announcement is seen then ends unseen, as a healthy one does: nothing is
 * told of it. */
static void test_attached_meanwhile(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	hears(r, 1, "7001", "A", 1); /* while the probes are being placed */
	hears(r, 1, "7002", "A", 2); /* one of two */
	target(r, 1.3, "attached", 0);
	hears(r, 2, "7003", "B", 1);
	assert_int_equal(open_lives(r), 3);
	hears(r, 331, "7004", "B", 1); /* the last that may have been asked for before */
	arrives(r, 331.1, "7005", "a");
	hears(r, 331.2, "7005", "B", 1);
	hears(r, 331.4, "7006", "B", 1); /* no request for it has come since the attach */
	assert_int_equal(r->last_end.outcome, OUTCOME_NONE); /* 7001 and 7002 */
	assert_int_equal(open_lives(r), 4);
	to(r, 332);
	expect_end(r, "7003", 1, OUTCOME_NONE);
	to(r, 661);
	expect_end(r, "7004", 1, OUTCOME_NONE);
	assert_int_equal(stuck_lines(r), 0);
	to(r, 700);
	expect_stuck(r, "7005", 661.2, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	expect_stuck(r, "7006", 661.4, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_int_equal(stuck_lines(r), 2);
	rig_free(r);
}

/* Its answer may have gone by while the probes were being placed. */
static void test_attached_before_the_answer(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	arrives(r, 1, "7001", "a");
	hears(r, 1, "7001", "A", 1);
	arrives(r, 1, "7002", "b");
	hears(r, 1, "7002", "A", 1);
	target(r, 2, "attached", 0);
	conn(r, 2.1, "untracked", "", "7001");
	to(r, 400);
	expect_stuck(r, "7002", 331, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	assert_int_equal(stuck_lines(r), 1);
	assert_int_equal(open_lives(r), 1);
	rig_free(r);
}

/* Its request comes to light after all: then it is followed. */
static void test_attached_before_the_request(void **state)
{
	struct rig *r = only_sockets();

	(void)state;
	target(r, 0, "attached", 0);
	hears(r, 1, "7001", "A", 1);
	arrives(r, 2, "7001", "a");
	to(r, 400);
	expect_stuck(r, "7001", 332, CAUSE_NEVER_SENT, CONF_POSSIBLE, -1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attached_meanwhile),
		cmocka_unit_test(test_attached_before_the_request),
		cmocka_unit_test(test_attached_before_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
