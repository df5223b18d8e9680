# SPDX-License-Identifier: Apache-2.0
"""A decode scheduler of the stand-in node: one rank of decode.py with the process title, the main loop, the
queues and the attribute names of the real decode scheduler. See decode.py --scheduler.

A request waits in disagg_decode_prealloc_queue until its pages are there and its metadata is sent, in
disagg_decode_transfer_queue until its last notification has come (or waiting_timeout has passed), then in
waiting_queue, and is decoded for a moment.
"""
import collections
import time

from kv import KVPoll


class Req:
    def __init__(self, rid, bootstrap_room):
        self.rid = rid
        self.bootstrap_room = bootstrap_room


class DecodeRequest:
    def __init__(self, req, kv_receiver, command):
        self.req = req
        self.kv_receiver = kv_receiver
        self.waiting_for_input = False
        self.metadata_buffer_index = -1
        self.command = command


class NixlKVManager:
    """The rank's side of all its transfers."""

    def __init__(self, rank, waiting_timeout):
        self.rank = rank
        self.request_status = {}
        self.completed = set()
        self.waiting_timeout = waiting_timeout

    def check_status(self, bootstrap_room):
        return self.request_status.get(bootstrap_room, KVPoll.WaitingForInput)

    def update_status(self, bootstrap_room, status):
        self.request_status[bootstrap_room] = status

    def update_transfer_status(self):
        self.completed.update(self.rank.take_notifs())


class NixlKVReceiver:
    def __init__(self, mgr, bootstrap_room):
        self.kv_mgr = mgr
        self.bootstrap_room = bootstrap_room
        self.started_transfer = False
        self.conclude_state = None
        self.init_time = None
        mgr.update_status(bootstrap_room, KVPoll.Bootstrapping)

    def init(self):
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.WaitingForInput)

    def send_metadata(self, command):
        self.kv_mgr.rank.announce(self.bootstrap_room, command["tokens"], command.get("prefix", 0),
                                  command.get("required") or 1, command.get("state", False))
        self.started_transfer = True
        self.init_time = time.time()

    def poll(self):
        if self.conclude_state is not None:
            return self.conclude_state
        if not self.started_transfer:
            return self.kv_mgr.check_status(self.bootstrap_room)
        if time.time() - self.init_time >= self.kv_mgr.waiting_timeout:
            self.conclude_state = KVPoll.Failed
            return KVPoll.Failed
        self.kv_mgr.update_transfer_status()
        if self.bootstrap_room in self.kv_mgr.completed:
            self.kv_mgr.completed.discard(self.bootstrap_room)
            self.conclude_state = KVPoll.Success
            return KVPoll.Success
        return KVPoll.WaitingForInput

    def abort(self):
        self.kv_mgr.rank.abort(self.bootstrap_room)
        self.conclude_state = KVPoll.Failed

    def clear(self):
        self.kv_mgr.request_status.pop(self.bootstrap_room, None)


class DecodePreallocQueue:
    def __init__(self, kv_manager):
        self.kv_manager = kv_manager
        self.queue = []
        self.held = set()  # rooms for which there is no memory, says the test

    def add(self, req, command):
        decode_req = DecodeRequest(req, NixlKVReceiver(self.kv_manager, req.bootstrap_room), command)
        decode_req.kv_receiver.init()
        self.queue.append(decode_req)

    def pop_preallocated(self):
        ready = [r for r in self.queue if r.req.bootstrap_room not in self.held]
        for decode_req in ready:
            decode_req.kv_receiver.send_metadata(decode_req.command)
        if ready:
            self.queue = [r for r in self.queue if r not in ready]
        return ready


class DecodeTransferQueue:
    def __init__(self):
        self.queue = []

    def pop_transferred(self, ended):
        """The requests whose KV has come; ended(request, ok) is told of all that leave."""
        moved = []
        for decode_req in self.queue:
            poll = decode_req.kv_receiver.poll()
            if poll in (KVPoll.Success, KVPoll.Failed):
                moved.append((decode_req, poll == KVPoll.Success))
        for decode_req, ok in moved:
            ended(decode_req, ok)
            decode_req.kv_receiver.clear()
            decode_req.kv_receiver = None
        if moved:
            gone = [decode_req for decode_req, _ in moved]
            self.queue = [r for r in self.queue if r not in gone]
        return [decode_req.req for decode_req, ok in moved if ok]


class Scheduler:
    def __init__(self, decode, args, emit):
        self.decode = decode
        self.emit = emit
        self.idle_sleep = args.idle_sleep
        self.disagg_decode_prealloc_queue = DecodePreallocQueue(
            NixlKVManager(decode.ranks[0], args.waiting_timeout))
        self.disagg_decode_transfer_queue = DecodeTransferQueue()
        self.waiting_queue = []
        self.running_batch = collections.deque(maxlen=64)
        self.served = 0

    def event_loop_overlap_disagg_decode(self):
        while not self.decode.ended:
            self.process_input_requests()
            self.process_decode_queue()
            while self.waiting_queue:
                self.running_batch.append(self.waiting_queue.pop(0))
            self.decode.ranks[0].agent.progress(0)
            time.sleep(self.idle_sleep)

    def process_input_requests(self):
        while self.decode.commands:
            command = self.decode.commands.popleft()
            what, room = command["do"], command.get("room")
            if what == "announce":
                self.served += 1
                self.disagg_decode_prealloc_queue.add(Req(f"decode-{self.served}", room), command)
            elif what == "hold":  # no memory for this room from now on
                self.disagg_decode_prealloc_queue.held.add(room)
            elif what == "admit":
                self.disagg_decode_prealloc_queue.held.discard(room)
            elif what == "abort":
                for decode_req in self.disagg_decode_transfer_queue.queue:
                    if decode_req.req.bootstrap_room == room:
                        decode_req.kv_receiver.abort()
            else:
                self.decode.do(command)
                continue
            self.emit(ev="sent", do=what, room=str(room))

    def process_decode_queue(self):
        self.disagg_decode_transfer_queue.queue.extend(
            self.disagg_decode_prealloc_queue.pop_preallocated())
        self.waiting_queue.extend(self.disagg_decode_transfer_queue.pop_transferred(self.ended))

    def ended(self, decode_req, ok):
        rank, room = self.decode.ranks[0], decode_req.req.bootstrap_room
        if ok:
            ok = rank.content_ok(room)
        rank.forget(room)
        self.emit(ev="done" if ok else "failed", room=str(room), ok=ok)
