// SPDX-License-Identifier: Apache-2.0
/*
 * The fetch compiler, checked in two ways: programs against what they should be, and random
 * expressions run by a small interpreter of the ops against a direct evaluation.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profile/profile.h"
#include "util/cleanup.h"

static void compile(const char *expr, const char *type, uint16_t max, bool at_return,
		    struct sp_fetch *f)
{
	char why[200] = "";

	if (fetch_compile(expr, type, max, at_return, f, why, sizeof(why)))
		fail_msg("%s as %s: %s", expr, type ? type : "(none)", why);
}

static void check_op(const struct sp_op *op, int code, int n, int imm)
{
	assert_int_equal(op->code, code);
	assert_int_equal(op->n, n);
	assert_int_equal(op->imm, imm);
	assert_int_equal(op->pad, 0);
}

static void scalars(void **state)
{
	struct sp_fetch f;

	compile("$arg2", "x64", 0, false, &f);
	assert_int_equal(f.nops, 1);
	check_op(&f.op[0], SP_OP_ARG, 2, 0);
	assert_int_equal(f.type, SP_T_U64);
	assert_int_equal(f.flags, 0);

	compile("$retval", "s32", 0, true, &f);
	assert_int_equal(f.nops, 1);
	check_op(&f.op[0], SP_OP_RET, 0, 0);
	assert_int_equal(f.type, SP_T_S32);

	compile("+56($arg7):u8", NULL, 0, false, &f);
	assert_int_equal(f.nops, 1);
	check_op(&f.op[0], SP_OP_ARG, 7, 0);
	assert_int_equal(f.type, SP_T_U8);
	assert_int_equal(f.flags, SP_F_MEM);
	assert_int_equal(f.off, 56);

	compile("-8(+16(+0x20($arg1)))", "u32", 0, false, &f);
	assert_int_equal(f.nops, 3);
	check_op(&f.op[0], SP_OP_ARG, 1, 0);
	check_op(&f.op[1], SP_OP_DEREF, 0, 32);
	check_op(&f.op[2], SP_OP_DEREF, 0, 16);
	assert_int_equal(f.off, -8);
	assert_int_equal(f.flags, SP_F_MEM);

	compile("+u0(+u8($stack)):u16", "u16", 0, false, &f);
	assert_int_equal(f.nops, 2);
	check_op(&f.op[0], SP_OP_SP, 0, 0);
	check_op(&f.op[1], SP_OP_DEREF, 0, 8);

	compile("$stack3", "u64", 0, false, &f);
	check_op(&f.op[0], SP_OP_STACK, 3, 0);
	compile("$stack0", "u64", 0, false, &f);
	check_op(&f.op[0], SP_OP_STACK, 0, 0);
	compile("$stack127", "u64", 0, false, &f);
	check_op(&f.op[0], SP_OP_STACK, 127, 0);

	compile("\\42", "u8", 0, false, &f);
	check_op(&f.op[0], SP_OP_IMM, 0, 42);
	compile("\\-1:s64", NULL, 0, false, &f);
	check_op(&f.op[0], SP_OP_IMM, 0, -1);
	compile("\\0x7fffffff", "u64", 0, false, &f);
	check_op(&f.op[0], SP_OP_IMM, 0, INT32_MAX);
	compile("+4(\\4096)", "u64", 0, false, &f);
	check_op(&f.op[0], SP_OP_IMM, 0, 4096);
	assert_int_equal(f.off, 4);

	/* the most that fits: the start, five inner steps, one outermost */
	compile("+1(+2(+3(+4(+5(+6($arg10))))))", "u64", 0, false, &f);
	assert_int_equal(f.nops, SP_MAX_OPS);
	check_op(&f.op[5], SP_OP_DEREF, 0, 2);
	assert_int_equal(f.off, 1);
}

