// SPDX-License-Identifier: Apache-2.0
/* collect/scope: whose room a call without one belongs to, and when that is not known. */
#include "collect_rig.h"

static void create(struct rig *r, uint64_t op, uint64_t room, uint64_t ns)
{
	give(r, P_CREATE, 1, 0, ns - 10, ns, op, room);
}

/* ---- the enclosing call --------------------------------------------------------------------- */

static void test_inside_a_call(void **state)
{
	struct rig *r = *state;

	create(r, 0x100, 7, 1000);
	give(r, P_COPY, 1, 2000, 2100, 2200, 4096, 0xabc);
	give(r, P_SYNC, 1, 2000, 2300, 2900, 0xabc);
	give(r, P_POST, 1, 0, 2000, 3000, 0x100);
	release(r, 4000);
	assert_room(r, P_COPY, 0, "7");
	assert_room(r, P_SYNC, 0, "7");
	assert_int_equal(nth(r, P_COPY, 0)->bytes, 4096);
	assert_int_equal(nth(r, P_COPY, 0)->took_ns, 100);
	assert_string_equal(nth(r, P_COPY, 0)->object, "stream 0xabc");
	/* what the model knows by the operation is left to it */
	assert_string_equal(nth(r, P_POST, 0)->room, "");
	for (int i = 1; i < r->n; i++)
		assert_true(r->ev[i - 1].ns <= r->ev[i].ns);
}

/* The same with another thread between, which is in a call for another room. */
static void test_threads_apart(void **state)
{
	struct rig *r = *state;

	give(r, P_COPY, 1, 2000, 2100, 2200, 1);
	give(r, P_COPY, 2, 2000, 2101, 2201, 2);
	give(r, P_ROOM, 2, 0, 2000, 2300, 8);
	give(r, P_ROOM, 1, 0, 2000, 2400, 7);
	release(r, 4000);
	assert_room(r, P_COPY, 0, "7");
	assert_room(r, P_COPY, 1, "8");
}

static void test_nested(void **state)
{
	struct rig *r = *state;

	give(r, P_COPY, 1, 2200, 2300, 2310, 1); /* in MUTE in ROOM 7 in ROOM 9 */
	give(r, P_MUTE, 1, 2100, 2200, 2400, 0);
	give(r, P_COPY, 1, 2100, 2500, 2510, 2);
	give(r, P_ROOM, 1, 2000, 2100, 2600, 7);
	give(r, P_COPY, 1, 2000, 2700, 2710, 3);
	give(r, P_ROOM, 1, 0, 2000, 2800, 9);
	release(r, 4000);
	assert_room(r, P_COPY, 0, "7");
	assert_room(r, P_COPY, 1, "7");
	assert_room(r, P_COPY, 2, "9");
}

/* No room around it: counted for the process, and told when a second is over. */
static void test_no_room(void **state)
{
	struct rig *r = *state;
	const struct sp_event *ev;

	release(r, 1000);
	give(r, P_COPY, 1, 0, 2000, 2010, 100);
	give(r, P_COPY, 1, 2100, 2200, 2210, 20);
	give(r, P_MUTE, 1, 0, 2100, 2300, 0);
	release(r, 2 * SEC);
	assert_null(nth(r, P_COPY, 0));
	ev = of_kind(r, "count", 0);
	assert_non_null(ev);
	assert_int_equal(ev->probe, P_COPY);
	assert_string_equal(ev->room, "");
	assert_int_equal(ev->count, 2);
	assert_int_equal(ev->bytes, 120);
	assert_int_equal(ev->code, 0);
	assert_null(of_kind(r, "count", 1));
}

/* The call around it takes seconds: the event is handed on late, with its own time. */
static void test_long_call(void **state)
{
	struct rig *r = *state;
	struct collect_stats st;

	give(r, P_COPY, 1, SEC, SEC + 10, SEC + 20, 1);
	release(r, 5 * SEC);
	assert_null(nth(r, P_COPY, 0));
	give(r, P_ROOM, 1, 0, SEC, 6 * SEC, 7);
	release(r, 7 * SEC);
	assert_room(r, P_COPY, 0, "7");
	assert_int_equal(nth(r, P_COPY, 0)->ns, SEC + 20);
	collect_stats(r->c, &st);
	assert_int_equal(st.late, 0);
	assert_int_equal(st.given_up, 0);
}

/* An enclosing call that ends without a record (a result that is no event): what the thread does
 * next tells that it is over. */
