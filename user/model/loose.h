/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations posted without a room. The transport does not tell whose they are; an address (before
 * they come here) or the server's own view of their thread may. Until then they are their thread's,
 * and where there are such, that an operation was not seen proves less.
 */
#ifndef SP_MODEL_LOOSE_H
#define SP_MODEL_LOOSE_H

#include "model/lives.h"

struct loose {
	struct op *first; /* not over, the newest first */
	uint32_t n;
	uint64_t seen_ns;  /* the last was posted then */
	uint64_t error_ns; /* the last that failed did so then, 0: none */
	int64_t error_code;
	uint32_t error_tid;
	char error_note[48];
};

int loose_post(struct model *m, struct proc *p, const struct sp_event *ev);
void loose_failed(struct model *m, const struct op *o, const struct sp_event *ev);
void loose_remove(struct model *m, struct op *o); /* for op_free */
void loose_drop(struct model *m, struct proc *p);
/* It is l's. Tells of l what has changed; ends nothing. */
void loose_tie(struct model *m, struct op *o, struct life *l);
/* A good round of looks: does it show the thread of one? */
bool loose_asks(const struct proc *p, const struct sp_event *ev);
void loose_look(struct model *m, struct proc *p, const struct sp_event *ev);

/* Operations that may have been l's: what was not seen of it may have been. */
static inline bool life_loose(const struct life *l)
{
	return l->proc->loose && l->proc->loose->seen_ns >= l->opened_ns;
}
/* The one longest in progress that may be l's, for least at least. */
const struct op *loose_of(const struct life *l, uint64_t now, uint64_t least);
/* And it can be no other room's. */
bool loose_alone(const struct life *l, const struct op *o);

#endif
