// SPDX-License-Identifier: Apache-2.0
/* The recording of what the server's own view adds: its events, lives that come again. */
#include "store_view_rig.h"

#include <jansson.h>

/* ---- events -------------------------------------------------------------------------------- */

static void assert_detail(const struct rig *r, const char *where, const char *expected)
{
	char sql[200];
	json_t *have, *want = json_loads(expected, 0, NULL);

	snprintf(sql, sizeof(sql), "SELECT detail FROM events WHERE %s", where);
	have = json_loads(rig_sql(r, sql), 0, NULL);
	if (!json_equal(have, want))
		fail_msg("%s: %s", rig_sql(r, sql), expected);
	json_decref(have);
	json_decref(want);
}

static void test_detail(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);
	struct sp_event ev = held_event("7", "inflight", 0, START + 1);
	struct read_back b;
	struct rig_life x;

	life_init(&x, "7", 1, START);
	ev.flags = EV_AT | EV_CUT;
	ev.chunk = 1;
	ev.need = 2;
	ev.part = 3;
	ev.parts = 4;
	give(s, &x, &ev);
	ev = held_event("7", "", HELD_UNKNOWN, START + 2);
	ev.flags = EV_ORPHAN;
	give(s, &x, &ev);
	ev = held_event("7", "inflight", HELD_NO_ENTRY, START + 3);
	give(s, &x, &ev);
	ev = held_event("7", "", 0, START + 4);
	ev.role = ROLE_RELEASE;
	ev.flags = EV_INFERRED;
	give(s, &x, &ev);
	ev = make_event(ROLE_VIEW, "", START + 5);
	ev.code = 5000000000000;
	snprintf(ev.kind, sizeof(ev.kind), "ok");
	store_event(s, &ev, NULL);
	store_close(s, START + SEC);
	assert_detail(
		r, "time_ns % 10 = 1",
		"{\"op\":\"0x7f0000001000\",\"kind\":\"inflight\",\"rid\":\"req-1\",\"code\":0,"
		"\"announced\":1,\"need\":2,\"sent\":3,\"total\":4,\"at\":1,\"cut\":1}");
	assert_detail(r, "time_ns % 10 = 2",
		      "{\"op\":\"0x7f0000001000\",\"rid\":\"req-1\",\"orphan\":1}");
	assert_detail(
		r, "time_ns % 10 = 3",
		"{\"op\":\"0x7f0000001000\",\"kind\":\"inflight\",\"rid\":\"req-1\",\"code\":-1}");
	assert_detail(r, "time_ns % 10 = 4",
		      "{\"op\":\"0x7f0000001000\",\"rid\":\"req-1\",\"inferred\":1}");
	assert_detail(r, "role = 'view'", "{\"kind\":\"ok\",\"code\":5000000000000}");
	b = rig_read(r);
	assert_int_equal(b.nev, 5);
	assert_true(b.ev[1].code == HELD_UNKNOWN && b.ev[2].code == HELD_NO_ENTRY);
	assert_int_equal(b.ev[0].flags, EV_AT | EV_CUT);
	assert_int_equal(b.ev[3].flags, EV_INFERRED);
	back_free(&b);
}

static void some_loose(struct store *s)
{
	struct rig_life x;

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	loose(s, ROLE_THREAD, "at", "7", START + 2);
	loose(s, ROLE_THREAD, "at", "8", START + 3);
	loose(s, ROLE_THREAD, "at", "", START + 4);
	loose(s, ROLE_THREAD, "missing", "", START + 5);
	loose(s, ROLE_THREAD, "", "", START + 6);
	loose(s, ROLE_VIEW, "ok", "", START + 7);
	loose(s, ROLE_VIEW, "unstable", "", START + 8);
	loose(s, ROLE_VIEW, "lost", "", START + 9);
	life_over(s, &x, OUTCOME_FAILED, START + 10);
	store_close(s, START + SEC);
}

/* Of the threads only what concerns this room, of the looks only what went wrong. */
static void test_timeline_of_a_life(void **state)
{
	static const uint64_t want[] = {1, 2, 5, 6, 8, 9};
	struct rig *r = *state;
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};

	some_loose(rig_store(r, true));
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, "7", 0, 0, back_life, &b, &err), 0);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(b.ev[i].ns - START, want[i]);
	rec_close(rec);
	back_free(&b);
}

