/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the attach smoke test probes. */
#ifndef SMOKE_LIB_H
#define SMOKE_LIB_H

#ifdef __cplusplus
extern "C" {
#endif

struct smoke_op {
	int answer;
};

long smoke_scalars(int a, unsigned char b, long c);
/* $arg7 to $arg10 are on the stack (x86-64), $arg9 and $arg10 on arm64. */
long smoke_stack(long a, long b, long c, long d, long e, long f, long g, const char *h, long i,
		 int *j);
int smoke_text(const char *text);
int smoke_make(int rc, struct smoke_op **out, struct smoke_op *op);
int smoke_status(struct smoke_op *op);
int smoke_release(struct smoke_op *op);
/* Returns three ways; calls itself. */
long smoke_ways(long n);
/* Its tail call leaves it: no return of its own. */
long smoke_tail(long n);
long smoke_next(long n);
/* Called by tests that look at callee-saved registers: 0 when all survived. */
int smoke_saved_registers(long (*fn)(long), long n);

/*
 * One frame of a message, as a zmq_msg_t of libzmq 4: smoke_frame makes it of the how bits and
 * calls one of the others with it. What is hidden is in a page that cannot be read.
 */
#define SMOKE_WORDS                                                                                \
	{                                                                                          \
		"Guard", "11", "22", "33", "10.0.0.1", "other"                                     \
	}
#define SMOKE_WORD   15 /* which of them */
#define SMOKE_MORE   16
#define SMOKE_HEAD   32  /* the zmq_msg_t is hidden, */
#define SMOKE_BLOCK  64  /* or what it points to: data pointer and size, */
#define SMOKE_DATA   128 /* or the data */
#define SMOKE_SAID   256 /* to smoke_said, not to smoke_heard */
#define SMOKE_NUMBER 512 /* to smoke_number */
int smoke_heard(const void *msg, long sock);
int smoke_said(const void *msg, long sock, int flags);
int smoke_number(const void *msg, long sock);
long smoke_frame(long how);

#ifdef __cplusplus
}
#endif
#endif