static void test_over_without_a_record(void **state)
{
	struct rig *r = *state;

	give(r, P_COPY, 1, 2100, 2200, 2210, 1);
	give(r, P_COPY, 1, 2000, 2500, 2510, 2); /* only 2000 is around it now */
	give(r, P_ROOM, 1, 0, 2000, 2600, 7);
	give(r, P_COPY, 1, 3000, 3100, 3110, 3);
	give(r, P_COPY, 1, 4000, 4100, 4110, 4); /* the one of 3000 is over */
	give(r, P_ROOM, 1, 0, 4000, 4200, 8);
	release(r, 2 * SEC);
	assert_room(r, P_COPY, 0, "7");
	assert_room(r, P_COPY, 1, "7");
	assert_room(r, P_COPY, 2, "8");
	assert_int_equal(nth(r, P_COPY, 2)->bytes, 4);
	assert_null(nth(r, P_COPY, 3));
}

/* It returned inside a call that returns now: it was nested there. */
static void test_over_inside_another(void **state)
{
	struct rig *r = *state;

	give(r, P_COPY, 1, 2100, 2200, 2210, 1);
	give(r, P_ROOM, 1, 0, 2000, 2600, 7);
	release(r, 4000);
	assert_room(r, P_COPY, 0, "7");
}

static void test_waits_only_so_long(void **state)
{
	struct rig *r = *state;
	struct collect_stats st;

	give(r, P_BATCH, 1, SEC, SEC + 10, SEC + 20, 0x500, 1, 1);
	give(r, P_COPY, 1, SEC, SEC + 30, SEC + 40, 1, 0, (uint64_t)-7);
	release(r, 2 * SEC);
	assert_null(nth(r, P_BATCH, 0));
	release(r, 4 * SEC);
	assert_room(r, P_BATCH, 0, ""); /* a post is worth more at once */
	assert_null(nth(r, P_COPY, 0));
	release(r, 20 * SEC);
	assert_room(r, P_COPY, 0, "");
	assert_string_equal(nth(r, P_COPY, 0)->note, "no such stream");
	collect_stats(r->c, &st);
	assert_int_equal(st.given_up, 2);
}

