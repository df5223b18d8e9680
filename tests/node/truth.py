# SPDX-License-Identifier: Apache-2.0
"""The truth about a scheduler, for the tests: its structures as they are, and what follows.

`pinned` is derived, never declared: a request counts as pinned when it sits in the inflight queue
and nothing that is still alive in the server will change what its sender's poll answers. The rules
are in why_pinned(). `delayed` are the bootstrap waits, which the server's own timeout ends.
"""
import time

from kv import KVPoll
from proc import stopped
from sender import FakeKVSender

SETTLE_S = 0.03  # two looks this far apart must agree: a look is not atomic


class Ledger:
    """Every life of every room: who opened it, what became of it."""

    def __init__(self):
        self.lives = []
        self.count = {}

    def open(self, req):
        life = self.count.get(req.bootstrap_room, 0) + 1
        self.count[req.bootstrap_room] = life
        req.life = {"room": str(req.bootstrap_room), "life": life, "rid": req.rid,
                    "opened_ns": time.monotonic_ns(), "bootstrapped_ns": None, "forward_ns": None,
                    "inflight_ns": None, "released_ns": None, "released": False, "outcome": None}
        self.lives.append(req.life)

    def mark(self, req, what):
        req.life[what] = time.monotonic_ns()

    def end(self, req, outcome):
        req.life["outcome"] = outcome
        req.life["released"] = True
        req.life["released_ns"] = time.monotonic_ns()


def chunks(queue):
    """What waits in a transfer queue, without what the hook that ends a worker puts there."""
    return [chunk for chunk in list(queue._buf) if chunk is not None]


class Look:
    """The structures that decide whether a request can move, read in an order that never misses a
    chunk: a chunk goes from its queue to its worker, and its status is set before it leaves."""

    def __init__(self, scheduler):
        manager = scheduler.disagg_prefill_bootstrap_queue.kv_manager
        self.manager = manager
        self.inflight = [(req, req.disagg_kv_sender.poll())
                         for req in list(scheduler.disagg_prefill_inflight_queue)]
        self.queued = [chunks(queue) for queue in manager.transfer_queues]
        self.current = [now.chunk for now in manager.worker_now]
        self.outstanding = dict(manager._staging_outstanding)

    def worker_stuck(self, i):
        """Why worker i will never take its next chunk; None when it will."""
        if not self.manager.worker_threads[i].is_alive():
            return "worker-dead"
        if self.current[i] is None:
            return None
        if self.manager.worker_now[i].blocked:
            return "call-blocked"
        for name in self.manager.worker_now[i].peers:
            if name in self.manager.decode_kv_args_table and stopped(self.manager.peer_pid(name)):
                return "peer-stopped"
        return None

    def pending(self, room):
        """The worker that has chunks of the room, and whether one of them is under way."""
        for i, chunk in enumerate(self.current):
            if chunk is not None and chunk.room == room:
                return i, True
        for i, queue in enumerate(self.queued):
            if any(chunk.room == room for chunk in queue):
                return i, False
        return None, False

    def why_pinned(self, req, poll):
        if poll in (KVPoll.Failed, KVPoll.Success):
            return None  # the main loop ends it in its next round
        if isinstance(req.disagg_kv_sender, FakeKVSender):
            return "never-sent"
        room = req.bootstrap_room
        worker, under_way = self.pending(room)
        if worker is not None:
            stuck = self.worker_stuck(worker)
            if not stuck:
                return None
            if stuck in ("peer-stopped", "call-blocked"):
                return "transfer-stalled" if under_way else "queued-behind"
            return stuck
        status = self.manager.request_status.get(room)
        if status is None:
            return "status-lost"
        if status == KVPoll.Success:
            return "write-outstanding"  # the poll waits for a write that ended in an error
        return "chunk-missing"  # no chunk of it is anywhere, and none will be put


