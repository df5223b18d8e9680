#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in decode worker of vLLM: it tells a prefill engine what it has read, and reads.

usage: consumer.py [--build DIR]

Commands come as JSON lines on stdin, each is answered by one JSON line:
  {"do":"peer","agent":..,"metadata":hex,"base":..,"size":..}   what engine.py said
  {"do":"notify","id":..,"count":1}       all was cached: nothing to read
  {"do":"heartbeat","ids":[..]}
  {"do":"read","id":..,"count":1,"bytes":N}   posts it, polls it until it is done; its end is an event of its own:
  {"ev":"read","id":..}

The library of the stand-in node only writes: a read moves its bytes the other way. The calls, and the text that the
peer gets when it is over, are those of a read.
"""
import argparse
import collections
import ctypes
import json
import mmap
import os
import sys
import threading
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "node"))
from proc import die_with_parent, node_build  # noqa: E402


def emit(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Worker:
    def __init__(self):
        import _nixl_standin

        self.nixl_wrapper = _nixl_standin.Agent(str(uuid.uuid4()))
        self._recving_transfers = {}
        self.commands = collections.deque()
        self.ended = False
        threading.Thread(target=self.read_commands, daemon=True).start()

    def read_commands(self):
        for line in sys.stdin:
            self.commands.append(json.loads(line))
        self.ended = True

    def worker_busy_loop(self):
        while not self.ended:
            while self.commands:
                command = self.commands.popleft()
                getattr(self, command.pop("do"))(**command)
            for req_id in self._pop_done_transfers():
                emit(ev="read", id=req_id)
            self.nixl_wrapper.progress(2)

    def peer(self, agent, metadata, base, size):
        self.agent = agent
        self.memory = mmap.mmap(-1, size)
        own = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.nixl_wrapper.register_memory(own, size)
        self.nixl_wrapper.add_remote_agent(bytes.fromhex(metadata))
        self.base, self.own = base, own
        emit(ev="ok")

    def notify(self, id, count=1):
        self.nixl_wrapper.send_notif(self.agent, f"{id}:{count}".encode())
        emit(ev="ok")

    def heartbeat(self, ids):
        self.nixl_wrapper.send_notif(self.agent, ("HB:" + ",".join(ids)).encode())
        emit(ev="ok")

    def read(self, id, bytes, count=1):
        local = self.nixl_wrapper.prep_xfer_dlist("", [(self.own, bytes)])
        remote = self.nixl_wrapper.prep_xfer_dlist(self.agent, [(self.base, bytes)])
        handle = self.nixl_wrapper.make_prepped_xfer(local, [0], remote, [0], f"{id}:{count}".encode())
        self.nixl_wrapper.transfer(handle)
        self._recving_transfers[id] = handle
        emit(ev="ok")

    def _pop_done_transfers(self):
        done = [req_id for req_id, handle in self._recving_transfers.items()
                if self.nixl_wrapper.check_xfer_state(handle) == "DONE"]
        for req_id in done:
            self.nixl_wrapper.release_xfer_handle(self._recving_transfers.pop(req_id))
        return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=node_build())
    args = parser.parse_args()
    die_with_parent()
    sys.path.insert(0, args.build)
    import setproctitle

    setproctitle.setproctitle("VLLM::Worker_TP0")
    worker = Worker()
    emit(ev="ready", pid=os.getpid())
    worker.worker_busy_loop()


if __name__ == "__main__":
    main()