/* What is told of an operation never comes before its post. */
static void test_order_of_an_operation(void **state)
{
	struct rig *r = *state;

	give(r, P_BATCH, 1, 2000, 2100, 2110, 0x500, 1, 1);
	give(r, P_FREE, 1, 0, 2200, 2200, 0x500);
	release(r, 3000);
	assert_int_equal(r->n, 0);
	give(r, P_ROOM, 1, 0, 2000, 4000, 7);
	release(r, 5000);
	assert_int_equal(r->ev[0].probe, P_BATCH);
	assert_string_equal(r->ev[0].room, "7");
	assert_int_equal(r->ev[1].probe, P_FREE);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void test_handle_is_used_anew(void **state)
{
	struct rig *r = *state;

	create(r, 0x100, 7, 1000);
	give(r, P_CLOSE, 1, 0, 1100, 1100, 0x100);
	give(r, P_COPY, 1, 2000, 2100, 2110, 1, 0, (uint64_t)-1);
	give(r, P_POST, 1, 0, 2000, 2200, 0x100);
	create(r, 0x100, 8, 3000);
	give(r, P_COPY, 1, 4000, 4100, 4110, 2);
	give(r, P_POST, 1, 0, 4000, 4200, 0x100);
	release(r, 5000);
	assert_room(r, P_COPY, 0, ""); /* closed: whose it is now is not known */
	assert_room(r, P_COPY, 1, "8");
}

/* ---- what a thread works for ----------------------------------------------------------------- */

static void test_thread_works_for(void **state)
{
	struct rig *r = *state;

	give(r, P_WORK, 1, 0, 1000, 1000, 7);
	give(r, P_SYNC, 1, 0, 1100, 1200, 1);
	give(r, P_SYNC, 2, 0, 1100, 1200, 2, (uint64_t)-1);    /* another thread */
	give(r, P_COPY, 1, 0, 1300, 1400, 3, 0, (uint64_t)-1); /* scope: call */
	give(r, P_SYNC, 1, 0, 900, 1500, 4, (uint64_t)-1);     /* begun before */
	give(r, P_DONE, 1, 0, 1600, 1600, 7);
	give(r, P_SYNC, 1, 0, 1700, 1800, 5, (uint64_t)-1);
	give(r, P_WORK, 1, 0, 1900, 1900, 8);
	give(r, P_SYNC, 1, 0, 2000, 2010, 6);
	release(r, 4000);
	assert_room(r, P_SYNC, 0, "7");
	assert_room(r, P_SYNC, 1, "");
	assert_room(r, P_SYNC, 2, "");
	assert_room(r, P_SYNC, 3, "");
	assert_room(r, P_SYNC, 4, "8");
	assert_room(r, P_COPY, 0, "");
}

/* The call around it goes before the thread; without a room, the thread's counts. */
static void test_thread_and_call(void **state)
{
	struct rig *r = *state;

	give(r, P_WORK, 1, 0, 1000, 1000, 7);
	give(r, P_SYNC, 1, 1100, 1200, 1210, 1);
	give(r, P_ROOM, 1, 0, 1100, 1300, 9);
	give(r, P_SYNC, 1, 1400, 1500, 1510, 2);
	give(r, P_MUTE, 1, 0, 1400, 1600, 0);
	release(r, 4000);
	assert_room(r, P_SYNC, 0, "9");
	assert_room(r, P_SYNC, 1, "7");
}

/* ---- losses ------------------------------------------------------------------------------------
 */

static void test_loss_forgets(void **state)
{
	struct rig *r = *state;

	collect_counters(r->c, r->counters, SEC);
	create(r, 0x100, 9, SEC + 10);
	give(r, P_WORK, 1, 0, SEC + 20, SEC + 20, 7);
	give(r, P_SYNC, 1, 0, SEC + 30, SEC + 40, 1);
	release(r, SEC + 50);
	assert_room(r, P_SYNC, 0, "7"); /* before the loss */
	/* the end may be among what is lost; these came before that was noticed */
	give(r, P_SYNC, 1, 0, SEC + 60, SEC + 70, 2, (uint64_t)-1);
	give(r, P_COPY, 1, SEC + 80, SEC + 81, SEC + 82, 2, 0, (uint64_t)-1);
	give(r, P_ROOM, 1, 0, SEC + 80, SEC + 90, 8);
	lose_records(r, SEC + 100);
	give(r, P_SYNC, 1, 0, SEC + 110, SEC + 120, 3, (uint64_t)-1);
	give(r, P_COPY, 1, SEC + 130, SEC + 131, SEC + 132, 3, 0, (uint64_t)-1);
	give(r, P_POST, 1, 0, SEC + 130, SEC + 140, 0x100);
	give(r, P_WORK, 1, 0, SEC + 150, SEC + 150, 7);
	give(r, P_SYNC, 1, 0, SEC + 160, SEC + 170, 4);
	release(r, SEC + 200);
	assert_room(r, P_SYNC, 1, "");
	assert_room(r, P_COPY, 0, "8"); /* the call's own word is not in doubt */
	assert_room(r, P_SYNC, 2, "");
	assert_room(r, P_COPY, 1, "");
	assert_room(r, P_SYNC, 3, "7"); /* begun anew */
}

static void test_ends(void **state)
{
	struct rig *r = *state;

	give(r, P_WORK, 1, 0, 1000, 1000, 7);
	give(r, P_COPY, 1, 1100, 1200, 1210, 1, 0, (uint64_t)-1);
	give_exit(r, 1, 1300, false);
	give(r, P_SYNC, 1, 0, 1400, 1410, 1, (uint64_t)-1); /* the number again */
	create(r, 0x100, 9, 1500);
	give_exit(r, PID, 1600, true);
	give(r, P_COPY, 1, 1700, 1710, 1720, 2, 0, (uint64_t)-1);
	give(r, P_POST, 1, 0, 1700, 1800, 0x100);
	release(r, 4000);
	assert_room(r, P_COPY, 0, "");
	assert_room(r, P_SYNC, 0, "");
	assert_room(r, P_COPY, 1, "");
}

/* What was counted of a process is told before its end, and nothing of it is the next program's. */
static void test_ends_counted(void **state)
{
	struct rig *r = *state;
	struct sp_event over;

	release(r, 1000);
	for (uint64_t i = 0; i < 3; i++)
		give(r, P_COPY, 1, 0, 2000 + i, 2010 + i, 100);
	give(r, P_COPY, 1, 2100, 2200, 2210, 20);
	give_exit(r, PID, 3000, true);
	sp_event_init(&over);
	over.ns = 4000;
	over.role = ROLE_TARGET;
	over.pid = PID;
	strcpy(over.kind, "exec");
	collect_inject(r->c, &over);
	give(r, P_COPY, 1, 0, 5000, 5010, 7);
	release(r, 2 * SEC);
	/* the end of the last thread is an event as well */
	assert_int_equal(r->n, 4);
	assert_string_equal(r->ev[0].kind, "count");
	assert_int_equal(r->ev[0].count, 4);
	assert_int_equal(r->ev[0].bytes, 320);
	assert_int_equal(r->ev[0].ns, 2210);
	assert_string_equal(r->ev[2].kind, "exec");
	assert_string_equal(r->ev[3].kind, "count");
	assert_int_equal(r->ev[3].count, 1);
	assert_int_equal(r->ev[3].bytes, 7);
}

/* ---- bounds and rates
 * ---------------------------------------------------------------------------- */

static void test_rate_with_a_room(void **state)
{
	struct rig *r = *state;
	const struct sp_event *ev;
	int told = 0;

	release(r, 1);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t rc = i % 10 ? 0 : (uint64_t)-1;

		give(r, P_COPY, 1, 2000, 3000 + i * 10, 3005 + i * 10, 2, 0, rc);
	}
	give(r, P_ROOM, 1, 0, 2000, 20000, 7);
	release(r, 2 * SEC);
	for (int i = 0; i < r->n; i++)
		told += r->ev[i].probe == P_COPY && strcmp(r->ev[i].kind, "count") != 0;
	ev = of_kind(r, "count", 0);
	assert_int_equal(told, 64 + 16);
	assert_string_equal(ev->room, "7");
	assert_int_equal(ev->count, 1000 - 80);
	assert_int_equal(ev->bytes, 2 * (1000 - 80));
	assert_int_equal(ev->code, 100 - 7 - 16);
	/* the next second begins anew */
	give(r, P_COPY, 1, 3 * SEC, 3 * SEC + 1, 3 * SEC + 2, 2);
	give(r, P_ROOM, 1, 0, 3 * SEC, 3 * SEC + 10, 7);
	r->n = 0;
	release(r, 5 * SEC);
	assert_room(r, P_COPY, 0, "7");
}

