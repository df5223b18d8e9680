/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that have been entered and not left: what can be told of one from outside. */
#ifndef SP_ATTACH_INSIDE_H
#define SP_ATTACH_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

/* The stack pointer in the text of /proc/PID/task/TID/syscall. -EAGAIN: the thread is running,
 * -EINVAL: no such text. */
int inside_stack_pointer(const char *text, uint64_t *sp);

enum inside_is { INSIDE_NO, INSIDE_YES, INSIDE_UNSURE };
/* What is known of the thread of a call whose stack pointer at the entry was entry_sp. */
struct inside_known {
	bool has_word; /* the word at entry_sp could be read, and is the return address or not */
	bool word_holds;
	bool has_sp; /* the thread is in the kernel, with this stack pointer */
	uint64_t sp;
	bool returns_by_trap; /* a return probe: no exception can have ended it unseen */
};
enum inside_is inside_judge(const struct inside_known *k, uint64_t entry_sp, bool x86);

/* Those found to be over though their return was not seen: they stay over. */
struct inside_over;
struct inside_over *inside_over_new(void);

#endif
