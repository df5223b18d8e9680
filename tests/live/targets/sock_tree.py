# SPDX-License-Identifier: Apache-2.0
"""A small tree of processes, told what to do line by line on stdin. `sock_tree.py front` starts a
child of its own kind (`sock_tree.py child`) and passes on to it what begins with "child "; each answers a line."""
import ctypes
import os
import platform
import socket
import subprocess
import sys

IO_URING_SETUP = 425  # the same number on x86-64 and arm64
keep = []


def listen():
    s = socket.create_server(("127.0.0.1", 0))
    keep.append(s)
    return s.getsockname()[1]


def uring():
    params = ctypes.create_string_buffer(256)
    fd = ctypes.CDLL(None, use_errno=True).syscall(IO_URING_SETUP, 4, params)
    return fd if fd >= 0 else f"errno {ctypes.get_errno()}"


def spawn(kind="child"):
    p = subprocess.Popen([sys.executable, __file__, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.readline()
    keep.append(p)
    return p


def listening_sibling(kind):
    p = spawn(kind)
    ask(p, "listen")
    return p.pid


def ask(p, line):
    p.stdin.write(line.encode() + b"\n")
    p.stdin.flush()
    return p.stdout.readline().decode().strip()


def fork():
    """A child that lives as long as the parent's pipe to it is open."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(w)
        os.read(r, 1)
        os._exit(0)
    os.close(r)
    keep.append(w)
    return pid


def main():
    mode = sys.argv[1]
    child = spawn() if mode == "front" else None
    print(f"ready {os.getpid()} {child.pid if child else 0} {platform.machine()}", flush=True)
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "child":
            answer = ask(child, rest)
        elif word == "exec":  # through another program of the same process
            os.set_inheritable(0, True)
            os.execv("/bin/sh", ["sh", "-c", f"exec {sys.executable} {__file__} child"])
        else:
            answer = {"listen": listen, "uring": uring, "fork": fork, "sibling": lambda: spawn().pid,
                      "listening": lambda: listening_sibling("worker"),
                      "rank": lambda: listening_sibling("child")}[word]()
        print(answer, flush=True)
    for p in keep:
        if isinstance(p, subprocess.Popen):
            p.stdin.close()
            p.wait()


main()
