// SPDX-License-Identifier: Apache-2.0
/* arm64 instructions, by the masks of the Arm Architecture Reference Manual, C4.1. Only what a
 * prologue, a jump and a return consist of; all else counts as spoiling. */
#include <errno.h>
#include <string.h>

#include "attach/insn.h"

#define SP_REG 31

static uint32_t bits(uint32_t w, int hi, int lo)
{
	return w >> lo & ((1u << (hi - lo + 1)) - 1);
}

/* Sign-extend the n low bits and scale by four: a branch's distance. */
static int64_t distance(uint32_t v, int n)
{
	return ((int64_t)((uint64_t)v << (64 - n)) >> (64 - n)) * 4;
}

static bool is(uint32_t w, uint32_t mask, uint32_t value)
{
	return (w & mask) == value;
}

static void set_jump(struct insn *out, enum insn_kind kind, size_t at, int64_t d, const char *name)
{
	out->kind = kind;
	out->target = at + (uint64_t)d;
	out->emulated = true;
	out->name = name;
}

/* Branches: all but the authenticated are simulated by the kernel. */
static bool decode_branch(uint32_t w, size_t at, const struct insn *prev, struct insn *out)
{
	if (is(w, 0xfc000000, 0x14000000)) {
		set_jump(out, INSN_JUMP, at, distance(bits(w, 25, 0), 26), "b");
	} else if (is(w, 0xfc000000, 0x94000000)) {
		set_jump(out, INSN_CALL, at, distance(bits(w, 25, 0), 26), "bl");
	} else if (is(w, 0xff000000, 0x54000000)) { /* b.cond, bc.cond */
		set_jump(out, INSN_BRANCH, at, distance(bits(w, 23, 5), 19), "b.cond");
	} else if (is(w, 0x7e000000, 0x34000000)) {
		set_jump(out, INSN_BRANCH, at, distance(bits(w, 23, 5), 19), "cbz");
	} else if (is(w, 0x7e000000, 0x36000000)) {
		set_jump(out, INSN_BRANCH, at, distance(bits(w, 18, 5), 14), "tbz");
	} else if (is(w, 0xfffffc1f, 0xd63f0000)) {
		set_jump(out, INSN_CALL, at, 0, "blr");
	} else if (is(w, 0xfffffc1f, 0xd61f0000)) {
		/* A switch adds an offset to its table's address just before. */
		set_jump(out,
			 prev && prev->name && !strcmp(prev->name, "add") ? INSN_TABLE
									  : INSN_INDIRECT,
			 at, 0, "br");
	} else if (is(w, 0xfffffc1f, 0xd65f0000)) {
		set_jump(out, INSN_RET, at, 0, "ret");
	} else if (is(w, 0xfffffbff, 0xd65f0bff)) {
		out->kind = INSN_RET_AUTH;
		out->name = "retaa";
	} else if (is(w, 0xfefff800, 0xd61f0800)) {
		out->kind = INSN_INDIRECT; /* braa, brab and kin */
		out->name = "braa";
	} else if (is(w, 0xfefff800, 0xd63f0800)) {
		out->kind = INSN_CALL; /* blraa */
		out->name = "blraa";
	} else {
		return false;
	}
	return true;
}

/* Stores that make or fill the function's own frame. */
static bool decode_frame(uint32_t w, unsigned depth, struct insn *out)
{
	int64_t imm;
	unsigned size;

	if (bits(w, 9, 5) != SP_REG)
		return false;
	/* stp Xt, Xt2 (64-bit) or Dt, Dt2, pre-indexed: [sp, #-imm]! */
	if (is(w, 0xffc00000, 0xa9800000) || is(w, 0xffc00000, 0x6d800000)) {
		imm = (int64_t)((uint64_t)bits(w, 21, 15) << 57) >> 57;
		if (imm >= 0)
			return false;
		out->kind = INSN_GROW;
		out->words = (uint16_t)-imm;
		out->name = "stp";
		return true;
	}
	/* str Xt, pre-indexed */
	if (is(w, 0xffe00c00, 0xf8000c00)) {
		imm = (int64_t)((uint64_t)bits(w, 20, 12) << 55) >> 55;
		if (imm >= 0 || imm % 8)
			return false;
		out->kind = INSN_GROW;
		out->words = (uint16_t)(-imm / 8);
		out->name = "str";
		return true;
	}
	/* stp with a signed offset, str with an unsigned one: into the frame, not above it */
	if (is(w, 0xffc00000, 0xa9000000) || is(w, 0xffc00000, 0x6d000000)) {
		imm = (int64_t)((uint64_t)bits(w, 21, 15) << 57) >> 57;
		size = 2;
	} else if (is(w, 0xffc00000, 0xf9000000)) {
		imm = bits(w, 21, 10);
		size = 1;
	} else {
		return false;
	}
	if (imm < 0 || imm + size > depth)
		return false;
	out->kind = INSN_PLAIN;
	return true;
}

