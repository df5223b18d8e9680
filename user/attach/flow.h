/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a register may hold at some place of a function, by walking back from there over every way
 * that leads to it. Enough to see which table of pointers a call is given, and what a function
 * copies where; nothing is ever assumed: what is not plain is FLOW_UNKNOWN. Any bytes may be given:
 * the work is bounded, and numbers wrap as they do in the machine.
 */
#ifndef SP_ATTACH_FLOW_H
#define SP_ATTACH_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/insn.h"

#define FLOW_REGS  32 /* x86-64: by their encoding, rax 0 to r15 15; arm64: x0 to x30, sp 31 */
#define FLOW_NONE  0xff
#define FLOW_SP(m) ((m) == MACHINE_ARM64 ? 31 : 4)

enum flow_def {
	FLOW_DEF_OTHER = 0, /* writes registers in a way not looked into */
	FLOW_DEF_CONST,     /* reg = off */
	FLOW_DEF_COPY,      /* reg = src + off, or (src2 != FLOW_NONE) src2 + off */
	FLOW_DEF_LOAD,      /* reg = 8 bytes at src + off; src FLOW_NONE: at the address off */
};

struct flow_step {
	struct insn in; /* in.target: from the code's start */
	uint32_t at;
	uint32_t writes; /* bit r: register r */
	uint8_t def;     /* enum flow_def, of reg */
	uint8_t reg, src, src2;
	uint8_t store_base,
		store_src; /* stores 8 bytes of store_src at store_base + off; or NONE */
	bool spills;       /* else: stores on the stack in a way not looked into */
	int64_t off;
};

struct flow; /* a piece of code, decoded */
/* From the first byte of a function, whose bytes must outlive it. NULL: not decodable, too long, or
 * no memory. */
struct flow *flow_open(enum insn_machine m, const struct insn_part *part);
void flow_close(struct flow *f);
int flow_steps(const struct flow *f);
const struct flow_step *flow_step(const struct flow *f, int i);
int flow_step_at(const struct flow *f, uint64_t addr); /* index, -1: no instruction begins there */

enum flow_kind {
	FLOW_UNKNOWN = 0,
	FLOW_CONST,      /* the number off */
	FLOW_ENTRY,      /* what register reg held at the entry, plus off */
	FLOW_LOAD_CONST, /* 8 bytes at the address off */
	FLOW_LOAD_ENTRY, /* 8 bytes at: what register reg held at the entry, plus off */
};
struct flow_value {
	enum flow_kind kind;
	uint8_t reg;
	int64_t off;
};
/* What register reg may hold just before step i: each different value once, at most max. Their
 * number. All walks of one f together are bounded: what lies beyond is unknown. */
int flow_values(struct flow *f, int i, uint8_t reg, struct flow_value *out, int max);

static inline int64_t flow_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

uint8_t flow_argument(enum insn_machine m, int n); /* register of argument n, from 1; or NONE */

/* The decoder of data flow, by capstone: fills all but in and at. */
struct flow_reader {
	enum insn_machine machine;
	size_t cs; /* csh */
	void *cs_in;
};
bool flow_reader_open(struct flow_reader *r, enum insn_machine m);
void flow_reader_close(struct flow_reader *r);
bool flow_decode(const struct flow_reader *r, const struct insn_part *part, struct flow_step *s);

#endif
