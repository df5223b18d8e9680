// SPDX-License-Identifier: Apache-2.0
/* Where threads are, in a recording of unhealthy lives only: what lasted is kept, and never given
 * up for so long that a replay would take a thread to be where it is not. */
#include "store_view_rig.h"

/* a quarter of the shortest deadline (10 s), at most 2 s */
#define EVERY (2 * SEC)

static void place(struct store *s, uint32_t tid, const char *room, uint64_t ns)
{
	struct sp_event ev = make_event(ROLE_THREAD, room, ns);

	snprintf(ev.kind, sizeof(ev.kind), "at");
	ev.tid = tid;
	store_event(s, &ev, NULL);
}

/* The rooms of what was kept, in order. */
static void assert_places(const struct rig *r, const char *want)
{
	struct read_back b = rig_read(r);
	char got[512] = "";

	for (size_t i = 0; i < b.nev; i++)
		if (b.ev[i].role == ROLE_THREAD && b.ev[i].kind[0])
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u:%s ",
				 b.ev[i].tid, b.ev[i].room);
	assert_string_equal(got, want);
	back_free(&b);
}

static void test_what_lasts(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);

	place(s, 1, "a", START);
	place(s, 1, "b", START + 10 * SEC);
	place(s, 1, "c", START + 10 * SEC + 300 * MS); /* a was left long ago: b stays */
	place(s, 1, "d", START + 10 * SEC + 600 * MS); /* c goes */
	place(s, 1, "e", START + 10 * SEC + 900 * MS); /* d goes, e lasts */
	place(s, 1, "", START + 60 * SEC);
	store_close(s, START + 70 * SEC);
	assert_places(r, "1:a 1:b 1:e 1: ");
}

/* However short each of them is, one in EVERY stays. */
static void test_always_busy(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct read_back b;
	uint64_t last = 0;
	int n = 0;

	for (int i = 0; i < 600; i++)
		place(s, 1, i % 2 ? "" : "a", START + (uint64_t)i * 100 * MS);
	store_close(s, START + 60 * SEC);
	b = rig_read(r);
	for (size_t i = 0; i < b.nev; i++) {
		if (b.ev[i].role != ROLE_THREAD)
			continue;
		assert_true(!last || b.ev[i].ns - last <= EVERY + 100 * MS);
		last = b.ev[i].ns;
		n++;
	}
	assert_int_equal(last, START + 599 * 100 * MS);
	assert_in_range(n, 25, 35);
	back_free(&b);
}

/* Given up after it was written, too. */
static void test_from_the_file(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);

	for (int i = 0; i < 6; i++) {
		char room[2] = {(char)('a' + i), '\0'};

		place(s, 1, room, START + 1 + (uint64_t)i * 300 * MS);
		rig_flush(s, START + 2 + (uint64_t)i * 300 * MS);
	}
	store_close(s, START + 10 * SEC);
	assert_places(r, "1:a 1:f ");
}

static void test_each_thread(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct sp_event ev;

	place(s, 1, "a", START + 1);
	place(s, 2, "b", START + 2);
	place(s, 1, "c", START + 3);
	place(s, 2, "d", START + 4);
	place(s, 1, "e", START + 5); /* c goes */
	loose(s, ROLE_THREAD, "found", "", START + 6);
	/* another one with this number comes later */
	ev = make_event(ROLE_THREAD, "", START + 7);
	ev.tid = 1;
	store_event(s, &ev, NULL);
	place(s, 1, "f", START + 8);
	place(s, 2, "g", START + 9); /* d goes */
	loose(s, ROLE_TARGET, "exited", "", START + 10);
	place(s, 2, "h", START + 11);
	store_close(s, START + SEC);
	assert_places(r, "1:a 2:b 1:e 4250: 1:f 2:g 2:h ");
}

/* What may have changed a verdict is the life's, and goes with nothing else. */
static void test_of_a_stuck_life(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x;
	struct read_back b;

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	x.l.ever_stuck = true;
	for (int i = 0; i < 4; i++) {
		struct sp_event ev = make_event(ROLE_THREAD, "7", START + 2 + (uint64_t)i);

		snprintf(ev.kind, sizeof(ev.kind), "at");
		give(s, &x, &ev);
	}
	life_over(s, &x, OUTCOME_DONE, START + 10);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 5);
	for (size_t i = 0; i < b.nev; i++) {
		assert_string_equal(b.ev[i].room, "7");
		assert_int_equal(b.life_no[i], 1);
	}
	back_free(&b);
}

/* A room that ends healthy takes nothing of it along. */
static void test_of_a_healthy_life(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x;
	struct sp_event ev = make_event(ROLE_THREAD, "7", START + 2);

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	snprintf(ev.kind, sizeof(ev.kind), "at");
	give(s, &x, &ev);
	life_over(s, &x, OUTCOME_DONE, START + 10);
	store_close(s, START + SEC);
	assert_places(r, "4250:7 ");
}

static void test_everything(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, true);

	for (int i = 0; i < 4; i++)
		place(s, 1, i % 2 ? "" : "a", START + (uint64_t)i);
	store_close(s, START + SEC);
	assert_places(r, "1:a 1: 1:a 1: ");
}

/* As many threads as a hostile process can have. */
static void test_many_threads(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct store_stats st;
	struct read_back b;

	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t tid = 1; tid <= 6000; tid++)
			place(s, tid, "a", START + round * 100 * MS + tid);
	store_stats(s, &st);
	assert_int_equal(st.lost_events, 0);
	store_close(s, START + SEC);
	b = rig_read(r);
	assert_int_equal(b.nev, 18000); /* each had been forgotten when it came again */
	back_free(&b);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_what_lasts),  TEST(test_always_busy),     TEST(test_from_the_file),
		TEST(test_each_thread), TEST(test_of_a_stuck_life), TEST(test_of_a_healthy_life),
		TEST(test_everything),  TEST(test_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
