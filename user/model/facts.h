/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a life that both the choice of a cause and its evidence ask. */
#ifndef SP_MODEL_FACTS_H
#define SP_MODEL_FACTS_H

#include "model/lives.h"

/* Facts at or after this time are too young to be the cause of the stall. */
uint64_t fact_since(const struct life *l, uint64_t now);
bool fact_aborted(const struct life *l, uint64_t now);
const struct op *fact_busy(const struct life *l);            /* the longest in progress */
const struct op *fact_created(const struct life *l);         /* created, never posted */
const struct group *fact_parts(const struct life *l);        /* a split chunk with parts missing */
int fact_unmet(const struct model *m, const struct life *l); /* the first need not met, -1: none */
/* What was not seen is what it rests on. */
static inline bool is_absence(enum sp_cause cause)
{
	return cause == CAUSE_NEVER_SENT || cause == CAUSE_SEND_INCOMPLETE ||
	       cause == CAUSE_AUX_MISSING;
}
/* Every thread of the process that posts, two at least, is kept busy for span: the operation that
 * has been in progress longest. NULL: not so, or not known. */
const struct op *fact_all_blocked(const struct life *l, uint64_t now, uint64_t span);
const struct op *fact_any_blocked(const struct life *l, uint64_t now, uint64_t span);

#endif
