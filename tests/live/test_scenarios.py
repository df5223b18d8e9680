# SPDX-License-Identifier: Apache-2.0
"""Each scenario of the stand-in node under `watch`, the alerts against the node's own truth (/state).

Every pinned room must be alerted with an allowed cause, and no other room may be, from `likely` on. What
native events cannot know is listed by name below; such a room is at most `possible`.
"""
import os
import sqlite3
import sys
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
import scenarios  # noqa: E402
from node import Node  # noqa: E402

INFLIGHT_S, READY_S, BOOTSTRAP_S = 2.0, 2.5, 2.5
DEADLINES = ("--stuck-after", f"inflight={int(INFLIGHT_S * 1000)}ms",
             "--stuck-after", f"ready={int(READY_S * 1000)}ms",
             "--stuck-after", f"bootstrap={int(BOOTSTRAP_S * 1000)}ms",
             "--stuck-after", "releasing=2s")

# Why /state says that a room is held -> causes that tell the truth about it.
CAUSES = {
    "transfer-stalled": {"transfer-stalled"},
    "peer-stopped": {"transfer-stalled"},
    "queued-behind": {"queued-behind"},
    "worker-dead": {"thread-died"},
    "status-lost": {"room-reused", "transfer-error", "abort-not-reaped"},
    "write-outstanding": {"transfer-error", "room-reused"},
    "chunk-missing": {"send-incomplete", "aux-missing"},
    "announced-by-some": {"quorum-incomplete", "thread-died"},
}
# Pins that native events cannot tell from a well handled abort or failure: `possible` until the
# server's own view is read. The release of an aborted or failed room leaves no native event.
NATIVE_POSSIBLE = {"abort-retry-forward", "killed-reused", "transfer-error-held"}
# Rooms of which no native event exists at all: nobody announced them, nothing was posted.
NATIVE_UNSEEN = {"abort-before-request", "bootstrap-thread-killed", "posted-twice-announced-once"}
# A client's abort leaves no native event either: the write of a released room stalls like any other. The
# alert names an operation that is indeed stuck and holds its worker.
NATIVE_STALLED_WRITE = {"culprit-ended"}


def model_time(db):
    """How far the watch's model has advanced (CLOCK_MONOTONIC ns): alerts before it are out."""
    try:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
            return c.execute("SELECT max(model_ns) FROM progress").fetchone()[0] or 0
    except sqlite3.Error:
        return 0


def wait_deadlines(watch, state):
    """Until every deadline that ran when `state` was taken has passed, in the model's own time."""
    until = state["now_ns"] + int((max(INFLIGHT_S, READY_S, BOOTSTRAP_S) + 0.3) * 1e9)
    sp.wait_for(lambda: model_time(watch.db) > until, 30, "the deadlines to pass")


class ScenarioCase(unittest.TestCase):
    def check_alerts(self, name, state, alerts):
        """The truth against what was said, from `likely` on, and the `possible` ones by name."""
        held = {e["room"]: e["why"] for e in state["pinned"] + state["delayed"]}
        delayed = {e["room"] for e in state["delayed"]}
        told = {}
        for a in alerts:
            if a["type"] == "stuck":
                told.setdefault(a["room"], []).append(a)
        for room, why in held.items():
            if name in NATIVE_UNSEEN:
                continue
            self.assertIn(room, told, f"{name}: {room} is held ({why}) and nobody said so")
            causes = {a["cause"] for a in told[room]}
            self.assertTrue(causes & CAUSES[why], f"{name}: {room} is held: {why}; told {told[room]}")
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
                     inside=None, **options):
        """Run it under watch; (state, watch) after every deadline has passed."""
        function = scenarios.SCENARIOS[name]
        with Node(**dict(function.node_options, **options)) as node:
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", "--record", "all", *DEADLINES,
                          *args, env=env) as watch:
                if warm:
                    node.run("healthy", seconds=0, count=warm)

                def phase(what):
                    if on_phase:
                        on_phase(what, node, watch)
                    if what == "final":
                        wait_deadlines(watch, node.state())

                _, state = node.run(name, seconds=seconds, count=count, on_phase=phase)
                watch.stop()
                self.assertEqual(watch.bad_lines, [])
                self.check_shape(watch.alerts)
                self.assertEqual(watch.of_type("loss"), [], "events were lost")
                self.check_alerts(name, state, watch.alerts)
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


