#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in engine core of vLLM with its NIXL connector, in the prefill role, one worker in the same process.

usage: engine.py [--lease SECONDS] [--priority] [--skipped] [--build DIR]

It has the process title, the frames and the attribute names of the real one as far as an observer may look
for them; what happens inside is our own. A prefill runs for a few steps; then the request is finished, and its
blocks are kept (it stays in Scheduler.requests) until every consumer has notified the worker, or the lease
ends. Commands come as JSON lines on stdin, events go as JSON lines to stdout:
  {"do":"add","id":"cmpl-1-0","steps":3,"consumers":1}   {"do":"hold"}: what waits goes on waiting
  {"do":"skip","id":..}: added to Scheduler.skipped_waiting (with --skipped: newer versions have it), and stays there
  {"do":"forget_to_free"}: what the worker reports as sent is lost, from now on
  {"ev":"ready","pid":..,"agent":..,"metadata":hex,"base":..,"size":..}
  {"ev":"finished","id":..}  {"ev":"freed","id":..,"expired":..}
"""
import argparse
import collections
import ctypes
import enum
import heapq
import json
import mmap
import os
import sys
import threading
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "node"))
from proc import die_with_parent, node_build  # noqa: E402

BLOCKS = 64 << 20  # bytes of the memory that consumers reach


def emit(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class RequestStatus(enum.IntEnum):
    WAITING = 1
    RUNNING = 4
    FINISHED_STOPPED = 6
    FINISHED_LENGTH_CAPPED = 7


class Request:
    def __init__(self, request_id, steps, consumers):
        self.request_id = request_id
        self.status = RequestStatus.WAITING
        self.kv_transfer_params = {"do_remote_decode": True}
        self.steps = steps
        self.consumers = consumers
        self.arrival_time = time.time()

    def __lt__(self, other):
        return self.arrival_time < other.arrival_time


class FCFSRequestQueue(collections.deque):
    def add_request(self, request):
        self.append(request)

    def pop_request(self):
        return self.popleft()


class PriorityRequestQueue:
    def __init__(self):
        self._heap = []

    def add_request(self, request):
        heapq.heappush(self._heap, request)

    def pop_request(self):
        return heapq.heappop(self._heap)

    def __len__(self):
        return len(self._heap)


class NixlPullConnectorWorker:
    """Keeps what is finished until it has been read: _reqs_to_send, with the end of each lease."""

    def __init__(self, agent, lease):
        self.nixl_wrapper = agent
        self._kv_lease_duration = lease
        self._reqs_to_send = {}
        self._reqs_to_process = set()
        self._consumers = {}
        self.consumer_notification_counts_by_req = collections.defaultdict(int)

    def start_load_kv(self, reqs_in_batch, reqs_to_send):
        self._reqs_to_process.update(reqs_in_batch)
        for req_id, (expires, consumers) in reqs_to_send.items():
            self._consumers[req_id] = consumers
            if req_id in self._reqs_to_process:
                self._reqs_to_send[req_id] = expires

    def get_finished(self):
        done_sending = self._get_new_notifs()
        now = time.perf_counter()
        for req_id in [r for r, expires in self._reqs_to_send.items() if now >= expires]:
            del self._reqs_to_send[req_id]
            self._reqs_to_process.discard(req_id)
            self.consumer_notification_counts_by_req.pop(req_id, None)
            done_sending[req_id] = True
        return done_sending

    def _get_new_notifs(self):
        notified = {}
        for notifs in self.nixl_wrapper.get_new_notifs().values():
            for notif in notifs:
                msg = notif.decode("utf-8")
                if msg.startswith("HB:"):
                    self._handle_heartbeat(msg[3:])
                    continue
                req_id, _ = msg.rsplit(":", 1)
                if req_id not in self._reqs_to_send and req_id not in self._reqs_to_process:
                    continue
                self.consumer_notification_counts_by_req[req_id] += 1
                if self.consumer_notification_counts_by_req[req_id] == self._consumers.get(req_id, 1):
                    del self.consumer_notification_counts_by_req[req_id]
                    self._reqs_to_process.discard(req_id)
                    self._reqs_to_send.pop(req_id, None)
                    notified[req_id] = False
        return notified

    def _handle_heartbeat(self, req_ids):
        for req_id in req_ids.split(","):
            if req_id in self._reqs_to_send:
                self._reqs_to_send[req_id] = time.perf_counter() + self._kv_lease_duration


class NixlConnector:
    def __init__(self, worker):
        self.connector_scheduler = None
        self.connector_worker = worker


class Scheduler:
    def __init__(self, priority, lease, skipped):
        queue = PriorityRequestQueue if priority else FCFSRequestQueue
        self.requests = {}
        self.waiting = queue()
        if skipped:
            self.skipped_waiting = queue()
        self.running = []
        self.finished_req_ids = set()
        self._reqs_need_send = {}
        self.lease = lease
        self.held = False
        self.forget_to_free = False

    def add_request(self, request):
        self.waiting.add_request(request)
        self.requests[request.request_id] = request

    def skip_request(self, request):
        self.skipped_waiting.add_request(request)
        self.requests[request.request_id] = request

    def schedule(self):
        while len(self.waiting) and len(self.running) < 8 and not self.held:
            request = self.waiting.pop_request()
            request.status = RequestStatus.RUNNING
            self.running.append(request)
        return [request.request_id for request in self.running]

    def update_from_output(self, done_sending):
        stopped = []
        for request in self.running:
            request.steps -= 1
            if request.steps <= 0:
                request.status = RequestStatus.FINISHED_LENGTH_CAPPED
                stopped.append(request)
                self._reqs_need_send[request.request_id] = (time.perf_counter() + self.lease, request.consumers)
        if stopped:
            self.running = [r for r in self.running if r not in stopped]
            for request in stopped:
                emit(ev="finished", id=request.request_id)
        if self.forget_to_free:
            return
        for req_id, expired in done_sending.items():
            if req_id in self.requests:
                del self.requests[req_id]
                emit(ev="freed", id=req_id, expired=expired)


class EngineCoreProc:
    def __init__(self, args):
        import _nixl_standin

        self.agent = _nixl_standin.Agent(str(uuid.uuid4()))
        self.memory = mmap.mmap(-1, BLOCKS)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.agent.register_memory(self.base, BLOCKS)
        self.scheduler = Scheduler(args.priority, args.lease, args.skipped)
        self.connector = NixlConnector(NixlPullConnectorWorker(self.agent, args.lease))
        self.input_queue = collections.deque()
        self.ended = False
        threading.Thread(target=self.process_input_sockets, daemon=True).start()

    def process_input_sockets(self):
        for line in sys.stdin:
            self.input_queue.append(json.loads(line))
        self.ended = True

    def run_busy_loop(self):
        while not self.ended:
            self._process_input_queue()
            self._process_engine_step()

    def _process_input_queue(self):
        while self.input_queue:
            command = self.input_queue.popleft()
            what = command["do"]
            if what == "add":
                self.scheduler.add_request(Request(
                    command["id"], command.get("steps", 3), command.get("consumers", 1)))
            elif what == "skip":
                self.scheduler.skip_request(Request(command["id"], 1, 1))
            elif what == "hold":
                self.scheduler.held = True
            elif what == "forget_to_free":
                self.scheduler.forget_to_free = True

    def _process_engine_step(self):
        self.agent.progress(1)
        batch = self.scheduler.schedule()
        worker = self.connector.connector_worker
        need_send, self.scheduler._reqs_need_send = self.scheduler._reqs_need_send, {}
        worker.start_load_kv(batch, need_send)
        if batch:
            time.sleep(0.005)  # the forward pass
        self.scheduler.update_from_output(worker.get_finished())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lease", type=float, default=30.0)
    parser.add_argument("--priority", action="store_true")
    parser.add_argument("--skipped", action="store_true")
    parser.add_argument("--build", default=node_build())
    args = parser.parse_args()
    die_with_parent()
    sys.path.insert(0, args.build)
    import setproctitle

    setproctitle.setproctitle("VLLM::EngineCore")
    core = EngineCoreProc(args)
    emit(ev="ready", pid=os.getpid(), agent=core.agent.name, base=core.base, size=BLOCKS,
         metadata=core.agent.get_agent_metadata().hex())
    core.run_busy_loop()


if __name__ == "__main__":
    main()
