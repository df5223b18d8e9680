# SPDX-License-Identifier: Apache-2.0
"""Attached at any moment to connections under load: whatever is decided about where a message begins, nothing
is ever told that was not said, and nothing twice. What an idle connection says after the attach is told."""
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import time
import unittest

import sp
from sock_case import (LONG, MESSAGES, PEERS, PROFILE_HTTP, PROFILE_IN, Peer, SockCase, SockWatch, Truth,
                       said)
import raw_zmtp
from http_client import Client

ATTACHES = 1000 if LONG else 200
TARGETS = 8
SETS = 3  # of idle connections, each used at every third attach
IDLE_S = 1.0  # how long a connection must have been silent to be believed


class Loaded:
    """A target with its load, and idle connections."""

    ROLES = MESSAGES
    PROFILE = PROFILE_IN
    LOAD = "zmtp_load.py"

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.truth = Truth(7000 + seed)
        self.truth.n = 10_000_000 * (seed + 1)
        self.target, self.port = self.start(seed)
        self.idle = [[self.connect() for _ in range(2)] for _ in range(SETS)]
        self.spoke = [time.monotonic()] * SETS
        self.load = subprocess.Popen(
            ["/usr/bin/python3", os.path.join(PEERS, self.LOAD), str(self.port), str(seed), "5"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load.stdout.readline()
        self.told = []

    def start(self, seed):
        target = Peer.zmq() if seed % 2 else Peer.pyzmq()
        return target, int(target.do("bind", "tcp://127.0.0.1:*").rpartition(":")[2])

    def connect(self):
        return raw_zmtp.Connection(self.port)

    def speak(self, c):
        c.send(raw_zmtp.message(*self.truth.metadata()))

    def attach(self):
        """One attach: what was told, and what the idle connections said."""
        which = len(self.told) % SETS
        backend = self.random.choice(("libc", "syscall", None))
        time.sleep(self.random.random() * 0.2)  # at any moment: the test is about which
        with SockWatch(self.target.pid, self.PROFILE, env={"SILENTPIN_SOCKETS": backend} if backend else {}) as watch:
            left = self.spoke[which] + IDLE_S + 0.05 - time.monotonic()
            if left > 0:
                time.sleep(left)  # the rule is about time, too
            before = collections.Counter(self.truth.said)
            for c in self.idle[which]:
                self.speak(c)
            self.spoke[which] = time.monotonic()
            spoken = self.truth.said - before
            try:
                sp.wait_for(lambda: not spoken - said(watch.db, self.ROLES), 10, "", every=0.05)
            except AssertionError:
                pass  # judged below, with all else
            watch.stop()
            losses = watch.of_type("loss")
            got = said(watch.db, self.ROLES)
        self.told.append((got, spoken, backend, losses))

    def attaches(self, n):
        for _ in range(n):
            self.attach()

    def end(self):
        """All that was said in this target's life."""
        self.load.stdin.write("\n")
        self.load.stdin.flush()
        for key in json.loads(self.load.stdout.readline()):
            self.truth.said[tuple(key)] += 1
        self.kill()

    def kill(self):
        for c in sum(self.idle, []):
            c.close()
        self.load.kill()
        self.load.wait()
        self.load.stdin.close()
        self.load.stdout.close()
        self.target.end()


class LoadedHttp(Loaded):
    ROLES = ("arrive",)
    PROFILE = PROFILE_HTTP
    LOAD = "http_load.py"

    def start(self, seed):
        target = Peer.http("asyncio")
        return target, int(target.hello[1])

    def connect(self):
        c = Client(self.port)
        c.post(None)  # it has been used
        return c

    def speak(self, c):
        room = self.truth.room()
        self.truth.said["arrive", str(room), None] += 1
        c.post(room)


class Attach(SockCase):
    def test_at_any_moment(self):
        loaded = [(LoadedHttp if i % 4 == 3 else Loaded)(i) for i in range(TARGETS)]
        for one in loaded:
            self.addCleanup(one.kill)
        with concurrent.futures.ThreadPoolExecutor(TARGETS) as pool:
            list(pool.map(lambda one: one.attaches(ATTACHES // TARGETS), loaded))
        for one in loaded:
            one.end()
        self.assertEqual(sum(len(one.told) for one in loaded), ATTACHES)
        wrong, missing, messages = [], [], 0
        for one in loaded:
            for got, spoken, backend, losses in one.told:
                messages += sum(got.values())
                if got - one.truth.said:
                    wrong.append((backend, list(got - one.truth.said)[:3]))
                if spoken - got and not losses:
                    missing.append((backend, list(spoken - got)))
        self.assertEqual(wrong[:4], [], f"{len(wrong)} attaches told what nobody said")
        self.assertEqual(missing[:4], [], f"{len(missing)} attaches did not hear an idle connection")
        self.assertGreater(messages, 2 * ATTACHES * 0.9)


if __name__ == "__main__":
    unittest.main()
