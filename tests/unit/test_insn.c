// SPDX-License-Identifier: Apache-2.0
/* The prologue and return decoder, for both machines on any machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "attach/insn.h"

#define BASE 0x401000

/* ---- x86-64 ---------------------------------------------------------------------------------- */

#define ENDBR    "\xf3\x0f\x1e\xfa"
#define PUSH_RBX "\x53"
#define PUSH_R12 "\x41\x54"
#define POP_RBX  "\x5b"
#define MOV_FP   "\x48\x89\xe5" /* mov %rsp,%rbp */
#define SUB_18   "\x48\x83\xec\x18"
#define MOV_A_DI "\x48\x89\xf8" /* mov %rdi,%rax: reads an argument */
#define MOV_DI_S "\x48\x89\xf7" /* mov %rsi,%rdi: changes one */
#define XOR_EDX  "\x31\xd2"     /* changes one by its lower half */
#define NOP      "\x90"
#define NOP5     "\x0f\x1f\x44\x00\x00"
#define CALL     "\xe8\x00\x01\x00\x00"
#define RET      "\xc3"
#define LEA      "\x48\x8d\x05\x00\x00\x00\x00" /* lea 0(%rip),%rax */

static struct insn_part part(const char *code, size_t len)
{
	return (struct insn_part){BASE, (const uint8_t *)code, len};
}

#define PART(code) part(code, sizeof(code) - 1)

static void x86_entry(struct insn_part p, bool whole, size_t at, unsigned shift, bool emulated,
		      const char *where)
{
	struct insn_site s;

	insn_entry(MACHINE_X86_64, &p, 1, whole, &s);
	assert_int_equal(s.addr, BASE + at);
	assert_int_equal(s.shift, shift);
	assert_int_equal(s.emulated, emulated);
	if (where)
		assert_string_equal(s.where, where);
}

static void test_x86_entry(void **state)
{
	x86_entry(PART(PUSH_RBX RET), true, 0, 0, true, "entry, push");
	x86_entry(PART(PUSH_R12 RET), true, 0, 0, true, "entry, push");
	x86_entry(PART(NOP RET), true, 0, 0, true, "entry, nop");
	x86_entry(PART(ENDBR PUSH_RBX RET), true, 4, 0, true, "entry+4, push");
	x86_entry(PART(ENDBR MOV_A_DI PUSH_RBX RET), true, 7, 0, true, "entry+7, push");
	x86_entry(PART(ENDBR "\xeb\x00" RET), true, 4, 0, true, "entry+4, jmp");
	x86_entry(PART(ENDBR "\x48\x85\xff\x74\x00" RET), true, 7, 0, true, NULL); /* test; je */
	x86_entry(PART(ENDBR LEA CALL RET), true, 11, 0, true, "entry+11, call");
	/* The five-byte nop is emulated by the newest kernels only: passed over. */
	x86_entry(PART(ENDBR NOP5 PUSH_RBX RET), true, 9, 0, true, "entry+9, push");
}

static void test_x86_entry_shift(void **state)
{
	/* push imm8 and push mem are pushes, but single-stepped ones */
	x86_entry(PART("\x6a\x01" PUSH_RBX RET), true, 2, 1, true, NULL);
	x86_entry(PART("\xff\x77\x08" PUSH_RBX RET), true, 3, 1, true, NULL);
	x86_entry(PART(SUB_18 LEA CALL RET), true, 11, 3, true, NULL);
	/* a store into the own frame, and one above it, where the stack arguments are */
	x86_entry(PART(SUB_18 "\x48\x89\x5c\x24\x10" CALL RET), true, 9, 3, true, NULL);
	x86_entry(PART(SUB_18 "\x48\x89\x5c\x24\x18" CALL RET), true, 0, 0, false, NULL);
}

