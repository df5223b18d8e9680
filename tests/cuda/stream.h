/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events of the stand-in libcuda: a stream is a thread that does what is queued, in
 * order. One lock guards all of them; copies and kernels run without it.
 */
#ifndef CUDA_STREAM_H
#define CUDA_STREAM_H

#include "standin.h"

/* A box of bytes; a plain copy is one row. */
struct box {
	char *dst;
	const char *src;
	size_t width, height, depth; /* bytes, rows, slices */
	size_t dst_pitch, src_pitch; /* bytes from row to row */
	size_t dst_slice, src_slice; /* bytes from slice to slice */
};
typedef void (*kernel_fn)(void **params);

/* 0: the default stream: the process's, or with per_thread the calling thread's. */
CUstream stream_of(CUstream stream, bool per_thread);
/* Queue work; 0, or CUDA_ERROR_*. */
CUresult stream_copy(CUstream s, const struct box *box);
CUresult stream_kernel(CUstream s, kernel_fn fn, void **params);
CUresult stream_record(CUstream s, CUevent event);
CUresult stream_wait(CUstream s, CUevent event);
/* Wait until all that is queued now is done. */
CUresult stream_synchronize(CUstream s);
CUresult stream_synchronize_all(void);

/* At the beginning of each function: waits while it is blocked. The injected result, or 0. */
CUresult standin_enter(const char *function);

#endif
