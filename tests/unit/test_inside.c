// SPDX-License-Identifier: Apache-2.0
/* Calls under way: what /proc says of a thread, and what follows from it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attach/inside.h"

static void test_stack_pointer(void **state)
{
	static const char *const bad[] = {"",
					  "\n",
					  "0",
					  "-1",
					  "0x1 0x2",
					  "202 0x1 0x2\n",
					  "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7f00\n",
					  "what"};
	uint64_t sp = 1;

	assert_int_equal(inside_stack_pointer("running\n", &sp), -EAGAIN);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(inside_stack_pointer(bad[i], &sp), -EINVAL);
	assert_int_equal(sp, 1);
	assert_int_equal(inside_stack_pointer("202 0x55d0c8 0x80 0x0 0x0 0x0 0xffffffff "
					      "0x7ffd12345678 0x7f0000001234\n",
					      &sp),
			 0);
	assert_true(sp == 0x7ffd12345678);
	assert_int_equal(inside_stack_pointer("-1 0x7ffd00000010 0x401000\n", &sp), 0);
	assert_true(sp == 0x7ffd00000010);
}

#define ENTRY 0x7000

static void test_stack_says_it(void **state)
{
	struct inside_known k = {.has_word = true, .word_holds = true, .has_sp = true};

	k.sp = ENTRY - 8;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_YES);
	assert_int_equal(inside_judge(&k, ENTRY, false), INSIDE_YES);
	/* a leaf in a system call: on arm64 so is the caller after the return */
	k.sp = ENTRY;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_YES);
	assert_int_equal(inside_judge(&k, ENTRY, false), INSIDE_UNSURE);
	k.sp = ENTRY + 8;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_NO);
	assert_int_equal(inside_judge(&k, ENTRY, false), INSIDE_NO);
	/* the word is another's, however deep the thread is */
	k.sp = ENTRY - 800;
	k.word_holds = false;
	k.returns_by_trap = true;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_NO);
}

static void test_thread_that_runs(void **state)
{
	struct inside_known k = {0};

	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_UNSURE);
	k.returns_by_trap = true;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_UNSURE);
	k.has_word = true;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_NO);
	k.word_holds = true;
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_YES);
	k.returns_by_trap = false; /* an exception may have left it there */
	assert_int_equal(inside_judge(&k, ENTRY, true), INSIDE_UNSURE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_pointer),
		cmocka_unit_test(test_stack_says_it),
		cmocka_unit_test(test_thread_that_runs),
	};

	return cmocka_run_group_tests_name("inside", tests, NULL, NULL);
}
