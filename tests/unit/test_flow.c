// SPDX-License-Identifier: Apache-2.0
/* What registers may hold, in small pieces of code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "attach/flow.h"
#include "util/cleanup.h"

#define BASE  0x10000
#define X_RSI 6
#define X_RDI 7

static int values(enum insn_machine m, const void *code, size_t len, uint64_t at, uint8_t reg,
		  struct flow_value *v, int max)
{
	struct insn_part part = {BASE, code, len};
	struct flow *f = flow_open(m, &part);
	int i, n;

	assert_non_null(f);
	i = flow_step_at(f, BASE + at);
	assert_true(i >= 0);
	n = flow_values(f, i, reg, v, max);
	flow_close(f);
	return n;
}

static bool holds(const struct flow_value *v, int n, enum flow_kind kind, uint8_t reg, int64_t off)
{
	for (int i = 0; i < n; i++)
		if (v[i].kind == kind && v[i].reg == reg && v[i].off == off)
			return true;
	return false;
}

static void test_x86_ways(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x1d, 0xf9, 0x0f, 0x00, 0x00, /* 0: lea 0xff9(%rip),%rbx = 0x11000 */
		0x48, 0x8d, 0x35, 0xf2, 0x1f, 0x00, 0x00, /* 7: lea 0x1ff2(%rip),%rsi = 0x12000 */
		0x85, 0xff,                               /* e: test %edi,%edi */
		0x74, 0x08,                               /* 10: je 1a */
		0xe8, 0xe9, 0xff, 0x00, 0x00,             /* 12: call 0x20000 */
		0x48, 0x89, 0xde,                         /* 17: mov %rbx,%rsi */
		0xe8, 0xe1, 0xff, 0x00, 0x00,             /* 1a: call 0x20000 */
		0xc3,                                     /* 1f: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_X86_64, code, sizeof(code), 0x1a, X_RSI, v, 8);

	assert_int_equal(n, 2); /* one by each way; rbx outlives the call between */
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x1000));
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x2000));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x17, X_RSI, v, 8);
	assert_int_equal(n, 1);
	assert_true(holds(v, n, FLOW_UNKNOWN, 0, 0)); /* rsi does not */
	n = values(MACHINE_X86_64, code, sizeof(code), 0x10, X_RDI, v, 8);
	assert_int_equal(n, 1);
	assert_true(holds(v, n, FLOW_ENTRY, X_RDI, 0));
}

static void test_x86_forms(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x83, 0xec, 0x18, /* 0: sub $0x18,%rsp */
		0x48, 0x8d, 0x05, 0xf5, 0x0f,
		0x00, 0x00,                   /* 4: lea 0xff5(%rip),%rax = 0x11000 */
		0x48, 0x83, 0xc0, 0x10,       /* b: add $0x10,%rax */
		0x48, 0x89, 0x44, 0x24, 0x08, /* f: mov %rax,8(%rsp) */
		0x31, 0xc0,                   /* 14: xor %eax,%eax */
		0x48, 0x8b, 0x74, 0x24, 0x08, /* 16: mov 8(%rsp),%rsi */
		0x48, 0x0f, 0x44, 0xf0,       /* 1b: cmove %rax,%rsi */
		0x48, 0x8b, 0x57, 0x28,       /* 1f: mov 0x28(%rdi),%rdx */
		0x48, 0x8b, 0x0d, 0xd6, 0x1f,
		0x00, 0x00,       /* 23: mov 0x1fd6(%rip),%rcx = (0x12000) */
		0x4c, 0x8b, 0x02, /* 2a: mov (%rdx),%r8 */
		0xc3,             /* 2d: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, X_RSI, v, 8);

	assert_int_equal(n, 2); /* through the stack; or the zero of the conditional move */
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 0x1010));
	assert_true(holds(v, n, FLOW_CONST, 0, 0));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 2, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_LOAD_ENTRY, X_RDI, 0x28));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 1, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_LOAD_CONST, 0, BASE + 0x2000));
	n = values(MACHINE_X86_64, code, sizeof(code), 0x2d, 8, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0)); /* a pointer's pointer */
}

