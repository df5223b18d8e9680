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
 *            thread serves, EV_WAITS in one of which that is not known, EV_CUT (its first event
 * only) it was there when the view began; need = peers needed, chunk = peers that have announced (0
 * also for a room in bootstrap that the table of announcements does not have), part = sent, parts =
 * total (-1 each: unknown). One at each confirmed change of any of these. release  room, rid, op,
 * flags EV_INFERRED: the server has let the request go, see below. thread   kind "at": tid, room =
 * what the worker is at now ("" idle). kind "missing" / "found": a declared thread (note: its
 * frame; tid: the one it had, 0 never seen) is not there / is there again. kind "unsure" (note:
 * why): there may be work that is not seen: a worker's `busy` cannot be read, or no thread has ever
 * been in a declared worker's frame; said at the first such snapshot. "sure": in two no longer.
 *   view     (made by the caller of pyview_take from its answer) kind "ok", "unstable", "lost".
 *            kind "misfit" (by the view itself), note = an inflight queue: no request of it has
 *            ever been seen with an entry in the status table, not in an earlier queue either,
 *            while the table has entries of rooms that are in no queue: it may not be the table of
 *            these rooms. Said at the first such snapshot. "fits": a request has been seen with an
 *            entry, be it once, or in two it is not so any more.
 *
 * What counts. A request is an object at an address with a room and a rid: another room or rid at
 * the same address is another request. A snapshot is *accepted* when it is stable and began 50 ms
 * or more after the last accepted one; two accepted ones are consecutive, whatever came between.
 * - A fact is confirmed when two consecutive snapshots say the same. Of a number that only grows
 *   (announced, sent) the smaller of two is. Where both contradict what was confirmed and each
 *   other (a worker that goes from room to room), it is not so any more, and the newer one is
 *   taken; a missing entry and an orphan only when seen twice. A queue is confirmed together with
 *   the facts that are said with it: a request whose entry goes one snapshot before it leaves its
 *   queue was never held without an entry.
 * - Absence counts only in complete snapshots: what is not seen may be in a queue that was not
 *   found. A snapshot that is not accepted confirms nothing and opens nothing, and does not come
 *   between two that are; but a request or an entry that is seen in it is there, so that absence is
 *   counted from the beginning.
 * - A request that no two snapshots saw in the same queue is never spoken of.
 * - A request that was last seen in a bootstrap or inflight queue is released once it is in no
 *   queue, and its room has no entry, in two consecutive complete snapshots. While an entry is
 *   there: after bootstrap it is in its forward pass, for as long as the entry lasts; after
 *   inflight, from where nothing comes back, it is released after four such snapshots, or after two
 *   when another request of the room is listed (the entry is that one's), or when the profile
 *   declares no table. Last seen in a waiting queue it is never released but for the next point,
 *   nor after bootstrap where no table is declared.
 * - A request that is in no queue for 600 s is released (note), and no more than 16,384 of them are
 *   remembered: the oldest are forgotten without an event, and are new when seen again.
 * - A request that goes while another object with its room and rid is listed, in the same queue or
 * a later one, is still held: no release. In an earlier one it is a retry with the same rid.
 * - An entry without a request is said once (kind "", op 0), its changes, and HELD_NO_ENTRY when it
 *   has gone; of 65,536 rooms at most. An entry whose value is -1 is said as HELD_UNKNOWN.
 */
#ifndef SP_PYTHON_VIEW_H
#define SP_PYTHON_VIEW_H

#include "python/snapshot.h"

struct pyview;
typedef void (*pyview_fn)(void *ctx, const struct sp_event *ev);

/* p->python is kept by reference and must not be NULL. NULL: out of memory. */
struct pyview *pyview_new(const struct profile *p, uint32_t pid);
void pyview_free(struct pyview *v);
/*
 * Take the next snapshot of that process, later than the one before. Events are stamped
 * s->start_ns. 1: a confirmed round: it and the accepted one before are stable and complete
 * (*since_ns: start of the one before); 0: not yet; -EAGAIN: unstable, -ENODATA: incomplete;
 * -ENOMEM: something was not taken in.
 */
int pyview_take(struct pyview *v, const struct py_snapshot *s, pyview_fn fn, void *ctx,
		uint64_t *since_ns);
/* The process was lost sight of (exec, reader failed): the next snapshot begins anew. */
void pyview_reset(struct pyview *v);
size_t pyview_requests(const struct pyview *v); /* confirmed, and in a queue now */
size_t pyview_bytes(const struct pyview *v);

#endif
