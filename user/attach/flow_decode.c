// SPDX-License-Identifier: Apache-2.0
/* What single instructions do to registers, by capstone. */
#include <capstone/capstone.h>
#include <string.h>

#include "attach/flow.h"
#include "util/cleanup.h"

bool flow_reader_open(struct flow_reader *r, enum insn_machine m)
{
	csh cs;

	*r = (struct flow_reader){.machine = m};
	if (cs_open(m == MACHINE_ARM64 ? CS_ARCH_ARM64 : CS_ARCH_X86,
		    m == MACHINE_ARM64 ? CS_MODE_ARM : CS_MODE_64, &cs) != CS_ERR_OK)
		return false;
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	cs_option(cs, CS_OPT_SKIPDATA, CS_OPT_OFF);
	r->cs = cs;
	r->cs_in = cs_malloc(cs);
	return r->cs_in != NULL;
}

void flow_reader_close(struct flow_reader *r)
{
	if (r->cs_in)
		cs_free(r->cs_in, 1);
	if (r->cs)
		cs_close(&r->cs);
}

/* ---- x86-64 ---------------------------------------------------------------------------------- */

static const uint16_t x86_regs[][5] = {
	{X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
	{X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
	{X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
	{X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
	{X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
	{X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
	{X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
	{X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
	{X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
	{X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
	{X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
	{X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
	{X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
	{X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
	{X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
	{X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
};

static uint8_t x86_number(unsigned reg)
{
	for (size_t i = 0; reg && i < ARRAY_SIZE(x86_regs); i++)
		for (size_t k = 0; k < ARRAY_SIZE(x86_regs[i]); k++)
			if (x86_regs[i][k] == reg)
				return (uint8_t)i;
	return FLOW_NONE;
}

/* Whole 64-bit registers only. */
static uint8_t x86_whole(const cs_x86_op *op)
{
	uint8_t n = op->type == X86_OP_REG ? x86_number(op->reg) : FLOW_NONE;

	return n != FLOW_NONE && x86_regs[n][0] == op->reg ? n : FLOW_NONE;
}

/* base + disp without an index. base: FLOW_NONE for an address that is known. */
static bool x86_plain_mem(const cs_insn *in, const cs_x86_op *op, uint8_t *base, int64_t *off)
{
	if (op->type != X86_OP_MEM || op->mem.index != X86_REG_INVALID ||
	    op->mem.segment != X86_REG_INVALID)
		return false;
	*off = op->mem.disp;
	if (op->mem.base == X86_REG_RIP) {
		*base = FLOW_NONE;
		*off = flow_plus(*off, (int64_t)(in->address + in->size));
		return true;
	}
	*base = x86_number(op->mem.base);
	return *base != FLOW_NONE;
}

static int64_t negative(int64_t v)
{
	return (int64_t)(0 - (uint64_t)v);
}

static void set(struct flow_step *s, enum flow_def def, uint8_t reg, uint8_t src, int64_t off)
{
	s->def = (uint8_t)def;
	s->reg = reg;
	s->src = src;
	s->off = off;
}

static void x86_mov(const cs_insn *in, struct flow_step *s)
{
	const cs_x86_op *op = in->detail->x86.operands;
	uint8_t to = x86_whole(&op[0]), from = x86_whole(&op[1]), base;
	int64_t off;

	if (to != FLOW_NONE && from != FLOW_NONE)
		set(s, FLOW_DEF_COPY, to, from, 0);
	else if (to != FLOW_NONE && x86_plain_mem(in, &op[1], &base, &off))
		set(s, FLOW_DEF_LOAD, to, base, off);
	else if (op[0].type == X86_OP_REG && op[0].size >= 4 && op[1].type == X86_OP_IMM)
		/* 4 bytes: the upper half becomes 0 */
		set(s, FLOW_DEF_CONST, x86_number(op[0].reg), FLOW_NONE,
		    op[0].size == 4 ? (int64_t)(uint32_t)op[1].imm : op[1].imm);
	else if (from != FLOW_NONE && x86_plain_mem(in, &op[0], &base, &off) && base != FLOW_NONE) {
		s->store_base = base;
		s->store_src = from;
		s->off = off;
	}
}

static void x86_def(const cs_insn *in, struct flow_step *s)
{
	const cs_x86 *x = &in->detail->x86;
	const cs_x86_op *op = x->operands;
	uint8_t to, from, base;
	int64_t off;

	if (x->op_count != 2)
		return;
	to = x86_whole(&op[0]);
	from = x86_whole(&op[1]);
	if (in->id == X86_INS_MOV || in->id == X86_INS_MOVABS) {
		x86_mov(in, s);
	} else if (in->id == X86_INS_LEA && to != FLOW_NONE &&
		   x86_plain_mem(in, &op[1], &base, &off)) {
		set(s, base == FLOW_NONE ? FLOW_DEF_CONST : FLOW_DEF_COPY, to, base, off);
	} else if ((in->id == X86_INS_ADD || in->id == X86_INS_SUB) && to != FLOW_NONE &&
		   op[1].type == X86_OP_IMM) {
		set(s, FLOW_DEF_COPY, to, to,
		    in->id == X86_INS_ADD ? op[1].imm : negative(op[1].imm));
	} else if (in->id == X86_INS_XOR && op[0].type == X86_OP_REG && op[0].size >= 4 &&
		   op[1].type == X86_OP_REG && op[0].reg == op[1].reg) {
		set(s, FLOW_DEF_CONST, x86_number(op[0].reg), FLOW_NONE, 0);
	} else if (in->id >= X86_INS_CMOVA && in->id <= X86_INS_CMOVS && to != FLOW_NONE &&
		   from != FLOW_NONE) {
		set(s, FLOW_DEF_COPY, to, from, 0);
		s->src2 = to;
	}
}

/* ---- arm64 ----------------------------------------------------------------------------------- */

static uint8_t arm64_number(unsigned reg)
{
	if (reg >= ARM64_REG_X0 && reg <= ARM64_REG_X28)
		return (uint8_t)(reg - ARM64_REG_X0);
	if (reg >= ARM64_REG_W0 && reg <= ARM64_REG_W30)
		return (uint8_t)(reg - ARM64_REG_W0);
	if (reg == ARM64_REG_X29)
		return 29;
	if (reg == ARM64_REG_X30)
		return 30;
	return reg == ARM64_REG_SP || reg == ARM64_REG_WSP ? 31 : FLOW_NONE;
}

static uint8_t arm64_whole(const cs_arm64_op *op)
{
	if (op->type != ARM64_OP_REG || (op->reg >= ARM64_REG_W0 && op->reg <= ARM64_REG_W30) ||
	    op->shift.type != ARM64_SFT_INVALID || op->ext != ARM64_EXT_INVALID)
		return FLOW_NONE;
	return arm64_number(op->reg);
}

static bool arm64_plain_mem(const cs_arm64 *a, const cs_arm64_op *op, uint8_t *base)
{
	if (op->type != ARM64_OP_MEM || op->mem.index != ARM64_REG_INVALID || a->writeback)
		return false;
	*base = arm64_number(op->mem.base);
	return *base != FLOW_NONE;
}

static int64_t arm64_imm(const cs_arm64_op *op)
{
	return op->shift.type == ARM64_SFT_LSL
		       ? (int64_t)((uint64_t)op->imm << (op->shift.value & 63))
		       : op->imm;
}

static void arm64_two(const cs_insn *in, struct flow_step *s)
{
	const cs_arm64 *a = &in->detail->arm64;
	const cs_arm64_op *op = a->operands;
	uint8_t to = arm64_whole(&op[0]), from = arm64_whole(&op[1]), base;

	if (to == FLOW_NONE)
		return;
	switch (in->id) {
	case ARM64_INS_ADRP:
	case ARM64_INS_ADR:
		if (op[1].type == ARM64_OP_IMM)
			set(s, FLOW_DEF_CONST, to, FLOW_NONE, op[1].imm);
		return;
	case ARM64_INS_MOV:
		if (from != FLOW_NONE)
			set(s, FLOW_DEF_COPY, to, from, 0);
		else if (op[1].type == ARM64_OP_IMM)
			set(s, FLOW_DEF_CONST, to, FLOW_NONE, arm64_imm(&op[1]));
		return;
	case ARM64_INS_LDR:
	case ARM64_INS_LDUR:
		if (arm64_plain_mem(a, &op[1], &base))
			set(s, FLOW_DEF_LOAD, to, base, op[1].mem.disp);
		return;
	case ARM64_INS_STR:
	case ARM64_INS_STUR:
		if (arm64_plain_mem(a, &op[1], &base)) {
			s->store_base = base;
			s->store_src = to;
			s->off = op[1].mem.disp;
		}
		return;
	default:
		return;
	}
}

static void arm64_def(const cs_insn *in, struct flow_step *s)
{
	const cs_arm64 *a = &in->detail->arm64;
	const cs_arm64_op *op = a->operands;
	uint8_t to, from;

	if (a->op_count == 2) {
		arm64_two(in, s);
		return;
	}
	if (a->op_count != 3)
		return;
	to = arm64_whole(&op[0]);
	from = arm64_whole(&op[1]);
	if (to == FLOW_NONE || from == FLOW_NONE)
		return;
	if ((in->id == ARM64_INS_ADD || in->id == ARM64_INS_SUB) && op[2].type == ARM64_OP_IMM) {
		set(s, FLOW_DEF_COPY, to, from,
		    in->id == ARM64_INS_ADD ? arm64_imm(&op[2]) : negative(arm64_imm(&op[2])));
	} else if (in->id == ARM64_INS_CSEL && arm64_whole(&op[2]) != FLOW_NONE) {
		set(s, FLOW_DEF_COPY, to, from, 0);
		s->src2 = arm64_whole(&op[2]);
	}
}

static bool arm64_is_store(uint32_t w)
{
	if ((w & 0x3a000000) == 0x28000000) /* pairs: bit 22 tells a load */
		return !(w >> 22 & 1);
	if ((w & 0x3a000000) == 0x38000000) /* single registers: bits 23:22, 0 is a store */
		return (w >> 22 & 3) == 0;
	return false;
}

/* Capstone's tables of what is written are not complete: the fields where arm64 instructions have
 * their destinations count too. */
static uint32_t arm64_fields(uint32_t w)
{
	uint32_t mask = 0;

	if (!arm64_is_store(w))
		mask = 1u << (w & 31);
	if ((w & 0x3a400000) == 0x28400000) /* a pair is loaded */
		mask |= 1u << (w >> 10 & 31);
	return mask & ~(1u << 31); /* as a destination of these, 31 is no register */
}

/* ---- both ------------------------------------------------------------------------------------ */

static uint32_t written(const struct flow_reader *r, const cs_insn *in)
{
	cs_regs rd, wr;
	uint8_t nrd = 0, nwr = 0;
	uint32_t mask = 0;

	if (cs_regs_access(r->cs, in, rd, &nrd, wr, &nwr) != CS_ERR_OK)
		return ~0u;
	for (int i = 0; i < nwr; i++) {
		uint8_t n = r->machine == MACHINE_ARM64 ? arm64_number(wr[i]) : x86_number(wr[i]);

		if (n != FLOW_NONE)
			mask |= 1u << n;
	}
	return mask;
}

/* Does it store on the stack? */
static bool x86_spills(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	for (int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].access & CS_AC_WRITE &&
		    x->operands[i].mem.base == X86_REG_RSP)
			return true;
	return false;
}

bool flow_decode(const struct flow_reader *r, const struct insn_part *part, struct flow_step *s)
{
	const uint8_t *p = part->code + s->at;
	uint64_t addr = part->addr + s->at;
	size_t left = part->len - s->at;
	cs_insn *in = r->cs_in;
	uint32_t w;

	s->def = FLOW_DEF_OTHER;
	s->reg = s->src = s->src2 = s->store_base = s->store_src = FLOW_NONE;
	s->off = 0;
	if (!cs_disasm_iter(r->cs, &p, &left, &addr, in)) {
		s->writes = ~0u; /* newer than this capstone: it may do anything */
		return r->machine == MACHINE_ARM64;
	}
	s->writes = written(r, in);
	if (r->machine == MACHINE_ARM64) {
		memcpy(&w, part->code + s->at, sizeof(w));
		if (!insn_is_direct(&s->in) && s->in.kind != INSN_CALL && s->in.kind != INSN_RET &&
		    s->in.kind != INSN_INDIRECT)
			s->writes |= arm64_fields(w);
		arm64_def(in, s);
		s->spills = arm64_is_store(w) && (w >> 5 & 31) == 31;
	} else {
		x86_def(in, s);
		s->spills = x86_spills(in);
	}
	if (s->store_base != FLOW_NONE)
		s->spills = false;
	if (s->reg != FLOW_NONE)
		s->writes |= 1u << s->reg;
	return true;
}
