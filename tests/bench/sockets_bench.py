# SPDX-License-Identifier: Apache-2.0
"""What watching sockets costs, by who sees the calls (probes on libc's functions, the system call tracepoint):
a ZMQ stream, an HTTP server, one call; of the watched process, and of one that nobody watches.

A round measures untraced and each back end one after the other; the median of the rounds' ratios counts.
"""
import os
import re
import subprocess
import sys
import tempfile

from rig import ROOT, Failed, Lines, Process, Watch, figure, median

BACKENDS = ("libc", "syscall")
ROUNDS = 3
STREAMS = (("200B", 200, 1_000_000), ("8KB", 8192, 60_000), ("1MB", 1 << 20, 1000))
HTTP_S, CALLS = 1, 5000


class Peer(Process):
    """A process of tests/live/peers: a line for a line."""

    def __init__(self, *argv, cpu=None):
        super().__init__(argv, cpu, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = Lines(self.p.stdout)
        self.hello = self.lines.next(20).split()

    def do(self, *words, timeout=120):
        self.p.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.p.stdin.flush()
        answer = self.lines.next(timeout)
        if answer.startswith("-"):
            raise Failed(f"{words}: {answer}")
        return answer


def watched(build, profile, pid, backend):
    os.environ["SILENTPIN_SOCKETS"] = backend
    try:
        return Watch(build, "--only", "sockets", "-p", pid, "--probes", profile, cpu=None)
    finally:
        del os.environ["SILENTPIN_SOCKETS"]


def compare(build, profile, pid, measure, rounds=ROUNDS):
    """Untraced, and the ratio to it with each back end on pid; measure: larger is better."""
    off, on = [], {b: [] for b in BACKENDS}
    for _ in range(rounds):
        off.append(measure())
        for backend in BACKENDS:
            with watched(build, profile, pid, backend) as watch:
                on[backend].append(measure() / off[-1])
                watch.stop()
    return median(off), {b: median(ratios) for b, ratios in on.items()}


class Stream:
    """Messages a second from one process with libzmq to another, over a connection of their own."""

    def __init__(self, build):
        program = os.path.join(build, "live", "zmq_peer")
        self.pull, self.push = Peer(program), Peer(program)
        self.endpoint = self.pull.do("bind", "tcp://127.0.0.1:*")

    def rate(self, size, count):
        n = self.push.do("connect", self.endpoint)
        self.push.do("flood", n, count, size)
        ns = int(self.pull.do("until", count))
        self.push.do("close", n)
        return count / ns * 1e9

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.push.__exit__()
        self.pull.__exit__()


def requests_per_second(port):
    out = subprocess.run(
        ["wrk", "-t1", "-c8", f"-d{HTTP_S}s", "-s", os.path.join(ROOT, "tests/bench/sockets.lua"),
         f"http://127.0.0.1:{port}/generate"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=60, check=True).stdout
    got = re.search(r"Requests/sec:\s+([\d.]+)", out)
    if not got or "Non-2xx" in out or "Socket errors" in out:
        raise Failed(f"wrk: {out}")
    return float(got[1])


def http_server():
    return Peer("/usr/bin/python3", os.path.join(ROOT, "tests/live/peers/http_target.py"), "asyncio")


def told(name, off, unit, ratios):
    figure(name, off, unit)
    for backend, ratio in ratios.items():
        figure(f"{name}-{backend}-per-untraced", ratio, "ratio")


def streams(build, profile):
    with Stream(build) as traced:
        for name, size, count in STREAMS:
            off, ratios = compare(build, profile, traced.pull.pid, lambda: traced.rate(size, count))
            told(f"sockets-zmq-{name}", off, "messages/s", ratios)


def http(build, profile):
    with http_server() as server:
        port = int(server.hello[1])
        requests_per_second(port)
        off, ratios = compare(build, profile, server.pid, lambda: requests_per_second(port))
        told("sockets-http", off, "requests/s", ratios)


def neighbours(build, profile):
    """Another process is watched, which does nothing meanwhile."""
    with Stream(build) as idle, Stream(build) as other, http_server() as server:
        name, size, count = STREAMS[0]
        off, ratios = compare(build, profile, idle.pull.pid, lambda: other.rate(size, count))
        told(f"sockets-neighbour-zmq-{name}", off, "messages/s", ratios)
        port = int(server.hello[1])
        off, ratios = compare(build, profile, idle.pull.pid, lambda: requests_per_second(port))
        told("sockets-neighbour-http", off, "requests/s", ratios)


class Calls:
    """write and read of 64 bytes, over a connection whose bytes begin as `opening`."""

    def __init__(self, build, opening, data):
        self.peer = Peer(os.path.join(build, "live", "sock_peer"), cpu=0)
        self.port = self.peer.do("listen")
        self.opening, self.data = opening.hex(), data.hex()

    def rate(self):
        out, here = self.peer.do("connect", self.port), self.peer.do("accept")
        if self.opening:
            self.peer.do("write", "send", out, self.opening)
            self.peer.do("read", "recv", here, len(self.opening) // 2)
        ns = int(self.peer.do("loop", out, here, CALLS, self.data))
        self.peer.do("close", out)
        self.peer.do("close", here)
        return 1 / ns

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.peer.__exit__()


def calls(build, profile):
    """What is spoken decides: nothing that is wanted, or ZMTP whose messages are looked at."""
    sys.path.insert(0, os.path.join(ROOT, "tests/live/peers"))
    import raw_zmtp

    idle = Peer(os.path.join(build, "live", "sock_peer"))
    spoken = raw_zmtp.message(b"z" * 62)
    with idle, Calls(build, b"", b"z" * 64) as foreign, Calls(build, raw_zmtp.opening(), spoken) as zmtp:
        for name, one, pid in (("foreign", foreign, foreign.peer.pid), ("zmtp", zmtp, zmtp.peer.pid),
                               ("neighbour", foreign, idle.pid)):
            off, ratios = compare(build, profile, pid, one.rate)
            figure(f"sockets-call-{name}", 1 / off, "ns")
            for backend, ratio in ratios.items():
                figure(f"sockets-call-{name}-{backend}-per-untraced", 1 / ratio, "ratio")


def run(build):
    sys.path.insert(0, os.path.join(ROOT, "tests/live"))
    from sock_case import PROFILE_ALL

    with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="silentpin-bench-") as profile:
        profile.write(PROFILE_ALL)
        profile.flush()
        calls(build, profile.name)
        streams(build, profile.name)
        http(build, profile.name)
        neighbours(build, profile.name)