/* As gcc makes the calls of libmthca: the table's base spilled over a call, and offset after it. */
static void test_arm64(void **state)
{
	static const uint32_t code[] = {
		0xd10083ff, /* 0: sub sp, sp, #32 */
		0xaa0003f3, /* 4: mov x19, x0 */
		0x90000001, /* 8: adrp x1, 0x10000 */
		0x910dc021, /* c: add x1, x1, #880 */
		0xf90007e1, /* 10: str x1, [sp, #8] */
		0x94003ffb, /* 14: bl 0x20000 */
		0xf940ba60, /* 18: ldr x0, [x19, #368] */
		0xf94007e1, /* 1c: ldr x1, [sp, #8] */
		0x34000060, /* 20: cbz w0, 2c */
		0x91174021, /* 24: add x1, x1, #1488 */
		0x14000002, /* 28: b 30 */
		0x910ba021, /* 2c: add x1, x1, #744 */
		0xaa1303e0, /* 30: mov x0, x19 */
		0x94003ff3, /* 34: bl 0x20000 */
		0xf90007ff, /* 38: str xzr, [sp, #8] */
		0xf94007e2, /* 3c: ldr x2, [sp, #8] */
		0xd65f03c0, /* 40: ret */
	};
	struct flow_value v[8];
	int n = values(MACHINE_ARM64, code, sizeof(code), 0x34, 1, v, 8);

	assert_int_equal(n, 2);
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 880 + 1488));
	assert_true(holds(v, n, FLOW_CONST, 0, BASE + 880 + 744));
	n = values(MACHINE_ARM64, code, sizeof(code), 0x34, 0, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_ENTRY, 0, 0));
	n = values(MACHINE_ARM64, code, sizeof(code), 0x40, 2, v, 8);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0)); /* the word was overwritten */
}

/* A number at the end of its range, and what is added to it, wraps as in the machine. */
static void test_wraps(void **state)
{
	static const uint8_t code[] = {
		0x48, 0xbe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, /* movabs max, %rsi */
		0x48, 0x83, 0xc6, 0x01,                                     /* add $1, %rsi */
		0xc3,
	};
	struct flow_value v[2];
	int n = values(MACHINE_X86_64, code, sizeof(code), 14, 6, v, 2);

	assert_true(n == 1 && holds(v, n, FLOW_CONST, 0, INT64_MIN));
}

/* A loop that adds, walked from each of its steps: the work is bounded, and then all is unknown. */
static void test_bounded(void **state)
{
	enum { ADDS = 2000 };
	static const int32_t back = -(4 * ADDS + 5);
	static uint8_t code[ADDS * 4 + 6];
	struct insn_part part = {BASE, code, sizeof(code)};
	struct flow_value v[4];
	struct flow *f;
	int n = 0;

	for (int i = 0; i < ADDS; i++)
		memcpy(code + 4 * i, "\x48\x83\xc6\x01", 4); /* add $1, %rsi */
	code[4 * ADDS] = 0xe9;                               /* jmp to the start */
	memcpy(code + 4 * ADDS + 1, &back, sizeof(back));
	code[4 * ADDS + 5] = 0xc3;
	f = flow_open(MACHINE_X86_64, &part);
	assert_non_null(f);
	for (int i = 0; i < ADDS; i++)
		n = flow_values(f, i, 6, v, 4);
	assert_true(n == 1 && holds(v, n, FLOW_UNKNOWN, 0, 0));
	flow_close(f);
}

/* Random bytes: no crash, no endless walk. */
static void test_garbage(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	uint32_t code[256];
	struct flow_value v[4];

	for (int round = 0; round < 400; round++) {
		enum insn_machine m = round % 2 ? MACHINE_ARM64 : MACHINE_X86_64;
		struct insn_part part = {BASE, (uint8_t *)code, sizeof(code)};
		struct flow *f;

		for (size_t i = 0; i < ARRAY_SIZE(code); i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			code[i] = (uint32_t)(seed >> 32);
			if (i % 3 == 0) /* jumps to near places */
				code[i] = m == MACHINE_ARM64 ? 0x54000000 | (code[i] & 0x7f) << 5
							     : 0x9090ffeb - (code[i] & 0x3f00);
		}
		f = flow_open(m, &part);
		for (int i = 0; f && i < flow_steps(f); i += 7)
			assert_in_range(flow_values(f, i, (uint8_t)(i % 16), v, 4), 0, 4);
		flow_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_ways), cmocka_unit_test(test_x86_forms),
		cmocka_unit_test(test_arm64),    cmocka_unit_test(test_wraps),
		cmocka_unit_test(test_bounded),  cmocka_unit_test(test_garbage),
	};

	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
