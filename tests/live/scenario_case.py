# SPDX-License-Identifier: Apache-2.0
"""Running a scenario of the stand-in node under `watch`, and comparing the alerts with the node's own truth.

With the server's own view every room that is held must be told, with the cause that is true, `certain`, and
with the right life; no other room may be told from `likely` on. From the transport's calls alone
(--only uprobes) not everything can be known: what they cannot is listed by name.
"""
import concurrent.futures
import os
import sqlite3
import sys
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
import scenarios  # noqa: E402
from node import Node  # noqa: E402


def deadlines(inflight_s, longest_s):
    return tuple(word for stage, seconds in (("inflight", inflight_s), ("ready", longest_s), ("bootstrap", longest_s),
                                             ("releasing", inflight_s))
                 for word in ("--stuck-after", f"{stage}={int(seconds * 1000)}ms"))


# Longer than a write takes over the slow link of runner.py.
INFLIGHT_S, LONGEST_S = 4.0, 4.5
DEADLINES = deadlines(INFLIGHT_S, LONGEST_S)
# Where no write is made over it that ends.
QUICK_INFLIGHT_S, QUICK_LONGEST_S = 2.0, 2.5
QUICK = deadlines(QUICK_INFLIGHT_S, QUICK_LONGEST_S)

# Why /state says that a room is held -> the cause that tells the truth about it, with the server's view.
SEEN = {
    "transfer-stalled": {"transfer-stalled"},
    "peer-stopped": {"transfer-stalled"},
    "queued-behind": {"queued-behind"},
    "worker-dead": {"thread-died"},
    "status-lost": {"status-lost"},
    "write-outstanding": {"done-not-released"},
    "chunk-missing": {"send-incomplete", "aux-missing"},
    "announced-by-some": {"quorum-incomplete"},
    "announced-by-none": {"decode-absent", "abort-before-open"},
}
# Where the reason alone does not say it.
SEEN_IN = {
    "last-chunk-missing": {"chunk-missing": {"send-incomplete"}},
    "aux-missing": {"chunk-missing": {"aux-missing"}},
    "bootstrap-thread-killed": {"announced-by-none": {"thread-died"}},
}
# The same from the transport's calls alone.
NATIVE = {
    "transfer-stalled": {"transfer-stalled"},
    "peer-stopped": {"transfer-stalled"},
    "queued-behind": {"queued-behind"},
    "worker-dead": {"thread-died"},
    "status-lost": {"room-reused", "transfer-error", "abort-not-reaped"},
    "write-outstanding": {"transfer-error", "room-reused"},
    "chunk-missing": {"send-incomplete", "aux-missing"},
    "announced-by-some": {"quorum-incomplete", "thread-died"},
}
# Pins that these cannot tell from a well handled abort or failure: `possible`. The release of an aborted or
# failed room leaves no event in the transport.
NATIVE_POSSIBLE = {"abort-retry-forward", "killed-reused", "transfer-error-held"}
# Rooms of which the transport has no event at all: nobody announced them, nothing was posted.
NATIVE_UNSEEN = {"abort-before-request", "bootstrap-thread-killed", "posted-twice-announced-once"}
# A client's abort leaves no event either: the write of a released room stalls like any other. The alert names
# an operation that is indeed stuck and holds its worker.
NATIVE_STALLED_WRITE = {"culprit-ended"}


def model_time(db):
    """How far the watch's model has advanced (CLOCK_MONOTONIC ns): alerts before it are out."""
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
            return c.execute("SELECT max(model_ns) FROM progress").fetchone()[0] or 0
    except sqlite3.Error:
        return 0


def wait_deadlines(watch, since_ns, held=(), longest_s=LONGEST_S):
    """Until every deadline that ran at since_ns has passed, in the model's own time, and been judged: of the rooms in
    `held` for certain, unless that takes longer than unstable looks are put up with (user/python/patience.h)."""
    due = since_ns + int(longest_s * 1e9)

    def judged():
        sure = {a["room"] for a in watch.stuck() if a["confidence"] == "certain"}
        now = model_time(watch.db)
        return now > due + int((1.0 if sure >= set(held) else 4.0) * 1e9)
    sp.wait_for(judged, 30, "the deadlines to pass")


