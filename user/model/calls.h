/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the transport's surroundings (CUDA, verbs): evidence, never progress. What a life and a
 * process have called, which calls threads are in now, and work that was handed over and has not
 * come back.
 */
#ifndef SP_MODEL_CALLS_H
#define SP_MODEL_CALLS_H

#include "model/lives.h"

/* A call that has lasted less is nothing to speak of: calls under way are looked at once a second.
 */
#define INSIDE_MIN_NS NS_S

/* One call, as much of it as is worth a line. */
struct call_note {
	uint64_t ns;
	int64_t code;
	uint32_t tid;
	int16_t probe;
	uint8_t kind;
	char text[40]; /* a failure: the error's name; else what it worked on */
};
struct calls {
	uint64_t n, bytes, failed;
	struct call_note last, fail; /* fail.ns 0: none has failed */
};

/* A thread has entered a call and not left it. */
struct inside {
	struct inside *next; /* of the process */
	struct room *room;   /* whose call it is, NULL: not known; referenced */
	uint64_t since_ns;
	uint64_t life_id; /* the room's life then, 0: it had none */
	uint32_t life_number, tid;
	int16_t probe;
	bool unsure; /* it may have left it */
	char object[32];
};

/* A queue pair, say. */
struct worked {
	char object[32];
	int64_t open;      /* pieces of work that have not come back */
	uint64_t since_ns; /* none has since then */
	uint64_t life_id;  /* whose it is, 0: not known */
	struct call_note fail;
	uint64_t failed;
	uint64_t dropped, dropped_ns; /* what was open when it was reset or destroyed */
	int16_t dropped_by;           /* probe of that call */
};

struct proc_calls {
	struct calls sum; /* of calls of no known room */
	struct inside *inside;
	struct worked *worked;
	uint32_t ninside, nworked, worked_cap;
};

int route_call(struct model *m, const struct sp_event *ev);
void calls_thread_gone(struct model *m, const struct sp_event *ev);
void calls_drop(struct model *m, struct proc *p);
const char *call_name(const struct model *m, int probe); /* "cuStreamSynchronize" */

/* Of those that thread tid has been in for at least `least` at now, the innermost. Not one that
 * waits by its nature. */
const struct inside *inside_of_thread(const struct model *m, const struct proc *p, uint32_t tid,
				      uint64_t now, uint64_t least);
/* The same of calls that are l's: made for it, or by a thread that the view shows at it. */
const struct inside *inside_of_life(const struct model *m, const struct life *l, uint64_t now,
				    uint64_t least);
/* Room that the call is made for, NULL: not known. */
const struct room *inside_room(const struct model *m, const struct proc *p,
			       const struct inside *in);
/* l's own, sure, entered before a whole deadline of its stage: that is what holds it. */
const struct inside *call_blocks(const struct model *m, const struct life *l, uint64_t now);
/* The thread that serves l has been in a call for another room for so long. */
const struct inside *call_ahead(const struct model *m, const struct life *l, const struct worker *w,
				uint64_t now);
/* When a call that concerns l and is too young to decide will be old enough; NEVER: none. */
uint64_t call_ripens(const struct model *m, const struct life *l, const struct worker *w,
		     uint64_t now);

#endif
