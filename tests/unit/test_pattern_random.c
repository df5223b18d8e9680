// SPDX-License-Identifier: Apache-2.0
/* Random patterns: against an oracle, and what is written is read back. */
#include "pattern_rig.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static uint64_t seed = 20261129;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static bool oracle_fits(enum pat_shape shape, const char *s, size_t n)
{
	char buf[32], again[32];
	unsigned long long v;

	if (!n || n >= sizeof(buf))
		return false;
	memcpy(buf, s, n);
	buf[n] = '\0';
	switch (shape) {
	case PAT_U64:
		if (strspn(buf, "0123456789") != n)
			return false;
		errno = 0;
		v = strtoull(buf, NULL, 10);
		snprintf(again, sizeof(again), "%llu", v);
		return !errno && !strcmp(buf, again);
	case PAT_FLAG:
		return !strcmp(buf, "0") || !strcmp(buf, "1") || !strcmp(buf, "True") ||
		       !strcmp(buf, "False");
	case PAT_TOKEN:
		return !strchr(buf, ' ');
	default:
		return false;
	}
}

/* Shortest first, all ways: exponential, and obviously right. */
static bool oracle(const struct pattern *p, int i, const char *s, size_t len, size_t end[])
{
	const struct pat_part *part = &p->part[i];

	if (i == p->nparts)
		return len == 0;
	for (size_t n = 1; n <= len; n++) {
		if (part->is_capture ? !oracle_fits(part->shape, s, n)
				     : n != part->literal_len || memcmp(s, part->literal, n) != 0)
			continue;
		end[i] = n;
		if (oracle(p, i + 1, s + n, len - n, end))
			return true;
	}
	return false;
}

static void random_pattern(char *buf, size_t len)
{
	static const char *const literals[] = {"_", "0", "1", "a", "_a", "10", "__", "True"};
	static const char *const shapes[] = {"u64", "flag", "token"};
	bool capture = rnd(2);
	int parts = 1 + (int)rnd(6);

	buf[0] = '\0';
	for (int i = 0; i < parts; i++, capture = !capture) {
		size_t at = strlen(buf);

		if (capture)
			snprintf(buf + at, len - at, "{c%d:%s}", i, shapes[rnd(3)]);
		else
			snprintf(buf + at, len - at, "%s", literals[rnd(8)]);
	}
}

static void random_text(char *buf, size_t len)
{
	static const char alphabet[] = "0011__aa ";
	size_t n = rnd((uint32_t)len), at = 0;

	while (at < n) {
		if (!rnd(12) && at + 5 < len) {
			memcpy(buf + at, "True", 4);
			at += 4;
		} else {
			buf[at++] = alphabet[rnd(sizeof(alphabet) - 1)];
		}
	}
	buf[at] = '\0';
}

static void against_oracle(void **state)
{
	char pattern[128], text[16];
	int matched = 0;

	for (int i = 0; i < 4000; i++) {
		struct pattern p;

		random_pattern(pattern, sizeof(pattern));
		compile(&p, pattern, true);
		for (int k = 0; k < 40; k++) {
			struct captures caps = {.n = 0};
			size_t end[PAT_MAX_PARTS] = {0}, at = 0;
			bool want, got;
			int c = 0;

			random_text(text, sizeof(text));
			want = oracle(&p, 0, text, strlen(text), end);
			got = pattern_match(&p, text, strlen(text), strlen(text), &caps);
			if (want != got)
				fail_msg("\"%s\" on \"%s\": %d, should be %d", pattern, text, got,
					 want);
			matched += got;
			for (int j = 0; got && j < p.nparts; at += end[j++]) {
				if (!p.part[j].is_capture)
					continue;
				if (strlen(caps.cap[c].text) != end[j] ||
				    memcmp(caps.cap[c].text, text + at, end[j]) != 0)
					fail_msg("\"%s\" on \"%s\": %s is %s", pattern, text,
						 caps.cap[c].name, caps.cap[c].text);
				c++;
			}
		}
		pattern_free(&p);
	}
	assert_true(matched > 1000); /* else the test would say nothing */
}

/* What is written out from values is read back as these values. */
static void round_trip(void **state)
{
	static const char *const separators[] = {"_", ":", "-kv-", "/", "_part_"};
	char pattern[256], text[512], value[8][24];

	for (int i = 0; i < 3000; i++) {
		struct captures caps = {.n = 0};
		int n = 1 + (int)rnd(7);
		const char *sep = separators[rnd(5)];
		struct pattern p;

		pattern[0] = text[0] = '\0';
		for (int k = 0; k < n; k++) {
			char part[40];
			bool number = rnd(2);

			if (number)
				snprintf(value[k], sizeof(value[k]), "%" PRIu64, seed >> rnd(64));
			else
				snprintf(value[k], sizeof(value[k]), "t%x", rnd(1 << 30));
			snprintf(part, sizeof(part), "%s{v%d:%s}", k ? sep : "", k,
				 number ? "u64" : "token");
			strcat(pattern, part);
			strcat(text, k ? sep : "");
			strcat(text, value[k]);
		}
		compile(&p, pattern, true);
		if (!pattern_match(&p, text, strlen(text), strlen(text), &caps))
			fail_msg("\"%s\" on \"%s\"", pattern, text);
		assert_int_equal(caps.n, n);
		for (int k = 0; k < n; k++)
			assert_string_equal(caps.cap[k].text, value[k]);
		pattern_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_oracle),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
