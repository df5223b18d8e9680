// SPDX-License-Identifier: Apache-2.0
/*
 * The program that the tests and benchmarks of CUDA calls watch. Steps of its threads (steps.h):
 *   cuFUNCTION [N [STREAM]]  by its exported name; N: bytes, or number of an event; STREAM 0 to 7
 *   fill, arrived  fresh bytes for the next copy; 1 when the last copy's bytes are there
 *   send ROOM, post OP ... leave  what is between runs inside the transport's call
 *   make ROOM, close OP, status OP ANSWER, announce ROOM, begin ROOM, end  of the transport
 *   stall S, release S, block FUNCTION, unblock, result FUNCTION CODE TIMES, slow US  standin.h
 *   stream S  its address
 *   burst CALLS REPEATS PAUSE_MS FUNCTION... [+ FUNCTION...]  the least ns that these took together
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "standin.h"
#include "steps.h"

/* A CUDA function and its arguments; NULL: it is none. */
static call_fn *cuda_call(const char *text, uint64_t *n, CUstream *stream)
{
	char name[64];
	unsigned s = 0;

	*n = 0;
	if (sscanf(text, "%63s %" SCNu64 " %u", name, n, &s) < 1 || s >= CALLS_STREAMS)
		return NULL;
	*stream = calls_stream[s];
	return *n <= CALLS_BYTES ? calls_find(name) : NULL;
}

static int do_burst(struct worker *w, const char *text)
{
	const char *plus = strstr(text, " + ");
	unsigned calls, repeats, pause;
	uint64_t n, n2 = 0;
	double least = 1e18;
	CUstream stream, stream2 = NULL;
	call_fn *fn, *fn2;
	int at;

	if (sscanf(text, "burst %u %u %u %n", &calls, &repeats, &pause, &at) != 3 || !calls)
		return -1;
	fn = cuda_call(text + at, &n, &stream);
	fn2 = plus ? cuda_call(plus + 3, &n2, &stream2) : NULL;
	if (!fn || (plus && !fn2))
		return -1;
	for (unsigned r = 0; r < repeats; r++) {
		uint64_t start = now_ns();
		double each;

		for (unsigned i = 0; i < calls; i++) {
			fn(w->own, n, stream);
			if (fn2)
				fn2(w->own, n2, stream2);
		}
		each = (double)(now_ns() - start) / calls;
		least = each < least ? each : least;
		usleep(pause * 1000);
	}
	say(w, " %.2f", least);
	return 0;
}

static int do_cuda(struct worker *w, const char *text)
{
	CUstream stream;
	uint64_t n;
	call_fn *fn = cuda_call(text, &n, &stream);

	if (!fn)
		return -1;
	say(w, " %d", fn(w->own, n, stream));
	return 0;
}

static int do_control(struct worker *w, const char *text)
{
	unsigned s, code, times;
	char name[64];

	if (sscanf(text, "stall %u", &s) == 1 && s < CALLS_STREAMS)
		standin_stall(calls_stream[s], true);
	else if (sscanf(text, "release %u", &s) == 1 && s < CALLS_STREAMS)
		standin_stall(calls_stream[s], false);
	else if (sscanf(text, "block %63s", name) == 1)
		standin_block(name);
	else if (!strcmp(text, "unblock"))
		standin_block(NULL);
	else if (sscanf(text, "result %63s %u %u", name, &code, &times) == 3)
		standin_result(name, (int)code, (int)times);
	else if (sscanf(text, "slow %u", &s) == 1)
		standin_slow(s);
	else if (sscanf(text, "stream %u", &s) == 1 && s < CALLS_STREAMS)
		say(w, " 0x%" PRIxPTR, (uintptr_t)calls_stream[s]);
	else
		return -1;
	return 0;
}

/* Up to `leave`, or the end. */
void run_steps(void *arg)
{
	struct worker *w = arg;

	while (w->at < w->nsteps) {
		const char *text = w->step[w->at++];
		int rc = 0;

		if (!strcmp(text, "leave"))
			return;
		if (!strncmp(text, "cu", 2))
			rc = do_cuda(w, text);
		else if (!strncmp(text, "burst ", 6))
			rc = do_burst(w, text);
		else if (!strcmp(text, "fill"))
			calls_fill(w->own);
		else if (!strcmp(text, "arrived"))
			say(w, " %d", calls_arrived(w->own));
		else
			rc = do_control(w, text) ? do_transport(w, text) : 0;
		if (rc)
			say(w, " what?");
	}
}

int worker_init(struct worker *w)
{
	w->own = calloc(1, sizeof(struct calls));
	return w->own ? calls_init(w->own) : -1;
}

int main(void)
{
	calls_start();
	return serve();
}
