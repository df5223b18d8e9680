// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream.h"

enum op_kind { OP_COPY, OP_KERNEL, OP_RECORD, OP_WAIT };

struct op {
	struct op *next;
	enum op_kind kind;
	struct box box;
	kernel_fn fn;
	void **params;
	CUevent event;
	uint64_t number; /* of the event's recording */
};

struct CUstream_st {
	struct CUstream_st *next;
	struct op *first, **last;
	uint64_t queued, done; /* pieces of work, ever */
	bool stalled, ending;
	pthread_t thread;
};

/* An event is complete when the last of its recordings is. */
struct CUevent_st {
	uint64_t recorded, done;
	int refs; /* its owner, and the work queued that names it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct CUstream_st *streams, *default_stream;
static _Thread_local CUstream thread_stream;
static unsigned slow_us;

static struct {
	char function[64];
	CUresult result;
	int times;
} injected;
static char blocked[64];

void standin_result(const char *function, CUresult result, int times)
{
	pthread_mutex_lock(&lock);
	strncpy(injected.function, function, sizeof(injected.function) - 1);
	injected.result = result;
	injected.times = times;
	pthread_mutex_unlock(&lock);
}

void standin_block(const char *function)
{
	pthread_mutex_lock(&lock);
	strncpy(blocked, function ? function : "", sizeof(blocked) - 1);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void standin_slow(unsigned us)
{
	pthread_mutex_lock(&lock);
	slow_us = us;
	pthread_mutex_unlock(&lock);
}

void standin_stall(CUstream stream, bool on)
{
	CUstream s = stream_of(stream, false);

	pthread_mutex_lock(&lock);
	s->stalled = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

CUresult standin_enter(const char *function)
{
	CUresult rc = 0;

	pthread_mutex_lock(&lock);
	while (!strcmp(blocked, function))
		pthread_cond_wait(&changed, &lock);
	if (injected.times > 0 && !strcmp(injected.function, function)) {
		injected.times--;
		rc = injected.result;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static void event_put(CUevent e) /* with the lock */
{
	if (!--e->refs)
		free(e);
}

static void copy(const struct box *b)
{
	for (size_t z = 0; z < b->depth; z++)
		for (size_t y = 0; y < b->height; y++)
			memcpy(b->dst + z * b->dst_slice + y * b->dst_pitch,
			       b->src + z * b->src_slice + y * b->src_pitch, b->width);
}

/* With the lock, which it gives up while it works. */
static void do_op(struct op *op)
{
	unsigned us = slow_us;

	switch (op->kind) {
	case OP_COPY:
	case OP_KERNEL:
		pthread_mutex_unlock(&lock);
		if (op->kind == OP_KERNEL)
			op->fn(op->params);
		else
			copy(&op->box);
		if (us && op->kind == OP_COPY)
			usleep(us);
		pthread_mutex_lock(&lock);
		break;
	case OP_RECORD:
		if (op->event->done < op->number)
			op->event->done = op->number;
		break;
	case OP_WAIT:
		while (op->event->done < op->number)
			pthread_cond_wait(&changed, &lock);
		break;
	}
	if (op->event)
		event_put(op->event);
}

static void *run(void *arg)
{
	CUstream s = arg;

	pthread_mutex_lock(&lock);
	for (;;) {
		struct op *op = s->stalled ? NULL : s->first;

		if (!op && s->ending)
			break;
		if (!op) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		s->first = op->next;
		if (!s->first)
			s->last = &s->first;
		do_op(op);
		free(op);
		s->done++;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	CUstream s = calloc(1, sizeof(*s));

	(void)flags;
	if (!s || pthread_create(&s->thread, NULL, run, s)) {
		free(s);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&lock);
	s->last = &s->first;
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&lock);
	*stream = s;
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	for (CUstream *p = &streams; *p; p = &(*p)->next)
		if (*p == stream) {
			*p = stream->next;
			break;
		}
	stream->ending = true;
	stream->stalled = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(stream->thread, NULL);
	free(stream);
	return CUDA_SUCCESS;
}

static void make_default(void)
{
	if (cuStreamCreate(&default_stream, 0))
		abort();
}

CUstream stream_of(CUstream stream, bool per_thread)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (stream)
		return stream;
	if (!per_thread) {
		pthread_once(&once, make_default);
		return default_stream;
	}
	if (!thread_stream && cuStreamCreate(&thread_stream, 0))
		abort();
	return thread_stream;
}

/* Takes op over. */
static CUresult queue(CUstream s, const struct op *what)
{
	struct op *op = malloc(sizeof(*op));

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*op = *what;
	op->next = NULL;
	pthread_mutex_lock(&lock);
	if (op->event) {
		op->event->refs++;
		op->number = op->kind == OP_RECORD ? ++op->event->recorded : op->event->recorded;
	}
	*s->last = op;
	s->last = &op->next;
	s->queued++;
	if (!s->stalled)
		pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult stream_copy(CUstream s, const struct box *box)
{
	return queue(s, &(struct op){.kind = OP_COPY, .box = *box});
}

CUresult stream_kernel(CUstream s, kernel_fn fn, void **params)
{
	return queue(s, &(struct op){.kind = OP_KERNEL, .fn = fn, .params = params});
}

CUresult stream_record(CUstream s, CUevent event)
{
	return event ? queue(s, &(struct op){.kind = OP_RECORD, .event = event})
		     : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_wait(CUstream s, CUevent event)
{
	return event ? queue(s, &(struct op){.kind = OP_WAIT, .event = event})
		     : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_synchronize(CUstream s)
{
	uint64_t until;

	pthread_mutex_lock(&lock);
	until = s->queued;
	while (s->done < until)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult stream_synchronize_all(void)
{
	pthread_mutex_lock(&lock);
	for (CUstream s = streams; s;) {
		if (s->done < s->queued) {
			pthread_cond_wait(&changed, &lock);
			s = streams;
		} else {
			s = s->next;
		}
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
	CUevent e = calloc(1, sizeof(*e));

	(void)flags;
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->refs = 1;
	*event = e;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	event_put(event);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	CUresult rc = standin_enter("cuEventQuery");

	if (rc)
		return rc;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	rc = event->done < event->recorded ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return rc;
}

CUresult cuEventSynchronize(CUevent event)
{
	CUresult rc = standin_enter("cuEventSynchronize");

	if (rc)
		return rc;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	for (uint64_t until = event->recorded; event->done < until;)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}