/* Where only unhealthy lives are kept, a worker's place is when it lasts: it comes all the time. */
static void test_loose_kept(void **state)
{
	static const uint64_t want[] = {1, 2, 4, 5, 6, 7, 8, 9};
	struct rig *r = *state;
	struct read_back b;

	some_loose(rig_store(r, false));
	b = rig_read(r);
	assert_int_equal(b.nev, 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(b.ev[i].ns - START, want[i]);
	back_free(&b);
}

/* ---- lives that come again ------------------------------------------------------------------ */

static void reopen(struct rig_life *x, uint64_t ns)
{
	x->l.ended_ns = 0;
	x->l.outcome = OUTCOME_NONE;
	x->l.stage = STAGE_INFLIGHT;
	x->l.last_ns = ns;
}

/* flush: the end has been written when it comes again; else it is still in memory. */
static void comes_again(struct rig *r, bool flush)
{
	struct store *s = rig_store(r, false);
	struct read_back b;
	struct rig_life x;

	life_init(&x, "7", 2, START);
	x.l.id = 77;
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	x.l.stage = STAGE_INFLIGHT;
	life_event(s, &x, ROLE_POST, START + 2);
	one_life(s, "other", 3, OUTCOME_FAILED, START + 3);
	life_over(s, &x, OUTCOME_FAILED, START + 10);
	if (flush) {
		rig_flush(s, START + 20);
		assert_string_equal(rig_sql(r, "SELECT outcome FROM rooms WHERE room = '7'"),
				    "failed");
	}
	one_life(s, "third", 3, OUTCOME_FAILED, START + 21);
	reopen(&x, START + 30);
	store_life_changed(s, &x.l);
	rig_flush(s, START + 31);
	assert_string_equal(rig_sql(r, "SELECT count(*) || stage || typeof(ended_ns) || "
				       "typeof(outcome) FROM rooms WHERE room = '7'"),
			    "1inflightnullnull");
	life_event(s, &x, ROLE_HELD, START + 40);
	life_over(s, &x, OUTCOME_DONE, START + 50);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nlives, 3);
	assert_string_equal(b.life[0].room, "7");
	assert_true(b.life[0].opened_ns == START && b.life[0].ended_ns == START + 50);
	assert_int_equal(b.life[0].outcome, OUTCOME_DONE);
	assert_true(b.life[0].stage_at[STAGE_BOOTSTRAP] == START &&
		    b.life[0].stage_at[STAGE_INFLIGHT] == START + 2);
	/* its events before and after are its own, and stay: that it came back is no usual life */
	assert_true(b.life[0].full);
	assert_int_equal(b.nev, 3 + 6);
	assert_true(b.life_no[0] == 2 && b.life_no[1] == 2 && b.life_no[8] == 2);
	assert_int_equal(b.ev[8].role, ROLE_HELD);
	assert_string_equal(b.ev[8].room, "7");
	back_free(&b);
}

static void test_again_after_a_write(void **state)
{
	comes_again(*state, true);
}

static void test_again_in_memory(void **state)
{
	comes_again(*state, false);
}

/* It had ended well, and its events are gone: the row goes on, with what comes from then on. */
static void healthy_again(struct rig *r, bool flush)
{
	struct store *s = rig_store(r, false);
	struct read_back b = {0};
	struct recording *rec;
	struct sp_err err = {0};
	struct rig_life x;

	life_init(&x, "7", 1, START);
	x.l.id = 5;
	for (int i = 0; i < 5; i++)
		life_event(s, &x, ROLE_POST, START + 1);
	if (flush)
		rig_flush(s, START + 2);
	life_over(s, &x, OUTCOME_DONE, START + 10);
	if (flush)
		rig_flush(s, START + 11);
	reopen(&x, START + 30);
	store_life_changed(s, &x.l);
	life_event(s, &x, ROLE_HELD, START + 40);
	life_event(s, &x, ROLE_HELD, START + 41);
	store_close(s, START + SEC);
	rec = rig_open(r);
	assert_int_equal(rec_lives(rec, NULL, 0, 0, back_life, &b, &err), 0);
	assert_int_equal(b.nlives, 1);
	assert_true(b.life[0].full && !b.life[0].ended_ns);
	assert_int_equal(rec_events(rec, &b.life[0], back_event, &b, &err), 0);
	assert_int_equal(b.nev, 2);
	assert_int_equal(b.life_no[0], 1);
	rec_close(rec);
	back_free(&b);
	assert_string_equal(rig_sql(r, "SELECT events || ' ' || (SELECT count(*) FROM event) FROM"
				       " life"),
			    "2 2");
}

static void test_healthy_again_after_a_write(void **state)
{
	healthy_again(*state, true);
}

static void test_healthy_again_in_memory(void **state)
{
	healthy_again(*state, false);
}

/* Another life that only looks like it has a row of its own; and so has one that comes too late. */
static void test_not_the_same(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x;

	life_init(&x, "7", 1, START);
	x.l.id = 1;
	life_event(s, &x, ROLE_POST, START + 1);
	life_over(s, &x, OUTCOME_FAILED, START + 2);
	reopen(&x, START + 3);
	x.l.id = 2;
	x.l.opened_ns = START + 3;
	life_event(s, &x, ROLE_POST, START + 3);
	life_over(s, &x, OUTCOME_FAILED, START + 4);
	one_life(s, "8", 1, OUTCOME_FAILED, START + 700 * SEC); /* the clock goes on */
	reopen(&x, START + 700 * SEC);
	store_life_changed(s, &x.l);
	store_close(s, START + 701 * SEC);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM life WHERE room = '7'"), "3");
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_detail),
		WITH_RIG(test_timeline_of_a_life),
		WITH_RIG(test_loose_kept),
		WITH_RIG(test_again_after_a_write),
		WITH_RIG(test_again_in_memory),
		WITH_RIG(test_healthy_again_after_a_write),
		WITH_RIG(test_healthy_again_in_memory),
		WITH_RIG(test_not_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
