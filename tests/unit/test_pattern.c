// SPDX-License-Identifier: Apache-2.0
/* Patterns: what they capture, what they refuse, how they are printed. */
#include "pattern_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static bool match(const char *pattern, const char *text, struct captures *caps)
{
	struct pattern p;
	bool yes;

	compile(&p, pattern, true);
	caps->n = 0;
	yes = pattern_match(&p, text, strlen(text), strlen(text), caps);
	pattern_free(&p);
	return yes;
}

static void expect(const struct captures *caps, const char *name, const char *text)
{
	const struct capture *c = captures_find(caps, name);

	if (!c)
		fail_msg("no capture %s", name);
	else
		assert_string_equal(c->text, text);
}

static void expect_num(const struct captures *caps, const char *name, uint64_t num)
{
	const struct capture *c = captures_find(caps, name);

	assert_non_null(c);
	assert_true(c->is_num);
	assert_true(c->num == num);
}

static void notifications(void **state)
{
	struct captures caps;

	assert_true(match("{room}_kv_{chunk}_{last}_{rank}", "7731092_kv_2_1_0", &caps));
	assert_int_equal(caps.n, 4);
	expect_num(&caps, "room", 7731092);
	expect_num(&caps, "chunk", 2);
	expect_num(&caps, "last", 1);
	expect_num(&caps, "rank", 0);
	expect(&caps, "room", "7731092");

	/* the texts of one server are not confused with each other */
	assert_false(match("{room}_kv_{chunk}_{last}_{rank}", "77_kv_0_1_0_part_1_2", &caps));
	assert_false(match("{room}_kv_{chunk}_{last}", "77_kv_0_1_0", &caps));
	assert_false(match("{room}_kv_{chunk}_{last}_{rank}", "77_kv_0_1", &caps));
	assert_false(match("{room}_kv_{chunk}_{last}_{rank}", "77_kv_0_5_0", &caps));
	assert_false(match("{room}_aux", "77_aux_nokv_0", &caps));
	assert_false(match("{room}_state_{rank}", "77_state_0_1", &caps));
	assert_true(match("{room}_kv_{chunk}_{last}_{rank}_part_{part}_{parts}",
			  "77_kv_0_1_0_part_1_2", &caps));
	expect_num(&caps, "part", 1);
	expect_num(&caps, "parts", 2);

	/* an agent's name may hold the separator */
	assert_true(match("{room}_stg_{chunk}_{last}_{rank}_{:u64}_{:u64}_{:u64}_{agent}",
			  "9_stg_3_0_1_0_128_16_node_7_gpu_0", &caps));
	expect(&caps, "agent", "node_7_gpu_0");
	assert_int_equal(caps.n, 5);

	assert_true(
		match("{room}_kv_{chunk}_{last}_{rank}", "18446744073709551615_kv_0_0_0", &caps));
	expect_num(&caps, "room", UINT64_MAX);
	assert_false(match("{room}_aux", "18446744073709551616_aux", &caps));
	assert_false(match("{room}_aux", "_aux", &caps));
	assert_false(match("{room}_aux", "", &caps));
}

static void shapes(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool yes;
	} cases[] = {
		{"{x:u64}", "0", true},
		{"{x:u64}", "00", false},
		{"{x:u64}", "007", false},
		{"{x:u64}", "-1", false},
		{"{x:u64}", "+1", false},
		{"{x:u64}", " 1", false},
		{"{x:u64}", "1 ", false},
		{"{x:u64}", "18446744073709551615", true},
		{"{x:u64}", "18446744073709551616", false},
		{"{x:u64}", "99999999999999999999", false},
		{"{x:u64}", "100000000000000000000", false},
		{"{x:flag}", "0", true},
		{"{x:flag}", "1", true},
		{"{x:flag}", "True", true},
		{"{x:flag}", "False", true},
		{"{x:flag}", "true", false},
		{"{x:flag}", "2", false},
		{"{x:flag}", "10", false},
		{"{x:flag}_", "True_", true},
		{"{x:ip}", "10.0.0.7", true},
		{"{x:ip}", "255.255.255.255", true},
		{"{x:ip}", "256.0.0.1", false},
		{"{x:ip}", "10.0.0", false},
		{"{x:ip}", "10.0.0.7.8", false},
		{"{x:ip}", "10.0.0.", false},
		{"{x:ip}", "10..0.7", false},
		{"{x:ip}", "010.0.0.7", false},
		{"{x:ip}", "::1", true},
		{"{x:ip}", "fe80::1%eth0", true},
		{"{x:ip}", "fe80::1%", false},
		{"{x:ip}", "2001:db8::10.0.0.1", true},
		{"{x:ip}", "ABORT", false},
		{"{x:ip}", "1", false},
		{"{x:ip}", "a:b", false},
		{"{x:ip}", "", false},
		{"{x:token}", "a", true},
		{"{x:token}", "", false},
		{"{x:token}", "a b", false},
		{"{x:token}", "a\n", false},
		{"{x:token}", "\x7f", false},
		{"{x:token}",
		 "n\xc3\xb6"
		 "de",
		 true},
		{"{x}", "anything-goes:1", true},
		{"", "", true},
		{"", "x", false},
		{"abc", "abc", true},
		{"abc", "abcd", false},
		{"abc", "ab", false},
		{"a{{b}}", "a{b}", true},
		{"{{{x}}}", "{1}", true},
		{"*", "", true},
		{"*", "anything at all", true},
		{"**", "x", false},
		{"**", "**", true},
		{"{ip:ip}:{port:u64}", "10.0.0.7:41231", true},
		{"{ip:ip}:{port:u64}", "2001:db8::1:41231", true},
		{"{ip:ip}:{port:u64}", "10.0.0.7", false},
		{"{a:u64}1", "1", false},
		{"{a:u64}1", "11", true},
		{"{a:u64}1", "111", true},
		{"{a}_{b}", "x_y", true},
		{"{a}_{b}", "_y", false},
		{"{a}_{b}", "x_", false},
		{"{a}_{b}", "__x", true},
		{"{a}_end", "a_end_end", true},
		{"{a}_{n:u64}", "a_b_7", true},
		{"{a}_{n:u64}_z", "a_1_2_z", true},
	};
	struct captures caps;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (match(cases[i].pattern, cases[i].text, &caps) != cases[i].yes)
			fail_msg("\"%s\" on \"%s\"", cases[i].pattern, cases[i].text);
}

