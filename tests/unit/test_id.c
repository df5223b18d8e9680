// SPDX-License-Identifier: Apache-2.0
/* Names of ids: short ones are their own, long ones keep their beginning and differ where the ids
 * do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "event/id.h"
#include "sp_id.h"

static const char *name_of(const char *id)
{
	static char name[4][SP_ROOM_MAX];
	static int at;

	at = (at + 1) % 4;
	sp_id_name(name[at], id, strlen(id));
	return name[at];
}

#define LONG "chatcmpl-___prefill_addr_10.0.1.2:21001___decode_addr_10.0.1.3:22001_"

static void test_short(void **state)
{
	char id[SP_ROOM_MAX];

	memset(id, 'x', sizeof(id) - 1);
	for (size_t len = 0; len < sizeof(id); len++) {
		id[len] = '\0';
		assert_string_equal(name_of(id), id);
		id[len] = 'x';
	}
	assert_string_equal(name_of("7731092"), "7731092");
}

static void test_long(void **state)
{
	char same[] = LONG "8d4f0d2a31e8ab4c55a1b2c3d4e5f607-0";
	char name[SP_ROOM_MAX];

	sp_id_name(name, same, strlen(same));
	assert_int_equal(strlen(name), SP_ROOM_MAX - 1);
	assert_memory_equal(name, same, 46);
	assert_int_equal(name[46], '~');
	assert_int_equal(strspn(name + 47, "0123456789abcdef"), 16);
	assert_string_equal(name, name_of(same)); /* always */

	/* any byte makes another room, also the last, and one more or less */
	for (size_t i = 0; i < strlen(same); i++) {
		same[i]++;
		assert_string_not_equal(name_of(same), name);
		same[i]--;
	}
	same[strlen(same) - 1] = '\0';
	assert_string_not_equal(name_of(same), name);
	assert_string_not_equal(name_of(LONG "8d4f0d2a31e8ab4c55a1b2c3d4e5f607-00"), name);
}

/* What recordings hold must not change with the program's version. */
static void test_fixed(void **state)
{
	assert_string_equal(name_of(LONG "0"),
			    "chatcmpl-___prefill_addr_10.0.1.2:21001___deco~9c1a762030fa0598");
}

/* The first that does not fit. */
static void test_edge(void **state)
{
	char id[SP_ROOM_MAX + 1];

	memset(id, 'x', sizeof(id) - 1);
	id[SP_ROOM_MAX] = '\0';
	assert_int_equal(strlen(name_of(id)), SP_ROOM_MAX - 1);
	assert_int_equal(name_of(id)[46], '~');
}

/* A character is not cut in two. */
static void test_characters(void **state)
{
	char id[128];

	for (int shift = 0; shift < 4; shift++) {
		const char *name;
		size_t begin;

		memset(id, 'x', (size_t)shift);
		id[shift] = '\0';
		for (int i = 0; i < 20; i++)
			strcat(id, "\xf0\x9f\xa6\x86");
		name = name_of(id);
		begin = strcspn(name, "~");
		assert_true(begin > 42 && begin <= 46);
		assert_int_equal((begin - (size_t)shift) % 4, 0);
		assert_memory_equal(name, id, begin);
	}
}

/* Of one that was hashed as it came by: the same. */
static void test_streamed(void **state)
{
	const char *id = LONG "8d4f0d2a31e8ab4c55a1b2c3d4e5f607";
	uint64_t hash = SP_ID_START;
	char name[SP_ROOM_MAX];

	for (const char *at = id; *at; at++)
		hash = sp_id_step(hash, (uint8_t)*at);
	sp_id_name_long(name, id, hash);
	assert_string_equal(name, name_of(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short),      cmocka_unit_test(test_long),
		cmocka_unit_test(test_fixed),      cmocka_unit_test(test_edge),
		cmocka_unit_test(test_characters), cmocka_unit_test(test_streamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
