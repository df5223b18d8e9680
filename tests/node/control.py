# SPDX-License-Identifier: Apache-2.0
"""The tests' line into a scheduler: JSON lines over an abstract unix socket of the front process.

A thread of its own, so that it answers during a forward pass; it stays away from ZMQ, so that what
a tracer sees of ZMQ is the server's own.
"""
import ctypes
import json
import os
import socket
import threading
import traceback

import truth


class ControlThread(threading.Thread):
    def __init__(self, scheduler, address, fork_another):
        super().__init__(name="control", daemon=True)
        self.scheduler = scheduler
        self.fork_another = fork_another
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect("\0" + address)

    def run(self):
        manager = self.scheduler.disagg_prefill_bootstrap_queue.kv_manager
        self._send({"hello": self.scheduler.rank, "pid": os.getpid(),
                    "input": self.scheduler.input_address, "rank_port": manager.rank_port})
        with self.sock.makefile("rb") as lines:
            for line in lines:
                ask = json.loads(line)
                try:
                    answer = self._answer(ask, manager)
                except Exception as e:
                    traceback.print_exc()
                    answer = {"error": repr(e)}
                self._send(dict(answer, id=ask["id"]))

    def _send(self, obj):
        self.sock.sendall(json.dumps(obj).encode() + b"\n")

    def _answer(self, ask, manager):
        if ask["cmd"] == "state":
            return truth.snapshot(self.scheduler)
        if ask["cmd"] == "brief":
            return {"inflight": len(self.scheduler.disagg_prefill_inflight_queue),
                    "waiting": len(self.scheduler.waiting_queue),
                    "bootstrap": len(self.scheduler.disagg_prefill_bootstrap_queue.queue),
                    "counters": dict(manager.counters),
                    "transfer_failed": self.scheduler.num_transfer_failed,
                    "bootstrap_failed": self.scheduler.num_bootstrap_failed}
        for name, value in ask["hook"].items():
            self._hook(name, value, manager)
        return {"ok": True}

    def _hook(self, name, value, manager):
        if name == "lose_aux":  # rooms whose auxiliary write is never made
            manager._aux_held.update(int(room) for room in value)
        elif name == "kill_worker":  # what is no chunk ends the thread, outside its try
            manager.transfer_queues[value].put(None)
        elif name == "passes":  # how many more forward passes are begun; negative: no limit
            self.scheduler.passes = int(value)
        elif name == "peers":  # mooncake: [sessions, pid] of a decode
            manager.peer_pids.update(dict.fromkeys(value[0], value[1]))
        elif name == "fail":  # mooncake: rooms whose writes fail
            manager.fails.update(int(room) for room in value)
        elif name == "block":  # mooncake: rooms whose next submission does not return
            manager.blocks.update(int(room) for room in value)
        elif name == "copy":  # mooncake: {room: bytes} that its next submission copies with CUDA
            manager.copies.update({int(room): size for room, size in value.items()})
        elif name == "cuda":  # [path of a libcuda, the name of a function of it whose calls block, or null]
            ctypes.CDLL(value[0], mode=ctypes.RTLD_GLOBAL).standin_block(value[1] and value[1].encode())
        elif name == "unblock":
            manager.hooks().test_unblock()
        elif name == "error":  # [notification prefix, status]: see nixl_test_error
            import _nixl_standin
            _nixl_standin.test_error(value[0], value[1])
        elif name == "throw":
            manager.hooks().test_throw(value)
        elif name == "fork":  # this process forks a second scheduler of the given rank
            self.scheduler.calls.append(lambda: self.fork_another(value))
        else:
            raise ValueError(f"no hook {name}")
