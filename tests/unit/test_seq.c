// SPDX-License-Identifier: Apache-2.0
/* collect/: holes in the sequence, order of time. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "collect/collect.h"

#define SEC 1000000000ull

/* ---- seq.c ---- */

static struct seq *seq_new(void)
{
	struct seq *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->base = s->top = 1;
	return s;
}

static void test_seq_in_order(void **state)
{
	struct seq *s = seq_new();

	for (uint64_t n = 1; n < 200000; n++)
		seq_seen(s, n, n);
	assert_int_equal(seq_expire(s, 100 * SEC), 0);
	assert_int_equal(s->lost, 0);
	assert_int_equal(s->base, 200000);
	free(s);
}

static void test_seq_reordered_is_not_lost(void **state)
{
	struct seq *s = seq_new();

	for (uint64_t n = 1; n < 100000; n += 4) { /* 2 1 4 3 ... */
		seq_seen(s, n + 1, 5);
		seq_seen(s, n + 3, 5);
		seq_seen(s, n, 5);
		seq_seen(s, n + 2, 5);
	}
	assert_int_equal(seq_expire(s, 100 * SEC), 0);
	assert_int_equal(s->lost, 0);
	free(s);
}

static void test_seq_hole_is_lost_after_a_second(void **state)
{
	struct seq *s = seq_new();

	seq_seen(s, 1, SEC);
	seq_seen(s, 5, SEC); /* 2, 3, 4 are missing */
	assert_int_equal(seq_expire(s, SEC + SEC / 2), 0);
	seq_seen(s, 3, SEC + SEC / 2);                   /* late, but within the second */
	assert_int_equal(seq_expire(s, 2 * SEC + 1), 1); /* 2: the hole at the base */
	assert_int_equal(seq_expire(s, 4 * SEC), 1);     /* 4: noticed when it came to the base */
	assert_int_equal(s->lost, 2);
	seq_seen(s, 2, 5 * SEC); /* given up: neither counted back nor seen */
	assert_int_equal(s->lost, 2);
	assert_int_equal(s->base, 6);
	free(s);
}

static void test_seq_jump_beyond_the_window(void **state)
{
	struct seq *s = seq_new();

	seq_seen(s, 1, 1);
	seq_seen(s, 1000000, 2);
	seq_expire(s, 10 * SEC);
	assert_int_equal(s->lost, 1000000 - 2);
	assert_int_equal(s->base, 1000001);
	for (uint64_t n = 1000001; n < 1100000; n++)
		seq_seen(s, n, 11 * SEC);
	assert_int_equal(seq_expire(s, 20 * SEC), 0);
	free(s);
}

static void test_seq_random_loss(void **state)
{
	struct seq *s = seq_new();
	uint64_t dropped = 0;
	unsigned int seed = 7;

	seq_seen(s, 1, 1);
	for (uint64_t n = 2; n < 300000; n++) {
		if (n < 299999 && rand_r(&seed) % 50 == 0)
			dropped++;
		else
			seq_seen(s, n, n);
	}
	for (int i = 0; i < 10000; i++)
		seq_expire(s, (uint64_t)(i + 2) * 3 * SEC);
	assert_int_equal(s->lost, dropped);
	free(s);
}

/* ---- reorder.c ---- */

static void test_reorder_sorts_and_is_stable(void **state)
{
	struct reorder *r = reorder_new();
	unsigned int seed = 3;
	struct sp_event ev;
	uint64_t last_ns = 0;
	int64_t last_code = -1;
	int got = 0;

	for (int i = 0; i < 5000; i++) {
		sp_event_init(&ev);
		ev.ns = 1 + rand_r(&seed) % 100;
		ev.code = i;
		assert_int_equal(reorder_push(r, &ev), 0);
	}
	while (reorder_pop(r, 50, &ev)) {
		assert_true(ev.ns <= 50);
		assert_true(ev.ns > last_ns || (ev.ns == last_ns && ev.code > last_code));
		last_ns = ev.ns;
		last_code = ev.code;
		got++;
	}
	assert_true(got > 2000 && got < 3000);
	assert_int_equal(reorder_count(r), 5000 - got);
	while (reorder_pop(r, UINT64_MAX, &ev)) {
		assert_true(ev.ns > 50);
		got++;
	}
	assert_int_equal(got, 5000);
	reorder_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_seq_in_order),
		cmocka_unit_test(test_seq_reordered_is_not_lost),
		cmocka_unit_test(test_seq_hole_is_lost_after_a_second),
		cmocka_unit_test(test_seq_jump_beyond_the_window),
		cmocka_unit_test(test_seq_random_loss),
		cmocka_unit_test(test_reorder_sorts_and_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
