/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of deadlines from inside: no life's entry is later than the life is due. */
#ifndef MODEL_HEAP_H
#define MODEL_HEAP_H

#include "model/lives.h"
#include "model_table.h"

static inline void deadlines_are_kept(const struct model *m)
{
	for (const struct proc *p = m->procs; p; p = p->hh.next) {
		for (const struct life *l = p->lives; l; l = l->next) {
			uint64_t due = life_due(m, l);

			if (due == NEVER)
				continue;
			assert_true(l->timer > 0 && l->timer <= m->nheap);
			assert_ptr_equal(m->heap[l->timer - 1].life, l);
			assert_true(m->heap[l->timer - 1].ns <= due);
		}
	}
}

#endif
