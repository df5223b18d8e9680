/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of CUDA by the exported name of the function, with buffers of their own. */
#ifndef CUDA_CALLS_H
#define CUDA_CALLS_H

#include "cuda_abi.h"

#define CALLS_STREAMS 8
#define CALLS_EVENTS  4
#define CALLS_BYTES   (1 << 20)

extern CUstream calls_stream[CALLS_STREAMS]; /* 0: the default one */

/* What one thread works with. A copy is of bytes that differ from those copied before. */
struct calls {
	char *from, *to, *device; /* CALLS_BYTES each */
	uint64_t bytes;           /* of the last copy */
	unsigned seed, kernels;
};

void calls_start(void);
int calls_init(struct calls *c);
/* What the next copy will move: to differs from it until then. */
void calls_fill(struct calls *c);
/* Are the bytes of the last copy there? Kernels launched: have all run? */
int calls_arrived(const struct calls *c);

/* n: bytes of a copy (at most CALLS_BYTES), number of an event. -1: no such function. */
typedef int call_fn(struct calls *c, uint64_t n, CUstream stream);
call_fn *calls_find(const char *name);

#endif