class Scenario(ScenarioCase):
    """One test a scenario, added below."""


def add(name, **how):
    def test(self):
        self.run_scenario(name, **how)
    test.__doc__ = scenarios.SCENARIOS[name].__doc__
    setattr(Scenario, "test_" + name.replace("-", "_"), test)


# decode-continued and healthy have tests of their own below; what needs a learned route is warmed up
SPECIAL = {"healthy", "decode-continued", "bootstrap-thread-killed", "decode-stopped", "worker-died",
           "culprit-ended"}
for _name in scenarios.SCENARIOS:
    if _name not in SPECIAL:
        add(_name)
# Rooms that have posted nothing are known to wait behind a worker by the route that earlier rooms took.
add("decode-stopped", warm=24)
add("culprit-ended", warm=24)
add("worker-died", warm=24)


class Healthy(ScenarioCase):
    def quiet(self, name, **how):
        _, watch = self.run_scenario(name, **how)
        self.assertEqual(watch.of_type("stuck"), [])
        self.assertEqual(watch.rc, 0)
        return watch

    def test_healthy(self):
        """No alert of any confidence, and every room is seen to its end."""
        def every_room_is_done(watch):
            rooms = sp.rooms(watch.db)
            self.assertGreater(len(rooms), 20)
            self.assertEqual({r["outcome"] for r in rooms}, {"done"})
        self.quiet("healthy", seconds=3.0, inside=every_room_is_done)

    def test_healthy_spinning(self):
        """A main loop that never sleeps polls its socket 50,000 times a second."""
        self.quiet("healthy", seconds=2.0, idle_sleep=0.0)

    def test_healthy_perf_uprobes(self):
        self.quiet("healthy", seconds=2.0, env={"SILENTPIN_UPROBE": "perf"})

    def test_healthy_multi_uprobes(self):
        self.quiet("healthy", seconds=2.0, env={"SILENTPIN_UPROBE": "multi"})


