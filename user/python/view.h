/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots -> events. A view remembers what the last snapshots of one process said and emits an
 * event for what two consecutive stable ones agree on and what was not so before: pure, no clock,
 * no I/O. The events (fields not named are unset):
 *
 *   held     room, rid, op = address of the request object (0: none, see kind), kind = the queue's
 *            name ("" in no queue: its forward pass, or only an entry of the status table), code =
 *            value in the status table, HELD_NO_ENTRY, or HELD_UNKNOWN (no table declared);
 *            tid = the worker thread that has it or serves the backlog it waits in, 0 none;
 *            flags: EV_AT that thread is at work on it, EV_ORPHAN it waits in a backlog that no
 *            thread serves, EV_CUT it was there when the view began; need = peers needed, chunk =
 *            peers that have announced, part = sent, parts = total (-1 each: unknown).
 *            One at each confirmed change of any of these.
 *   release  room, rid, op, flags EV_INFERRED: a request that was in a bootstrap or inflight queue
 *            is in no queue and has no entry any more, in two consecutive stable snapshots.
 *   thread   kind "at": tid, room = what the worker is at now ("" idle). kind "missing" / "found":
 * a declared thread (note: its frame) is not there / is there again. view     (made by the caller
 * of pyview_take from its answer) kind "ok", "unstable", "lost".
 */
#ifndef SP_PYTHON_VIEW_H
#define SP_PYTHON_VIEW_H

#include "python/snapshot.h"

struct pyview;
typedef void (*pyview_fn)(void *ctx, const struct sp_event *ev);

struct pyview *pyview_new(const struct profile *p, uint32_t pid);
void pyview_free(struct pyview *v);
/*
 * Take the next snapshot (of that process, later than the one before; at least 50 ms later, or it
 * confirms nothing). Events are stamped s->start_ns. 1: a confirmed round: it and the one before
 * are stable and complete (*since_ns: start of the one before); 0: not yet; -EAGAIN: unstable,
 * -ENODATA: incomplete; -ENOMEM.
 */
int pyview_take(struct pyview *v, const struct py_snapshot *s, pyview_fn fn, void *ctx,
		uint64_t *since_ns);
/* The process was lost sight of (exec, reader failed): the next snapshot begins anew. */
void pyview_reset(struct pyview *v);
size_t pyview_requests(const struct pyview *v); /* held now, confirmed */
size_t pyview_bytes(const struct pyview *v);

#endif