static void composites(void **state)
{
	struct sp_fetch f;

	compile("+24($arg7)", "stdstring", 128, false, &f);
	assert_int_equal(f.nops, 1);
	assert_int_equal(f.off, 24);
	assert_int_equal(f.type, SP_T_STDSTRING);
	assert_int_equal(f.max, 128);
	assert_int_equal(f.flags, 0);

	compile("+8(+16($arg1))", "zmqmsg", 0, false, &f);
	assert_int_equal(f.nops, 2);
	check_op(&f.op[1], SP_OP_DEREF, 0, 16);
	assert_int_equal(f.off, 8);
	assert_int_equal(f.max, 64);

	compile("+0($arg1):string", NULL, 1, false, &f);
	assert_int_equal(f.max, 8); /* whole words */
	compile("+0($arg1)", "bytes", 256, false, &f);
	assert_int_equal(f.max, 256);
	compile("-16($retval)", "bytes", 9, true, &f);
	assert_int_equal(f.max, 16);
	assert_int_equal(f.off, -16);
}

static void types(void **state)
{
	static const struct {
		const char *name;
		int type;
	} cases[] = {
		{"u8", SP_T_U8}, {"u16", SP_T_U16}, {"u32", SP_T_U32}, {"u64", SP_T_U64},
		{"s8", SP_T_S8}, {"s16", SP_T_S16}, {"s32", SP_T_S32}, {"s64", SP_T_S64},
		{"x8", SP_T_U8}, {"x16", SP_T_U16}, {"x32", SP_T_U32}, {"x64", SP_T_U64},
	};
	struct sp_fetch f;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char expr[32];

		compile("$arg1", cases[i].name, 0, false, &f);
		assert_int_equal(f.type, cases[i].type);
		snprintf(expr, sizeof(expr), "$arg1:%s", cases[i].name);
		compile(expr, NULL, 0, false, &f);
		assert_int_equal(f.type, cases[i].type);
		assert_string_equal(type_name(f.type, cases[i].name[0] == 'x'), cases[i].name);
	}
}

static void refused(void **state)
{
	static const struct {
		const char *expr, *type;
		int max;
		bool at_return;
		const char *words;
	} cases[] = {
		{"", "u64", 0, false, "missing"},
		{"arg1", "u64", 0, false, "not a fetch expression"},
		{"$arg0", "u64", 0, false, "$arg1 to $arg10"},
		{"$arg11", "u64", 0, false, "$arg1 to $arg10"},
		{"$arg", "u64", 0, false, "$arg1 to $arg10"},
		{"$arg1x", "u64", 0, false, "$arg1 to $arg10"},
		{"$arg99999", "u64", 0, false, "$arg1 to $arg10"},
		{"$retval", "u64", 0, false, "only at a return"},
		{"+0($retval)", "u64", 0, false, "only at a return"},
		{"$stack128", "u64", 0, false, "0 to 127"},
		{"$stackx", "u64", 0, false, "0 to 127"},
		{"$comm", "string", 8, false, "$comm is not supported"},
		{"$foo", "u64", 0, false, "unknown variable"},
		{"@main", "u64", 0, false, "@ADDRESS and @SYMBOL"},
		{"+8(@0x1234)", "u64", 0, false, "@ADDRESS and @SYMBOL"},
		{"%ax", "u64", 0, false, "registers differ"},
		{"+0(%di)", "u64", 0, false, "registers differ"},
		{"\\\"text\"", "u64", 0, false, "immediate text"},
		{"\\", "u64", 0, false, "32 bits"},
		{"\\4294967296", "u64", 0, false, "32 bits"},
		{"\\12x", "u64", 0, false, "32 bits"},
		{"+8$arg1", "u64", 0, false, "parentheses"},
		{"+8($arg1", "u64", 0, false, "parentheses"},
		{"+8($arg1))", "u64", 0, false, "$arg1"},
		{"+8(($arg1))", "u64", 0, false, "not a fetch expression"},
		{"+8()", "u64", 0, false, "missing"},
		{"+($arg1)", "u64", 0, false, "offset must be a number"},
		{"+u($arg1)", "u64", 0, false, "offset must be a number"},
		{"++8($arg1)", "u64", 0, false, "offset must be a number"},
		{"+x($arg1)", "u64", 0, false, "offset must be a number"},
		{"+8 ($arg1)", "u64", 0, false, "offset must be a number"},
		{"+4294967296($arg1)", "u64", 0, false, "offset must be a number"},
		{"+010($arg1)", "u64", 0, false, "offset must be a number"},
		{"$arg1+8", "u64", 0, false, "$arg1 to $arg10"},
		{"+0(+0(+0(+0(+0(+0(+0($arg1)))))))", "u64", 0, false, "too many steps"},
		{"+0(+0(+0(+0(+0(+0(+0(+0($arg1))))))))", "u64", 0, false, "too many steps"},
		{"$arg1", NULL, 0, false, "no type"},
		{"$arg1", "int", 0, false, "unknown type \"int\""},
		{"$arg1:", NULL, 0, false, "unknown type"},
		{"$arg1", "", 0, false, "unknown type"},
		{"$arg1:u32", "u64", 0, false, "differ"},
		{"$arg1", "b4@2/32", 0, false, "bitfields"},
		{"$arg1", "u8[4]", 0, false, "arrays"},
		{"$arg1", "ustring", 8, false, "unknown type"},
		{"$arg1", "string", 8, false, "+0($arg1)"},
		{"$arg1", "zmqmsg", 8, false, "+0($arg1)"},
		{"+0($arg1)", "bytes", 0, false, "needs max"},
		{"+0($arg1)", "bytes", 257, false, "at most 256"},
		{"+0($arg1)", "string", 65535, false, "at most 256"},
		{"+0($arg1)", "u64", 8, false, "its own size"},
	};
	struct sp_fetch f;
	char why[200];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		why[0] = '\0';
		if (fetch_compile(cases[i].expr, cases[i].type, (uint16_t)cases[i].max,
				  cases[i].at_return, &f, why, sizeof(why)) != -EINVAL)
			fail_msg("\"%s\" as %s was taken", cases[i].expr, cases[i].type);
		if (!strstr(why, cases[i].words))
			fail_msg("\"%s\": \"%s\" lacks \"%s\"", cases[i].expr, why, cases[i].words);
	}
}

