/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share; for others: snapshot.h. */
#ifndef SP_PYTHON_READER_H
#define SP_PYTHON_READER_H

#include "python/query.h"
#include "python/snapshot.h"

/* Which of the profile's frames a code object is, by bit: told by its names once, and as long as it
 * has these names. A code object does not move, but may be freed and its place used again. */
struct pycode {
	uint64_t code; /* 0: empty slot */
	uint64_t name[2];
	unsigned round; /* in which the names were compared */
	uint8_t roots, threads, idle;
};
#define PYCODES_SLOTS 2048
#define PYCODES_MAX   1024
struct pycodes {
	struct pycode slot[PYCODES_SLOTS];
	int n;
};

struct pyreader {
	pid_t pid; /* 0: an image */
	const struct profile_python *spec;
	struct pymem *mem;
	bool own_mem;
	struct py_runtime rt;
	struct pybatch *batch;
	struct pycodes codes;
	unsigned round;
	bool doubt; /* the last snapshot was not as it should be */
	struct {
		uint64_t obj, type; /* 0: not found */
		char name[PY_NAME_MAX];
		const char *local; /* the profile's name of it */
		uint64_t seen_ns;  /* in a frame, the last time */
		uint64_t found;    /* the object that was found last */
		uint64_t first_ns; /* and was in a frame for the first time */
	} root;
	uint64_t image[2]; /* what an exec changes: see reader.c */
	/* The alternative that fitted last, tried first. */
	int queue_alt[PY_MAX_QUEUES], status_alt, announced_alt, backlog_alt;
	struct pymemory queue_rows[PY_MAX_QUEUES], announced_rows;
	bool queue_ever[PY_MAX_QUEUES]; /* was there once: it does not go, not even if optional */
	size_t nworkers;                /* that were found last */
	bool ever[PY_MAX_THREADS], idle_ever[PY_MAX_THREADS]; /* see struct pyview_declared */
	bool serving_proved;
	struct pyreader_stats stats;
};

/* codes.c: classify all frames of these threads; then each frame's code. NULL: could not be read.
 */
int pycodes_update(struct pyreader *r, const struct py_threads *t);
const struct pycode *pycodes_get(const struct pyreader *r, uint64_t code);

/* root.c: find it in the threads' frames; -ENOENT with where it was looked for in err. */
int pyroot_find(struct pyreader *r, struct sp_err *err);
/* The cached one is still what it was: 0, -ENOENT. */
int pyroot_check(struct pyreader *r);

/* workers.c: workers, bootstrap thread, and who serves which backlog. s->waiting holds the rows of
 * the backlog. */
int pyworkers_read(struct pyreader *r, struct py_snapshot *s, bool *stable);
/* snapshot.c: the path that leads to a backlog's queue objects; true: to many. */
bool pybacklog_queues(const struct py_path *p, struct py_path *out);
/* All threads, two tries. */
int pyreader_threads(struct pyreader *r, bool names, struct py_threads *out);

/* reader.c: -ESRCH: the process is gone, or runs another program by now. */
int pyreader_same_program(const struct pyreader *r);
/* What was learned once, and may have been learned from a torn read. */
void pyreader_forget(struct pyreader *r);
/* Room for one more element of an array that grows; NULL: no memory. */
void *pyreader_grow(void **array, size_t n, size_t size);

#endif
