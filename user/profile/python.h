/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `python:` section of a profile: where a server written in Python keeps its queues and its
 * status table, as paths from an object that some thread's frame holds. Data only: user/python/
 * evaluates it, pyspec.c parses it. Grammar: docs/profiles.md.
 */
#ifndef SP_PROFILE_PYTHON_H
#define SP_PROFILE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PY_NAME_MAX    64
#define PY_MAX_STEPS   16
#define PY_MAX_FIELDS  8
#define PY_MAX_ALTS    4
#define PY_MAX_QUEUES  8
#define PY_MAX_ROOTS   4
#define PY_MAX_THREADS 4

/* "self.kv_manager.request_status{}": a first word, then steps. */
enum py_step_kind {
	PY_ATTR,  /* .name     an attribute: instance dict, inline values, __slots__ */
	PY_EACH,  /* [*]       every element of a list, tuple or deque */
	PY_ITEMS, /* {}        every entry of a dict: fields may say `key` and `value` */
	PY_FIRST, /* {0}       the value of a dict's first entry */
	PY_LEN,   /* #         number of elements of a list, tuple, deque or dict; ends a path */
};
struct py_step {
	enum py_step_kind kind;
	char name[PY_NAME_MAX]; /* PY_ATTR */
};
struct py_path {
	/* A query's path: a local variable of the frame ("self", "queue"). A field's path: "key",
	 * "value", or "" when it begins with an attribute of the element itself. */
	char head[PY_NAME_MAX];
	struct py_step step[PY_MAX_STEPS];
	int nsteps;
};

enum py_what {
	PY_ROOM = 1, /* int (u64 rooms) or str */
	PY_RID,      /* str */
	PY_STATUS,   /* int */
	PY_SENT,     /* int: how much has been handed to the workers (pages, chunks...) */
	PY_TOTAL,    /* int: how much there is */
	PY_SEEN,     /* int: peers that have announced the room */
	PY_NEED,     /* int: peers that must */
};
struct py_field {
	enum py_what what;
	bool optional; /* "sent?: curr_idx": absent in some versions; the others make an alternative
			  fail */
	struct py_path path;
};
/* "self.disagg_prefill_inflight_queue[*] -> {room: bootstrap_room, rid: rid}" */
struct py_query {
	struct py_path path;
	struct py_field field[PY_MAX_FIELDS];
	int nfields;
	int line, col;
};
/* Alternatives for layouts that differ between versions of the server: the first whose attributes
 * all exist is the one. n 0: not declared. */
struct py_alts {
	struct py_query query[PY_MAX_ALTS];
	int n;
};

struct py_root {
	char frame[PY_NAME_MAX]; /* glob over the function's qualified name where the version has
				    one (3.11 and later) and the glob has a dot, else over its name
				    (a dotted glob then means its last part) */
	char type[PY_NAME_MAX];  /* glob over the name of the local's type, "" any */
	char local[PY_NAME_MAX]; /* default "self" */
};

enum py_thread_role { PY_THREAD_WORKER, PY_THREAD_BOOTSTRAP };
/* Threads inside a frame named so. */
struct py_thread_spec {
	enum py_thread_role role;
	char frame[PY_NAME_MAX]; /* as py_root.frame */
	/* worker: */
	char idle[PY_NAME_MAX]; /* glob: when a frame called by this one is named so, the thread
				   waits for work, whatever `busy` still holds; "" none */
	/* The room it works on and the queue object it takes from (its address), each from a local:
	 * alternatives, the first that exists. n 0: not declared. */
	struct py_path busy[PY_MAX_ALTS], serves[PY_MAX_ALTS];
	int nbusy, nserves;
	struct py_alts behind; /* rooms that wait for it (field room) */
	int line, col;
};

#define PY_STATE_UNSET INT64_MIN
struct profile_python {
	struct py_root root[PY_MAX_ROOTS]; /* alternatives */
	int nroots;
	struct {
		char name[16]; /* contains "bootstrap", "waiting" or "inflight" */
		bool optional; /* "waiting?": some versions of the server do not have it */
		struct py_alts alts;
	} queue[PY_MAX_QUEUES]; /* in the order in which a request passes through them */
	int nqueues;
	struct py_alts status;    /* {room, status}: the status table */
	struct py_alts announced; /* {room, seen, need}: peers that announced, may be absent */
	/* Chunks that wait for a worker: {room}. The queue, to be compared with what each worker
	 * `serves`, is each object that the outermost of several [*] leads to; with a single [*]
	 * it is the container before that. May be absent. */
	struct py_alts backlog;
	/* Values of the status table with a meaning; PY_STATE_UNSET where the profile says none. */
	struct {
		int64_t failed, bootstrap, ready, moving, done;
	} states;
	struct py_thread_spec thread[PY_MAX_THREADS];
	int nthreads;
	int line, col;
};

/* As they were written: "self.q[*] -> {room: bootstrap_room}". At most len - 1 bytes. */
void py_path_print(const struct py_path *p, char *buf, size_t len);
void py_query_print(const struct py_query *q, char *buf, size_t len);
const char *py_what_name(enum py_what what); /* "room" */

/* Is v the value of a state? false when that is not declared. */
static inline bool py_state_is(int64_t state, int64_t v)
{
	return state != PY_STATE_UNSET && state == v;
}

#endif
