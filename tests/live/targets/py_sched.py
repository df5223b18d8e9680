# SPDX-License-Identifier: Apache-2.0
"""A scheduler process without transport: the queues, the status table, the threads and the frames of a prefill
server, with the names that an observer looks for, in nothing but Python, so that every interpreter runs it.

usage: py_sched.py [--bootstrap N] [--waiting N] [--inflight N] [--workers N] [--busy N] [--layout L] [--seed N]

Takes commands from its input, one JSON object a line, and answers each with one: see Scheduler.do_*. It answers
{"do": "stacks"} with what the interpreter itself says of every thread, once all of them are blocked.
"""
import argparse
import collections
import dataclasses
import enum
import itertools
import json
import os
import random
import sys
import threading
import time
import warnings

from py_report import blocked_frames


class KVPoll:
    Failed = 0
    Bootstrapping = 1
    WaitingForInput = 2
    Transferring = 3
    Success = 4


class KVStatus(enum.IntEnum):
    Transferring = 3


class FastQueue:
    def __init__(self):
        self._buf = collections.deque()
        self._cond = threading.Condition()

    def put(self, item):
        with self._cond:
            self._buf.append(item)
            self._cond.notify()

    def get(self):
        with self._cond:
            while not self._buf:
                self._cond.wait()
            return self._buf.popleft()


@dataclasses.dataclass
class TransferKVChunk:
    room: int
    chunk_id: int
    is_last_chunk: bool


@dataclasses.dataclass
class TransferInfo:
    room: int
    agent_name: str
    required_dst_info_num: int


class NixlKVSender:
    def __init__(self, mgr, room, pages):
        self.kv_mgr = mgr
        self.bootstrap_room = room
        self.conclude_state = None
        self.chunk_id = 0
        self.has_sent = False
        self.num_kv_indices = pages
        self.curr_idx = pages // 3
        self.init_time = None


class SplitReq:
    """Attributes that the instances of a class share keys for."""

    def __init__(self, rid, room, sender):
        self.rid = rid
        self.bootstrap_room = room
        self.disagg_kv_sender = sender


class CombinedReq:
    """More than CPython shares keys for, as in the real server: each instance has keys of its own."""

    def __init__(self, rid, room, sender):
        self.rid = rid
        for i in range(34):
            setattr(self, f"option_{i}", i)
        self.bootstrap_room = room
        self.disagg_kv_sender = sender


class SlotsReq:
    __slots__ = ("rid", "bootstrap_room", "disagg_kv_sender")

    def __init__(self, rid, room, sender):
        self.rid = rid
        self.bootstrap_room = room
        self.disagg_kv_sender = sender


LAYOUTS = {"split": SplitReq, "combined": CombinedReq, "slots": SlotsReq}
_turn = itertools.cycle((SplitReq, CombinedReq, SlotsReq))
LAYOUTS["mixed"] = lambda *args: next(_turn)(*args)


class Socket:
    """Blocks like the socket that it stands for; nothing is ever sent."""

    def __init__(self):
        self.fds = os.pipe()

    def recv_multipart(self):
        return os.read(self.fds[0], 1)


class NixlKVManager:
    def __init__(self, workers):
        self.request_status = {}
        self.transfer_infos = {}
        self.failure_records = {}
        self.transfer_queues = [FastQueue() for _ in range(workers)]
        self.release = threading.Event()
        self.server_socket = Socket()
        self.at_work = {}
        self.threads = []
        for i, queue in enumerate(self.transfer_queues):
            self.threads.append(threading.Thread(target=self.transfer_worker, args=(queue,),
                                                 name=f"transfer-{i}", daemon=True))
        self.start_prefill_thread()
        for t in self.threads:
            t.start()

    def start_prefill_thread(self):
        def bootstrap_thread():
            while True:
                self.server_socket.recv_multipart()

        self.threads.append(threading.Thread(target=bootstrap_thread, name="bootstrap", daemon=True))

    def transfer_worker(self, queue):
        while True:
            kv_chunk = queue.get()
            room = kv_chunk.room
            self.at_work[threading.get_native_id()] = str(room)
            self.poll_until_done()
            self.at_work.pop(threading.get_native_id(), None)

    def poll_until_done(self):
        self.release.wait()


class PrefillBootstrapQueue:
    def __init__(self, kv_manager):
        self.queue = []
        self.kv_manager = kv_manager


class SchedulerDisaggregationPrefillMixin:
    def event_loop_normal_disagg_prefill(self):
        print(json.dumps({"pid": os.getpid()}), flush=True)
        while True:
            for recv in self.recv_requests():
                self.handle(recv)

    def event_loop_overlap_disagg_prefill(self):
        self.event_loop_normal_disagg_prefill()


