// SPDX-License-Identifier: Apache-2.0
/*
 * Which kernel thread is which. An interpreter knows a thread by the number that gettid() gave it
 * in its own pid namespace; 3.10 knows only pthread_self(), and the number is inside the C
 * library's struct that this points to.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/threads.h"
#include "util/cleanup.h"

#define PTHREAD_RAW 1024 /* glibc 2.36 has the tid at 720 on x86-64 and at 208 on arm64 */

struct task {
	uint32_t outer, inner; /* as /proc shows it to us; as the process itself sees it */
};
struct tasks {
	struct task *task;
	size_t n;
};

/* "NSpid:\t4242\t17": from our namespace to the innermost one. */
static uint32_t inner_id(pid_t pid, uint32_t tid)
{
	char path[80], line[256];
	__fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/status", pid, tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *last;

		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		return last ? (uint32_t)strtoul(last, NULL, 10) : tid;
	}
	return tid;
}

static int read_tasks(pid_t pid, struct tasks *out)
{
	bool nested = inner_id(pid, (uint32_t)pid) != (uint32_t)pid;
	char path[64];
	const struct dirent *d;
	size_t cap = 0;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((d = readdir(dir)) && !err) {
		uint32_t tid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (!tid)
			continue;
		if (out->n == cap) {
			struct task *grown;

			cap = cap * 2 + 64;
			grown = realloc(out->task, cap * sizeof(*grown));
			err = grown ? 0 : -ENOMEM;
			if (err)
				break;
			out->task = grown;
		}
		out->task[out->n].outer = tid;
		out->task[out->n++].inner = nested ? inner_id(pid, tid) : tid;
	}
	closedir(dir);
	return err;
}

static uint32_t outer_of(const struct tasks *t, uint64_t inner)
{
	for (size_t i = 0; i < t->n; i++)
		if (inner && t->task[i].inner == inner)
			return t->task[i].outer;
	return 0;
}

/* ---- inside struct pthread ------------------------------------------------------------------- */

static uint32_t at(const uint8_t *raw, size_t offset)
{
	uint32_t v;

	memcpy(&v, raw + offset, sizeof(v));
	return v;
}

/* How many threads have a task's number at that offset, each another one. */
static size_t matches(const struct tasks *tasks, const uint8_t *raw, size_t n, size_t offset)
{
	size_t hits = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t v = at(raw + i * PTHREAD_RAW, offset);

		for (size_t j = 0; j < i; j++)
			if (v && at(raw + j * PTHREAD_RAW, offset) == v)
				return 0;
		hits += outer_of(tasks, v) != 0;
	}
	return hits;
}

/* The same offset for all threads: the one where most numbers are right, the lowest of these. */
static int from_pthread(struct py_runtime *rt, const struct tasks *tasks, const struct py_ident *id,
			struct py_threads *t)
{
	__free uint8_t *raw = calloc(t->n, PTHREAD_RAW);
	__free struct pymem_span *span = calloc(t->n, sizeof(*span));
	size_t best = 0, offset = 0;
	int err;

	if (!raw || !span)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		span[i] = (struct pymem_span){
			.addr = id[i].pthread, .buf = raw + i * PTHREAD_RAW, .len = PTHREAD_RAW};
	err = pymem_readv(rt->mem, span, t->n);
	if (err)
		return err;
	for (size_t i = 0; i < t->n; i++)
		if (span[i].rc)
			memset(raw + i * PTHREAD_RAW, 0, PTHREAD_RAW);
	for (size_t o = 0; o < PTHREAD_RAW; o += sizeof(uint32_t)) {
		size_t hits = matches(tasks, raw, t->n, o);

		if (hits > best) {
			best = hits;
			offset = o;
		}
	}
	for (size_t i = 0; i < t->n && best; i++)
		if (!t->t[i].tid)
			t->t[i].tid = outer_of(tasks, at(raw + i * PTHREAD_RAW, offset));
	return 0;
}

int py_tids(struct py_runtime *rt, pid_t pid, const struct py_ident *id, struct py_threads *t)
{
	struct tasks tasks = {0};
	size_t unknown = 0;
	int err = 0;

	if (pid)
		err = read_tasks(pid, &tasks);
	for (size_t i = 0; i < t->n && !err; i++) {
		t->t[i].tid = pid ? outer_of(&tasks, id[i].native) : (uint32_t)id[i].native;
		unknown += !t->t[i].tid;
	}
	/* Also where a fork has left the parent's number. */
	if (!err && pid && unknown)
		err = from_pthread(rt, &tasks, id, t);
	free(tasks.task);
	return err;
}
