// SPDX-License-Identifier: Apache-2.0
/* How many unstable looks it takes until the model judges without the server's own view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "python/patience.h"
#include "util/clock.h"

/* Looks every `every` ms until it is given up; the number of them. */
static unsigned looks(struct patience *p, uint64_t *ns, unsigned every)
{
	unsigned n = 1;

	while (!patience_unstable(p, *ns)) {
		*ns += every * NS_PER_MS;
		assert_true(++n < 1000);
	}
	*ns += every * NS_PER_MS;
	return n;
}

/* A deadline waits: a look every 51 ms, and two seconds of them. */
static void test_asked(void **state)
{
	struct patience p = {0};
	uint64_t ns = 7 * NS_PER_SEC, began = ns;

	(void)state;
	assert_int_equal(looks(&p, &ns, 51), 41);
	assert_true(ns - began > PATIENCE_NS);
}

/* Nobody waits: so many of them. */
static void test_unasked(void **state)
{
	struct patience p = {0};
	uint64_t ns = NS_PER_SEC;

	(void)state;
	assert_int_equal(looks(&p, &ns, 500), PATIENCE_ROUNDS);
}

/* One good look, and it begins anew. */
static void test_good_between(void **state)
{
	struct patience p = {0};
	uint64_t ns = NS_PER_SEC;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 40; k++, ns += 51 * NS_PER_MS)
			assert_false(patience_unstable(&p, ns));
		patience_ok(&p);
	}
	assert_int_equal(looks(&p, &ns, 51), 41);
}

/* A server that cannot be read keeps each later deadline for a fifth of a second only. */
static void test_used_up(void **state)
{
	struct patience p = {0};
	uint64_t ns = NS_PER_SEC;

	(void)state;
	looks(&p, &ns, 51);
	assert_int_equal(looks(&p, &ns, 51), PATIENCE_ROUNDS_LEFT);
	assert_int_equal(looks(&p, &ns, 51), PATIENCE_ROUNDS_LEFT);
	patience_ok(&p);
	assert_int_equal(looks(&p, &ns, 51), 41);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_good_between),
		cmocka_unit_test(test_used_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