static void values(void **state)
{
	struct captures caps;

	assert_true(match("{ip:ip}:{port:u64}", "2001:db8::1:41231", &caps));
	expect(&caps, "ip", "2001:db8::1");
	expect_num(&caps, "port", 41231);
	assert_true(match("{a}_end", "a_end_end", &caps));
	expect(&caps, "a", "a_end");
	assert_true(match("{a}_{b}", "x_y_z", &caps)); /* as short as lets the rest match */
	expect(&caps, "a", "x");
	expect(&caps, "b", "y_z");
	assert_true(match("{last}", "True", &caps));
	expect_num(&caps, "last", 1);
	expect(&caps, "last", "True");
	assert_true(match("{last}", "False", &caps));
	expect_num(&caps, "last", 0);
	assert_true(match("{}_{x:u64}", "skipped_7", &caps));
	assert_int_equal(caps.n, 1);
	assert_null(captures_find(&caps, ""));
	assert_null(captures_find(&caps, "y"));
	assert_true(match("{x}", "123", &caps));
	assert_false(caps.cap[0].is_num); /* a token stays a text */
}

static void rooms_of_strings(void **state)
{
	struct captures caps = {.n = 0};
	struct pattern p;
	const char *text = "cmpl-8f:3:2";

	compile(&p, "{room}:{need}", false);
	assert_true(pattern_match(&p, text, strlen(text), strlen(text), &caps));
	expect(&caps, "room", "cmpl-8f:3");
	expect_num(&caps, "need", 2);
	pattern_free(&p);
}

static void cut_texts(void **state)
{
	struct captures caps = {.n = 0};
	struct pattern p;

	compile(&p, "{n:len}", true);
	assert_true(pattern_match(&p, "", 0, 4096, &caps));
	expect_num(&caps, "n", 4096);
	expect(&caps, "n", "4096");
	pattern_free(&p);

	caps.n = 0;
	compile(&p, "{x:u64}", true);
	assert_false(pattern_match(&p, "123", 3, 4, &caps)); /* what number is it? */
	assert_int_equal(caps.n, 0);
	pattern_free(&p);

	compile(&p, "{x:u64}_{agent}", true);
	assert_true(pattern_match(&p, "7_abc", 5, 90, &caps));
	expect(&caps, "agent", "abc");
	pattern_free(&p);

	compile(&p, "*", true);
	assert_true(pattern_match(&p, NULL, 0, 90, &caps));
	pattern_free(&p);
	compile(&p, "", true);
	assert_false(pattern_match(&p, "", 0, 90, &caps));
	pattern_free(&p);
}

