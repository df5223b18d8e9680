/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their Python frames. A stack that changes while it is read may show a frame that has
 * just gone; what matters is checked by type, and a verdict needs two equal snapshots.
 */
#ifndef SP_PYTHON_FRAME_H
#define SP_PYTHON_FRAME_H

#include "python/object.h"

#define PY_FRAMES_MAX  512
#define PY_THREADS_MAX 4096
#define PY_INTERPS_MAX 16

struct py_frame {
	uint64_t addr, code;
	uint64_t locals; /* address of the array of local variables */
	uint64_t lasti;  /* as struct py_layout: pointer or index */
};
struct py_thread {
	uint64_t addr;
	uint32_t tid;  /* in the pid namespace that /proc shows us, 0: not known */
	char name[32]; /* threading.Thread.name where it can be read, else the comm */
	int nframes;
	struct py_frame *frame; /* innermost first; owned, see py_threads_free */
};
struct py_threads {
	struct py_thread *t;
	size_t n;
};

/* All threads of all interpreters, the oldest (main) first. pid (host's numbering; 0: leave tid as
 * the target says) maps a container's thread ids through /proc/PID/task/TID/status. -EAGAIN: torn.
 */
int py_threads(struct py_runtime *rt, pid_t pid, bool names, struct py_threads *out);
void py_threads_free(struct py_threads *t);

struct py_code {
	char name[128], qualname[192], file[256]; /* qualname "" before 3.11 */
	uint64_t localnames;                      /* tuple */
	int firstlineno;
};
int py_code(struct py_runtime *rt, uint64_t code, struct py_code *out);
/* glob of struct py_root.frame against a function's names. */
bool py_code_matches(const struct py_code *c, const char *glob);
/* A local variable by name; -ENODATA: no such variable, or unbound. Cells are looked through. */
int py_local(struct py_runtime *rt, const struct py_frame *f, const char *name, uint64_t *value);
/* Has the function a variable of that name, bound or not? 0; -ENODATA: no. */
int py_local_declared(struct py_runtime *rt, const struct py_frame *f, const char *name);
/* The line the frame is at, from the code's line table; -EINVAL: unknown. */
int py_line(struct py_runtime *rt, const struct py_frame *f, int *line);
/* "file.py:12 func" for one frame; file: its last two path components. */
int py_frame_text(struct py_runtime *rt, const struct py_frame *f, char *buf, size_t len);

#endif