class Special(ScenarioCase):
    def past_the_attach(self, watch):
        """Until an announcement can no longer be the second of two, the first before the attach."""
        began = sp.time.monotonic_ns()
        sp.wait_for(lambda: model_time(watch.db) > began + 250_000_000, 10, "the model's time to move on")

    def test_decode_continued(self):
        """The stalled room and the one behind it are alerted, and recover when decode goes on."""
        rooms = []

        def stalled(what, node, watch):
            if what != "stalled":
                return
            rooms.extend(e["room"] for e in node.state()["pinned"])
            for room in rooms:
                watch.wait_alert(lambda a, room=room: a["type"] == "stuck" and a["room"] == room
                                 and a["confidence"] == "likely", what=f"likely alert of {room}")

        function = scenarios.SCENARIOS["decode-continued"]
        with Node(**function.node_options) as node:
            with sp.Watch("-p", node.pid, *DEADLINES) as watch:
                node.run("healthy", seconds=0, count=24)
                node.run("decode-continued", on_phase=lambda what: stalled(what, node, watch))
                self.assertEqual(len(rooms), 2)
                for room in rooms:
                    a = watch.wait_alert(lambda a, room=room: a["type"] == "recovered"
                                         and a["room"] == room, what=f"{room} recovered")
                    self.assertGreater(a["stalled_s"], 1.9)
                    self.assertIn(a["outcome"], ("moving", "done"))
                victim = [a for a in watch.of_type("stuck") if a["cause"] == "queued-behind"]
                self.assertEqual(len(victim), 1)
                culprit = victim[0]["culprit"]
                self.assertEqual(culprit["pid"], node.pid)
                self.assertEqual({culprit["room"], victim[0]["room"]}, set(rooms))
                self.assertIn(culprit["tid"], [w["tid"] for w in node.state()["workers"]])
                sp.wait_for(lambda: all(r["outcome"] == "done" for r in sp.rooms(watch.db)), 10,
                            "every room done")
                self.assertEqual(watch.stop(), 0)

    def test_bootstrap_thread_killed(self):
        """Its exit is told at once; rooms that one rank has announced alert after 5 s."""
        with Node() as node:
            with sp.Watch("-p", node.pid, *DEADLINES[:4]) as watch:
                decode = node.decode()
                self.past_the_attach(watch)
                half = node.room()
                decode.announce(half, 96, required=2)
                node.post(half)
                tid = node.state()["bootstrap_thread"]["tid"]
                node.run("bootstrap-thread-killed")
                gone = watch.wait_alert(lambda a: a["type"] == "target" and a.get("tid") == tid, 5,
                                        "the thread's exit told")
                self.assertIn("thread", str(gone))
                alert = watch.wait_stuck(half, 15)
                self.assertEqual((alert["cause"], alert["confidence"], alert["pin"]),
                                 ("thread-died", "likely", True))
                self.assertEqual([a["room"] for a in watch.stuck()], [str(half)])

    def test_ten_thousand_open_rooms(self):
        """Announced by one of two ranks: all open, all overdue at once, each alerted once."""
        with Node() as node:
            decode = node.decode()
            with sp.Watch("-p", node.pid, "--stuck-after", "bootstrap=20s") as watch:
                self.past_the_attach(watch)
                rooms = [str(node.room()) for _ in range(10000)]
                decode.announce_part([int(room) for room in rooms])
                sp.wait_for(lambda: len(sp.rooms(watch.db)) == 10000, 60, "10,000 rooms", every=0.5)
                self.assertEqual(watch.of_type("loss"), [])
                sp.wait_for(lambda: len(watch.stuck()) == 10000, 60, "10,000 alerts", every=0.2)
                self.assertEqual({a["room"] for a in watch.stuck()}, set(rooms))
                self.assertEqual({(a["cause"], a["pin"]) for a in watch.stuck()},
                                 {("quorum-incomplete", False)})
                self.assertEqual(watch.stop(), 3)

    def test_attach_in_the_middle(self):
        """Attached while rooms are in every stage: none of the healthy is alerted, the pin older than the
        watch is not seen (this version says so in its limits)."""
        with Node() as node:
            decode = node.decode()
            pinned = node.room()
            node.hook(lose_aux=[pinned])
            decode.announce(pinned, 96)
            node.post(pinned)
            node.wait_pinned(pinned)
            posts = []
            for _ in range(6):
                room = node.room()
                decode.announce(room, 320)
                posts.append(node.post(room, 320, forward_ms=60))
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", *DEADLINES) as watch:
                for p in posts:
                    self.assertEqual(p.wait(), 200)
                wait_deadlines(watch, node.state())
                self.assertEqual([a for a in watch.stuck() if a["confidence"] != "possible"], [])

    def test_message_cut_by_the_attach(self):
        """The bootstrap thread waits inside the call when the watch begins: the first message lacks its
        first frame and is known by its shape."""
        with Node() as node:
            decode = node.decode()
            # so soon after an attach another rank's message may have come before it: only `possible`
            with sp.Watch("-p", node.pid, "--stuck-after", "bootstrap=1s", "--min-confidence",
                          "possible") as watch:
                room = node.room()
                decode.announce(room, 96, required=2)
                node.post(room)
                alert = watch.wait_stuck(room)
                self.assertEqual(alert["cause"], "quorum-incomplete")
                self.assertRegex(alert["peer"], r"^127\.0\.0\.1:\d+$")


if __name__ == "__main__":
    unittest.main()
