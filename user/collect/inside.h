/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a thread has entered and not left for INSIDE_NS -> events of role call, kind inside
 * (once; again when it could not be verified before and now is) and left. The room is what its
 * arguments in registers tell (itself, or an operation of a known room), else that of the calls
 * around it, else its thread's.
 */
#ifndef SP_COLLECT_INSIDE_H
#define SP_COLLECT_INSIDE_H

#include "attach/attach.h"
#include "collect/scope.h"

#define INSIDE_NS     1000000000ull
#define INSIDE_MAX    4096 /* told at a time; others are not */
#define INSIDE_UNSURE "not verified"

struct decoder;
struct inside;
struct inside *inside_new(const struct profile *p, const struct decoder *d, struct scope *s,
			  calls_emit emit, void *ctx);
void inside_free(struct inside *w);
/* All calls that are under way and not quite young. */
void inside_look(struct inside *w, const struct attach_inside *in, int n, uint64_t now_ns);
/* A call has returned. */
void inside_returned(struct inside *w, const struct sp_rec *rec);
/* A thread, or (tid 0) a process, has ended. */
void inside_gone(struct inside *w, uint32_t pid, uint32_t tid, uint64_t ns);

#endif
