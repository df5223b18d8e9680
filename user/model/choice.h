/* SPDX-License-Identifier: Apache-2.0 */
/* Which cause it is, and what decides. Included by lives.h. */
#ifndef SP_MODEL_CHOICE_H
#define SP_MODEL_CHOICE_H

#include "model/model.h"

struct op;
struct worker;
struct life;
struct room;
struct inside;

/* A verdict before it is put in words. */
struct choice {
	enum sp_cause cause;
	enum sp_confidence conf;
	int pin;
	const struct op *op;         /* the operation that decides: one's own, or the culprit's */
	const struct worker *worker; /* the thread that is at another room, by the view */
	const struct inside *call;   /* or that is in a call for another room */
	const struct life *rank;     /* rank-diverged: the other process's life, NULL: ended */
	const struct room *other;    /* and its room there */
};

#endif
