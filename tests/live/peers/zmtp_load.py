#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Load for attaches at any moment: zmtp_load.py PORT SEED CONNECTIONS. Each connection sends messages of its own
kind until a line comes on stdin; then one JSON line: what was said, [[role, room, agent], ...].

Payloads hold whole messages of rooms that nobody says, one after the other, so that a false frame boundary
would become an event; long ones are sent in pieces, with pauses at random places.
"""
import json
import os
import sys
import threading

import raw_zmtp
from raw_zmtp import Connection

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from sock_case import Truth  # noqa: E402

stop = threading.Event()


def small(truth, c):
    """Wanted and unwanted, coalesced, cut anywhere."""
    rnd = truth.random
    data = b"".join(raw_zmtp.message(*(truth.metadata(truth.fake_payload(rnd.choice((0, 4, 300))))
                                       if rnd.random() < 0.5 else truth.unwanted([rnd.randrange(300)])))
                    for _ in range(rnd.randrange(1, 8)))
    c.send(data, rnd.sample(range(len(data)), min(len(data), rnd.randrange(4))))
    stop.wait(rnd.random() * 0.02)


def large(truth, c):
    rnd = truth.random
    data = raw_zmtp.message(*truth.metadata(truth.fake_payload(rnd.choice((1000, 20000, 400000)))))
    c.send(data, rnd.sample(range(len(data)), 5), pause=rnd.random() * 0.05)
    stop.wait(rnd.random() * 0.05)


def slow(truth, c):
    """Byte by byte, a second and more between some."""
    data = raw_zmtp.message(*truth.metadata(truth.fake_payload(400)))
    pause = truth.random.randrange(len(data))
    c.send(data[:pause], range(pause), pause=0.0002)
    stop.wait(1.05 * (truth.random.random() < 0.5))
    c.send(data[pause:])


def unread(c):
    """Bytes that the peer has not taken yet: the receive queue of its end (/proc/net/tcp)."""
    mine, theirs = (f":{name[1]:04X}" for name in (c.sock.getsockname(), c.sock.getpeername()))
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words[1].endswith(theirs) and words[2].endswith(mine):
                return int(words[4].rpartition(":")[2], 16)
    return 0


def fakes(truth, c):
    """A frame of nothing but false messages, which waits where one of them begins: for more than a second when
    the frame ends within another, for less when it ends with one. The next message comes when this one has been
    read: together they might be whole messages from one end to the other, and nobody could tell."""
    rnd = truth.random
    one = truth.fake_size()
    whole = rnd.random() < 0.5
    payload = truth.fake_payload(one * rnd.randrange(3, 60) + (0 if whole else rnd.randrange(1, one)))
    data = raw_zmtp.message(b"", payload)
    cut = len(data) - len(payload) + one * rnd.randrange(1, len(payload) // one)
    c.send(data[:cut])
    stop.wait(rnd.random() * 0.5 if whole else 1.05 * (rnd.random() < 0.5))
    c.send(data[cut:])
    while unread(c):
        stop.wait(0.002)


def run(kind, port, truth):
    try:
        with Connection(port) as c:
            while not stop.is_set():
                kind(truth, c)
    except OSError:
        if not stop.is_set():
            raise


def failed(args):
    sys.excepthook(*args[:3])
    os._exit(1)


def main():
    threading.excepthook = failed
    port, seed, n = map(int, sys.argv[1:])
    truths, threads = [], []
    for i in range(n):
        truths.append(Truth(seed * 1000 + i))
        truths[-1].n = 1000 * i
        kind = (small, large, slow, fakes, small)[i % 5]
        threads.append(threading.Thread(target=run, args=(kind, port, truths[-1])))
        threads[-1].start()
    print("ready", flush=True)
    sys.stdin.readline()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps([key for t in truths for key in t.said.elements()]), flush=True)


if __name__ == "__main__":
    main()
