// SPDX-License-Identifier: Apache-2.0
/*
 * A stand-in for the CUDA driver library: the exported names and ABI of the real one, with host
 * memory for device memory and threads for streams. Copies are real, and as asynchronous as there.
 */
#include <stdlib.h>

#include "stream.h"

static char the_context;

CUresult cuInit(unsigned flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = 0;
	return ordinal ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice dev)
{
	(void)flags;
	(void)dev;
	*ctx = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	return ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxSynchronize(void)
{
	CUresult rc = standin_enter("cuCtxSynchronize");

	return rc ? rc : stream_synchronize_all();
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult rc = standin_enter("cuCtxSynchronize");

	(void)ctx;
	return rc ? rc : stream_synchronize_all();
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	*ptr = (CUdeviceptr)(uintptr_t)calloc(1, bytes);
	return *ptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	free((void *)(uintptr_t)ptr);
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
	(void)flags;
	*ptr = calloc(1, bytes);
	return *ptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *ptr)
{
	free(ptr);
	return CUDA_SUCCESS;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void *mem(CUdeviceptr ptr)
{
	return (void *)(uintptr_t)ptr;
}

/* Plain bytes. */
static CUresult copy(const char *function, void *dst, const void *src, size_t bytes, CUstream s)
{
	struct box box = {.dst = dst, .src = src, .width = bytes, .height = 1, .depth = 1};
	CUresult rc = standin_enter(function);

	if (rc)
		return rc;
	return dst && src ? stream_copy(s, &box) : CUDA_ERROR_INVALID_VALUE;
}

static char *side(int type, const void *host, CUdeviceptr device, CUarray array)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return (char *)array;
	return type == CU_MEMORYTYPE_HOST ? (char *)host : mem(device);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream s)
{
	char *dst = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray);
	char *src = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray);
	struct box box = {.dst = dst + c->dstY * c->dstPitch + c->dstXInBytes,
			  .src = src + c->srcY * c->srcPitch + c->srcXInBytes,
			  .width = c->WidthInBytes,
			  .height = c->Height,
			  .depth = 1,
			  .dst_pitch = c->dstPitch,
			  .src_pitch = c->srcPitch};
	CUresult rc = standin_enter("cuMemcpy2DAsync");

	return rc ? rc : stream_copy(s, &box);
}

static CUresult copy_3d(const char *function, const CUDA_MEMCPY3D *c, CUstream s)
{
	char *dst = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray);
	char *src = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray);
	struct box box = {.dst = dst,
			  .src = src,
			  .width = c->WidthInBytes,
			  .height = c->Height,
			  .depth = c->Depth,
			  .dst_pitch = c->dstPitch,
			  .src_pitch = c->srcPitch,
			  .dst_slice = c->dstPitch * c->dstHeight,
			  .src_slice = c->srcPitch * c->srcHeight};
	CUresult rc = standin_enter(function);

	box.dst += c->dstZ * box.dst_slice + c->dstY * c->dstPitch + c->dstXInBytes;
	box.src += c->srcZ * box.src_slice + c->srcY * c->srcPitch + c->srcXInBytes;
	return rc ? rc : stream_copy(s, &box);
}

static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, const size_t *sizes, size_t n,
		      CUstream s)
{
	CUresult rc = standin_enter("cuMemcpyBatchAsync");

	for (size_t i = 0; !rc && i < n; i++) {
		struct box box = {.dst = mem(dsts[i]),
				  .src = mem(srcs[i]),
				  .width = sizes[i],
				  .height = 1,
				  .depth = 1};

		rc = stream_copy(s, &box);
	}
	return rc;
}

static CUresult batch_3d(const char *name, const CUDA_MEMCPY3D_BATCH_OP *op, size_t n, CUstream s)
{
	CUresult rc = standin_enter(name);

	for (size_t i = 0; !rc && i < n; i++, op++) {
		struct box box = {.dst = mem(op->dst.op.ptr),
				  .src = mem(op->src.op.ptr),
				  .width = op->extent.width,
				  .height = op->extent.height,
				  .depth = op->extent.depth,
				  .dst_pitch = op->extent.width,
				  .src_pitch = op->extent.width,
				  .dst_slice = op->extent.width * op->extent.height,
				  .src_slice = op->extent.width * op->extent.height};

		rc = stream_copy(s, &box);
	}
	return rc;
}

/* ---- events, kernels ------------------------------------------------------------------------- */

static CUresult synchronize(CUstream s)
{
	CUresult rc = standin_enter("cuStreamSynchronize");

	return rc ? rc : stream_synchronize(s);
}

static CUresult wait_event(CUstream s, CUevent event)
{
	CUresult rc = standin_enter("cuStreamWaitEvent");

	return rc ? rc : stream_wait(s, event);
}

static CUresult record(const char *function, CUevent event, CUstream s)
{
	CUresult rc = standin_enter(function);

	return rc ? rc : stream_record(s, event);
}

