// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

#define S 1000000000ULL

static void good(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {
		{"30s", 30 * S},
		{"500ms", 500000000},
		{"2m", 120 * S},
		{"2min", 120 * S},
		{"1h", 3600 * S},
		{"250us", 250000},
		{"7ns", 7},
		{"0s", 0},
		{"1.5s", 1500000000},
		{"0.000001h", 3600000},
		{".5s", 500000000},
		{"2.25m", 135 * S},
		{"18446744073709551615ns", UINT64_MAX},
		{"18446744073s", 18446744073 * S},
	};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ns = 1;
		if (duration_parse(cases[i].text, &ns))
			fail_msg("%s was refused", cases[i].text);
		if (ns != cases[i].ns)
			fail_msg("%s gave %" PRIu64, cases[i].text, ns);
	}
}

static void bad(void **state)
{
	static const char *const cases[] = {
		"",
		"30",
		"s",
		"30 s",
		" 30s",
		"30s ",
		"-1s",
		"+1s",
		"1e3s",
		"1.s",
		"1..5s",
		"1.2.3s",
		"0x10s",
		"30S",
		"30sec",
		"1d",
		"nan",
		"infs",
		"18446744073709551616ns",
		"18446744074s",
		"5124096h",
		"1.1234567s",
		"1,5s",
		".s",
		"١s",
	};
	uint64_t ns = 42;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (!duration_parse(cases[i], &ns))
			fail_msg("\"%s\" was taken for %" PRIu64, cases[i], ns);
		assert_int_equal(ns, 42); /* left alone on failure */
	}
}

/* Whatever is written in ns, us and ms comes back. */
static void round_trip(void **state)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", S}, {"m", 60 * S}};
	uint64_t v = 1, ns;
	char text[64];

	for (int i = 0; i < 2000; i++) {
		v = v * 6364136223846793005ULL + 1442695040888963407ULL;
		for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
			uint64_t n = v % (UINT64_MAX / units[u].ns);

			snprintf(text, sizeof(text), "%" PRIu64 "%s", n, units[u].unit);
			assert_int_equal(duration_parse(text, &ns), 0);
			assert_true(ns == n * units[u].ns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