class ScenarioCase(unittest.TestCase):
    def check_told(self, name, entry, lines, delayed, confidence="certain"):
        """The lines about one held room, with the server's view."""
        room, why = entry["room"], entry["why"]
        causes = SEEN_IN.get(name, {}).get(why, SEEN[why])
        sure = [a for a in lines if a["confidence"] != "possible"]
        self.assertTrue(sure, f"{name}: {room} is held ({why}) and nobody was sure: {lines}")
        last = sure[-1]
        where = f"{name}: {room} life {entry['life']} is held: {why}; told {lines}"
        self.assertIn(last["cause"], causes, where)
        self.assertEqual(last["confidence"], confidence, where)
        self.assertEqual(last["life"], entry["life"], where)
        self.assertEqual(last["rid"], entry["rid"], where)
        self.assertEqual(last["pin"], not delayed or last["cause"] == "thread-died", where)
        self.assertEqual({a["life"] for a in sure}, {entry["life"]}, where)
        if last["cause"] == "queued-behind":
            self.assertIsNotNone(last["culprit"], where)

    def check_seen(self, name, state, alerts, pid=None):
        held = {e["room"]: e for e in state["pinned"] + state["delayed"]}
        delayed = {e["room"] for e in state["delayed"]}
        told = self.by_room(alerts, pid)
        for room, entry in held.items():
            self.assertIn(room, told, f"{name}: {room} is held ({entry['why']}) and nobody said so")
            self.check_told(name, entry, told[room], room in delayed)
        for room, lines in told.items():
            if room not in held:
                self.assertEqual([a for a in lines if a["confidence"] != "possible"], [],
                                 f"{name}: false alarm")

    @staticmethod
    def by_room(alerts, pid=None):
        told = {}
        for a in alerts:
            if a["type"] == "stuck" and pid in (None, a["pid"]):
                told.setdefault(a["room"], []).append(a)
        return told

    def check_native(self, name, state, alerts):
        """The truth against what was said, from `likely` on, and the `possible` ones by name."""
        held = {e["room"]: e["why"] for e in state["pinned"] + state["delayed"]}
        delayed = {e["room"] for e in state["delayed"]}
        told = self.by_room(alerts)
        for room, why in held.items():
            if name in NATIVE_UNSEEN:
                continue
            self.assertIn(room, told, f"{name}: {room} is held ({why}) and nobody said so")
            causes = {a["cause"] for a in told[room]}
            self.assertTrue(causes & NATIVE[why], f"{name}: {room} is held: {why}; told {told[room]}")
            sure = [a for a in told[room] if a["confidence"] != "possible"]
            if name in NATIVE_POSSIBLE:
                self.assertEqual(sure, [], f"{name}: {room}: native events cannot know this")
                continue
            self.assertTrue(sure, f"{name}: {room} is held ({why}), only told as possible: {told[room]}")
            for a in sure:
                self.assertEqual(a["pin"], room not in delayed or a["cause"] == "thread-died", a)
        if name in NATIVE_STALLED_WRITE:
            return
        for room, lines in told.items():
            if room not in held:
                sure = [a for a in lines if a["confidence"] != "possible"]
                self.assertEqual(sure, [], f"{name}: false alarm")

    def check_shape(self, alerts):
        for a in alerts:
            self.assertEqual(a["v"], 1)
            self.assertRegex(a["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            if a["type"] == "stuck":
                for key in ("pid", "profile", "room", "life", "stage", "age_s", "idle_s", "cause",
                            "confidence", "pin", "rid", "peer", "last", "expected", "culprit",
                            "evidence", "uncertain"):
                    self.assertIn(key, a)
                self.assertIsInstance(a["room"], str)
                self.assertFalse(a["uncertain"])

    def run_scenario(self, name, *args, env=None, seconds=1.0, count=12, warm=0, on_phase=None,
                     inside=None, native=False, **options):
        """Run it under watch; (state, watch) after every deadline has passed."""
        function = scenarios.SCENARIOS[name]
        if native:
            args += ("--only", "uprobes")
        seen = not {"--only", "--no-python"} & set(args)
        with Node(**dict(function.node_options, **options)) as node:
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", "--record", "all", *DEADLINES,
                          *args, env=env) as watch:
                if warm:
                    node.run("healthy", seconds=0, count=warm)

                def phase(what):
                    if on_phase:
                        on_phase(what, node, watch)
                    if what == "final":
                        now = node.state()
                        wait_deadlines(watch, now["now_ns"],
                                       [e["room"] for e in now["pinned"] + now["delayed"]] if seen else ())

                _, state = node.run(name, seconds=seconds, count=count, on_phase=phase)
                watch.stop()
                self.assertEqual(watch.bad_lines, [])
                self.check_shape(watch.alerts)
                self.assertEqual(watch.of_type("loss"), [], "events were lost")
                if native:
                    self.check_native(name, state, watch.alerts)
                else:
                    self.check_seen(name, state, watch.alerts)
                self.check_replay(watch)
                if inside:
                    inside(watch)
                return state, watch

    def check_replay(self, watch):
        """`replay` of a full recording gives the same alerts as the live run did."""
        def key(a):
            return tuple(a.get(k) for k in ("type", "pid", "room", "life", "stage", "cause",
                                            "confidence", "time"))
        p = sp.run("replay", watch.db, "--alerts", "json", "--min-confidence", "possible")
        self.assertIn(p.returncode, (0, 3), p.stderr)
        again = [sp.json.loads(line) for line in p.stdout.splitlines()]
        kinds = ("stuck", "recovered")
        self.assertEqual([key(a) for a in watch.alerts if a["type"] in kinds],
                         [key(a) for a in again if a["type"] in kinds])
        self.assertEqual(p.returncode, watch.rc)


class Together(ScenarioCase):
    """Scenarios spend their time waiting for deadlines, so a few run side by side: a test waits for its own, and the
    next ones (in the order of their names, as tests are run) have been started meanwhile."""

    SIDE_BY_SIDE = 8

    @classmethod
    def setUpClass(cls):
        cls.pool = concurrent.futures.ThreadPoolExecutor(cls.SIDE_BY_SIDE)
        cls.addClassCleanup(cls.pool.shutdown, cancel_futures=True)
        cls.started = {}

    @classmethod
    def add(cls, scenario, **how):
        name = "test_" + scenario.replace("-", "_")
        if "how_of" not in cls.__dict__:
            cls.how_of = {}
        cls.how_of[name] = (scenario, how)

        def test(self):
            self.result_of(name)
        test.__doc__ = scenarios.SCENARIOS[scenario].__doc__
        setattr(cls, name, test)

    def result_of(self, name):
        names = sorted(self.how_of)
        at = names.index(name)
        for one in names[at:at + self.SIDE_BY_SIDE]:
            if one not in self.started:
                scenario, how = self.how_of[one]
                self.started[one] = self.pool.submit(type(self)(one).run_scenario, scenario, **how)
        self.started[name].result()