static void test_x86_entry_left_alone(void **state)
{
	/* an argument is changed, or what it may point to, before an emulated instruction */
	x86_entry(PART(MOV_DI_S PUSH_RBX RET), true, 0, 0, false, NULL);
	x86_entry(PART(XOR_EDX PUSH_RBX RET), true, 0, 0, false, NULL);
	x86_entry(PART("\x48\x89\x37" PUSH_RBX RET), true, 0, 0, false, NULL); /* mov %rsi,(%rdi) */
	x86_entry(PART("\x48\x83\xe4\xf0" PUSH_RBX RET), true, 0, 0, false, NULL); /* and rsp */
	x86_entry(PART(MOV_A_DI RET), true, 0, 0, false, NULL);
	x86_entry(PART("\xff\xe0"), true, 0, 0, false, NULL); /* jmp *%rax is single-stepped */
	x86_entry(PART("\x06\x06\x06"), true, 0, 0, false, "entry"); /* no 64-bit instruction */
	/* without the symbol's size a loop back to the place could not be seen */
	x86_entry(PART(ENDBR PUSH_RBX RET), false, 0, 0, false, NULL);
}

static void test_x86_back_edge(void **state)
{
	/* endbr; 1: push; pop; jne 1b; ret: the loop passes entry+4 more than once a call */
	x86_entry(PART(ENDBR PUSH_RBX POP_RBX "\x75\xfc" RET), true, 0, 0, false, NULL);
	/* endbr; test; 1: push ...: the jump lands between entry and the place */
	x86_entry(PART(ENDBR "\x48\x85\xff" PUSH_RBX POP_RBX "\x75\xf9" RET), true, 0, 0, false,
		  NULL);
	/* a jump to behind the place does no harm */
	x86_entry(PART(ENDBR PUSH_RBX POP_RBX "\x75\xfd" RET), true, 4, 0, true, NULL);
}

static void test_x86_return_entry(void **state)
{
	struct insn_part p = PART(ENDBR PUSH_RBX POP_RBX RET);
	struct insn_site s;

	insn_return_entry(MACHINE_X86_64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE + 4);
	assert_int_equal(s.shift, 0);
	assert_true(s.emulated);
	/* Never behind a push or anything else: the word at (%rsp) is the return address only
	 * here. */
	p = PART(MOV_A_DI PUSH_RBX POP_RBX RET);
	insn_return_entry(MACHINE_X86_64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE);
	assert_false(s.emulated);
	p = PART(ENDBR MOV_A_DI PUSH_RBX POP_RBX RET);
	insn_return_entry(MACHINE_X86_64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE + 4);
	assert_false(s.emulated);
	/* a loop to behind the mark would set up a second return */
	p = PART(ENDBR PUSH_RBX POP_RBX "\x75\xfc" RET);
	insn_return_entry(MACHINE_X86_64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE);
}

static int x86_rets(const struct insn_part *p, int n, uint64_t rets[INSN_MAX_RETS])
{
	char why[INSN_WHY_LEN];
	int rc = insn_rets(MACHINE_X86_64, p, n, rets, why);

	assert_true(rc > 0 ? why[0] == 0 : why[0] != 0);
	return rc;
}

static void test_x86_rets(void **state)
{
	uint64_t rets[INSN_MAX_RETS];
	struct insn_part p[2];

	p[0] = PART(PUSH_RBX "\x74\x02" POP_RBX RET POP_RBX "\xf3\xc3\xc2\x08\x00" NOP);
	assert_int_equal(x86_rets(p, 1, rets), 3);
	assert_int_equal(rets[0], BASE + 4);
	assert_int_equal(rets[1], BASE + 6); /* rep ret */
	assert_int_equal(rets[2], BASE + 8); /* ret imm16 */
	/* 0xc3 inside another instruction is no ret: mov $0xc3c3c3c3,%eax */
	p[0] = PART("\xb8\xc3\xc3\xc3\xc3" RET);
	assert_int_equal(x86_rets(p, 1, rets), 1);
	assert_int_equal(rets[0], BASE + 5);
	/* a jump table, by its index, by notrack, by the addition before it */
	p[0] = PART("\xff\x24\xc5\x00\x10\x00\x00" RET);
	assert_int_equal(x86_rets(p, 1, rets), 1);
	p[0] = PART("\x3e\xff\xe0" RET);
	assert_int_equal(x86_rets(p, 1, rets), 1);
	p[0] = PART("\x48\x01\xd0\xff\xe0" RET);
	assert_int_equal(x86_rets(p, 1, rets), 1);
	/* the cold part is somewhere else, and jumps back */
	p[0] = PART("\x0f\x85\x00\x10\x00\x00" RET);
	p[1] = PART("\xe9\xf1\xef\xff\xff");
	p[1].addr = BASE + 6 + 0x1000;
	assert_int_equal(x86_rets(p, 2, rets), -ELOOP); /* 0x1006 + 5 - 0x100f: not inside */
	p[1] = PART("\xe9\xfb\xef\xff\xff");
	p[1].addr = BASE + 6 + 0x1000;
	assert_int_equal(x86_rets(p, 2, rets), 1);
}

