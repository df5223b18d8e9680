/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at a server's own state, as a profile's python: section declares it. What a single
 * snapshot says may be torn; view.h believes only what two consecutive ones agree on.
 */
#ifndef SP_PYTHON_SNAPSHOT_H
#define SP_PYTHON_SNAPSHOT_H

#include "event/event.h"
#include "profile/profile.h"
#include "python/frame.h"
#include "util/err.h"

struct pyview_request { /* an object in one of the queues */
	uint64_t addr;
	int queue; /* index into profile_python.queue */
	char room[SP_ROOM_MAX];
	char rid[64];        /* "" not declared */
	int64_t sent, total; /* -1 not declared, or absent */
};
struct pyview_status {
	char room[SP_ROOM_MAX];
	int64_t code;
};
struct pyview_announced {
	char room[SP_ROOM_MAX];
	int32_t seen, need; /* -1 unknown */
};
struct pyview_waiting { /* a chunk in a backlog */
	char room[SP_ROOM_MAX];
	uint64_t queue; /* the queue object it waits in */
	uint32_t tid;   /* the worker that serves it; 0: none found, see served */
	bool served;    /* false: no worker thread serves that queue, and where others are served is
			   known. true with tid 0: unknown */
};
struct pyview_worker {
	uint32_t tid;
	uint64_t serves;        /* address of its queue, 0 unknown */
	char room[SP_ROOM_MAX]; /* what it is at, "" idle, or unknown */
	bool unknown;           /* at work, and what `busy` names cannot be read */
};
/* What became of a thread that the profile declares, by its index there. */
struct pyview_declared {
	bool ever;                 /* a thread has been in its frame since the reader was opened */
	bool idle_ever;            /* and in `idle` */
	int found;                 /* threads that are in it now */
	int unknown, cannot_serve; /* of these: `busy`, or `serves`, cannot be read */
};

struct py_snapshot {
	uint64_t start_ns, took_ns; /* CLOCK_MONOTONIC */
	bool stable;   /* every declared container was read whole; else what follows has gaps */
	bool complete; /* the root and every declared queue and the status table exist here */
	struct pyview_request *request;
	struct pyview_status *status; /* sorted by room (strcmp) */
	struct pyview_announced *announced;
	struct pyview_waiting *waiting;
	struct pyview_worker *worker;
	uint64_t *backlog; /* the queue objects of the backlog, empty ones too */
	size_t nrequest, nstatus, nannounced, nwaiting, nworker, nbacklog;
	bool has_status, has_announced, has_backlog;
	bool bootstrap_declared, bootstrap_alive; /* the thread that receives announcements */
	uint32_t bootstrap_tid;
	/* A worker has been seen to serve one of the backlog's queues since the reader was opened,
	 * and all that are declared have been seen: only then is a queue without one a fault. */
	bool serving_proved;
	struct pyview_declared thread[PY_MAX_THREADS]; /* as profile_python.thread */
	int queue_found[PY_MAX_QUEUES];   /* 1: the declared path exists in this server */
	bool queue_absent[PY_MAX_QUEUES]; /* an optional one, which this server does not have */
	size_t unstable;                  /* containers and objects that could not be read stable */
	char missing[128]; /* the first declared path that does not exist here, for people */
};

/*
 * A process's reader: the interpreter's place, the root object (cached and re-validated by address,
 * type pointer and the type's name), positions of attributes. Not thread-safe.
 */
struct pyreader;
/* -ENOENT: no Python, or (err: where it was looked for) no frame of the profile's root in any
 * thread: try again later. -ENOTSUP, -EPERM, -ESRCH as py_locate. */
int pyreader_open(pid_t pid, const struct profile *p, struct pyreader **out, struct sp_err *err);
/* On an image, for tests. mem is not owned. */
int pyreader_at(struct pymem *mem, int minor, uint64_t runtime_addr, const struct profile *p,
		struct pyreader **out);
void pyreader_close(struct pyreader *r);
const char *pyreader_version(const struct pyreader *r);
/*
 * One snapshot. 0: s holds it (look at stable and complete). -errno: nothing was learned; -ESRCH
 * the process is gone or runs another program; -ENOENT the root object is gone. Free it in every
 * case.
 */
int pyreader_snapshot(struct pyreader *r, struct py_snapshot *s);
void py_snapshot_free(struct py_snapshot *s);

/* All threads with their stacks as text, innermost first; for --stacks and for alerts. */
struct py_stack {
	uint32_t tid;
	char name[32];
	char **line; /* "file.py:12 func" */
	int nlines;
};
int pyreader_stacks(struct pyreader *r, struct py_stack **out, size_t *n);
void py_stacks_free(struct py_stack *s, size_t n);

struct pyreader_stats {
	uint64_t snapshots, unstable, failed; /* of all; with a gap; that learned nothing */
	uint64_t ns, max_ns;                  /* spent in snapshots */
	uint64_t bytes, calls;                /* read from the target, calls into the kernel */
};
void pyreader_stats(const struct pyreader *r, struct pyreader_stats *s);

#endif