def pinned(scheduler):
    """[(life, reason)], each seen twice."""
    first = look_for_pins(scheduler)
    if not first:
        return []
    time.sleep(SETTLE_S)
    second = look_for_pins(scheduler)
    return [pin for key, pin in second.items() if key in first]


def look_for_pins(scheduler):
    look, found = Look(scheduler), {}
    for req, poll in look.inflight:
        why = look.why_pinned(req, poll)
        if why:
            found[id(req)] = dict(entry(req), why=why)
    return found


def entry(req):
    return {"room": str(req.bootstrap_room), "rid": req.rid, "life": req.life["life"]}


def delayed(scheduler):
    queue = scheduler.disagg_prefill_bootstrap_queue
    found = []
    for req in list(queue.queue):
        room = req.bootstrap_room
        if queue.kv_manager.check_status(room) != KVPoll.Bootstrapping:
            continue
        infos = list(queue.kv_manager.transfer_infos.get(room, {}).values())
        age = time.time() - req.disagg_kv_sender.init_time
        found.append(dict(
            entry(req), announced=len(infos),
            required=infos[0].required_dst_info_num if infos else None,
            why="announced-by-some" if infos else "announced-by-none",
            age_s=round(age, 3), ends_in_s=round(queue.kv_manager.bootstrap_timeout - age, 3)))
    return found


def listed(reqs, manager):
    out = []
    for req in list(reqs):
        sender = req.disagg_kv_sender
        out.append(dict(entry(req), poll=sender.poll(), chunk_id=sender.chunk_id,
                        status=manager.request_status.get(req.bootstrap_room),
                        has_sent=sender.has_sent))
    return out


def workers(manager):
    out = []
    for i, now in enumerate(manager.worker_now):
        chunk = now.chunk
        out.append({
            "index": i, "tid": now.tid, "alive": manager.worker_threads[i].is_alive(),
            "room": str(chunk.room) if chunk else None, "chunk": chunk.chunk_id if chunk else None,
            "last": chunk.is_last_chunk if chunk else None,
            "since_ns": now.since_ns if chunk else None, "polls": now.polls if chunk else None,
            "blocked": now.blocked,
            "ops": manager.pending_ops(chunk.room, now.peers) if chunk else []})
    return out


def snapshot(scheduler):
    queue = scheduler.disagg_prefill_bootstrap_queue
    manager = queue.kv_manager
    return {
        "now_ns": time.monotonic_ns(), "rank": scheduler.rank,
        "loop": scheduler.server_args.loop, "options": {
            name: getattr(scheduler.server_args, name)
            for name in ("workers", "num_pages", "item_len", "chunked_prefill_size")},
        "iterations": scheduler.iterations,
        "forward_ct": scheduler.forward_ct,
        "bootstrap": listed(queue.queue, manager),
        "waiting": listed(scheduler.waiting_queue, manager),
        "inflight": listed(scheduler.disagg_prefill_inflight_queue, manager),
        "status": {str(room): status for room, status in list(manager.request_status.items())},
        "transfer_infos": {str(room): sorted(infos)
                           for room, infos in list(manager.transfer_infos.items())},
        "outstanding": {str(r): n for r, n in list(manager._staging_outstanding.items())},
        "failure_records": {str(r): why for r, why in list(manager.failure_records.items())},
        "queues": [[{"room": str(c.room), "chunk": c.chunk_id, "last": c.is_last_chunk}
                    for c in chunks(q)] for q in manager.transfer_queues],
        "workers": workers(manager),
        "bootstrap_thread": {"tid": manager.bootstrap_tid,
                             "alive": manager.bootstrap_thread.is_alive()},
        "counters": dict(manager.counters),
        "batches": manager.batches(),
        "decodes": {name: manager.peer_pid(name) for name in list(manager.decode_kv_args_table)},
        "lives": [dict(life) for life in list(scheduler.ledger.lives)],
        "pinned": pinned(scheduler), "delayed": delayed(scheduler),
    }