static void test_x86_rets_refused(void **state)
{
	uint64_t rets[INSN_MAX_RETS];
	char many[INSN_MAX_RETS + 1];
	struct insn_part p;

	p = PART("\x0f\x85\x00\x10\x00\x00" RET); /* a branch to nowhere known */
	assert_int_equal(x86_rets(&p, 1, rets), -ELOOP);
	p = PART("\x74\x01" RET "\xe9\x00\x10\x00\x00"); /* a tail call */
	assert_int_equal(x86_rets(&p, 1, rets), -ELOOP);
	p = PART(RET "\xff\x60\x18"); /* jmp *0x18(%rax): a virtual tail call */
	assert_int_equal(x86_rets(&p, 1, rets), -ELOOP);
	p = PART(RET "\xff\xe0"); /* jmp *%rax out of the blue */
	assert_int_equal(x86_rets(&p, 1, rets), -ELOOP);
	p = PART(RET "\xff\x25\x00\x00\x00\x00"); /* jmp *got(%rip) */
	assert_int_equal(x86_rets(&p, 1, rets), -ELOOP);
	p = PART(RET "\x06");
	assert_int_equal(x86_rets(&p, 1, rets), -EILSEQ);
	p = PART(RET "\xe8\x00");
	assert_int_equal(x86_rets(&p, 1, rets), -EILSEQ); /* cut short */
	p = PART("\xeb\xfe");
	assert_int_equal(x86_rets(&p, 1, rets), -ENOENT);
	p = PART("\xcb"); /* far return */
	assert_int_equal(x86_rets(&p, 1, rets), -EOPNOTSUPP);
	memset(many, 0xc3, sizeof(many));
	p = part(many, sizeof(many));
	assert_int_equal(x86_rets(&p, 1, rets), -E2BIG);
	p.len--;
	assert_int_equal(x86_rets(&p, 1, rets), INSN_MAX_RETS);
}

static void test_leaves(void **state)
{
	struct insn_part p = PART("\x74\x03\xe9\x00\x10\x00\x00" RET);
	uint64_t target;
	bool conditional;

	assert_true(insn_leaves(MACHINE_X86_64, &p, 1, &target, &conditional));
	assert_int_equal(target, BASE + 7 + 0x1000);
	assert_false(conditional);
	p = PART("\x74\x00" RET);
	assert_false(insn_leaves(MACHINE_X86_64, &p, 1, &target, &conditional));
	p = PART("\x0f\x84\x00\x00\x00\x80"); /* 2 GiB backwards: below this image */
	assert_true(insn_leaves(MACHINE_X86_64, &p, 1, &target, &conditional));
	assert_true(conditional);
}

static void test_stub(void **state)
{
	struct insn_part p = PART(ENDBR "\xff\x25\x00\x00\x00\x00");

	assert_true(insn_is_stub(MACHINE_X86_64, &p)); /* endbr64; jmp *got(%rip) */
	p = PART(PUSH_RBX "\xff\x25\x00\x00\x00\x00");
	assert_false(insn_is_stub(MACHINE_X86_64, &p));
	p = PART(MOV_A_DI MOV_A_DI MOV_A_DI MOV_A_DI "\xff\xe0");
	assert_false(insn_is_stub(MACHINE_X86_64, &p));
	p = PART(RET "\xff\xe0");
	assert_false(insn_is_stub(MACHINE_X86_64, &p));
}