static void test_failures_without_a_room(void **state)
{
	struct rig *r = *state;
	const struct sp_event *ev;
	int told = 0;

	release(r, 1);
	for (uint64_t i = 0; i < 100; i++)
		give(r, P_COPY, 1, 0, 3000 + i, 3001 + i, 2, 0, (uint64_t)-7);
	release(r, 2 * SEC);
	for (int i = 0; i < r->n; i++)
		told += r->ev[i].status == OPS_ERROR;
	assert_int_equal(told, 16);
	ev = of_kind(r, "count", 0);
	assert_int_equal(ev->count, 84);
	assert_int_equal(ev->code, 84);
}

static void test_finish_tells_the_rest(void **state)
{
	struct rig *r = *state;

	release(r, SEC);
	give(r, P_COPY, 1, 0, SEC + 1, SEC + 2, 2);
	give(r, P_COPY, 1, SEC + 5, SEC + 6, SEC + 7, 4, 0, (uint64_t)-1);
	collect_finish(r->c, SEC + 10);
	release(r, SEC + 10);
	assert_int_equal(of_kind(r, "count", 0)->count, 1);
	assert_room(r, P_COPY, 0, "");
}

/* Threads and calls without end: what is kept of them is bounded, and nothing is lost of the count.
 */
static void test_bounds(void **state)
{
	struct rig *r = *state;
	struct collect_stats st;

	r->only_count = true;
	release(r, 1);
	for (uint32_t t = 1; t <= 40000; t++) {
		uint64_t at = 1000 + t * 10ull;

		give(r, P_COPY, t, at, at + 1, at + 2, 1);
		give(r, P_CREATE, 100000 + t, 0, at, at + 3, 0x1000 + t * 4ull, t);
	}
	collect_stats(r->c, &st);
	assert_true(st.given_up >= 40000 - 16384 - 1);
	collect_finish(r->c, 2 * SEC);
	release(r, 2 * SEC);
	assert_int_equal(r->counted, 40000);
}

int main(void)
{
#define RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		RIG(test_inside_a_call),
		RIG(test_threads_apart),
		RIG(test_nested),
		RIG(test_no_room),
		RIG(test_long_call),
		RIG(test_over_without_a_record),
		RIG(test_over_inside_another),
		RIG(test_waits_only_so_long),
		RIG(test_order_of_an_operation),
		RIG(test_handle_is_used_anew),
		RIG(test_thread_works_for),
		RIG(test_thread_and_call),
		RIG(test_loss_forgets),
		RIG(test_ends),
		RIG(test_ends_counted),
		RIG(test_rate_with_a_room),
		RIG(test_failures_without_a_room),
		RIG(test_finish_tells_the_rest),
		RIG(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
