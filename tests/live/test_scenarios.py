# SPDX-License-Identifier: Apache-2.0
"""Each scenario of the stand-in node under `watch`, the alerts against the node's own truth (/state): with the
server's own view, and from the transport's calls alone (see scenario_case.py)."""
import unittest

import sp
from scenario_case import DEADLINES, INFLIGHT_S, ScenarioCase, Together, model_time, scenarios, wait_deadlines
from node import Node
from side_by_side import SideBySide


class Scenario(Together):
    """One test a scenario, added below."""


class Native(Together):
    """The same without the server's view, for scenarios in which that makes a difference, and some others."""


# decode-continued and healthy have tests of their own below
for _name in scenarios.SCENARIOS:
    if _name not in ("healthy", "decode-continued") and "nixl" in scenarios.SCENARIOS[_name].transports:
        Scenario.add(_name)
# From the transport alone, rooms that have posted nothing are known to wait behind a worker by the route that
# earlier rooms took: these are warmed up.
for _name in ("decode-stopped", "culprit-ended", "worker-died"):
    Native.add(_name, native=True, warm=24)
for _name in ("posted-twice", "abort-retry-forward", "killed-reused", "transfer-error-held", "aux-missing",
              "last-chunk-missing", "rank-absent", "abort-before-request", "posted-twice-announced-once",
              "abort-bootstrap", "batch", "two-ranks"):
    Native.add(_name, native=True)


class Healthy(SideBySide, ScenarioCase):
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
        self.quiet("healthy", seconds=3.0, count=24, inside=every_room_is_done)

    def test_healthy_spinning(self):
        """A main loop that never sleeps polls its socket 50,000 times a second."""
        self.quiet("healthy", seconds=2.0, idle_sleep=0.0)

    def test_healthy_perf_uprobes(self):
        self.quiet("healthy", seconds=2.0, env={"SILENTPIN_UPROBE": "perf"})

    def test_healthy_multi_uprobes(self):
        self.quiet("healthy", seconds=2.0, env={"SILENTPIN_UPROBE": "multi"})


class Special(SideBySide, ScenarioCase):
    AT_ONCE = 2  # one has ten thousand rooms

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
                                 and a["confidence"] != "possible", what=f"alert of {room}")

        function = scenarios.SCENARIOS["decode-continued"]
        with Node(**function.node_options) as node:
            with sp.Watch("-p", node.pid, *DEADLINES) as watch:
                node.run("healthy", seconds=0, count=24)
                node.run("decode-continued", on_phase=lambda what: stalled(what, node, watch))
                self.assertEqual(len(rooms), 2)
                for room in rooms:
                    a = watch.wait_alert(lambda a, room=room: a["type"] == "recovered"
                                         and a["room"] == room, what=f"{room} recovered")
                    self.assertGreater(a["stalled_s"], INFLIGHT_S - 0.1)
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
        """Its exit is told at once; rooms in bootstrap alert after 5 s, announced or not."""
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
                held = {e["room"] for e in node.state()["delayed"]}
                self.assertEqual(len(held), 3)
                for room in held:
                    alert = watch.wait_stuck(room, 15)
                    self.assertEqual((alert["cause"], alert["confidence"], alert["pin"]),
                                     ("thread-died", "certain", True))
                self.assertEqual({a["room"] for a in watch.stuck()}, held)

    def test_ten_thousand_open_rooms(self):
        """Announced by one of two ranks: all open, all overdue at once, each alerted once. (The server holds no
        request for them, so this is the transport's view.)"""
        with Node() as node:
            decode = node.decode()
            with sp.Watch("-p", node.pid, "--no-python", "--stuck-after", "bootstrap=20s") as watch:
                self.past_the_attach(watch)
                rooms = [str(node.room()) for _ in range(10000)]
                # all at once would be more than the ring holds: a watch that gets no CPU meanwhile would lose some
                for at in range(0, len(rooms), 2500):
                    decode.announce_part([int(room) for room in rooms[at:at + 2500]])
                    sp.wait_for(lambda n=at + 2500: len(sp.rooms(watch.db)) == n, 60, "2,500 rooms more", every=0.5)
                self.assertEqual(watch.of_type("loss"), [])
                sp.wait_for(lambda: len(watch.stuck()) == 10000, 60, "10,000 alerts", every=0.2)
                self.assertEqual({a["room"] for a in watch.stuck()}, set(rooms))
                self.assertEqual({(a["cause"], a["pin"]) for a in watch.stuck()},
                                 {("quorum-incomplete", False)})
                self.assertEqual(watch.stop(), 3)

    def test_attach_in_the_middle(self):
        """Attached while rooms are in every stage: none of the healthy is alerted, the pin older than the
        watch is."""
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
                wait_deadlines(watch, node.state()["now_ns"], [str(pinned)])
                sure = [a for a in watch.stuck() if a["confidence"] != "possible"]
                self.assertEqual([(a["room"], a["cause"], a["confidence"]) for a in sure],
                                 [(str(pinned), "aux-missing", "certain")])

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
