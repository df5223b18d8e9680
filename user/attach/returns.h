/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May return probes be used? On x86-64 the kernel leads a return probe through a real system call
 * from 6.11 on, and up to 6.12.13, 6.13.2 and 6.14-rc1 it asks the process's seccomp filter about
 * it (mainline commit cf6cb56ef244). A filter that refuses it, as one that lists what it allows
 * does, turns the first return from a probed function into a crash. An entry probe on a 5-byte nop
 * has such a system call too (6.18), which has never been asked about: both came together.
 */
#ifndef SP_ATTACH_RETURNS_H
#define SP_ATTACH_RETURNS_H

#include "attach/attach.h"

/*
 * By trying, once in the life of this program: a child of its own gives itself a filter that
 * refuses these calls, and returns from a function with a return probe. Nothing else is in danger.
 * RETURNS_FINE: it lived; RETURNS_UNFILTERED, and why, when it did not, or could not be asked.
 */
enum attach_returns returns_try(enum attach_backend backend, char *why, size_t len);

/* What the child's end means. status: as waitpid gave it; hits: of the return probe. */
enum returns_child {
	CHILD_LIVED = 0,
	CHILD_IDLE = 1,      /* it was not told to begin */
	CHILD_REFUSED = 2,   /* it was not allowed to have a filter */
	CHILD_NO_FILTER = 3, /* this kernel has no filters: no process has one */
	CHILD_CRASHED = 4,
};
enum attach_returns returns_judge(int status, uint64_t hits, char *why, size_t len);

#endif
