// SPDX-License-Identifier: Apache-2.0
/*
 * The program that the tests and benchmarks of CUDA calls watch. Each line of its input goes to a
 * thread by name ("NAME: STEP; STEP; ..."), which is made when first named, does the steps in turn
 * and answers "NAME: RESULT RESULT...". Steps:
 *   cuFUNCTION [N [STREAM]]  by its exported name; N: bytes, or number of an event; STREAM 0 to 7
 *   fill, arrived  fresh bytes for the next copy; 1 when the last copy's bytes are there
 *   send ROOM, post OP ... leave  what is between runs inside the transport's call
 *   make ROOM, close OP, status OP ANSWER, announce ROOM, begin ROOM, end  of the transport
 *   stall S, release S, block FUNCTION, unblock, result FUNCTION CODE TIMES, slow US  standin.h
 *   stream S  its address
 *   burst CALLS REPEATS PAUSE_MS FUNCTION... [+ FUNCTION...]  the least ns that these took together
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_calls.h"
#include "roomtx.h"
#include "standin.h"

#define MAX_THREADS 16
#define MAX_STEPS   64

struct worker {
	char name[32];
	FILE *in;
	int out; /* where its lines are written */
	pthread_t thread;
	struct calls calls;
	char *step[MAX_STEPS];
	int nsteps, at;
	char answer[1024];
	uint64_t op; /* the last one made or sent */
};
static struct worker workers[MAX_THREADS];
static int nworkers;

__attribute__((format(printf, 2, 3))) static void say(struct worker *w, const char *fmt, ...)
{
	size_t len = strlen(w->answer);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->answer + len, sizeof(w->answer) - len, fmt, ap);
	va_end(ap);
}

static void run_steps(void *arg);

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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
			fn(&w->calls, n, stream);
			if (fn2)
				fn2(&w->calls, n2, stream2);
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
	say(w, " %d", fn(&w->calls, n, stream));
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

/* op 0: the one that this thread has made last. */
static int do_transport(struct worker *w, const char *text)
{
	uint64_t n = 0;
	int answer;

	if (sscanf(text, "send %" SCNu64, &n) == 1)
		rtx_send(n, &w->op, run_steps, w);
	else if (sscanf(text, "make %" SCNu64, &n) == 1)
		rtx_make(n, &w->op);
	else if (sscanf(text, "post %" SCNu64, &n) == 1)
		rtx_post(n ? n : w->op, run_steps, w);
	else if (sscanf(text, "status %" SCNu64 " %d", &n, &answer) == 2)
		rtx_status(n ? n : w->op, answer);
	else if (sscanf(text, "close %" SCNu64, &n) == 1)
		rtx_close(n ? n : w->op);
	else if (sscanf(text, "announce %" SCNu64, &n) == 1)
		rtx_announce(n, "10.0.0.7:41231");
	else if (sscanf(text, "begin %" SCNu64, &n) == 1)
		rtx_begin(n);
	else if (!strcmp(text, "end"))
		rtx_end();
	else
		return -1;
	return 0;
}

/* Up to `leave`, or the end. */
static void run_steps(void *arg)
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
			calls_fill(&w->calls);
		else if (!strcmp(text, "arrived"))
			say(w, " %d", calls_arrived(&w->calls));
		else
			rc = do_control(w, text) ? do_transport(w, text) : 0;
		if (rc)
			say(w, " what?");
	}
}

static void *run(void *arg)
{
	struct worker *w = arg;
	char line[4096], *save;

	if (calls_init(&w->calls))
		exit(1);
	while (fgets(line, sizeof(line), w->in)) {
		line[strcspn(line, "\n")] = 0;
		w->nsteps = w->at = 0;
		w->answer[0] = 0;
		for (char *s = strtok_r(line, ";", &save); s && w->nsteps < MAX_STEPS;
		     s = strtok_r(NULL, ";", &save)) {
			w->step[w->nsteps++] = s + strspn(s, " ");
		}
		while (w->at < w->nsteps)
			run_steps(w);
		flockfile(stdout);
		printf("%s:%s\n", w->name, w->answer);
		fflush(stdout);
		funlockfile(stdout);
	}
	return NULL;
}

static struct worker *worker_named(const char *name)
{
	struct worker *w;
	int fd[2];

	for (int i = 0; i < nworkers; i++)
		if (!strcmp(workers[i].name, name))
			return &workers[i];
	if (nworkers == MAX_THREADS || pipe(fd))
		return NULL;
	w = &workers[nworkers++];
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->out = fd[1];
	w->in = fdopen(fd[0], "r");
	if (!w->in || pthread_create(&w->thread, NULL, run, w))
		return NULL;
	return w;
}

int main(void)
{
	char line[4096], name[32];

	calls_start();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct worker *w;
		int at = 0;

		if (sscanf(line, "%31[a-z0-9]: %n", name, &at) != 1 || !at) {
			fprintf(stderr, "what? %s", line);
			return 2;
		}
		w = worker_named(name);
		if (!w || write(w->out, line + at, strlen(line + at)) < 0)
			return 1;
	}
	return 0;
}
