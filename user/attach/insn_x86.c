// SPDX-License-Identifier: Apache-2.0
/* x86-64 instructions, by capstone. */
#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#include "attach/insn.h"
#include "util/cleanup.h"

#define MAX_FRAME 2040 /* bytes: 255 words, what a cookie can hold */

/* Argument registers (System V psABI 3.2.3) in all their widths, and the stack pointer. */
static const uint16_t spoiling[] = {
	X86_REG_RDI, X86_REG_EDI, X86_REG_DI,  X86_REG_DIL, X86_REG_RSI, X86_REG_ESI,
	X86_REG_SI,  X86_REG_SIL, X86_REG_RDX, X86_REG_EDX, X86_REG_DX,  X86_REG_DL,
	X86_REG_DH,  X86_REG_RCX, X86_REG_ECX, X86_REG_CX,  X86_REG_CL,  X86_REG_CH,
	X86_REG_R8,  X86_REG_R8D, X86_REG_R8W, X86_REG_R8B, X86_REG_R9,  X86_REG_R9D,
	X86_REG_R9W, X86_REG_R9B, X86_REG_RSP, X86_REG_ESP, X86_REG_SP,  X86_REG_SPL,
};

static const uint16_t result[] = {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH};

/* What a system call takes beyond the arguments of a function (psABI A.2.1). */
static const uint16_t fourth[] = {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B};

static bool writes_any(csh cs, const cs_insn *in, const uint16_t *reg, size_t n)
{
	cs_regs rd, wr;
	uint8_t nrd = 0, nwr = 0;

	if (cs_regs_access(cs, in, rd, &nrd, wr, &nwr) != CS_ERR_OK)
		return true;
	for (int i = 0; i < nwr; i++)
		for (size_t k = 0; k < n; k++)
			if (wr[i] == reg[k])
				return true;
	return false;
}

static bool writes_spoiling(csh cs, const cs_insn *in)
{
	return writes_any(cs, in, spoiling, ARRAY_SIZE(spoiling));
}

static uint8_t writes_of(csh cs, const cs_insn *in)
{
	uint8_t w = 0;

	if (in->id == X86_INS_SYSCALL || cs_insn_group(cs, in, CS_GRP_CALL))
		return INSN_W_RESULT | INSN_W_SYSCALL;
	if (writes_any(cs, in, result, ARRAY_SIZE(result)))
		w |= INSN_W_RESULT | INSN_W_SYSCALL;
	else if (writes_spoiling(cs, in) || writes_any(cs, in, fourth, ARRAY_SIZE(fourth)))
		w |= INSN_W_SYSCALL;
	return w;
}

/* A store anywhere but into the frame that the function itself has made may change what an
 * argument points to. */
static bool writes_memory(const cs_x86 *x, unsigned depth)
{
	for (int i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type != X86_OP_MEM || !(op->access & CS_AC_WRITE))
			continue;
		if (op->mem.base == X86_REG_RSP && op->mem.index == X86_REG_INVALID &&
		    op->mem.segment == X86_REG_INVALID && op->mem.disp >= 0 &&
		    op->mem.disp + op->size <= (int64_t)depth * 8)
			continue;
		return true;
	}
	return false;
}

static bool is_table_jump(const cs_x86 *x, const struct insn *prev)
{
	const cs_x86_op *op = &x->operands[0];

	/* A compiler marks the jump of its own switch with notrack (0x3e) under CET; without it, a
	 * table is a scaled index, or an address just made by adding an offset to the table's. */
	if (x->prefix[1] == 0x3e)
		return true;
	if (op->type == X86_OP_MEM)
		return op->mem.index != X86_REG_INVALID;
	return prev && prev->name && !strcmp(prev->name, "add");
}

/* Is it one of the one-byte-opcode pushes, or those with only the prefix REX.B? */
static bool push_emulated(const uint8_t *b, size_t len)
{
	return (len == 1 && (b[0] & 0xf8) == 0x50) ||
	       (len == 2 && b[0] == 0x41 && (b[1] & 0xf8) == 0x50);
}