class Scheduler(SchedulerDisaggregationPrefillMixin):
    def __init__(self, args):
        self.make_req = LAYOUTS[args.layout]
        self.waiting_queue = []
        self.disagg_prefill_inflight_queue = []
        manager = NixlKVManager(args.workers)
        self.disagg_prefill_bootstrap_queue = PrefillBootstrapQueue(manager)
        self.random = random.Random(args.seed)
        self.requests = 0
        self.reporter = threading.Thread(target=self.report, daemon=True)
        self.asked = threading.Event()
        self.reporter.start()
        for queue, count, status in ((self.disagg_prefill_bootstrap_queue.queue, args.bootstrap, 1),
                                     (self.waiting_queue, args.waiting, 2),
                                     (self.disagg_prefill_inflight_queue, args.inflight, 3)):
            for _ in range(count):
                queue.append(self.new_request(status))
        for i in range(args.busy):
            self.put_chunk(self.disagg_prefill_inflight_queue[i].bootstrap_room, i)

    # ---- requests ------------------------------------------------------------------------------
    def new_request(self, status):
        """Every room ends in 7, so that one which never was can be told."""
        manager = self.disagg_prefill_bootstrap_queue.kv_manager
        room = self.random.randrange((1 << 63) // 10) * 10 + 7
        self.requests += 1
        manager.request_status[room] = status
        if status > KVPoll.Bootstrapping:
            manager.transfer_infos[room] = {"agent-0": TransferInfo(room, "agent-0", 1)}
        return self.make_req(f"req-{self.requests}-{room}", room, NixlKVSender(manager, room, self.requests + 2))

    def put_chunk(self, room, chunk):
        queues = self.disagg_prefill_bootstrap_queue.kv_manager.transfer_queues
        queues[room % len(queues)].put(TransferKVChunk(room, chunk, True))

    def clear(self, req):
        manager = self.disagg_prefill_bootstrap_queue.kv_manager
        manager.request_status.pop(req.bootstrap_room)
        manager.transfer_infos.pop(req.bootstrap_room, None)

    # ---- commands ------------------------------------------------------------------------------
    def recv_requests(self):
        line = sys.stdin.buffer.raw.readline()
        if not line:
            os._exit(0)
        return [json.loads(line)]

    def handle(self, recv):
        answer = getattr(self, "do_" + recv.pop("do"))(**recv)
        if answer is not None:
            print(json.dumps(answer), flush=True)

    def do_tell(self):
        """What the server holds, in the words of `silentpin py --json`."""
        manager = self.disagg_prefill_bootstrap_queue.kv_manager
        queues = {"bootstrap": self.disagg_prefill_bootstrap_queue.queue, "waiting": self.waiting_queue,
                  "inflight": self.disagg_prefill_inflight_queue}
        inflight = [{"sent": r.disagg_kv_sender.curr_idx, "total": r.disagg_kv_sender.num_kv_indices}
                    for r in self.disagg_prefill_inflight_queue]
        tids = {t.name: t.native_id for t in threading.enumerate()}
        return {"queues": {k: [dict({"room": str(r.bootstrap_room), "rid": r.rid},
                                    **(inflight[i] if k == "inflight" else {})) for i, r in enumerate(q)]
                           for k, q in queues.items()},
                "status": {str(k): v for k, v in manager.request_status.items()},
                "workers": [{"tid": tids[f"transfer-{i}"], "behind": [str(c.room) for c in q._buf],
                             "room": manager.at_work.get(tids[f"transfer-{i}"])}
                            for i, q in enumerate(manager.transfer_queues)],
                "tids": tids}

    def do_stacks(self):
        self.asked.set()

    def do_lose_status(self):
        """The first inflight request's entry is gone: it will be held for ever."""
        room = self.disagg_prefill_inflight_queue[0].bootstrap_room
        self.disagg_prefill_bootstrap_queue.kv_manager.request_status.pop(room)
        return {"room": str(room)}

    def do_churn(self, seconds, alive=40, pause=0):
        """Requests go their way, all of it: bootstrap, waiting, forward pass, inflight, gone. As fast as can be, or
        with a pause after each step. Told when the first step is done."""
        boot, waiting = self.disagg_prefill_bootstrap_queue, self.waiting_queue
        inflight, status = self.disagg_prefill_inflight_queue, boot.kv_manager.request_status
        end, forward, cleared = time.monotonic() + seconds, [], {}
        start, told = self.requests, False
        while not told or time.monotonic() < end:
            while len(status) < alive:
                boot.queue.append(self.new_request(KVPoll.Bootstrapping))
            ready = boot.queue[:5]
            boot.queue = boot.queue[5:]
            for r in ready:
                status[r.bootstrap_room] = KVPoll.WaitingForInput
            waiting.extend(ready)
            inflight.extend(forward)
            forward = [waiting.pop(0) for _ in range(min(5, len(waiting)))]
            for r in inflight:
                status[r.bootstrap_room] = min(KVPoll.Success, status[r.bootstrap_room] + 1)
            done = [r for r in inflight if status[r.bootstrap_room] == KVPoll.Success]
            for r in done:
                if pause:
                    cleared[str(r.bootstrap_room)] = time.monotonic_ns()
                self.clear(r)
            self.disagg_prefill_inflight_queue = inflight = [r for r in inflight if r not in done]
            if not told:
                print(json.dumps({"churning": True}), flush=True)
                told = True
            if pause:
                time.sleep(pause)
        inflight.extend(forward)
        return {"requests": self.requests - start, "cleared": cleared}

    def do_work(self, rounds):
        """Nothing but Python for a while: how long it took."""
        start = time.perf_counter()
        for _ in range(rounds):
            table = {}
            for i in range(200):
                table[i] = [i, str(i)]
            sum(len(v) for v in table.values())
        return {"seconds": time.perf_counter() - start}

    def do_odd(self):
        """What no server should hold, among what it may: the others are still to be seen."""
        queue = self.disagg_prefill_inflight_queue
        for room, rid in ((None, "no-room"), (-5, "negative"), ("text", "a text"), (1 << 70, "too large"),
                          (2.5, "float"), ([], "a list"), (17, None), (27, "\u4f60\u597d \U0001f4cc \"quoted\""),
                          (37, "r" * 1024), (38, "r" * 5000),
                          (47, 5), (True, "a bool"), ((1 << 64) - 9, "64 bits")):
            queue.append(self.make_req(rid, room, None))
        queue.extend((None, 5, self, queue))
        self.disagg_prefill_bootstrap_queue.kv_manager.request_status.update(
            {"text": 1, None: 2, 27: None, 37: "3", 47: KVStatus.Transferring, 57: -1, -67: 3, 2.5: 3})
        return {"length": len(queue)}

    def do_change(self):
        """Each inflight request changes in another way; all of them are still there."""
        queue, manager = self.disagg_prefill_inflight_queue, self.disagg_prefill_bootstrap_queue.kv_manager
        status = manager.request_status
        for i, r in enumerate(queue):
            what, room = i // 3 % 9, r.bootstrap_room
            if what == 0:
                status[room] = 1 + status[room] % 4
            elif what == 1:
                r.disagg_kv_sender.curr_idx += 1
            elif what == 2:
                r.disagg_kv_sender = NixlKVSender(manager, room, 1000 + self.random.randrange(1000))
            elif what == 3:
                r.rid = f"req-{i}-{room}-{self.random.randrange(1 << 30)}"
            elif what == 4:
                r.bootstrap_room = self.random.randrange((1 << 63) // 10) * 10 + 7
                status[r.bootstrap_room] = status.pop(room)
            elif what == 5 and hasattr(r, "__dict__"):
                r.__dict__ = dict(reversed(list(r.__dict__.items())), one_more=i,
                                  rid=f"req-{i}-{room}-{len(r.rid)}")
            elif what == 6:
                queue[i] = self.make_req(r.rid, room, r.disagg_kv_sender)
            elif what == 7:
                del status[room]
                status[room] = self.random.randrange(5)
            else:
                r.disagg_kv_sender.num_kv_indices = self.random.randrange(5000)
        others = [-n for n in range(1, self.random.randrange(3000))]
        status.update(dict.fromkeys(others, 1))  # the table grows, and is its old self again in new memory
        for n in others:
            del status[n]
        self.disagg_prefill_inflight_queue = sorted(queue, key=lambda r: r.rid)
        return {}

    def do_swap(self, what):
        """The inflight queue is something else from now on."""
        self.disagg_prefill_inflight_queue = {"tuple": tuple, "deque": collections.deque, "none": lambda _: None,
                                              "number": len, "dict": lambda q: dict(enumerate(q))}[what](
            self.disagg_prefill_inflight_queue)
        return {}

    def do_exec(self, argv):
        os.execv(argv[0], argv)

    def do_fork(self):
        """The child holds what was held, and waits for its end without a thread beside."""
        pid = os.fork()
        while pid == 0:
            time.sleep(3600)
        return {"pid": pid}

    def do_exit(self):
        os._exit(0)

    def report(self):
        while True:
            self.asked.wait()
            self.asked.clear()
            others = [t for t in threading.enumerate() if t is not threading.current_thread()]
            print(json.dumps(blocked_frames(others)), flush=True)


def main():
    warnings.simplefilter("ignore", DeprecationWarning)  # os.fork() beside threads is what is wanted here
    ap = argparse.ArgumentParser()
    for name in ("bootstrap", "waiting", "inflight", "busy"):
        ap.add_argument(f"--{name}", type=int, default=0)
    ap.add_argument("--workers", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--layout", choices=sorted(LAYOUTS), default="combined")
    scheduler = Scheduler(ap.parse_args())
    scheduler.event_loop_normal_disagg_prefill()


if __name__ == "__main__":
    main()
