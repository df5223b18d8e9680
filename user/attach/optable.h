/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that no symbol names, found in files alone: a library passes a table of pointers to a
 * function of another one, which copies them to where its callers take them from. verbs: a provider
 * (libmlx5.so.1) passes its struct verbs_context_ops to verbs_set_ops of libibverbs, which copies
 * each entry into struct verbs_context; ibv_post_send() and ibv_poll_cq(), inline in their callers,
 * jump through there.
 */
#ifndef SP_ATTACH_OPTABLE_H
#define SP_ATTACH_OPTABLE_H

#include "attach/elf.h"

#define OPTABLE_FUNCTIONS 16
#define OPTABLE_WHY_LEN   160

/*
 * Where in the table (the function's argument n) the entry lies that `function` copies to copied_to
 * bytes into its first argument (< 0: counted from the end of what it fills there). Read from the
 * function's code. -errno + why.
 */
int optable_slot(const struct elf_file *ef, const char *function, int argument, int64_t copied_to,
		 int64_t *slot, char why[OPTABLE_WHY_LEN]);

struct optable {
	uint64_t addr[OPTABLE_FUNCTIONS]; /* of the functions, each once */
	int n;
	int calls;  /* of `function` in the file */
	int opaque; /* of these, with a table that cannot be told */
};
/* The functions at slot of every table that this file passes to `function`. 0: at least one found;
 * -ENOENT and others + why. */
int optable_find(const struct elf_file *ef, const char *function, int argument, int64_t slot,
		 struct optable *out, char why[OPTABLE_WHY_LEN]);

/* Is this the first instruction of a function? By the unwind table; a function that only jumps to
 * another one (its arguments as they are) is followed to that. */
bool optable_function(const struct elf_file *ef, uint64_t addr, uint64_t *real);

#endif