static void classify_jump(const cs_insn *in, const struct insn *prev, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;
	bool is_call = in->id == X86_INS_CALL, is_jmp = in->id == X86_INS_JMP;

	if (x->op_count != 1 || x->operands[0].type != X86_OP_IMM) {
		out->kind = is_call   ? INSN_CALL
			    : !is_jmp ? INSN_INDIRECT /* far, or beyond what is known here */
			    : is_table_jump(x, prev) ? INSN_TABLE
						     : INSN_INDIRECT;
		return;
	}
	out->target = (uint64_t)x->operands[0].imm;
	out->kind = is_call ? INSN_CALL : is_jmp ? INSN_JUMP : INSN_BRANCH;
	/* loop, jrcxz and 16-bit forms are single-stepped; so is jmp/call behind a prefix that the
	 * kernel's decoder counts as one, but those do not occur in compiled code. */
	out->emulated = is_call || is_jmp ||
			(x->opcode[0] == 0x0f ? (x->opcode[1] & 0xf0) == 0x80
					      : (x->opcode[0] & 0xf0) == 0x70);
	if (x->prefix[2] == 0x66)
		out->emulated = false;
}

static void classify(csh cs, const cs_insn *in, const uint8_t *b, unsigned depth,
		     const struct insn *prev, struct insn *out)
{
	const cs_x86 *x = &in->detail->x86;

	switch (in->id) {
	case X86_INS_ENDBR64:
		out->kind = INSN_LANDING;
		return;
	case X86_INS_NOP:
		out->kind = INSN_NOP;
		out->emulated = b[in->size - 1] == 0x90 && x->opcode[0] == 0x90;
		return;
	case X86_INS_PUSH:
		out->kind = INSN_GROW;
		out->words = 1;
		out->emulated = push_emulated(b, in->size);
		if (x->prefix[2] == 0x66)
			out->kind = INSN_SPOILS; /* pushes two bytes */
		return;
	case X86_INS_SUB:
		if (x->operands[0].type == X86_OP_REG && x->operands[0].reg == X86_REG_RSP &&
		    x->operands[1].type == X86_OP_IMM && x->operands[1].imm > 0 &&
		    x->operands[1].imm % 8 == 0 && x->operands[1].imm <= MAX_FRAME) {
			out->kind = INSN_GROW;
			out->words = x->operands[1].imm / 8;
			return;
		}
		break;
	case X86_INS_RET:
		out->kind = INSN_RET;
		return;
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
		out->kind = INSN_RET_AUTH;
		return;
	case X86_INS_INT3:
	case X86_INS_UD2:
	case X86_INS_HLT:
		out->kind = INSN_STOP;
		return;
	case X86_INS_SYSCALL:
		out->kind = INSN_SYSCALL;
		return;
	case X86_INS_SYSENTER:
	case X86_INS_INT:
		out->kind = INSN_SPOILS;
		return;
	default:
		break;
	}
	if (cs_insn_group(cs, in, CS_GRP_JUMP) || cs_insn_group(cs, in, CS_GRP_CALL))
		classify_jump(in, prev, out);
	else if (writes_spoiling(cs, in) || writes_memory(x, depth))
		out->kind = INSN_SPOILS;
	else
		out->kind = INSN_PLAIN;
}

/* Short names that outlive the decoder. */
static const char *name_of(unsigned id)
{
	switch (id) {
	case X86_INS_PUSH:
		return "push";
	case X86_INS_NOP:
		return "nop";
	case X86_INS_JMP:
		return "jmp";
	case X86_INS_CALL:
		return "call";
	case X86_INS_ADD:
		return "add";
	case X86_INS_SUB:
		return "sub";
	case X86_INS_MOV:
		return "mov";
	case X86_INS_LEA:
		return "lea";
	case X86_INS_ENDBR64:
		return "endbr64";
	case X86_INS_RET:
		return "ret";
	default:
		return "";
	}
}

void insn_open_x86(struct insn_reader *r)
{
	csh cs;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &cs) != CS_ERR_OK)
		return;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	r->cs_in = cs_malloc(cs);
	if (r->cs_in)
		r->cs = cs;
	else
		cs_close(&cs);
}

void insn_close_x86(struct insn_reader *r)
{
	if (!r->cs)
		return;
	cs_free(r->cs_in, 1);
	cs_close(&r->cs);
}

int insn_decode_x86(const struct insn_reader *r, const uint8_t *code, size_t len, size_t at,
		    unsigned depth, const struct insn *prev, struct insn *out)
{
	size_t left = len - at;
	uint64_t addr = at;
	const uint8_t *p = code + at;
	cs_insn *in = r->cs_in;

	memset(out, 0, sizeof(*out));
	if (at >= len || !r->cs || !cs_disasm_iter(r->cs, &p, &left, &addr, in))
		return -EILSEQ;
	out->len = (uint8_t)in->size;
	out->name = name_of(in->id);
	out->writes = writes_of(r->cs, in);
	classify(r->cs, in, code + at, depth, prev, out);
	if (out->kind == INSN_BRANCH && !out->name[0])
		out->name = "jcc";
	return 0;
}
