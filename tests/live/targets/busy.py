#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A target with libnixl and libzmq mapped that keeps starting and ending things.

usage: busy.py fork|spawn|threads|map COUNT. Says "ready", waits for a line, does COUNT of it, says "done",
waits for another line and ends.
"""
import _ctypes
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "node"))
from proc import node_build  # noqa: E402


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def spawn():
    subprocess.run(["/bin/true"], check=True)


def threads():
    some = [threading.Thread(target=lambda: None) for _ in range(50)]
    for t in some:
        t.start()
    for t in some:
        t.join()


def main():
    what, count = sys.argv[1], int(sys.argv[2])
    nixl = os.path.join(node_build(), "libnixl.so")
    ctypes.CDLL(nixl, mode=os.RTLD_NOW)
    import zmq

    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(nixl, os.path.join(folder, "libnixl-copy.so"))
        do = {"fork": fork, "spawn": spawn, "threads": threads,
              "map": lambda: _ctypes.dlclose(_ctypes.dlopen(copy, os.RTLD_NOW))}[what]
        print("ready", zmq.zmq_version(), flush=True)
        sys.stdin.readline()
        for _ in range(count):
            do()
        print("done", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