static void appending(void **state)
{
	struct captures caps = {.n = CAP_MAX - 1};
	char text[200];
	struct pattern p;

	compile(&p, "{a:u64}-{b:u64}", true);
	assert_false(pattern_match(&p, "1-2", 3, 3, &caps)); /* no room for both: none */
	assert_int_equal(caps.n, CAP_MAX - 1);
	caps.n = CAP_MAX - 2;
	assert_true(pattern_match(&p, "1-2", 3, 3, &caps));
	assert_int_equal(caps.n, CAP_MAX);
	caps.n = 2;
	assert_false(pattern_match(&p, "1-x", 3, 3, &caps));
	assert_int_equal(caps.n, 2);
	assert_true(pattern_match(&p, "1-2", 3, 3, NULL));
	pattern_free(&p);

	compile(&p, "{a}", true);
	memset(text, 'x', sizeof(text));
	caps.n = 0;
	assert_true(pattern_match(&p, text, sizeof(text), sizeof(text), &caps));
	assert_int_equal(strlen(caps.cap[0].text), CAP_VALUE_MAX - 1);
	pattern_free(&p);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"{room", "has no \"}\""},
		{"{", "has no \"}\""},
		{"{a{b}", "has no \"}\""},
		{"room}", "without \"{\""},
		{"{a}{b}", "side by side"},
		{"{a}{{{b}}}{c}{d}", "side by side"},
		{"{a:u65}", "unknown shape \"u65\""},
		{"{a:}", "unknown shape"},
		{"{a b}", "not a capture's name"},
		{"{1a}", "not a capture's name"},
		{"{abcdefghijklmnopqrstuvwxyz}", "not a capture's name"},
		{"{n:len}x", "whole frame"},
		{"x{n:len}", "whole frame"},
		{"{a}1{b}2{c}3{d}4{e}5{f}6{g}7{h}8{i}", "more than 16"},
	};
	struct pattern p;
	char why[200];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (pattern_compile(&p, cases[i].text, true, why, sizeof(why)) != -EINVAL)
			fail_msg("%s was taken", cases[i].text);
		if (!strstr(why, cases[i].words))
			fail_msg("%s: \"%s\" lacks \"%s\"", cases[i].text, why, cases[i].words);
		assert_int_equal(p.nparts, 0);
	}
}

static void printed(void **state)
{
	static const struct {
		const char *text, *printed;
	} cases[] = {
		{"{room}_kv_{last}", "{room:u64}_kv_{last:flag}"},
		{"*", "*"},
		{"", "(empty)"},
		{"{{x}}{}", "{{x}}{:token}"},
	};
	struct pattern p;
	char buf[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		compile(&p, cases[i].text, true);
		pattern_print(&p, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].printed);
		pattern_free(&p);
	}
}

/* Texts made to be searched for long are decided in bounded time. */
static void no_blow_up(void **state)
{
	struct captures caps = {.n = 0};
	struct timespec a, b;
	struct pattern p;
	char text[512];

	compile(&p, "{a}_{b}_{c}_{d}_{e}_{f}_{g}_{h:u64}", true);
	memset(text, '_', sizeof(text));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	for (int i = 0; i < 100; i++)
		assert_false(pattern_match(&p, text, sizeof(text), sizeof(text), &caps));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	/* backtracking over eight captures would take longer than the universe has */
	assert_true(b.tv_sec - a.tv_sec < 10);
	pattern_free(&p);
}

/* Longer than a value's text: whole, where it was found. Cut: said so. */
static void long_tokens(void **state)
{
	struct captures caps = {.n = 0};
	char text[CAP_VALUE_MAX + 20];
	const struct capture *c;
	struct pattern p;

	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(text) - 3, ":12", 3);
	compile(&p, "{room}:{rank}", false);
	assert_true(pattern_match(&p, text, sizeof(text), sizeof(text), &caps));
	c = captures_find(&caps, "room");
	assert_non_null(c);
	assert_ptr_equal(c->raw, text);
	assert_int_equal(c->raw_len, sizeof(text) - 3);
	assert_int_equal(strlen(c->text), CAP_VALUE_MAX - 1);
	assert_false(c->cut || c->is_num);
	pattern_free(&p);

	compile(&p, "x{}x{room}", false);
	for (size_t more = 0; more < 2; more++) {
		caps.n = 0;
		assert_true(pattern_match(&p, text, 20, 20 + more, &caps));
		c = captures_find(&caps, "room");
		assert_null(c->raw);
		assert_int_equal(c->cut, more);
	}
	pattern_free(&p);
}

static void may_match(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool may;
	} rows[] = {
		{"{id}:{:u64}", "chatcmpl-___prefill_addr_10.0.0.1:20001___deco", true},
		{"{id}:{:u64}", "chatcmpl 1", false},
		{"{id}:{:u64}", "chatcmpl:1", true},
		{"HB:{}", "H", true},
		{"HB:{}", "HB:", true},
		{"HB:{}", "HB:12,13", true},
		{"HB:{}", "cmpl-1:12", false},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "77_k", true},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "77_kv_12", true},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "77_kv_0_Tru", true},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "77_kv_0_True_9", true},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "77_state_0", false},
		{"{room:u64}_kv_{chunk}_{last}_{rank}", "agent-4f0d2a31e8ab", false},
		{"{room:u64}_aux", "77_aux", true},
		{"{room:u64}_aux", "77_aux_", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct pattern p;

		compile(&p, rows[i].pattern, true);
		if (pattern_may_match(&p, rows[i].text, strlen(rows[i].text)) != rows[i].may)
			fail_msg("%s: %s", rows[i].pattern, rows[i].text);
		pattern_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notifications), cmocka_unit_test(shapes),
		cmocka_unit_test(values),        cmocka_unit_test(rooms_of_strings),
		cmocka_unit_test(cut_texts),     cmocka_unit_test(appending),
		cmocka_unit_test(refused),       cmocka_unit_test(printed),
		cmocka_unit_test(no_blow_up),    cmocka_unit_test(long_tokens),
		cmocka_unit_test(may_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
