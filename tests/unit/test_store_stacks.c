// SPDX-License-Identifier: Apache-2.0
/* The recording of stacks: those of the newest alert, bounded, as long as their life. */
#include "store_view_rig.h"

static void test_stacks(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	struct rig_life x, y;

	life_init(&x, "7", 1, START);
	life_init(&y, "8", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	give_stack(s, &x, START + 10, 5, "a.py:1 get");
	give_stack(s, &x, START + 10, 6, "b.py:2 \"put\"");
	give_stack(s, &y, START + 10, 5, "a.py:1 get"); /* the life's first sign */
	rig_flush(s, START + 20);
	assert_string_equal(read_stacks(r, "7").text,
			    "10 4242 5 worker: a.py:1 get loop.py:40 event\xff_loop; "
			    "10 4242 6 worker: b.py:2 \"put\" loop.py:40 event\xff_loop; ");
	/* another alert of that moment, of one thread more */
	give_stack(s, &x, START + 10, 6, "b.py:2 \"put\"");
	give_stack(s, &x, START + 10, 9, "f.py:9 run");
	rig_flush(s, START + 25);
	assert_string_equal(read_stacks(r, "7").text,
			    "10 4242 5 worker: a.py:1 get loop.py:40 event\xff_loop; "
			    "10 4242 6 worker: b.py:2 \"put\" loop.py:40 event\xff_loop; "
			    "10 4242 9 worker: f.py:9 run loop.py:40 event\xff_loop; ");
	/* the newest alert's, and nothing of the one before */
	give_stack(s, &x, START + 30, 7, "c.py:3 f");
	give_stack(s, &x, START + 25, 8, "d.py:4 late");
	x.l.ever_stuck = true;
	rig_flush(s, START + 40);
	assert_string_equal(read_stacks(r, "7").text,
			    "30 4242 7 worker: c.py:3 f loop.py:40 event\xff_loop; ");
	assert_int_equal(read_stacks(r, "8").n, 1);
	life_over(s, &x, OUTCOME_DONE, START + 50);
	give_stack(s, &x, START + 60, 7, "e.py:5 after its end");
	store_close(s, START + SEC);
	assert_string_equal(read_stacks(r, "7").text,
			    "30 4242 7 worker: c.py:3 f loop.py:40 event\xff_loop; ");
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM life"), "2");
}

/* Two moments in one batch, and more threads and lines than are kept. */
static void test_stacks_bounded(void **state)
{
	struct rig *r = *state;
	struct store *s = rig_store(r, false);
	char text[] = "deep.py:1 f";
	char *line[200];
	struct rig_life x;
	struct stacks st;

	life_init(&x, "7", 1, START);
	life_event(s, &x, ROLE_ANNOUNCE, START + 1);
	for (int i = 0; i < 200; i++)
		line[i] = text;
	for (uint32_t i = 0; i < 40; i++)
		store_stack(s, &x.l, START + 10, 4242, i, "", line, 200);
	for (uint32_t i = 100; i < 140; i++)
		store_stack(s, &x.l, START + 11, 4242, i, "", line, 200);
	store_close(s, START + SEC);
	st = read_stacks(r, "7");
	assert_int_equal(st.n, STACKS_MAX);
	assert_int_equal(st.lines, STACK_LINES_MAX);
	assert_int_equal(strncmp(st.text, "11 4242 100 :", 13), 0);
	assert_string_equal(rig_sql(r, "SELECT count(*) FROM stack"), "16");
}

/* --keep-mb takes them with the timeline that they belong to. */
static void test_stacks_go_with_the_timeline(void **state)
{
	struct rig *r = *state;
	struct store_cfg cfg = rig_cfg(r, false);
	struct sp_err err = {0};
	struct store *s;
	char text[] = "a/long/name/of/a/file/that/takes/some/space.py:12345 function";
	char *line[STACK_LINES_MAX];

	for (int i = 0; i < STACK_LINES_MAX; i++)
		line[i] = text;
	cfg.keep_bytes = 1 << 20;
	assert_int_equal(store_open(&cfg, &s, &err), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		uint64_t ns = START + i * MS;
		struct rig_life x;
		char room[16];

		snprintf(room, sizeof(room), "%u", i);
		life_init(&x, room, 1, ns);
		life_event(s, &x, ROLE_ANNOUNCE, ns);
		x.l.ever_stuck = true;
		store_stack(s, &x.l, ns, 4242, 1, "t", line, STACK_LINES_MAX);
		life_over(s, &x, OUTCOME_FAILED, ns);
		if (i % 100 == 99)
			rig_flush(s, ns);
	}
	store_close(s, START + 10 * SEC);
	assert_string_equal(rig_sql(r,
				    "SELECT count(*) FROM stack s WHERE NOT EXISTS (SELECT 1 FROM"
				    " life l WHERE l.id = s.life AND l.kept)"),
			    "0");
	assert_true(atoi(rig_sql(r, "SELECT count(*) FROM stack")) > 10);
	assert_true(atoi(rig_sql(r, "SELECT count(*) FROM stack")) < 300);
}

int main(void)
{
#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_stacks),
		WITH_RIG(test_stacks_bounded),
		WITH_RIG(test_stacks_go_with_the_timeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
