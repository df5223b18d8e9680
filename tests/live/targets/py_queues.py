# SPDX-License-Identifier: Apache-2.0
"""A scheduler whose queues change: py_queues.py MODE N. What a request says follows from its number, see test_py_queues.py.

still: nothing changes. rebuild: the inflight list is made anew in each turn, with the same requests. rotate: its first
becomes its last. churn: a thousand times a second one goes and another comes. edit: each turn sets what each request
has sent. move: requests go from the first queue to the last, and stay there.
"""
import sys
import threading
import time

BASE = 2**62


class Sender:
    def __init__(self, number):
        self.curr_idx = number % 1000
        self.num_kv_indices = BASE + number


class Req:
    def __init__(self, number):
        self.number = number
        self.rid = f"req-{number}"
        for i in range(number % 3 * 20):  # three sizes of dict
            setattr(self, f"filler_{i}", i)
        self.bootstrap_room = BASE + number
        self.disagg_kv_sender = Sender(number)


class Manager:
    def __init__(self):
        self.request_status = {}
        self.transfer_infos = {}
        self.transfer_queues = []

        def bootstrap_thread():
            threading.Event().wait()
        threading.Thread(target=bootstrap_thread, daemon=True).start()


class BootstrapQueue:
    def __init__(self):
        self.queue = []
        self.kv_manager = Manager()


class Mixin:
    def event_loop_normal_disagg_prefill(self, mode, n):
        self.take(Req(i) for i in range(n))
        if mode == "move":
            self.disagg_prefill_bootstrap_queue.queue = self.disagg_prefill_inflight_queue
            self.disagg_prefill_inflight_queue = []
        turn = getattr(self, mode)
        print("ready", flush=True)
        while True:
            turn()


class Scheduler(Mixin):
    def __init__(self):
        self.disagg_prefill_bootstrap_queue = BootstrapQueue()
        self.waiting_queue = []
        self.disagg_prefill_inflight_queue = []
        self.turns = 0
        self.next = 0

    def take(self, reqs):
        for r in reqs:
            self.disagg_prefill_bootstrap_queue.kv_manager.request_status[r.bootstrap_room] = r.number % 5
            self.disagg_prefill_inflight_queue.append(r)
            self.next = r.number + 1

    def still(self):
        time.sleep(0.1)

    def rebuild(self):
        self.disagg_prefill_inflight_queue = [r for r in self.disagg_prefill_inflight_queue if r.rid]

    def rotate(self):
        queue = self.disagg_prefill_inflight_queue
        queue.append(queue.pop(0))

    def churn(self):
        queue = self.disagg_prefill_inflight_queue
        self.take([Req(self.next)])
        self.disagg_prefill_bootstrap_queue.kv_manager.request_status.pop(queue.pop(0).bootstrap_room)
        time.sleep(0.001)

    def edit(self):
        self.turns += 1
        for r in self.disagg_prefill_inflight_queue:
            r.disagg_kv_sender.curr_idx = self.turns * 1000 + r.number % 1000
        time.sleep(0.0005)

    def move(self):
        queues = [self.disagg_prefill_bootstrap_queue.queue, self.waiting_queue, self.disagg_prefill_inflight_queue]
        for a, b in zip(queues, queues[1:]):
            if a:
                b.append(a[0])
                a.pop(0)
            time.sleep(0.0005)


Scheduler().event_loop_normal_disagg_prefill(sys.argv[1], int(sys.argv[2]))
