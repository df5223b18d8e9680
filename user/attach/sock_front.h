/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes stand in front of a watched one: its parent, its siblings, those that run the
 * same program and listen. All from /proc; proc is the folder, "/proc" but in tests.
 */
#ifndef SP_ATTACH_SOCK_FRONT_H
#define SP_ATTACH_SOCK_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/sockets.h"

#define FRONTS_MAX 16 /* of one process */

/* The processes other than pid itself that fit: of the ancestors the nearest, of the siblings all;
 * at most FRONTS_MAX. skip (may be NULL): not these. Their number. */
int front_find(const char *proc, const struct sock_process *want, pid_t pid,
	       bool (*skip)(void *ctx, pid_t pid), void *ctx, pid_t out[FRONTS_MAX]);
/* Does the process itself fit, as far as cmdline and listens go? */
bool front_self(const char *proc, const struct sock_process *want, pid_t pid);

/* 0: none (or not to be known). */
pid_t front_parent(const char *proc, pid_t pid);
bool front_listens(const char *proc, pid_t pid);
bool front_same_exe(const char *proc, pid_t a, pid_t b);
/* Has it set up an io_uring? */
bool front_has_uring(const char *proc, pid_t pid);

#endif
