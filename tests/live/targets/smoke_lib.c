// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "smoke_lib.h"

/* Not to be known to the optimiser, so that functions keep their calls and branches. */
static volatile long sink;

static __attribute__((noinline)) long busy(long n)
{
	sink += n;
	return sink;
}

long smoke_scalars(int a, unsigned char b, long c)
{
	long keep = c;

	busy(a);
	busy(b);
	return keep + a;
}

long smoke_stack(long a, long b, long c, long d, long e, long f, long g, const char *h, long i,
		 int *j)
{
	long keep = a + b + c + d + e + f;

	busy(keep);
	*j += 1;
	return keep + g + i + (long)strlen(h);
}

int smoke_text(const char *text)
{
	busy((long)strlen(text));
	return text[0];
}

int smoke_make(int rc, struct smoke_op **out, struct smoke_op *op)
{
	busy(rc);
	if (rc == 0)
		*out = op;
	return rc;
}

int smoke_status(struct smoke_op *op)
{
	busy(1);
	return op->answer;
}

int smoke_release(struct smoke_op *op)
{
	busy(op->answer);
	return 0;
}

long smoke_ways(long n)
{
	if (n < 0)
		return busy(n) - busy(0);
	if (n > 2)
		return smoke_ways(n - 1) + busy(0) - busy(0) + 1;
	busy(n);
	busy(-n);
	return n;
}

__attribute__((noinline)) long smoke_next(long n)
{
	return busy(n);
}

long smoke_tail(long n)
{
	return smoke_next(n + 1);
}

__attribute__((noinline)) int smoke_heard(const void *msg, long sock)
{
	return (int)busy(sock + (msg != NULL));
}

__attribute__((noinline)) int smoke_said(const void *msg, long sock, int flags)
{
	return (int)busy(sock + flags + (msg != NULL));
}

__attribute__((noinline)) int smoke_number(const void *msg, long sock)
{
	return (int)busy(sock - (msg != NULL));
}

/* libzmq, src/msg.hpp: a long message's block, and the type and flags bytes. */
#define LMSG 102
#define MORE 1
struct block {
	const void *data;
	size_t size;
};
struct zmq_msg {
	void *metadata;
	const struct block *block;
	char unused[26];
	uint8_t type, flags;
	char rest[20];
};

long smoke_frame(long how)
{
	static const char *const words[] = SMOKE_WORDS;
	static char *hidden;
	const char *word = words[how & SMOKE_WORD];
	struct block block = {word, strlen(word)};
	struct zmq_msg made = {.block = &block, .type = LMSG};
	const void *msg = &made;

	if (!hidden)
		hidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	made.flags = how & SMOKE_MORE ? MORE : 0;
	if (how & SMOKE_DATA)
		block.data = hidden;
	if (how & SMOKE_BLOCK)
		made.block = (const void *)hidden;
	if (how & SMOKE_HEAD)
		msg = hidden;
	if (how & SMOKE_SAID)
		return smoke_said(msg, 0x50, how & SMOKE_MORE ? 2 : 0);
	return how & SMOKE_NUMBER ? smoke_number(msg, 0x50) : smoke_heard(msg, 0x50);
}

/* Never called: begins with an instruction on which the kernel allows no probe. */
#if defined(__x86_64__)
__asm__(".text\n.globl smoke_forbidden\n.type smoke_forbidden, @function\n"
	"smoke_forbidden: hlt\n.size smoke_forbidden, .-smoke_forbidden\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl smoke_forbidden\n.type smoke_forbidden, %function\n"
	"smoke_forbidden: ldxr x0, [x0]\n.size smoke_forbidden, .-smoke_forbidden\n");
#endif

int smoke_saved_registers(long (*fn)(long), long n)
{
	long bad = 0;
#if defined(__x86_64__)
	/* The compiler does not see the call and may use the red zone below the stack pointer. */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "mov $0x1111, %%rbx\n\t"
			 "mov $0x2222, %%r12\n\t"
			 "mov $0x3333, %%r13\n\t"
			 "mov $0x4444, %%r14\n\t"
			 "mov $0x5555, %%r15\n\t"
			 "call *%[fn]\n\t"
			 "xor $0x1111, %%rbx\n\t"
			 "xor $0x2222, %%r12\n\t"
			 "xor $0x3333, %%r13\n\t"
			 "xor $0x4444, %%r14\n\t"
			 "xor $0x5555, %%r15\n\t"
			 "mov %%rbx, %%rax\n\t"
			 "or %%r12, %%rax\n\t"
			 "or %%r13, %%rax\n\t"
			 "or %%r14, %%rax\n\t"
			 "or %%r15, %%rax\n\t"
			 "lea 128(%%rsp), %%rsp\n\t"
			 : "=&a"(bad), "+D"(n)
			 : [fn] "r"(fn)
			 : "rbx", "r12", "r13", "r14", "r15", "rcx", "rdx", "rsi", "r8", "r9",
			   "r10", "r11", "cc", "memory");
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = n;
	register long (*x9)(long) __asm__("x9") = fn;

	__asm__ volatile("mov x19, #0x1111\n\tmov x20, #0x2222\n\tmov x21, #0x3333\n\t"
			 "mov x22, #0x4444\n\tmov x28, #0x5555\n\t"
			 "blr %[fn]\n\t"
			 "mov x10, #0x1111\n\teor x19, x19, x10\n\t"
			 "mov x10, #0x2222\n\teor x20, x20, x10\n\t"
			 "mov x10, #0x3333\n\teor x21, x21, x10\n\t"
			 "mov x10, #0x4444\n\teor x22, x22, x10\n\t"
			 "mov x10, #0x5555\n\teor x28, x28, x10\n\t"
			 "orr x0, x19, x20\n\torr x0, x0, x21\n\torr x0, x0, x22\n\t"
			 "orr x0, x0, x28\n\t"
			 : "+r"(x0)
			 : [fn] "r"(x9)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x10", "x11", "x12",
			   "x13", "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x28",
			   "x30", "cc", "memory");
	bad = x0;
#endif
	return bad != 0;
}
