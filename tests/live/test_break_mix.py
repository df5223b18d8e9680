# SPDX-License-Identifier: Apache-2.0
"""Everything at once on one node, watched from several moments on: healthy load of all kinds, aborts, a slow
link, a decode that is stopped now and then, and pins of several kinds. Judged by the node's own view."""
import bisect
import datetime
import os
import random
import sys
import threading
import time
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
from node import Node  # noqa: E402
from test_scenarios import model_time  # noqa: E402

# its load takes all of the machine
ALONE = True

DEADLINE_S = 2.0
SECONDS = 7.0


class Truth(threading.Thread):
    """The node's view, again and again: [(ns, rooms held)]."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.over, self.looks = node, threading.Event(), []
        self.offset_ns = time.time_ns() - time.monotonic_ns()

    def run(self):
        while not self.over.wait(0.05):
            state = self.node.state()
            self.looks.append((state["now_ns"], {e["room"] for e in state["pinned"] + state["delayed"]}))

    def held(self, room, alert):
        """In the look before the alert's time or in the one after it."""
        at = datetime.datetime.strptime(alert["time"] + "+0000", "%Y-%m-%dT%H:%M:%S.%fZ%z")
        i = bisect.bisect([ns for ns, _ in self.looks], int(at.timestamp() * 1e9) - self.offset_ns)
        return any(room in rooms for _, rooms in self.looks[max(0, i - 1):i + 1])


class Load:
    def __init__(self, node, seed):
        self.node, self.random, self.posts = node, random.Random(seed), []
        self.fast, self.two = node.decode(), node.decode(ranks=2)
        self.slow, self.stopper = node.decode(rate=8 << 20), node.decode()
        self.aborted, self.cont_at = set(), None
        self.pins = 0  # a busy machine may take long to come to one

    def send(self, decode, tokens=None, forward_ms=None, **announce):
        room = self.node.room()
        tokens = tokens or self.random.choice((16, 48, 96, 192, 320))
        decode.announce(room, tokens, **announce)
        self.posts.append(self.node.post(room, tokens, forward_ms=forward_ms or self.random.choice((1, 3, 20))))
        return room

    def abort(self):
        room = self.send(self.fast)
        self.aborted.add(str(room))
        time.sleep(self.random.uniform(0, 0.05))  # at any moment of its life
        self.fast.abort(room)

    def stop(self):
        """Stopped in mid-transfer, for less and for more than the deadline."""
        if self.cont_at is None:
            self.send(self.stopper, 320)
            self.stopper.stop()
            self.cont_at = time.monotonic() + self.random.choice((0.3, 0.7, 1.6)) * DEADLINE_S

    def lose_aux(self):
        room = self.node.room()
        self.node.hook(lose_aux=[room])
        self.pins += 1
        self.fast.announce(room, 48)
        self.posts.append(self.node.post(room, 48))

    def step(self):
        if self.cont_at and time.monotonic() > self.cont_at:
            self.stopper.cont()
            self.cont_at = None
        doing = self.random.choices(
            (lambda: self.send(self.fast), lambda: self.send(self.two), lambda: self.send(self.slow),
             lambda: self.send(self.fast, 96, prefix=self.random.choice((16, 96))), self.abort, self.stop,
             self.lose_aux, lambda: self.send(self.fast, 48, required=2)),
            (40, 12, 8, 8, 5, 2, 1, 1))
        doing[0]()
        time.sleep(self.random.uniform(0, 0.04))  # the pace of the load


class Mix(unittest.TestCase):
    def judge(self, truth, load, watch, state, since_ns):
        told = {}
        for a in watch.stuck():
            if a["confidence"] == "possible":
                continue
            told.setdefault(a["room"], []).append(a)
            culprit = a["culprit"]["room"] if a["culprit"] else None
            self.assertTrue(truth.held(a["room"], a) or (culprit and truth.held(culprit, a)),
                            f"false alarm: {a}")
        opened = {(e["room"], e["life"]): e["opened_ns"] for e in state["lives"]}
        for e in state["pinned"] + state["delayed"]:
            if opened[(e["room"], e["life"])] > since_ns and e["room"] not in load.aborted:
                self.assertIn(e["room"], told, f"held ({e['why']}) and nobody said so")

    def test_everything_at_once(self):
        with Node(seed=7) as node:
            truth, load, watches = Truth(node), Load(node, 7), []
            truth.start()
            began = time.monotonic()
            try:
                while time.monotonic() < began + SECONDS or len(watches) < 4 or not load.pins:
                    if len(watches) < 4 and time.monotonic() > began + len(watches) * SECONDS / 5:
                        watch = sp.Watch("-p", node.pid, "--record", "all", "--min-confidence", "possible",
                                         *(f"--stuck-after={s}={int(DEADLINE_S * 1000)}ms"
                                           for s in ("bootstrap", "ready", "inflight")))
                        watches.append((watch.__enter__(), time.monotonic_ns()))
                    load.step()
                if load.cont_at:
                    load.stopper.cont()
                until = node.wait_quiet(60)["now_ns"] + int((DEADLINE_S + 0.3) * 1e9)
                for watch, _ in watches:
                    sp.wait_for(lambda watch=watch: model_time(watch.db) > until, 30, "the deadlines to pass")
                    watch.stop()
                truth.over.set()
                truth.join()
                state = node.state()
                self.assertGreater(len(state["pinned"]), 0)
                for watch, since_ns in watches:
                    self.judge(truth, load, watch, state, since_ns)
            finally:
                truth.over.set()
                for watch, _ in watches:
                    watch.__exit__()


if __name__ == "__main__":
    unittest.main()
