// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_calls.h"

CUstream calls_stream[CALLS_STREAMS];
static CUevent event[CALLS_EVENTS];
static CUcontext context;

void calls_start(void)
{
	CUdevice device;
	int bad = cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate_v2(&context, 0, device);

	for (int i = 1; i < CALLS_STREAMS; i++)
		bad |= cuStreamCreate(&calls_stream[i], 0);
	for (int i = 0; i < CALLS_EVENTS; i++)
		bad |= cuEventCreate(&event[i], 0);
	if (bad) {
		fprintf(stderr, "CUDA does not start\n");
		exit(1);
	}
}

int calls_init(struct calls *c)
{
	void *from, *to;
	CUdeviceptr device;

	memset(c, 0, sizeof(*c));
	if (cuMemHostAlloc(&from, CALLS_BYTES, 0) || cuMemHostAlloc(&to, CALLS_BYTES, 0) ||
	    cuMemAlloc_v2(&device, CALLS_BYTES))
		return -1;
	c->from = from;
	c->to = to;
	c->device = (char *)(uintptr_t)device;
	return 0;
}

void calls_fill(struct calls *c)
{
	c->seed++;
	for (size_t i = 0; i < CALLS_BYTES; i++)
		c->from[i] = (char)(c->seed * 31 + i * 7);
	memset(c->to, 0, CALLS_BYTES);
	c->bytes = 0;
	__atomic_store_n(&c->kernels, 0, __ATOMIC_SEQ_CST);
}

int calls_arrived(const struct calls *c)
{
	return c->bytes ? !memcmp(c->from, c->to, c->bytes)
			: __atomic_load_n(&c->kernels, __ATOMIC_SEQ_CST) > 0;
}

static CUdeviceptr at(const char *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

#define CALL(name, ...)                                                                            \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		(void)c, (void)n, (void)stream;                                                    \
		return name(__VA_ARGS__);                                                          \
	}
#define CALLS(name, ...) CALL(name, __VA_ARGS__) CALL(name##_ptsz, __VA_ARGS__)

/* Each copy leads from `from` to `to`, which are device memory as well as the rest here. */
#define COPY(name, ...)                                                                            \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		c->bytes = n;                                                                      \
		return name(__VA_ARGS__);                                                          \
	}
#define COPIES(name, ...) COPY(name, __VA_ARGS__) COPY(name##_ptsz, __VA_ARGS__)

COPIES(cuMemcpyAsync, at(c->to), at(c->from), n, stream)
COPIES(cuMemcpyHtoDAsync_v2, at(c->to), c->from, n, stream)
COPIES(cuMemcpyDtoHAsync_v2, c->to, at(c->from), n, stream)
COPIES(cuMemcpyDtoDAsync_v2, at(c->to), at(c->from), n, stream)
COPIES(cuMemcpyHtoAAsync_v2, (CUarray)c->to, 0, c->from, n, stream)
COPIES(cuMemcpyAtoHAsync_v2, c->to, (CUarray)c->from, 0, n, stream)
COPIES(cuMemcpyPeerAsync, at(c->to), context, at(c->from), context, n, stream)

/* A rectangle of two rows of n / 2 bytes, a box of two slices of two rows of n / 4. */
#define BOXES(name, type, rows, slices, more)                                                      \
	static type name##_box(struct calls *c, uint64_t n)                                        \
	{                                                                                          \
		c->bytes = n;                                                                      \
		return (type){                                                                     \
			.srcMemoryType = CU_MEMORYTYPE_HOST,                                       \
			.srcHost = c->from,                                                        \
			.srcPitch = n / (rows * slices),                                           \
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,                                     \
			.dstDevice = at(c->to),                                                    \
			.dstPitch = n / (rows * slices),                                           \
			.WidthInBytes = n / (rows * slices),                                       \
			.Height = rows,                                                            \
			more,                                                                      \
		};                                                                                 \
	}                                                                                          \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		type box = name##_box(c, n);                                                       \
		return name(&box, stream);                                                         \
	}                                                                                          \
	static int do_##name##_ptsz(struct calls *c, uint64_t n, CUstream stream)                  \
	{                                                                                          \
		type box = name##_box(c, n);                                                       \
		return name##_ptsz(&box, stream);                                                  \
	}
BOXES(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, 2, 1, .srcXInBytes = 0)
#define DEEP .Depth = 2, .srcHeight = 2, .dstHeight = 2
BOXES(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, 2, 2, DEEP)
BOXES(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, 2, 2, DEEP)

/* Two halves. */
#define BATCHES(name, ...)                                                                         \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		CUdeviceptr to[] = {at(c->to), at(c->to + n / 2)};                                 \
		CUdeviceptr from[] = {at(c->from), at(c->from + n / 2)};                           \
		size_t size[] = {n / 2, n - n / 2};                                                \
		c->bytes = n;                                                                      \
		return name(to, from, size, 2, NULL, NULL, 0, __VA_ARGS__);                        \
	}