/* ---- arm64 ----------------------------------------------------------------------------------- */

enum {
	BTI_C = 0xd503245f,
	PACIASP = 0xd503233f,
	A_NOP = 0xd503201f,
	STP_FP = 0xa9be7bfd,   /* stp x29, x30, [sp, #-32]! */
	STP_D8 = 0x6dbf27e8,   /* stp d8, d9, [sp, #-16]! */
	STR_19 = 0xf81f0ff3,   /* str x19, [sp, #-16]! */
	MOV_FPSP = 0x910003fd, /* mov x29, sp */
	STP_19 = 0xa90153f3,   /* stp x19, x20, [sp, #16] */
	STR_21 = 0xf90007f5,   /* str x21, [sp, #8] */
	SUB_SP = 0xd100c3ff,   /* sub sp, sp, #48 */
	MOV_19 = 0xaa0003f3,   /* mov x19, x0 */
	MOV_0_1 = 0xaa0103e0,  /* mov x0, x1 */
	ADD_0_SP = 0x910043e0, /* add x0, sp, #16 */
	ADRP_8 = 0x90000008,
	ADRP_1 = 0x90000001,
	B_16 = 0x14000004,
	BL_64 = 0x94000010,
	BEQ_8 = 0x54000040,
	CBZ_M8 = 0xb4ffffc0,  /* cbz x0, .-8 */
	TBNZ_12 = 0x37180061, /* tbnz w1, #3, .+12 */
	A_RET = 0xd65f03c0,
	RETAA = 0xd65f0bff,
	BR_1 = 0xd61f0020,
	ADD_1 = 0x8b030041,  /* add x1, x2, x3 */
	LDR_20 = 0x580000a9, /* ldr x9, .+20 */
	LDR_0 = 0xf9400020,  /* ldr x0, [x1] */
	BRK = 0xd4200000,
};

static void arm_entry(const uint32_t *w, size_t n, size_t at, unsigned shift, bool emulated)
{
	struct insn_part p = {BASE, (const uint8_t *)w, n * 4};
	struct insn_site s;

	insn_entry(MACHINE_ARM64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE + at);
	assert_int_equal(s.shift, shift);
	assert_int_equal(s.emulated, emulated);
}

#define ARM(...) ((const uint32_t[]){__VA_ARGS__}), sizeof((const uint32_t[]){__VA_ARGS__}) / 4

static void test_arm_entry(void **state)
{
	arm_entry(ARM(ADRP_8, A_RET), 0, 0, true);
	arm_entry(ARM(BTI_C, ADRP_8, A_RET), 4, 0, true);
	arm_entry(ARM(BTI_C, BEQ_8, A_RET, A_RET), 4, 0, true);
	arm_entry(ARM(PACIASP, STP_FP, MOV_FPSP, ADRP_8, A_RET), 12, 4, true);
	arm_entry(ARM(STP_FP, STP_19, BL_64, A_RET), 8, 4, true);
	arm_entry(ARM(STP_D8, STR_19, SUB_SP, STR_21, BL_64, A_RET), 16, 2 + 2 + 6, true);
	arm_entry(ARM(MOV_19, BL_64, A_RET), 4, 0, true);
	arm_entry(ARM(A_RET), 0, 0, true);
	/* stp [sp, #16] with only two words of frame reaches into the caller's */
	arm_entry(ARM(STR_19, STP_19, BL_64, A_RET), 0, 0, false);
	/* an argument register is changed first */
	arm_entry(ARM(MOV_0_1, BL_64, A_RET), 0, 0, false);
	arm_entry(ARM(ADD_0_SP, BL_64, A_RET), 0, 0, false);
	arm_entry(ARM(LDR_0, BL_64, A_RET), 0, 0, false);
	/* adrp x1 itself is a fine place: the probe runs before it */
	arm_entry(ARM(STP_FP, ADRP_1, A_RET), 4, 4, true);
	/* a loop back to the place */
	arm_entry(ARM(BTI_C, ADRP_8, A_NOP, CBZ_M8, A_RET), 0, 0, false);
	arm_entry(ARM(STP_FP, A_NOP, TBNZ_12, A_RET, A_RET, A_RET), 8, 4, true);
}

