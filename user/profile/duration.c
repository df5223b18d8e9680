// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "profile/profile.h"
#include "util/cleanup.h"

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {
	{"ns", 1ULL},
	{"us", 1000ULL},
	{"ms", 1000000ULL},
	{"s", 1000000000ULL},
	{"m", 60 * 1000000000ULL},
	{"min", 60 * 1000000000ULL},
	{"h", 3600 * 1000000000ULL},
};

/* Digits, at most six places after a point, and a unit: exact, unlike a double. */
int duration_parse(const char *text, uint64_t *ns)
{
	uint64_t whole = 0, frac = 0, scale = 1, sum;
	const char *p = text;
	bool point = false, digit = false;

	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		digit = true;
		if (point) {
			if (scale >= 1000000)
				return -EINVAL;
			frac = frac * 10 + (uint64_t)(*p - '0');
			scale *= 10;
		} else if (__builtin_mul_overflow(whole, 10, &whole) ||
			   __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole)) {
			return -EINVAL;
		}
	}
	if (!digit || p[-1] == '.')
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(p, units[i].name) != 0)
			continue;
		/* frac < 1e6 and ns <= 3.6e12: the product fits in 64 bits */
		if (__builtin_mul_overflow(whole, units[i].ns, &sum) ||
		    __builtin_add_overflow(sum, frac * units[i].ns / scale, &sum))
			return -EINVAL;
		*ns = sum;
		return 0;
	}
	return -EINVAL;
}
