#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Load for attaches at any moment: http_load.py PORT SEED CONNECTIONS. Requests with and without rooms until a
line comes on stdin; then one JSON line: what was asked, [["arrive", room, null], ...].

Prompts hold whole requests of rooms that nobody asks for, escaped as JSON wants it; bodies are sent in pieces,
with pauses where one of these begins.
"""
import json
import os
import re
import sys
import threading

from http_client import Client, body, request

sys.path.insert(0, __file__.rsplit("/", 2)[0])
from sock_case import Truth  # noqa: E402

stop = threading.Event()


def fake(truth):
    """Text of a request."""
    return request(body(truth.room())).decode()


def asked(truth):
    rooms = [truth.room() for _ in range(truth.random.choice((1, 1, 1, 4)))]
    for room in rooms:
        truth.said["arrive", str(room), None] += 1
    return rooms if len(rooms) > 1 else rooms[0]


def plain(truth, c):
    rnd = truth.random
    c.post(asked(truth) if rnd.random() < 0.7 else None, prompt=fake(truth) * rnd.choice((0, 1, 40)),
           last=rnd.random() < 0.8)
    stop.wait(rnd.random() * 0.02)


def pieces(truth, c):
    rnd = truth.random
    data = request(body(asked(truth), prompt=fake(truth) * rnd.choice((2, 300))))
    cut = rnd.choice([found.start() for found in re.finditer(b"POST", data)][1:])
    c.send(data[:cut])
    stop.wait(rnd.choice((0.01, 0.3, 1.05)))
    c.send(data[cut:])
    c.reply()


def many(truth, c):
    n = truth.random.randrange(2, 12)
    c.send(b"".join(request(body(asked(truth), prompt=fake(truth)),
                            chunks=[9, 30] if truth.random.random() < 0.5 else None) for _ in range(n)))
    for _ in range(n):
        c.reply()
    stop.wait(truth.random.random() * 0.05)


def run(kind, port, truth):
    with Client(port) as c:
        while not stop.is_set():
            kind(truth, c)


def failed(args):
    sys.excepthook(*args[:3])
    os._exit(1)


def main():
    threading.excepthook = failed
    port, seed, n = map(int, sys.argv[1:])
    truths, threads = [], []
    for i in range(n):
        truths.append(Truth(seed * 1000 + i))
        threads.append(threading.Thread(target=run, args=((plain, pieces, many)[i % 3], port, truths[-1])))
        threads[-1].start()
    print("ready", flush=True)
    sys.stdin.readline()
    stop.set()
    for thread in threads:
        thread.join()
    print(json.dumps([key for t in truths for key in t.said.elements()]), flush=True)


if __name__ == "__main__":
    main()