BATCHES(cuMemcpyBatchAsync, NULL, stream)
BATCHES(cuMemcpyBatchAsync_ptsz, NULL, stream)
BATCHES(cuMemcpyBatchAsync_v2, stream)
BATCHES(cuMemcpyBatchAsync_v2_ptsz, stream)

static CUDA_MEMCPY3D_BATCH_OP half(struct calls *c, uint64_t n, int which)
{
	uint64_t from = which * (n / 2);

	c->bytes = n;
	return (CUDA_MEMCPY3D_BATCH_OP){
		.src = {.type = 1, .op.ptr = at(c->from + from)},
		.dst = {.type = 1, .op.ptr = at(c->to + from)},
		.extent = {.width = which ? n - from : n / 2, .height = 1, .depth = 1},
	};
}
#define BATCHES_3D(name, ...)                                                                      \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		CUDA_MEMCPY3D_BATCH_OP op[] = {half(c, n, 0), half(c, n, 1)};                      \
		return name(2, op, __VA_ARGS__);                                                   \
	}
BATCHES_3D(cuMemcpy3DBatchAsync, NULL, 0, stream)
BATCHES_3D(cuMemcpy3DBatchAsync_ptsz, NULL, 0, stream)
BATCHES_3D(cuMemcpy3DBatchAsync_v2, 0, stream)
BATCHES_3D(cuMemcpy3DBatchAsync_v2_ptsz, 0, stream)

COPIES(cuMemcpyWithAttributesAsync, at(c->to), at(c->from), n, NULL, stream)
/* A box of two slices of two rows of n / 4. */
#define BOX_OP(name)                                                                               \
	static int do_##name(struct calls *c, uint64_t n, CUstream stream)                         \
	{                                                                                          \
		CUDA_MEMCPY3D_BATCH_OP op = half(c, n, 0);                                         \
		op.extent.width = n / 4;                                                           \
		op.extent.height = op.extent.depth = 2;                                            \
		return name(&op, 0, stream);                                                       \
	}
BOX_OP(cuMemcpy3DWithAttributesAsync)
BOX_OP(cuMemcpy3DWithAttributesAsync_ptsz)

CALL(cuCtxSynchronize, )
CALL(cuCtxSynchronize_v2, context)
CALL(cuEventQuery, event[n % CALLS_EVENTS])
CALL(cuEventSynchronize, event[n % CALLS_EVENTS])
CALLS(cuStreamSynchronize, stream)
CALLS(cuStreamWaitEvent, stream, event[n % CALLS_EVENTS], 0)
CALLS(cuEventRecord, event[n % CALLS_EVENTS], stream)
CALLS(cuEventRecordWithFlags, event[n % CALLS_EVENTS], stream, 0)

static void kernel(void **params)
{
	__atomic_add_fetch((unsigned *)params, 1, __ATOMIC_SEQ_CST);
}
#define KERNEL (CUfunction)(uintptr_t) kernel
#define PARAMS (void **)&c->kernels
CALLS(cuLaunchKernel, KERNEL, 1, 1, 1, 32, 1, 1, 0, stream, PARAMS, NULL)
CALLS(cuLaunchKernelEx, &(CUlaunchConfig){.hStream = stream}, KERNEL, PARAMS, NULL)

#define ONE(name)  {#name, do_##name},
#define BOTH(name) {#name, do_##name}, {#name "_ptsz", do_##name##_ptsz},
// clang-format off: a list of names, not statements
static const struct {
	const char *name;
	call_fn *fn;
} table[] = {
	BOTH(cuMemcpyAsync) BOTH(cuMemcpyHtoDAsync_v2) BOTH(cuMemcpyDtoHAsync_v2) BOTH(
		cuMemcpyDtoDAsync_v2) BOTH(cuMemcpyHtoAAsync_v2) BOTH(cuMemcpyAtoHAsync_v2)
		BOTH(cuMemcpyPeerAsync) BOTH(cuMemcpy2DAsync_v2) BOTH(cuMemcpy3DAsync_v2) BOTH(
			cuMemcpy3DPeerAsync) BOTH(cuMemcpyBatchAsync) BOTH(cuMemcpyBatchAsync_v2)
			BOTH(cuMemcpy3DBatchAsync) BOTH(cuMemcpy3DBatchAsync_v2) BOTH(
				cuMemcpyWithAttributesAsync) BOTH(cuMemcpy3DWithAttributesAsync)
				ONE(cuCtxSynchronize) ONE(cuCtxSynchronize_v2) ONE(cuEventQuery)
					ONE(cuEventSynchronize) BOTH(cuStreamSynchronize)
						BOTH(cuStreamWaitEvent) BOTH(cuEventRecord)
							BOTH(cuEventRecordWithFlags)
								BOTH(cuLaunchKernel)
									BOTH(cuLaunchKernelEx)};
// clang-format on

call_fn *calls_find(const char *name)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].name, name))
			return table[i].fn;
	return NULL;
}
