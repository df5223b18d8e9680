// SPDX-License-Identifier: Apache-2.0
/*
 * The functions that the benchmarks probe: they do nothing, so that a call costs what its probe
 * costs. Written in assembler to choose the first instruction: a push (x86-64) or a nop (arm64) is
 * emulated by the kernel and not single-stepped, and is what compiled functions begin with.
 */
#if defined(__x86_64__)
#define FIRST "push %rbx\n\tpop %rbx\n\tret\n"
#define NOP5  ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\tret\n"
#define STEP  "mov $0, %eax\n\tret\n"
#define SAME  "push %rbx\n\tmov %edi, %eax\n\tpop %rbx\n\tret\n"
#elif defined(__aarch64__)
#define FIRST "nop\n\tret\n"
#define NOP5  "nop\n\tret\n"
#define STEP  "mov x0, #0\n\tret\n"
#define SAME  "nop\n\tret\n"
#endif

#define FUNCTION(name, body)                                                                       \
	__asm__(".text\n\t.p2align 4\n\t.globl " #name "\n\t.type " #name ", %function\n" #name    \
		":\n\t" body "\t.size " #name ", .-" #name "\n")

FUNCTION(bench_plain, FIRST);   /* never probed */
FUNCTION(bench_scalars, FIRST); /* (u64, u64) */
FUNCTION(bench_string, FIRST);  /* (u64, const char *) */
FUNCTION(bench_nop5, NOP5);     /* (u64, u64); from 6.18 on the kernel makes a call of this nop */
FUNCTION(bench_step, STEP);     /* (u64, u64); must be single-stepped */

/* Returns its first argument: a poll function with always the same answer. */
FUNCTION(bench_poll, SAME);

/* The life of a room: what a transport would be asked to do. */
FUNCTION(bench_announce, FIRST); /* (u64 room, const char *peer) */
FUNCTION(bench_post, FIRST);     /* (u64 op, const char *text) */
FUNCTION(bench_status, FIRST);   /* (u64 op, int code) */

/* Many functions, for the time to attach to many: bench_many_00 to bench_many_59. */
#define MANY(n) FUNCTION(bench_many_##n, FIRST)
#define TEN(d)                                                                                     \
	MANY(d##0);                                                                                \
	MANY(d##1);                                                                                \
	MANY(d##2);                                                                                \
	MANY(d##3);                                                                                \
	MANY(d##4);                                                                                \
	MANY(d##5);                                                                                \
	MANY(d##6);                                                                                \
	MANY(d##7);                                                                                \
	MANY(d##8);                                                                                \
	MANY(d##9)
TEN(0);
TEN(1);
TEN(2);
TEN(3);
TEN(4);
TEN(5);