static bool decode_other(uint32_t w, size_t at, struct insn *out)
{
	uint32_t rd = bits(w, 4, 0);

	if (is(w, 0x3b000000, 0x18000000)) { /* ldr (literal): integer, SIMD, prfm */
		out->kind = INSN_LITERAL;
		out->target = at + (uint64_t)distance(bits(w, 23, 5), 19);
	} else if (is(w, 0xffffff3f, 0xd503241f)) {
		out->kind = INSN_LANDING;
		out->name = "bti";
	} else if (w == 0xd503201f) {
		out->kind = INSN_NOP; /* simulated only from 6.13 on: not counted on */
		out->name = "nop";
	} else if (is(w, 0xffffff9f, 0xd503231f)) {
		out->kind = INSN_PLAIN; /* paciaz, paciasp, pacibz, pacibsp */
	} else if (is(w, 0x1f000000, 0x10000000)) {
		out->kind = rd < 8 ? INSN_SPOILS : INSN_PLAIN;
		out->emulated = true;
		out->name = "adrp";
	} else if (is(w, 0xff8003ff, 0xd10003ff)) { /* sub sp, sp, #imm{, lsl 12} */
		uint32_t imm = bits(w, 21, 10) << (bits(w, 22, 22) ? 12 : 0);

		out->kind = imm % 8 || imm > 8 * 255 ? INSN_SPOILS : INSN_GROW;
		out->words = (uint16_t)(imm / 8);
		out->name = "sub";
	} else if (is(w, 0xffc003e0, 0x910003e0)) { /* add Xd, sp, #imm: also mov Xd, sp */
		out->kind = rd < 8 || rd == SP_REG ? INSN_SPOILS : INSN_PLAIN;
		out->name = "add";
	} else if (is(w, 0x7fe00000, 0x0b000000) || is(w, 0x7fe00000, 0x0b200000)) {
		out->kind = rd < 8 ? INSN_SPOILS : INSN_PLAIN; /* add of registers */
		out->name = "add";
	} else if (is(w, 0x7fe0ffe0, 0x2a0003e0)) { /* mov Xd, Xm */
		out->kind = rd < 8 ? INSN_SPOILS : INSN_PLAIN;
		out->name = "mov";
	} else if (is(w, 0xffe0001f, 0xd4200000) || is(w, 0xffff0000, 0)) {
		out->kind = INSN_STOP; /* brk, udf */
	} else {
		return false;
	}
	return true;
}

/* May it write x0? Only of what stands between a call and the end of a function is it known. */
static bool writes_result(uint32_t w, const struct insn *in)
{
	uint32_t rt = bits(w, 4, 0);

	if (in->kind == INSN_CALL || in->kind == INSN_SYSCALL)
		return true;
	if (in->kind != INSN_PLAIN && in->kind != INSN_SPOILS)
		return false;
	if (is(w, 0xfe400000, 0xa8400000)) /* ldp Xt, Xt2, any form of address */
		return rt == 0 || bits(w, 14, 10) == 0 || bits(w, 9, 5) == 0;
	if (is(w, 0xffc00000, 0xf9400000)) /* ldr Xt, [Xn, #imm] */
		return rt == 0;
	if (is(w, 0xffe00400, 0xf8400400)) /* ldr Xt, [Xn], #imm or [Xn, #imm]! */
		return rt == 0 || bits(w, 9, 5) == 0;
	if (is(w, 0xff8003ff, 0x910003ff)) /* add sp, sp, #imm */
		return false;
	if (is(w, 0x7fe0ffe0, 0x2a0003e0)) /* mov Xd, Xm */
		return rt == 0;
	if (is(w, 0x7f80001f, 0x3100001f) || is(w, 0x7f80001f, 0x7100001f)) /* cmn, cmp */
		return false;
	return w != 0xd50323bf; /* autiasp */
}

int insn_decode_arm64(const uint8_t *code, size_t len, size_t at, unsigned depth,
		      const struct insn *prev, struct insn *out)
{
	uint32_t w;

	memset(out, 0, sizeof(*out));
	out->name = "";
	if (at + 4 > len || at % 4)
		return -EILSEQ;
	w = code[at] | code[at + 1] << 8 | code[at + 2] << 16 | (uint32_t)code[at + 3] << 24;
	out->len = 4;
	if (!decode_branch(w, at, prev, out) && !decode_frame(w, depth, out) &&
	    !decode_other(w, at, out))
		out->kind = w == 0xd4000001 ? INSN_SYSCALL : INSN_SPOILS; /* svc #0 */
	out->writes = writes_result(w, out) ? INSN_W_RESULT : 0;
	return 0;
}
