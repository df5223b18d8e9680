/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a function a probe can sit: the first instructions decoded, for x86-64 and arm64. Pure:
 * bytes in, places out. Both decoders are built on every machine.
 */
#ifndef SP_INSN_H
#define SP_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_machine { MACHINE_NONE, MACHINE_X86_64, MACHINE_ARM64 };

enum insn_kind {
	INSN_PLAIN,   /* changes nothing that an argument can be read from */
	INSN_SPOILS,  /* changes an argument register, memory, or the stack in an unknown way */
	INSN_LANDING, /* endbr64, bti: a mark for indirect calls */
	INSN_GROW,    /* only grows the stack: push, sub from sp; by words */
	INSN_NOP,
	INSN_CALL,
	INSN_JUMP,     /* unconditional, direct */
	INSN_BRANCH,   /* conditional, direct */
	INSN_INDIRECT, /* jump through a register or memory that may leave the function */
	INSN_TABLE,    /* jump through a table of the function's own */
	INSN_RET,
	INSN_RET_AUTH, /* arm64 retaa, retab: the kernel refuses probes there */
	INSN_LITERAL,  /* arm64: loads data that lies at target, between the instructions */
	INSN_STOP,     /* ends the flow: int3, ud2, hlt, udf */
	INSN_SYSCALL,  /* syscall, svc #0 */
};

/* What an instruction may write to, when in doubt it does. */
#define INSN_W_RESULT  1 /* the register of a call's result: rax, x0 */
#define INSN_W_SYSCALL 2 /* x86-64: what a system call leaves: rdi rsi rdx r10 r8 r9 rax */

struct insn {
	enum insn_kind kind;
	uint8_t len;
	bool emulated; /* by the kernel, in place of a single step (facts: arch/x86/kernel/uprobes.c
			  branch_setup_insn, push_setup_insn; arch/arm64 simulate-insn.c) */
	uint8_t writes;   /* INSN_W_* */
	uint16_t words;   /* INSN_GROW: 8-byte words */
	uint64_t target;  /* jumps, branches, literals: offset from the code's start; may wrap below
			     0 */
	const char *name; /* "push", for people */
};

/* A decoder for one machine. Opening capstone takes as long as decoding 40 instructions. */
struct insn_reader {
	enum insn_machine machine;
	size_t cs;   /* x86-64: capstone's handle (csh), 0 when it cannot be had */
	void *cs_in; /* and its scratch (cs_insn) */
};
void insn_open(struct insn_reader *r, enum insn_machine m);
void insn_close(struct insn_reader *r);
/* Decode code[at..len). depth: words pushed so far, to tell the function's own frame. 0, or -EILSEQ
 * for bytes that are no instruction. prev: the instruction before, or NULL. */
int insn_decode(const struct insn_reader *r, const uint8_t *code, size_t len, size_t at,
		unsigned depth, const struct insn *prev, struct insn *out);

/* One piece of a function: its body, or its cold part somewhere else. */
struct insn_part {
	uint64_t addr; /* as the symbol table gives it */
	const uint8_t *code;
	size_t len;
};

#define INSN_MAX_PARTS 8
#define INSN_MAX_RETS  64
#define INSN_WHERE_LEN 48
#define INSN_WHY_LEN   128

struct insn_site {
	uint64_t addr;
	unsigned shift; /* words pushed since the entry */
	bool emulated;
	char where[INSN_WHERE_LEN]; /* "entry+4, push" */
};

/*
 * Best place for an entry probe of part[0]: where the kernel need not single-step, arguments are
 * still where they were and every call passes exactly once. Never fails: the entry itself is left.
 * whole: the parts are the complete function, so that jumps into the prologue would be seen.
 */
void insn_entry(enum insn_machine m, const struct insn_part *parts, int nparts, bool whole,
		struct insn_site *out);
/* Place for a return probe, which replaces the return address on the stack (or in the link
 * register): the entry, or just after its landing mark. */
void insn_return_entry(enum insn_machine m, const struct insn_part *parts, int nparts, bool whole,
		       struct insn_site *out);
/* Every ret of the function. Number found, or -errno with the reason: -EILSEQ undecodable bytes,
 * -ELOOP a jump leaves the parts, -E2BIG too many, -ENOENT none, -EOPNOTSUPP not probeable. */
int insn_rets(enum insn_machine m, const struct insn_part *parts, int nparts,
	      uint64_t rets[INSN_MAX_RETS], char why[INSN_WHY_LEN]);
/* Is there a direct jump out of the parts? Its target, and whether it is conditional. */
bool insn_leaves(enum insn_machine m, const struct insn_part *parts, int nparts, uint64_t *target,
		 bool *conditional);
/* Each instruction of each part, in turn; stops at the first non-zero answer of fn and returns it;
 * -EILSEQ where bytes are no instruction. at: within the part. */
typedef int (*insn_fn)(void *ctx, const struct insn_part *part, size_t at, const struct insn *in);
int insn_walk(enum insn_machine m, const struct insn_part *parts, int nparts, insn_fn fn,
	      void *ctx);
bool insn_is_direct(const struct insn *in); /* a jump to a known place */
/* Does every way to parts[at] from `from` lie between them: no direct jump to any address in
 * (from, to]? */
bool insn_straight(enum insn_machine m, const struct insn_part *parts, int nparts, uint64_t from,
		   uint64_t to);
/* Is this a stub that only leads elsewhere (an entry of the PLT)? */
bool insn_is_stub(enum insn_machine m, const struct insn_part *part);

/* The decoders behind insn_decode. */
void insn_open_x86(struct insn_reader *r);
void insn_close_x86(struct insn_reader *r);
int insn_decode_x86(const struct insn_reader *r, const uint8_t *code, size_t len, size_t at,
		    unsigned depth, const struct insn *prev, struct insn *out);
int insn_decode_arm64(const uint8_t *code, size_t len, size_t at, unsigned depth,
		      const struct insn *prev, struct insn *out);

#endif
