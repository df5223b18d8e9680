# SPDX-License-Identifier: Apache-2.0
"""`replay` of a recording made live: with other deadlines than the watch had, and of an ordinary recording, which
has dropped the healthy rooms."""
import json
import os
import signal
import sqlite3
import time
import unittest

import sp
from scenario_case import QUICK, QUICK_LONGEST_S, ScenarioCase, model_time, scenarios, wait_deadlines
from node import Node

LONG_S = 9.0  # so long the pin is recorded after its last progress
SHORTER_AND_LONGER = (1, 2, 3, 5, 7)


def replay(db, *args):
    """(exit code, stuck alerts)"""
    p = sp.run("replay", db, "--alerts", "json", "--min-confidence", "possible", *args)
    assert p.returncode in (0, 3), p.stderr
    return p.returncode, [a for a in map(json.loads, p.stdout.splitlines()) if a["type"] == "stuck"]


def seconds(alert):
    """Its time of the day."""
    hours, minutes, rest = alert["time"].rstrip("Z").partition("T")[2].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


class OtherDeadlines(ScenarioCase):
    @classmethod
    def setUpClass(cls):
        """One pin, recorded by two watches, with and without the server's own view."""
        cls.node = cls.enterClassContext(Node())
        args = ("-p", cls.node.pid, "--stuck-after", "inflight=3s")
        cls.seen = cls.enterClassContext(sp.Watch(*args))
        cls.native = cls.enterClassContext(sp.Watch(*args, "--no-python"))
        cls.room = cls.node.room()
        cls.node.hook(lose_aux=[cls.room])
        cls.node.decode().announce(cls.room, 96)
        cls.node.post(cls.room)
        cls.node.wait_pinned(cls.room)
        began = time.monotonic_ns()
        for watch in (cls.seen, cls.native):
            sp.wait_for(lambda watch=watch: model_time(watch.db) > began + int(LONG_S * 1e9), 20, "the pin to grow old")
            watch.stop()

    def check(self, watch, confidences):
        live = [a for a in watch.stuck() if a["confidence"] in confidences]
        self.assertEqual([(a["room"], a["cause"]) for a in live], [(str(self.room), "aux-missing")], watch.alerts)
        for deadline in SHORTER_AND_LONGER:
            rc, again = replay(watch.db, "--stuck-after", f"inflight={deadline}s")
            with self.subTest(deadline=deadline):
                self.assertEqual(rc, 3)
                self.assertEqual([(a["room"], a["cause"], a["life"]) for a in again],
                                 [(str(self.room), "aux-missing", 1)])
                self.assertIn(again[0]["confidence"], confidences)
                self.assertEqual(again[0]["idle_s"], float(deadline))
                self.assertAlmostEqual(seconds(again[0]) - seconds(live[0]), deadline - 3.0, delta=0.01)
        self.assertEqual(replay(watch.db, "--stuck-after", "inflight=60s"), (0, []))

    def test_with_the_view(self):
        """Each deadline that the room stood still for finds it, by a look of that time; a longer one does not."""
        self.check(self.seen, ("certain",))

    def test_without_the_view(self):
        self.check(self.native, ("likely",))

    def test_at_the_very_end(self):
        """No look came after the deadline: told all the same, but not with certainty."""
        end = self.seen.stuck()[0]["idle_s"] + self.idle_at_the_end()
        rc, again = replay(self.seen.db, "--stuck-after", f"inflight={int((end - 0.02) * 1000)}ms")
        self.assertEqual((rc, [(a["cause"], a["confidence"]) for a in again]), (3, [("aux-missing", "likely")]))

    def idle_at_the_end(self):
        """Seconds from the live alert to the end of the recording."""
        with sqlite3.connect(f"file:{self.seen.db}?mode=ro", uri=True) as db:
            return db.execute("SELECT (p.model_ns - a.ns) / 1e9 FROM progress p, alert a"
                              " WHERE a.type = 'stuck'").fetchone()[0]


class EndOfProcess(ScenarioCase):
    def test_just_before_it(self):
        """Overdue when the process was killed, by a deadline that the watch did not have: told, and the exit code."""
        with Node() as node, sp.Watch("-p", node.pid, "--stuck-after", "inflight=1s") as watch:
            room = node.room()
            node.hook(lose_aux=[room])
            node.decode().announce(room, 96)
            node.post(room)
            live = watch.wait_stuck(room)
            began = time.monotonic_ns()
            sp.wait_for(lambda: model_time(watch.db) > began + 1_000_000_000, 20, "the pin to grow older")
            os.kill(node.pid, signal.SIGKILL)
            sp.wait_for(lambda: watch.p.poll() is not None, 20, "the watch to end")
            self.assertEqual(watch.stop(), 3)
            end = next(a for a in watch.of_type("target") if a["what"] == "exited")
            idle = live["idle_s"] + seconds(end) - seconds(live)
            rc, again = replay(watch.db, "--stuck-after", f"inflight={int((idle - 0.02) * 1000)}ms")
            self.assertEqual((rc, [(a["room"], a["cause"], a["confidence"]) for a in again]),
                             (3, [(str(room), "aux-missing", "likely")]))
            self.assertEqual(replay(watch.db, "--stuck-after", f"inflight={int((idle + 0.1) * 1000)}ms"), (0, []))


class Ordinary(ScenarioCase):
    """Recordings of unhealthy rooms only."""

    NAMES = ("decode-stopped", "posted-twice", "last-chunk-missing")

    def test_the_alerts_of_the_watch(self):
        for name in self.NAMES:
            with self.subTest(scenario=name), Node(**scenarios.SCENARIOS[name].node_options) as node:
                with sp.Watch("-p", node.pid, "--min-confidence", "possible", *QUICK) as watch:
                    node.run(name)
                    self.wait(node, watch)
                    self.finish(name, node, watch)

    def test_attached_late(self):
        """Who is queued behind whom is known by where a thread is, and it was there before the watch."""
        with Node(**scenarios.SCENARIOS["decode-stopped"].node_options) as node:
            node.run("decode-stopped")
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", *QUICK) as watch:
                self.wait(node, watch)
                self.finish("decode-stopped", node, watch)
                self.assertEqual({a["cause"] for a in watch.stuck()}, {"transfer-stalled", "queued-behind"})

    @staticmethod
    def wait(node, watch):
        state = node.state()
        wait_deadlines(watch, state["now_ns"], [e["room"] for e in state["pinned"]], QUICK_LONGEST_S)

    def finish(self, name, node, watch):
        state = node.state()
        self.assertEqual(watch.stop(), 3)
        self.check_seen(name, state, watch.alerts)
        self.check_replay(watch)


if __name__ == "__main__":
    unittest.main()