/* A kernel is a function of this process, run once. */
static CUresult launch(const char *function, CUfunction f, void **params, CUstream s)
{
	CUresult rc = standin_enter(function);

	if (rc)
		return rc;
	return f ? stream_kernel(s, (kernel_fn)(uintptr_t)f, params) : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- the exported names ---------------------------------------------------------------------- */

#define ARGS(...) __VA_ARGS__
/* In `does`, s is the stream that is meant; `stream` says where the call has it. */
#define PAIR(name, params, stream, does)                                                           \
	CUresult name(params)                                                                      \
	{                                                                                          \
		CUstream s = stream_of(stream, false);                                             \
		return does;                                                                       \
	}                                                                                          \
	CUresult name##_ptsz(params)                                                               \
	{                                                                                          \
		CUstream s = stream_of(stream, true);                                              \
		return does;                                                                       \
	}

PAIR(cuMemcpyAsync, ARGS(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream), stream,
     copy("cuMemcpyAsync", mem(dst), mem(src), bytes, s))
PAIR(cuMemcpyHtoDAsync_v2, ARGS(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
     stream, copy("cuMemcpyHtoDAsync", mem(dst), src, bytes, s))
PAIR(cuMemcpyDtoHAsync_v2, ARGS(void *dst, CUdeviceptr src, size_t bytes, CUstream stream), stream,
     copy("cuMemcpyDtoHAsync", dst, mem(src), bytes, s))
PAIR(cuMemcpyDtoDAsync_v2, ARGS(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
     stream, copy("cuMemcpyDtoDAsync", mem(dst), mem(src), bytes, s))
PAIR(cuMemcpyHtoAAsync_v2,
     ARGS(CUarray dst, size_t at, const void *src, size_t bytes, CUstream stream), stream,
     copy("cuMemcpyHtoAAsync", (char *)dst + at, src, bytes, s))
PAIR(cuMemcpyAtoHAsync_v2, ARGS(void *dst, CUarray src, size_t at, size_t bytes, CUstream stream),
     stream, copy("cuMemcpyAtoHAsync", dst, (char *)src + at, bytes, s))
PAIR(cuMemcpyPeerAsync,
     ARGS(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
	  CUstream stream),
     stream,
     ((void)dst_ctx, (void)src_ctx, copy("cuMemcpyPeerAsync", mem(dst), mem(src), bytes, s)))
PAIR(cuMemcpy2DAsync_v2, ARGS(const CUDA_MEMCPY2D *c, CUstream stream), stream, copy_2d(c, s))
PAIR(cuMemcpy3DAsync_v2, ARGS(const CUDA_MEMCPY3D *c, CUstream stream), stream,
     copy_3d("cuMemcpy3DAsync", c, s))
PAIR(cuMemcpy3DPeerAsync, ARGS(const CUDA_MEMCPY3D_PEER *c, CUstream stream), stream,
     copy_3d("cuMemcpy3DPeerAsync", c, s))
PAIR(cuMemcpyBatchAsync,
     ARGS(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t n, CUmemcpyAttributes *attrs,
	  size_t *idxs, size_t nattrs, size_t *fail, CUstream stream),
     stream, ((void)attrs, (void)idxs, (void)nattrs, (void)fail, batch(dsts, srcs, sizes, n, s)))
PAIR(cuMemcpyBatchAsync_v2,
     ARGS(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t n, CUmemcpyAttributes *attrs,
	  size_t *idxs, size_t nattrs, CUstream stream),
     stream, ((void)attrs, (void)idxs, (void)nattrs, batch(dsts, srcs, sizes, n, s)))
PAIR(cuMemcpy3DBatchAsync,
     ARGS(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
	  CUstream stream),
     stream, ((void)fail, (void)flags, batch_3d("cuMemcpy3DBatchAsync", ops, n, s)))
PAIR(cuMemcpy3DBatchAsync_v2,
     ARGS(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream), stream,
     ((void)flags, batch_3d("cuMemcpy3DBatchAsync", ops, n, s)))
PAIR(cuMemcpyWithAttributesAsync,
     ARGS(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUmemcpyAttributes *attr,
	  CUstream stream),
     stream, ((void)attr, copy("cuMemcpyWithAttributesAsync", mem(dst), mem(src), bytes, s)))
PAIR(cuMemcpy3DWithAttributesAsync,
     ARGS(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream stream), stream,
     ((void)flags, batch_3d("cuMemcpy3DWithAttributesAsync", op, 1, s)))
PAIR(cuStreamSynchronize, ARGS(CUstream stream), stream, synchronize(s))
PAIR(cuStreamWaitEvent, ARGS(CUstream stream, CUevent event, unsigned flags), stream,
     ((void)flags, wait_event(s, event)))
PAIR(cuEventRecord, ARGS(CUevent event, CUstream stream), stream, record("cuEventRecord", event, s))
PAIR(cuEventRecordWithFlags, ARGS(CUevent event, CUstream stream, unsigned flags), stream,
     ((void)flags, record("cuEventRecordWithFlags", event, s)))
PAIR(cuLaunchKernel,
     ARGS(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	  unsigned bz, unsigned shared, CUstream stream, void **params, void **extra),
     stream,
     ((void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra,
      launch("cuLaunchKernel", f, params, s)))
PAIR(cuLaunchKernelEx,
     ARGS(const CUlaunchConfig *config, CUfunction f, void **params, void **extra), config->hStream,
     ((void)extra, launch("cuLaunchKernelEx", f, params, s)))
