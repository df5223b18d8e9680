/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of a list that its owner replaces all the time. A loop that spins makes a new list
 * in every turn, every few microseconds, and a walk of several reads never sees one whole. CPython
 * uses the memory of the last few lists again and again, so all of these are read in one call
 * together with the slot that says which of them is the list now, before and after.
 */
#ifndef SP_PYTHON_SHOT_H
#define SP_PYTHON_SHOT_H

#include "python/batch.h"

#define SHOT_ITEMS 512 /* longer lists take longer to replace: they are walked */

/* slot: address of the reference to the list. *n elements into item. 0; -EAGAIN: not once in a few
 * milliseconds; -EINVAL: it leads to something else, or to longer lists; or what is fatal. */
int pyshot_list(struct pybatch *b, uint64_t slot, uint64_t item[SHOT_ITEMS], size_t *n);

#endif