static void in_words(void **state)
{
	struct sp_fetch f;
	char buf[200], small[8];

	compile("-8(+16($arg1))", "s32", 0, false, &f);
	fetch_print(&f, buf, sizeof(buf));
	assert_string_equal(buf, "arg1, pointer at +16, s32 at -8");
	compile("+24($arg7)", "stdstring", 128, false, &f);
	fetch_print(&f, buf, sizeof(buf));
	assert_string_equal(buf, "arg7, stdstring at +24, at most 128 bytes");
	compile("$retval", "s32", 0, true, &f);
	fetch_print(&f, buf, sizeof(buf));
	assert_string_equal(buf, "return value as s32");
	compile("+0(+8($stack))", "u64", 0, true, &f);
	fetch_print(&f, buf, sizeof(buf));
	assert_string_equal(buf, "stack pointer, pointer at +8, u64 at +0");
	fetch_print(&f, small, sizeof(small));
	assert_string_equal(small, "stack p");
}

/* ---- random expressions ---------------------------------------------------------------------- */

static uint64_t seed = 20261129;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

/* The target: registers and a memory in which every byte follows from its address. */
static uint64_t arg_value(int n)
{
	return 0x1000 * (uint64_t)n + 0x0102030405060000ULL;
}

static uint8_t mem_byte(uint64_t addr)
{
	return (uint8_t)((addr * 0x9e3779b97f4a7c15ULL) >> 56);
}

static uint64_t mem_word(uint64_t addr, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)mem_byte(addr + (uint64_t)i) << (8 * i);
	return v;
}

#define SP_AT  0x7ffe00001000ULL
#define RETVAL 0xfffffff6ULL

static uint64_t run_ops(const struct sp_fetch *f)
{
	uint64_t v = 0;

	for (int i = 0; i < f->nops; i++) {
		const struct sp_op *op = &f->op[i];
		uint64_t imm = (uint64_t)(int64_t)op->imm;

		switch (op->code) {
		case SP_OP_ARG:
			v = arg_value(op->n);
			break;
		case SP_OP_RET:
			v = RETVAL;
			break;
		case SP_OP_STACK:
			v = mem_word(SP_AT + 8 * (uint64_t)op->n, 8);
			break;
		case SP_OP_SP:
			v = SP_AT;
			break;
		case SP_OP_IMM:
			v = imm;
			break;
		case SP_OP_DEREF:
			v = mem_word(v + imm, 8);
			break;
		default:
			fail_msg("op %d", op->code);
		}
	}
	return v;
}

