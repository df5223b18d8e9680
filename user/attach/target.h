/* SPDX-License-Identifier: Apache-2.0 */
/* Who a process is. A pid alone may be another process the next moment. */
#ifndef SP_ATTACH_TARGET_H
#define SP_ATTACH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

struct target_id {
	pid_t pid;
	int pidfd;      /* names this process for as long as it is open */
	uint64_t start; /* clock ticks since boot, /proc/PID/stat field 22 */
};

/* -ESRCH no such process, -EINVAL a thread of one; err (may be NULL) gets the words. */
int target_open(pid_t pid, struct target_id *id, struct sp_err *err);
void target_close(struct target_id *id);
bool target_alive(const struct target_id *id);
int target_start(pid_t pid, uint64_t *start);
/* Stopped, by a signal or a tracer. spent: the CPU time that it has used, in clock ticks. */
bool target_stopped(pid_t pid, uint64_t *spent);
/* Has any of its threads a seccomp filter? In doubt, yes. */
bool target_filtered(pid_t pid);
/* Pages mapped (/proc/PID/statm): it changes whenever a library comes or goes. 0: unknown. */
uint64_t target_pages(pid_t pid);

/* Its children now, by /proc, whichever thread forked them; at most max. Their number. */
int target_children(pid_t pid, uint32_t *out, int max);

#endif
