/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the CUDA driver API that the stand-in has, by its documented ABI (64-bit, release
 * 13.0; docs.nvidia.com, CUDA Driver API). The names are the exported ones: what a program writes
 * as cuMemcpyHtoDAsync is cuMemcpyHtoDAsync_v2 in the library, or cuMemcpyHtoDAsync_v2_ptsz when it
 * is compiled for per-thread default streams.
 */
#ifndef CUDA_ABI_H
#define CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUfunc_st *CUfunction;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_FAILED = 719,
};

enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED };

typedef struct {
	size_t srcXInBytes, srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

/* The same layout serves copies between devices, whose contexts lie where `reserved` is here. */
typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
typedef CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER;

typedef struct {
	int type; /* 1: a pointer */
	struct {
		CUdeviceptr ptr;
		size_t rowLength, layerHeight; /* 0: packed */
		int locHint[2];
	} op;
} CUmemcpy3DOperand;
typedef struct {
	CUmemcpy3DOperand src, dst;
	struct {
		size_t width, height, depth;
	} extent;
	int srcAccessOrder;
	unsigned flags;
} CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUmemcpyAttributes CUmemcpyAttributes;

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ;
	unsigned blockDimX, blockDimY, blockDimZ;
	unsigned sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

_Static_assert(offsetof(CUDA_MEMCPY2D, WidthInBytes) == 112, "CUDA_MEMCPY2D");
_Static_assert(offsetof(CUDA_MEMCPY3D, WidthInBytes) == 176, "CUDA_MEMCPY3D");
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA_MEMCPY3D_BATCH_OP");
_Static_assert(offsetof(CUDA_MEMCPY3D_BATCH_OP, extent) == 80, "CUDA_MEMCPY3D_BATCH_OP");
_Static_assert(offsetof(CUlaunchConfig, hStream) == 32, "CUlaunchConfig");

#pragma GCC visibility push(default) /* all else stays inside the library */
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetCount(int *count);
CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned flags, CUdevice dev);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);

/* name and name_ptsz, which differ in what the stream 0 is. */
#define CU_PAIR(name, ...)                                                                         \
	CUresult name(__VA_ARGS__);                                                                \
	CUresult name##_ptsz(__VA_ARGS__)

CU_PAIR(cuMemcpyAsync, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CU_PAIR(cuMemcpyHtoDAsync_v2, CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CU_PAIR(cuMemcpyDtoHAsync_v2, void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CU_PAIR(cuMemcpyDtoDAsync_v2, CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CU_PAIR(cuMemcpyHtoAAsync_v2, CUarray dst, size_t at, const void *src, size_t bytes,
	CUstream stream);
CU_PAIR(cuMemcpyAtoHAsync_v2, void *dst, CUarray src, size_t at, size_t bytes, CUstream stream);
CU_PAIR(cuMemcpyPeerAsync, CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
	size_t bytes, CUstream stream);
CU_PAIR(cuMemcpy2DAsync_v2, const CUDA_MEMCPY2D *copy, CUstream stream);
CU_PAIR(cuMemcpy3DAsync_v2, const CUDA_MEMCPY3D *copy, CUstream stream);
CU_PAIR(cuMemcpy3DPeerAsync, const CUDA_MEMCPY3D_PEER *copy, CUstream stream);
CU_PAIR(cuMemcpyBatchAsync, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attr_idxs, size_t nattrs, size_t *fail_idx,
	CUstream stream);
CU_PAIR(cuMemcpyBatchAsync_v2, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	CUmemcpyAttributes *attrs, size_t *attr_idxs, size_t nattrs, CUstream stream);
CU_PAIR(cuMemcpy3DBatchAsync, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail_idx,
	unsigned long long flags, CUstream stream);
CU_PAIR(cuMemcpy3DBatchAsync_v2, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops,
	unsigned long long flags, CUstream stream);
CU_PAIR(cuMemcpyWithAttributesAsync, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
	CUmemcpyAttributes *attr, CUstream stream);
CU_PAIR(cuMemcpy3DWithAttributesAsync, CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags,
	CUstream stream);
CU_PAIR(cuStreamSynchronize, CUstream stream);
CU_PAIR(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned flags);
CU_PAIR(cuEventRecord, CUevent event, CUstream stream);
CU_PAIR(cuEventRecordWithFlags, CUevent event, CUstream stream, unsigned flags);
CU_PAIR(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CU_PAIR(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction f, void **params, void **extra);

#pragma GCC visibility pop

#endif