/* Writes a random expression and gives its value: what the notation means, step by step. The last
 * step is left to the caller, who knows the width. */
static uint64_t write_expression(char *out, size_t len, int depth, int64_t *outer, bool *mem)
{
	char inner[160], next[200];
	uint64_t v;
	int n;

	switch (rnd(5)) {
	case 0:
		n = 1 + (int)rnd(10);
		snprintf(inner, sizeof(inner), "$arg%d", n);
		v = arg_value(n);
		break;
	case 1:
		snprintf(inner, sizeof(inner), "$retval");
		v = RETVAL;
		break;
	case 2:
		n = (int)rnd(20);
		snprintf(inner, sizeof(inner), "$stack%d", n);
		v = mem_word(SP_AT + 8 * (uint64_t)n, 8);
		break;
	case 3:
		snprintf(inner, sizeof(inner), "$stack");
		v = SP_AT;
		break;
	default:
		n = (int)rnd(100000) - 50000;
		snprintf(inner, sizeof(inner), "\\%d", n);
		v = (uint64_t)(int64_t)n;
	}
	*mem = depth > 0;
	for (int i = 0; i < depth; i++) {
		int64_t off = (int64_t)rnd(4096) - 2048;

		snprintf(next, sizeof(next), "%s%s%" PRId64 "(%s)", off < 0 ? "-" : "+",
			 rnd(3) ? "" : "u", off < 0 ? -off : off, inner);
		snprintf(inner, sizeof(inner), "%.150s", next);
		if (i + 1 < depth)
			v = mem_word(v + (uint64_t)off, 8);
		else
			*outer = off;
	}
	snprintf(out, len, "%s", inner);
	return v;
}

static void random_expressions(void **state)
{
	static const char *const names[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "x64"};
	static const int widths[] = {1, 1, 2, 2, 4, 4, 8, 8};
	struct sp_fetch f;
	char expr[200];

	for (int i = 0; i < 20000; i++) {
		uint32_t t = rnd(ARRAY_SIZE(names));
		int64_t outer = 0;
		bool mem;
		uint64_t v = write_expression(expr, sizeof(expr), (int)rnd(SP_MAX_OPS + 1), &outer,
					      &mem);

		compile(expr, names[t], 0, true, &f);
		assert_int_equal(!!(f.flags & SP_F_MEM), mem);
		assert_int_equal(f.off, outer);
		if (run_ops(&f) != v)
			fail_msg("%s: %" PRIx64 " is not %" PRIx64, expr, run_ops(&f), v);
		if (mem)
			assert_true(mem_word(run_ops(&f) + (uint64_t)(int64_t)f.off, widths[t]) ==
				    mem_word(v + (uint64_t)outer, widths[t]));
	}
}

/* No text makes the compiler read or write where it must not (the sanitizers watch). */
static void random_texts(void **state)
{
	static const char alphabet[] = "+-u()$argstackretval0123456789\\:x@%[] \"";
	struct sp_fetch f;
	char text[48], why[64];
	int taken = 0;

	for (int i = 0; i < 50000; i++) {
		size_t n = rnd(sizeof(text));

		for (size_t k = 0; k < n; k++)
			text[k] = alphabet[rnd(sizeof(alphabet) - 1)];
		text[n] = '\0';
		why[0] = '\0';
		if (fetch_compile(text, rnd(2) ? "u64" : NULL, 0, rnd(2), &f, why, sizeof(why)))
			assert_true(why[0]);
		else
			taken++;
		assert_true(f.nops <= SP_MAX_OPS);
	}
	assert_true(taken < 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars),      cmocka_unit_test(composites),
		cmocka_unit_test(types),        cmocka_unit_test(refused),
		cmocka_unit_test(in_words),     cmocka_unit_test(random_expressions),
		cmocka_unit_test(random_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
