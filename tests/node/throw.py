#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A C++ exception out of every probed function of libnixl.so, or of Mooncake's engine, caught by the
binding.

usage: throw.py [--rounds N] [--build DIR] [--title TITLE] [--transport nixl|mooncake]

Prints {"step":"ready","pid":..}, waits for a line on stdin (attach meanwhile), then for each probed
function one call that works, one that throws and one that works again, N times over, and prints
{"step":"final","thrown":{function: times}}. A return probe on a throwing frame ends this process.
"""
import argparse
import ctypes
import json
import mmap
import os
import sys

from proc import die_with_parent, node_build



class Pair:
    """Two agents of one process, the first of which can write to the second."""

    def __init__(self, nixl, size=4096):
        self.nixl = nixl
        self.memory = mmap.mmap(-1, 2 * size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.src, self.dst = (base, size), (base + size, size)
        self.writer, self.reader = nixl.Agent("writer"), nixl.Agent("reader")
        self.writer.register_memory(*self.src)
        self.reader.register_memory(*self.dst)
        self.writer.add_remote_agent(self.reader.get_agent_metadata())
        self.local = self.writer.prep_xfer_dlist("", [self.src])
        self.remote = self.writer.prep_xfer_dlist("reader", [self.dst])

    def made(self):
        return self.writer.make_prepped_xfer(self.local, [0], self.remote, [0], b"1_kv_0_1_0")

    def posted(self):
        handle = self.made()
        self.writer.transfer(handle)
        return handle

    def calls(self):
        """For each probed function what to prepare without it, and the call."""
        return {
            "makeXferReq": (lambda: None, lambda _: self.made()),
            "createXferReq": (lambda: None, lambda _: self.writer.initialize_xfer(
                [self.src], [self.dst], "reader", b"1_aux")),
            "postXferReq": (self.made, self.writer.transfer),
            "getXferStatus": (self.posted, self.writer.check_xfer_state),
            "releaseXferReq": (self.made, self.writer.release_xfer_handle),
            "getNotifs": (lambda: None, lambda _: self.reader.get_new_notifs()),
            "genNotif": (lambda: None, lambda _: self.writer.send_notif("reader", b"hello")),
        }

    def throws(self, name, prepare, call):
        """True when the call works, throws when told to, and works again."""
        call(prepare())
        subject = prepare()
        self.nixl.test_throw(name)
        try:
            call(subject)
            return False
        except RuntimeError as e:
            caught = str(e)
        finally:
            self.nixl.test_throw(None)
        call(prepare())
        self.reader.progress(0)
        return caught == f"nixl test hook: {name}"


class Engines:
    """Two transfer engines of one process; a small write is over once the kernel has it."""

    def __init__(self, engine):
        self.engine = engine
        self.memory = mmap.mmap(-1, 1024)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.writer, self.reader = engine.TransferEngine(), engine.TransferEngine()
        self.writer.register_memory(self.base, 512)
        self.reader.register_memory(self.base + 512, 512)
        self.session = f"127.0.0.1:{self.reader.get_rpc_port()}"

    def calls(self):
        return dict.fromkeys(("openSegment", "allocateBatchID", "submitTransfer", "getTransferStatus",
                              "getBatchTransferStatus", "freeBatchID"))

    def write(self, several):
        count = 2 if several else 1
        at = [self.base + 16 * i for i in range(count)]
        return self.writer.batch_transfer_sync_write(self.session, at, [a + 512 for a in at], [16] * count)

    def call(self, name):
        """What comes by that method. 0: it went well."""
        if name == "openSegment":
            return self.writer.open_segment(self.session)
        return self.write(several=name == "getBatchTransferStatus")

    def throws(self, name, *_):
        fine = self.call(name) == 0
        self.engine.test_throw(name)
        try:
            self.call(name)
            return False
        except RuntimeError as e:
            caught = str(e)
        finally:
            self.engine.test_throw(None)
        self.reader.progress(0)
        return fine and self.call(name) == 0 and caught == f"mooncake test hook: {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--title", default="sglang::scheduler")
    parser.add_argument("--build", default=node_build())
    parser.add_argument("--transport", default="nixl", choices=("nixl", "mooncake"))
    args = parser.parse_args()
    sys.path.insert(0, args.build)
    import setproctitle

    die_with_parent()
    setproctitle.setproctitle(args.title)
    if args.transport == "mooncake":
        import mooncake.engine
        pair = Engines(mooncake.engine)
    else:
        import _nixl_standin
        pair = Pair(_nixl_standin)
    print(json.dumps({"step": "ready", "pid": os.getpid()}), flush=True)
    sys.stdin.readline()
    thrown = dict.fromkeys(pair.calls(), 0)
    for _ in range(args.rounds):
        for name, how in pair.calls().items():
            thrown[name] += pair.throws(name, *(how or ()))
    print(json.dumps({"step": "final", "thrown": thrown}), flush=True)


if __name__ == "__main__":
    main()
