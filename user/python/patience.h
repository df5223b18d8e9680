/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long unstable looks at one process are put up with before the model judges without. A loop
 * that spins lets every third look fail, more of them on a busy machine, and a verdict that waits a
 * moment for a good one is certain. Pure: no clock, no I/O.
 */
#ifndef SP_PYTHON_PATIENCE_H
#define SP_PYTHON_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Looks come every --python-every, and every 51 ms while a deadline waits for one. */
#define PATIENCE_NS     (2ULL * 1000000000) /* since the first of those in a row */
#define PATIENCE_ROUNDS 20u                 /* and at least so many */
/* Once it is used up it is not granted to each deadline anew, before there is a good look. */
#define PATIENCE_ROUNDS_LEFT 4u

struct patience {
	uint64_t since_ns; /* the first unstable one in a row */
	unsigned rounds;   /* of them */
	bool used_up;
};

/* An unstable look, begun at ns. True: judge by what is known. */
bool patience_unstable(struct patience *p, uint64_t ns);
/* A good one. */
void patience_ok(struct patience *p);

#endif
