# SPDX-License-Identifier: Apache-2.0
"""A server's queues in every form that they may have, for test_py_snapshot.c. Prints what a snapshot should say."""
import collections
import enum
import sys
import threading

out = []


class Poll(enum.IntEnum):
    FAILED = 0
    MOVING = 3


class FastQueue:
    def __init__(self):
        self._buf = collections.deque()
        self._cond = threading.Condition()
        self.waits = threading.Event()

    def get(self):
        with self._cond:
            while not self._buf:
                self.waits.set()
                self._cond.wait()
            return self._buf.popleft()


class Sender:
    def __init__(self, sent, total):
        self.curr_idx = sent
        self.num_kv_indices = total


class Many:
    """More attributes than a class shares keys for."""

    def __init__(self, room, rid, sender=None):
        self.rid = rid
        for i in range(40):
            setattr(self, f"filler_{i}", i)
        self.bootstrap_room = room
        self.disagg_kv_sender = sender


class Few:
    def __init__(self, room, rid, sender=None):
        self.bootstrap_room = room
        self.rid = rid
        self.disagg_kv_sender = sender


class Slots:
    __slots__ = ("a", "rid", "bootstrap_room", "disagg_kv_sender")

    def __init__(self, room, rid, sender=None):
        self.rid, self.bootstrap_room, self.disagg_kv_sender = rid, room, sender


class SlotsAndDict(Slots):
    def __init__(self, room, rid, sender=None):
        super().__init__(room, rid, sender)
        self.more = 1


class Chunk:
    def __init__(self, room):
        self.room = room


class Info:
    def __init__(self, need):
        self.required_dst_info_num = need


def edited(req):
    """Another order of attributes, and holes in the table."""
    del req.bootstrap_room, req.filler_3
    req.late = 1
    req.bootstrap_room = int("9" * 18)
    return req


def materialised(req):
    vars(req)["via_dict"] = 1
    return req


class Manager:
    def __init__(self):
        self.request_status = {5: 1, 6: 2, 2**63 - 1: Poll.MOVING, 2**64 - 1: Poll.FAILED, 7: 4, 8: 2**40}
        del self.request_status[6]
        second = {"x": Info(9), "a": Info(3), "b": Info(3)}
        del second["x"]
        self.transfer_infos = {5: {}, 7: {"a": Info(2)}, 8: second, 2**63 - 1: {"a": Info(1), "b": Info(1)}}
        self.transfer_queues = [FastQueue() for _ in range(4)]
        self.ready = threading.Barrier(3)
        for queue in self.transfer_queues[:3]:
            threading.Thread(target=self.transfer_worker, args=(queue,), daemon=True).start()
        threading.Thread(target=self.start(), daemon=True).start()

    def start(self):
        def bootstrap_thread():
            self.ready.wait()
            threading.Event().wait()
        return bootstrap_thread

    def transfer_worker(self, queue):
        if queue is self.transfer_queues[0]:
            queue.get()  # never had a room
        if queue is self.transfer_queues[1]:
            room = 4711  # the last one it had
            queue.get()
            print(room)
        room = 2**62 + 1
        self.ready.wait()
        threading.Event().wait()


LONG = "chatcmpl-___prefill_addr_10.0.0.1:20001___decode_addr_10.0.0.2:20002_" + "f" * 32 + "-"


def name_of(x):
    """What an id is called: a long one by its beginning and a hash."""
    whole = str(x).encode()
    if len(whole) < 64:
        return str(x)
    h = 0xcbf29ce484222325
    for byte in whole:
        h = (h ^ byte) * 0x100000001b3 % 2**64
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        h = (h ^ h >> 33) * factor % 2**64
    return whole[:46].decode(errors="ignore") + f"~{h ^ h >> 33:016x}"


class BootstrapQueue:
    def __init__(self, manager):
        self.queue = []
        self.kv_manager = manager


class Scheduler:
    def __init__(self):
        self.bootstrap = BootstrapQueue(Manager())
        self.waiting_queue = collections.deque()
        self.inflight = []
        self.no_queue = None

    def fill(self):
        moving = Few(8, "moved-on")
        self.bootstrap.queue += [Many(5, "r5"), Many(2**63 - 1, "rid-" + "x" * 80), moving]
        for i in range(66):  # more than a block of a deque, more than a batch reads one by one
            self.waiting_queue.append((Many if i % 3 else Few)(1000 + i, f"w{i}"))
        self.inflight += [
            Many(7, "r7", Sender(0, 12)), Many(2**64 - 1, "r\u00e9-\u6d4b", Sender(12, 12)), Few(0, "zero"),
            edited(Many(1, "edited", Sender(300, 2**31))), materialised(Few(77, "dict")), Slots(88, "slots", Sender(1, 2)),
            SlotsAndDict(89, "both"), Few("text-room", "t"), Few(42, "same room"), Few(42, "twice"),
            Few(LONG + "0", "l0"), Few(LONG + "1", "l1"), Few("\u00e9" * 500, "l2"), moving, moving,
            # none of these is a room
            Few(None, "none"), Few(-5, "negative"), Few(2**64, "big"), Few("", "empty"), Few("x" * 1025, "long"), Few(1.5, "f"),
            Few("\u00e9" * 1025, "longer"),
            "no request", None]

    def expected(self):
        m = self.bootstrap.kv_manager
        for name, queue in (("bootstrap", self.bootstrap.queue[:2]), ("waiting", self.waiting_queue),
                            ("inflight", self.inflight[:14])):
            for r in queue:
                s = r.disagg_kv_sender if name == "inflight" else None
                out.append(f"queue {name} {name_of(r.bootstrap_room)} {name_of(r.rid)} {s.curr_idx if s else -1}"
                           f"/{s.num_kv_indices if s else -1}")
        for room in sorted(m.request_status, key=str):
            out.append(f"status {room} {int(m.request_status[room])}")
        for room, infos in m.transfer_infos.items():
            need = next(iter(infos.values())).required_dst_info_num if infos else -1
            out.append(f"announced {room} {len(infos)}/{need}")
        for i, room in ((2, 70), (2, 71), (3, 72)):
            m.transfer_queues[i]._buf.append(Chunk(room))
            out.append(f"waiting {room} {i if i < 3 else 'orphan'}")
        out.extend(("worker 0 -", "worker 1 -", f"worker 2 {2**62 + 1}", "bootstrap thread"))

    def event_loop(self):
        self.fill()
        self.expected()
        m = self.bootstrap.kv_manager
        m.ready.wait()
        for queue in m.transfer_queues[:2]:
            queue.waits.wait()
        print("\n".join(out))
        print("ready", flush=True)
        sys.stdin.read()


Scheduler().event_loop()