static void test_arm_return_entry(void **state)
{
	const uint32_t w[] = {BTI_C, ADRP_8, A_RET};
	const uint32_t v[] = {PACIASP, STP_FP, A_RET};
	struct insn_part p = {BASE, (const uint8_t *)w, sizeof(w)};
	struct insn_site s;

	insn_return_entry(MACHINE_ARM64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE + 4);
	/* After paciasp the link register is signed: only the entry will do. */
	p = (struct insn_part){BASE, (const uint8_t *)v, sizeof(v)};
	insn_return_entry(MACHINE_ARM64, &p, 1, true, &s);
	assert_int_equal(s.addr, BASE);
}

static int arm_rets(const uint32_t *w, size_t n, uint64_t rets[INSN_MAX_RETS])
{
	struct insn_part p = {BASE, (const uint8_t *)w, n * 4};
	char why[INSN_WHY_LEN];

	return insn_rets(MACHINE_ARM64, &p, 1, rets, why);
}

static void test_arm_rets(void **state)
{
	uint64_t rets[INSN_MAX_RETS];

	assert_int_equal(arm_rets(ARM(STP_FP, BEQ_8, A_RET, A_RET, BRK), rets), 2);
	assert_int_equal(rets[0], BASE + 8);
	assert_int_equal(rets[1], BASE + 12);
	assert_int_equal(arm_rets(ARM(STP_FP, RETAA), rets), -EOPNOTSUPP);
	assert_int_equal(arm_rets(ARM(A_RET, B_16), rets), -ELOOP);
	assert_int_equal(arm_rets(ARM(A_RET, BR_1), rets), -ELOOP);
	assert_int_equal(arm_rets(ARM(A_RET, ADD_1, BR_1), rets), 1);
	/* A literal that happens to look like ret is data: ldr at 0 loads from 20. */
	assert_int_equal(arm_rets(ARM(LDR_20, A_RET, A_NOP, A_NOP, A_NOP, A_RET), rets), 1);
	assert_int_equal(rets[0], BASE + 4);
}

/* Whatever the bytes, the answer is a place inside or a reason. */
static void test_random_bytes(void **state)
{
	uint8_t code[256];
	uint64_t rets[INSN_MAX_RETS], seed = 88172645463325252ull;
	struct insn_part p = {BASE, code, sizeof(code)};
	char why[INSN_WHY_LEN];
	struct insn_site s;

	for (int round = 0; round < 2000; round++) {
		enum insn_machine m = round & 1 ? MACHINE_X86_64 : MACHINE_ARM64;
		int n;

		for (size_t i = 0; i < sizeof(code); i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			code[i] = (uint8_t)seed;
		}
		insn_entry(m, &p, 1, true, &s);
		assert_in_range(s.addr, BASE, BASE + sizeof(code) - 1);
		assert_in_range(s.shift, 0, 255);
		n = insn_rets(m, &p, 1, rets, why);
		for (int i = 0; i < n; i++)
			assert_in_range(rets[i], BASE, BASE + sizeof(code) - 1);
		assert_true(n > 0 || why[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_entry),
		cmocka_unit_test(test_x86_entry_shift),
		cmocka_unit_test(test_x86_entry_left_alone),
		cmocka_unit_test(test_x86_back_edge),
		cmocka_unit_test(test_x86_return_entry),
		cmocka_unit_test(test_x86_rets),
		cmocka_unit_test(test_x86_rets_refused),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_arm_entry),
		cmocka_unit_test(test_arm_return_entry),
		cmocka_unit_test(test_arm_rets),
		cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests_name("insn", tests, NULL, NULL);
}
