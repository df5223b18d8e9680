// SPDX-License-Identifier: Apache-2.0
/* A view: which facts it confirms, and how it says them. */
#include "py_view_rig.h"

#include <errno.h>

/* ---- confirmation -------------------------------------------------------------------------- */

static void test_twice(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	first = r->ns;
	assert_int_equal(pyview_requests(r->v), 0);
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
	assert_int_equal(pyview_requests(r->v), 1);
	SAYS("b:77:r1:1 s:77=1", "");
	/* one that came later was not there when the view began */
	SAYS("b:77:r1:1 s:77=1 b:78:r2:2 s:78=1", "");
	SAYS("b:77:r1:1 s:77=1 b:78:r2:2 s:78=1", "78 r2@2 bootstrap=1");
	/* each fact on its own */
	SAYS("b:77:r1:1 s:77=2 b:78:r2:2 s:78=1", "");
	SAYS("b:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "77 r1@1 bootstrap=2");
	SAYS("w:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "78 r2@2 waiting=1");
	SAYS("w:77:r1:1 s:77=2 w:78:r2:2 s:78=1", "77 r1@1 waiting=2");
}

static void test_first_seen_moving(void **state)
{
	struct rig *r = *state;

	SAYS("b:77:r1:1 s:77=1", "");
	SAYS("w:77:r1:1 s:77=2", ""); /* no two agree on its queue */
	SAYS("w:77:r1:1 s:77=2", "77 r1@1 waiting=2 cut");
}

static void test_too_early(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	look(r, "b:77:r1:1 s:77=1");
	first = r->ns;
	SAYS("+20 b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	SAYS("+20 b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0);
	SAYS("+20 b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
}

static void test_torn_between(void **state)
{
	struct rig *r = *state;
	uint64_t first;

	look(r, "b:77:r1:1 s:77=1");
	first = r->ns;
	SAYS("torn w:77:r1:1 i:99:r9:9 s:77=3", "");
	assert_int_equal(r->rc, -EAGAIN);
	SAYS("b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, 1);
	assert_true(r->since == first);
	/* what only torn ones have seen is nothing */
	SAYS("torn i:99:r9:9 s:99=1 b:77:r1:1 s:77=1", "");
	SAYS("b:77:r1:1 s:77=1", "");
}

static void test_partial(void **state)
{
	struct rig *r = *state;

	SAYS("partial b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, -ENODATA);
	SAYS("partial b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut");
	assert_int_equal(r->rc, -ENODATA);
	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 0); /* the one before was not complete */
	SAYS("b:77:r1:1 s:77=1", "");
	assert_int_equal(r->rc, 1);
	for (int i = 0; i < 10; i++)
		SAYS("partial", "");
	SAYS("", "");
	SAYS("partial", "");
	SAYS("", "release 77 r1@1");
}

static void test_tableless_for_a_while(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3");
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3 cut");
	for (int i = 0; i < 4; i++)
		SAYS("tableless i:77:r1:1", ""); /* not: without an entry */
	SAYS("i:77:r1:1 s:77=3", "");
	SAYS("i:77:r1:1", "");
	SAYS("tableless i:77:r1:1", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
}

static void test_growing_numbers(void **state)
{
	struct rig *r = *state;

	look(r, "b:77:r1:1:0/9 s:77=1 n:77=0/3");
	SAYS("b:77:r1:1:2/9 s:77=1 n:77=1/3", "77 r1@1 bootstrap=1 cut 0/3 peers 0/9 sent");
	SAYS("b:77:r1:1:4/9 s:77=1 n:77=3/3", "77 r1@1 bootstrap=1 1/3 peers 2/9 sent");
	SAYS("b:77:r1:1:4/9 s:77=1 n:77=3/3", "77 r1@1 bootstrap=1 3/3 peers 4/9 sent");
	SAYS("b:77:r1:1:1/9 s:77=1", "");
	SAYS("b:77:r1:1:1/9 s:77=1", "77 r1@1 bootstrap=1 1/9 sent");
}

/* In bootstrap a room that is not in the table has no peer yet; later the table may be cleared. */
static void test_unannounced(void **state)
{
	struct rig *r = *state;

	look(r, "unannounced b:77:r1:1 s:77=1");
	SAYS("unannounced b:77:r1:1 s:77=1", "77 r1@1 bootstrap=1 cut 0/-1 peers");
	SAYS("n:77=1/1 b:77:r1:1 s:77=2", "");
	SAYS("n:77=1/1 b:77:r1:1 s:77=2", "77 r1@1 bootstrap=2 1/1 peers");
	SAYS("n:77=1/1 i:77:r1:1 s:77=2", "");
	SAYS("n:77=1/1 i:77:r1:1 s:77=2", "77 r1@1 inflight=2 1/1 peers");
	SAYS("unannounced i:77:r1:1 s:77=2", "");
	SAYS("unannounced i:77:r1:1 s:77=2", "77 r1@1 inflight=2");
}

static void test_code_on_the_move(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1");
	SAYS("i:77:r1:1", "77 r1@1 inflight=none cut");
	SAYS("i:77:r1:1 s:77=2", "");
	/* it is not without an entry any more, whatever the value is */
	SAYS("i:77:r1:1 s:77=3", "77 r1@1 inflight=3");
	SAYS("i:77:r1:1 s:77=4", "");
	SAYS("i:77:r1:1", "77 r1@1 inflight=4"); /* its absence was seen once only */
	SAYS("i:77:r1:1", "77 r1@1 inflight=none");
}

static void test_value_minus_one(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=-1 s:78=-1");
	SAYS("i:77:r1:1 s:77=-1 s:78=-1", "77 r1@1 inflight=? cut");
	SAYS("s:77=-1", "");
	SAYS("s:77=-1", "77 r1@1 =?");
	SAYS("s:77=-1", "");
	SAYS("s:77=-1", "release 77 r1@1");
}

/* ---- entries, threads ---------------------------------------------------------------------- */

static void test_entries(void **state)
{
	struct rig *r = *state;

	look(r, "s:5=1 s:6=3");
	SAYS("s:5=1 s:6=4", "5 =1 cut");
	SAYS("s:5=1 s:6=4", "6 =4 cut");
	SAYS("s:5=0 s:6=4 s:7=1", "");
	SAYS("s:5=0 s:6=4", "5 =0");
	SAYS("s:6=4", "");
	SAYS("torn s:6=4", "");
	SAYS("tableless", "");
	SAYS("s:6=4", "5 =none");
	SAYS("b:6:r:1 s:6=4", "");
	SAYS("b:6:r:1 s:6=4", "6 r@1 bootstrap=4");
	SAYS("", "");
	SAYS("", "release 6 r@1");
}

static void test_worker_of_a_room(void **state)
{
	struct rig *r = *state;

	look(r, "i:77:r1:1 s:77=3 k:77=5 at:5=66");
	SAYS("i:77:r1:1 s:77=3 k:77=5 at:5=66", "5 at 66; 77 r1@1 inflight=3 for5 cut");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "5 at 77; 77 r1@1 inflight=3 at5");
	SAYS("i:77:r1:1 s:77=3 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 at:5=", "5 at ; 77 r1@1 inflight=3");
}

static void test_orphan(void **state)
{
	struct rig *r = *state;

	/* no worker at all: the profile may not fit */
	look(r, "i:77:r1:1 s:77=3 k:77=0");
	SAYS("i:77:r1:1 s:77=3 k:77=0", "77 r1@1 inflight=3 cut");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "5 at ; 77 r1@1 inflight=3 orphan");
	/* another chunk of it is served */
	SAYS("i:77:r1:1 s:77=3 k:77=0 k:77=5 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 k:77=5 k:77=0 at:5=", "77 r1@1 inflight=3 for5");
	SAYS("i:77:r1:1 s:77=3 at:5=77", "");
	/* seen once, between other things, it is not said */
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "77 r1@1 inflight=3");
	SAYS("i:77:r1:1 s:77=3 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=0 at:5=", "");
	SAYS("i:77:r1:1 s:77=3 k:77=5 at:5=", "77 r1@1 inflight=3 for5");
}

static void test_workers(void **state)
{
	struct rig *r = *state;

	look(r, "at:5=1 at:6=");
	SAYS("at:5=1 at:6=", "5 at 1; 6 at ");
	SAYS("at:5=2 at:6=", "");
	SAYS("at:5=1 at:6=", "");
	SAYS("at:5=2 at:6=", "");
	/* from room to room: not at the first any more */
	SAYS("at:5=3 at:6=", "5 at 3");
	SAYS("at:5=4", "");
	SAYS("at:5=5", "5 at 5");
	SAYS("at:5=5", "");
	SAYS("torn at:5=9", "");
	SAYS("at:5=6 at:7=", "");
	SAYS("at:7=", "7 at ");
	SAYS("", "");
}

static void test_bootstrap_thread(void **state)
{
	struct rig *r = *state;

	look(r, "dead");
	SAYS("dead", ""); /* no worker either: the names do not fit */
	SAYS("dead", "");
	SAYS("at:5= dead", "");
	SAYS("at:5= dead", "5 at ; 0 missing ");
	SAYS("at:5= dead", "");
	SAYS("dead", "");
	SAYS("at:5=", "");
	SAYS("at:5=", "9 found ");
	SAYS("at:5= dead", "");
	SAYS("at:5=", "");
	SAYS("at:5= dead", "");
	SAYS("torn at:5= dead", "");
	SAYS("at:5= dead", "9 missing ");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_twice),
		WITH_RIG(test_first_seen_moving),
		WITH_RIG(test_too_early),
		WITH_RIG(test_torn_between),
		WITH_RIG(test_partial),
		WITH_RIG(test_tableless_for_a_while),
		WITH_RIG(test_growing_numbers),
		WITH_RIG(test_unannounced),
		WITH_RIG(test_code_on_the_move),
		WITH_RIG(test_value_minus_one),
		WITH_RIG(test_entries),
		WITH_RIG(test_worker_of_a_room),
		WITH_RIG(test_orphan),
		WITH_RIG(test_workers),
		WITH_RIG(test_bootstrap_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
