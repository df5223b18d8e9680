/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the stand-in libcuda is made to misbehave. Function names are those that a program writes:
 * "cuMemcpyHtoDAsync" stands for all its variants (_v2, _ptsz).
 */
#ifndef CUDA_STANDIN_H
#define CUDA_STANDIN_H

#include <stdbool.h>

#include "cuda_abi.h"

#pragma GCC visibility push(default)
/* The next times calls of the function do nothing but return this. */
void standin_result(const char *function, CUresult result, int times);
/* Calls of the function do not go on, until told otherwise. At most one function at a time. */
void standin_block(const char *function); /* NULL: none */
/* Work that is queued on the stream is not done, until told otherwise. */
void standin_stall(CUstream stream, bool on);
/* Each copy takes so much longer. */
void standin_slow(unsigned us);

#pragma GCC visibility pop

#endif
