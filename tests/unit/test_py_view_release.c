// SPDX-License-Identifier: Apache-2.0
/* A view: when a request is let go of, and when only out of sight. */
#include "py_view_rig.h"

static void test_healthy(void **state)
{
	struct rig *r = *state;

	look(r, "");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1");
	SAYS("w:77:r1:1 s:77=2", "");
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2");
	SAYS("s:77=2", ""); /* its forward pass */
	SAYS("s:77=2", "77 r1@1 =2");
	for (int i = 0; i < 50; i++)
		SAYS("s:77=2", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
	SAYS("", "");
	assert_int_equal(pyview_requests(r->v), 0);
}

static void test_forward_pass_straight_from_bootstrap(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=2");
	SAYS("s:77=2", "");
	SAYS("s:77=2", "77 r1@1 =2");
	for (int i = 0; i < 20; i++)
		SAYS("s:77=2", "");
	SAYS("s:77=3", "");
	SAYS("s:77=3", "77 r1@1 =3");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_forward_pass_then_seen_again(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r1:1 s:77=2");
	look(r, "s:77=2");
	SAYS("s:77=2", "77 r1@1 =2");
	SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

/* The entry is popped, the request leaves the list one snapshot later: never "without an entry". */
static void test_entry_goes_first(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	SAYS("i:77:r1:1 s:77=4", "77 r1@1 inflight=4 cut");
	SAYS("i:77:r1:1", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_status_lost(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=2");
	SAYS("i:77:r1:1 s:77=2", "77 r1@1 inflight=2 cut");
	SAYS("i:77:r1:1", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
	for (int i = 0; i < 100; i++)
		SAYS("i:77:r1:1", "");
	assert_int_equal(pyview_requests(r->v), 1);
}

static void test_entry_goes_last(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	look(r, "i:77:r1:1 s:77=4");
	SAYS("s:77=4", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_entry_is_left(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=4");
	look(r, "i:77:r1:1 s:77=4");
	SAYS("s:77=4", "");
	SAYS("s:77=4", "77 r1@1 =4"); /* in no queue */
	SAYS("s:77=4", "");
	SAYS("s:77=4", "release 77 r1@1; 77 =4 cut");
	SAYS("s:77=4", "");
	SAYS("", "");
	SAYS("", "77 =none");
}

static void test_torn_does_not_release(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("torn", "");
	SAYS("torn", "");
	SAYS("torn", "");
	SAYS("", "");
	SAYS("torn", "");
	SAYS("torn i:77:r1:1", ""); /* it is there */
	SAYS("", "");
	SAYS("torn s:77=3", ""); /* so is its entry */
	SAYS("s:77=3", "77 r1@1 =3");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

/* An entry that only a torn one has seen was there all the same. */
static void test_torn_sees_the_entry(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("", "");
	SAYS("torn s:77=1", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_too_early_does_not_release(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("", "");
	SAYS("+10", "");
	SAYS("+10", "");
	SAYS("+50", "release 77 r1@1");
}

/* Seen in two queues at once, or in none between them, while it moves. */
static void test_moving(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=1");
	look(r, "b:77:r1:1 s:77=1");
	SAYS("b:77:r1:1 w:77:r1:1 s:77=2", "");
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2");
	SAYS("s:77=2", "");
	SAYS("w:77:r1:1 i:77:r1:1 s:77=3", "");
	SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

static void test_waiting_is_never_released(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	SAYS("", "");
	SAYS("", "77 r1@1 =none");
	for (int i = 0; i < 1100; i++)
		SAYS("", "");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
}

static void test_waiting_is_forgotten(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	look(r, "");
	look(r, "");
	for (int i = 0; i < 1198; i++)
		SAYS("", "");
	SAYS("", "release 77 r1@1 not seen for 600 s");
	SAYS("", "");
}

/* Once through the inflight list between two sights of it: nothing comes back from there. */
static void test_short_inflight(void **state)
{
	struct rig *r = *state;

	look(r, "w:77:r1:1 s:77=2");
	look(r, "w:77:r1:1 s:77=2");
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("", "");
	SAYS("", "release 77 r1@1");
}

static void test_never_confirmed(void **state)
{
	struct rig *r = *state;

	look(r, "");
	SAYS("b:77:r1:1", "");
	SAYS("i:77:r1:1", "");
	SAYS("", "");
	SAYS("", "");
	SAYS("", "");
}

static void test_two_requests_one_room(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 b:77:r2:2 s:77=1");
	SAYS("i:77:r1:1 b:77:r2:2 s:77=1", "77 r1@1 inflight=1 cut; 77 r2@2 bootstrap=1 cut");
	/* the entry is the other's */
	SAYS("b:77:r2:2 s:77=1", "");
	SAYS("b:77:r2:2 s:77=1", "release 77 r1@1");
	SAYS("", "");
	SAYS("", "release 77 r2@2");
}

static void test_retry_while_forward_pass(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r1:1 s:77=2");
	look(r, "b:77:r2:2 s:77=2");
	/* the first may be in its forward pass, and its entry be this one */
	SAYS("b:77:r2:2 s:77=2", "77 r1@1 =2; 77 r2@2 bootstrap=2");
	SAYS("i:77:r1:1 b:77:r2:2", "");
	SAYS("i:77:r1:1 b:77:r2:2", "77 r1@1 inflight=none; 77 r2@2 bootstrap=none");
}

static void test_address_reused(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("b:78:r2:1 s:78=1", "");
	SAYS("b:78:r2:1 s:78=1", "release 77 r1@1; 78 r2@1 bootstrap=1");
	/* the same room, another request */
	SAYS("b:78:r3:1 s:78=1", "");
	SAYS("b:78:r3:1 s:78=1", "78 r2@1 =1; 78 r3@1 bootstrap=1");
}

static void test_same_request_elsewhere(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:2 s:77=3", "");
	SAYS("i:77:r1:2 s:77=3", "77 r1@2 inflight=3");
	SAYS("", "");
	SAYS("", "release 77 r1@2");
}

/* In an earlier queue it is a retry with the same id: the first one has its own end. */
static void test_retry_with_the_same_id(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:1 b:77:r1:2 s:77=3", "");
	SAYS("i:77:r1:1 b:77:r1:2 s:77=3", "77 r1@2 bootstrap=3");
	SAYS("b:77:r1:2 s:77=1", "");
	SAYS("b:77:r1:2 s:77=1", "release 77 r1@1; 77 r1@2 bootstrap=1");
}

static void test_no_table_declared(void **state)
{
	struct rig *r = *state;

	r->py.status.n = 0;
	look(r, "i:77:r1:1 b:78:r2:2");
	SAYS("i:77:r1:1 b:78:r2:2", "77 r1@1 inflight=? cut; 78 r2@2 bootstrap=? cut");
	SAYS("", "");
	SAYS("", "release 77 r1@1; 78 r2@2 =?");
	for (int i = 0; i < 100; i++)
		SAYS("", "");
}

static void test_reset(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3 s:5=1 at:4=77");
	look(r, "i:77:r1:1 s:77=3 s:5=1 at:4=77");
	pyview_reset(r->v);
	assert_int_equal(pyview_requests(r->v), 0);
	SAYS("", "");
	assert_int_equal(r->rc, 0);
	SAYS("b:77:r1:1 s:77=1", "");
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_healthy),
		WITH_RIG(test_forward_pass_straight_from_bootstrap),
		WITH_RIG(test_forward_pass_then_seen_again),
		WITH_RIG(test_entry_goes_first),
		WITH_RIG(test_status_lost),
		WITH_RIG(test_entry_goes_last),
		WITH_RIG(test_entry_is_left),
		WITH_RIG(test_torn_does_not_release),
		WITH_RIG(test_torn_sees_the_entry),
		WITH_RIG(test_too_early_does_not_release),
		WITH_RIG(test_moving),
		WITH_RIG(test_waiting_is_never_released),
		WITH_RIG(test_waiting_is_forgotten),
		WITH_RIG(test_short_inflight),
		WITH_RIG(test_never_confirmed),
		WITH_RIG(test_two_requests_one_room),
		WITH_RIG(test_retry_while_forward_pass),
		WITH_RIG(test_address_reused),
		WITH_RIG(test_same_request_elsewhere),
		WITH_RIG(test_retry_with_the_same_id),
		WITH_RIG(test_no_table_declared),
		WITH_RIG(test_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
