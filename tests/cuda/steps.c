// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "roomtx.h"
#include "steps.h"

#define MAX_THREADS 16

static struct worker workers[MAX_THREADS];
static int nworkers;

void say(struct worker *w, const char *fmt, ...)
{
	size_t len = strlen(w->answer);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->answer + len, sizeof(w->answer) - len, fmt, ap);
	va_end(ap);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int do_transport(struct worker *w, const char *text)
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

static void *run(void *arg)
{
	struct worker *w = arg;
	char line[4096], *save;

	if (worker_init(w))
		exit(1);
	while (fgets(line, sizeof(line), w->in)) {
		line[strcspn(line, "\n")] = 0;
		w->nsteps = w->at = 0;
		w->answer[0] = 0;
		for (char *s = strtok_r(line, ";", &save); s && w->nsteps < MAX_STEPS;
		     s = strtok_r(NULL, ";", &save))
			w->step[w->nsteps++] = s + strspn(s, " ");
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

int serve(void)
{
	char line[4096], name[32];

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
