# SPDX-License-Identifier: Apache-2.0
"""A transport that silentpin knows from a profile only: one server with healthy rooms and with rooms stuck in every
way it has, under one watch."""
import json
import os
import sys
import unittest

import sp
from scenario_case import deadlines

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "fourth"))
import ferry_rig  # noqa: E402

PROFILE = os.path.join(sp.ROOT, "tests", "fourth", "ferry.yaml")
DEADLINES = deadlines(5, 5)
WORKERS = 4
LIFT_LANE, PULL_LANE = 1, 2
# room: stage, cause, confidence, pin
STUCK = {
    "absent": ("bootstrap", "decode-absent", "likely", False),
    "half": ("bootstrap", "quorum-incomplete", "likely", False),
    "pull": ("ready", "never-sent", "likely", True),
    "lift": ("inflight", "send-incomplete", "likely", True),
    "mute": ("inflight", "transfer-stalled", "likely", True),
    "nolast": ("inflight", "send-incomplete", "likely", True),
    "error": ("inflight", "transfer-error", "possible", None),
}


class Node:
    """The server, two peers whose rooms go on and two that get the room without an answer."""

    def __init__(self):
        self.man = ferry_rig.Ferryman(sp.BUILD, WORKERS)
        self.pair = [ferry_rig.Peer(self.man.port, f"quay-{n}") for n in "ab"]
        self.quiet = [ferry_rig.Peer(self.man.port, f"quay-{n}") for n in "cd"]
        self.healthy = []

    def ask(self, room, peers=None, trouble=None):
        peers = peers or self.pair
        if trouble:
            self.man.say(f"trouble {room} {trouble}")
        self.man.say(f"request {room} {len(peers)}")
        for peer in peers:
            peer.hail(room, len(peers))

    def over(self, rooms, peers):
        sp.wait_for(lambda: all(r in p.farewells for r in rooms for p in peers), 10, "farewells")

    def well(self, name, count):
        rooms = [f"{name}{i}" for i in range(count)]
        for room in rooms:
            self.ask(room)
        self.over(rooms, self.pair)
        self.healthy += rooms

    def know_workers(self):
        """Each thread has come back, once, from a call that was entered before the watch: its return is not seen."""
        self.man.say("turn")
        for i in range(WORKERS):
            self.ask(f"first{i}", trouble="pull")
        self.man.say(f"busy {WORKERS}")
        self.man.say(f"free {PULL_LANE}")
        self.man.say("busy 0")

    def break_rooms(self):
        for peer in self.quiet:
            peer.mute.add("mute")
        self.ask("mute", self.quiet)
        self.man.say("busy 0")
        self.pair[0].codes["error"] = 7
        self.ask("lift", trouble="lift")
        sp.wait_for(lambda: len(self.pair[1].cargo.get("lift", ())) == 2, 10, "the first pieces")
        self.ask("pull", trouble="pull")
        self.man.say("busy 2")
        self.ask("nolast", trouble="nolast")
        self.ask("error", trouble="keep")
        self.man.say("request absent 2")
        self.man.say("request half 2")
        self.pair[0].hail("half", 2)

    def mend(self):
        for lane in (LIFT_LANE, PULL_LANE):
            self.man.say(f"free {lane}")
        for peer in self.quiet:
            peer.answer("mute")
        self.over(["lift", "pull"], self.pair)
        self.over(["mute"], self.quiet)

    def close(self):
        for peer in self.pair + self.quiet:
            peer.close()
        self.man.close()


class Fourth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        node = cls.node = Node()
        cls.addClassCleanup(node.close)
        node.well("before", 3)
        cls.doctor = sp.run("doctor", "-p", node.man.pid, "--probes", PROFILE)
        watch = cls.watch = sp.Watch("-p", node.man.pid, "--probes", PROFILE, "--record", "all", "-v",
                                     *DEADLINES)
        watch.__enter__()
        cls.addClassCleanup(watch.__exit__)
        node.know_workers()
        node.well("well", 5)
        node.break_rooms()

        def told():
            node.well(f"during{len(node.healthy)}-", 1)
            return ({a["room"] for a in watch.stuck()} >= STUCK.keys() - {"error"}
                    and "error" in {r["room"] for r in sp.rooms(watch.db, "--stuck")})
        sp.wait_for(told, 30, lambda: f"all to be told: {watch.alerts}", every=0.1)
        cls.stuck = {room: watch.stuck(room) for room in STUCK if room != "error"}
        cls.stuck["error"] = [cls.explained("error")]
        node.mend()
        for room in ("lift", "pull", "mute"):
            watch.wait_alert(lambda a, room=room: a["type"] == "ended" and a["room"] == room, 10, room)
        watch.stop()
        cls.lines = {}

    @classmethod
    def explained(cls, room):
        """What is possible only is not alerted."""
        told = json.loads(sp.run("explain", "-i", cls.watch.db, "--json", room).stdout)
        return dict(told, evidence=told["for"])

    def timeline(self, room):
        if room not in self.lines:
            p = sp.run("timeline", "-i", self.watch.db, room)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.lines[room] = p.stdout
        return self.lines[room]

    def evidence(self, room):
        return self.stuck[room][-1]["evidence"]

    def test_bytes_have_moved(self):
        for peer in self.node.pair + self.node.quiet:
            self.assertEqual(peer.spoiled, [])
        self.assertEqual(len(self.node.pair[0].cargo["well0"]), 4)

    def test_doctor_finds_every_probe(self):
        out = self.doctor.stdout
        self.assertEqual(self.doctor.returncode, 0, out)
        self.assertIn("profile ferry", out)
        for probe in ("expect", "hail", "take", "leave", "book", "load", "poll", "farewell", "lift", "seal", "pull"):
            self.assertIn(f"ok  probe {probe}: ", out)
        self.assertRegex(out, r"ok  probe shove: libdock_tcp\.so\+0x[0-9a-f]+ at ops table")

    def test_stuck_rooms_by_cause_and_stage(self):
        for room, verdict in STUCK.items():
            with self.subTest(room=room):
                a = self.stuck[room][-1]
                self.assertEqual((a["stage"], a["cause"], a["confidence"], a["pin"]), verdict, a)
                self.assertEqual((a["life"], a["culprit"], a["uncertain"]), (1, None, False), a)

    def test_nothing_else_is_told(self):
        told = {a["room"] for a in self.watch.stuck()}
        self.assertEqual(told, STUCK.keys() - {"error"})
        self.assertEqual({r["room"] for r in sp.rooms(self.watch.db) if r["cause"]}, STUCK.keys())
        self.assertEqual(self.watch.of_type("loss"), [])
        self.assertEqual(self.watch.bad_lines, [])

    def test_healthy_rooms_end_done(self):
        ends = {a["room"]: a["outcome"] for a in self.watch.of_type("ended")}
        rooms = [r for r in self.node.healthy if not r.startswith("before")] + ["lift", "pull", "mute"]
        self.assertEqual({r: ends.get(r) for r in rooms}, dict.fromkeys(rooms, "done"))
        self.assertEqual({a["room"] for a in self.watch.of_type("recovered")}, {"lift", "pull", "mute"})

    def test_open_rooms(self):
        left = {r["room"] for r in sp.rooms(self.watch.db, "--open")}
        self.assertEqual(left, STUCK.keys() - {"lift", "pull", "mute"})
        self.assertEqual(self.watch.rc, 3)

    def test_blocked_copies(self):
        for room, name, lane in (("lift", "crane_lift", LIFT_LANE), ("pull", "crane_pull", PULL_LANE)):
            with self.subTest(room=room):
                told = [e for e in self.evidence(room) if e.startswith(f"blocked in {name} (lane {lane}) for ")]
                self.assertEqual(len(told), 1, self.evidence(room))
        self.assertTrue(self.stuck["pull"][-1]["expected"].startswith("return of crane_pull"))
        for room in STUCK.keys() - {"lift", "pull"}:
            self.assertFalse([e for e in self.evidence(room) if e.startswith("blocked")], self.evidence(room))

    def test_error_by_name(self):
        self.assertTrue([e for e in self.evidence("error") if "7 (held by customs)" in e], self.evidence("error"))
        self.assertIn("held by customs", self.timeline("error"))

    def test_calls_in_their_room(self):
        for room, pieces, loads in (("mute", 8, 4), ("nolast", 4, 2), ("error", 8, 4), ("lift", 8, 4), ("pull", 8, 4)):
            with self.subTest(room=room):
                out = self.timeline(room)
                for call, count in (("lift: lift of 4.0 KiB", pieces), ("seal: seal of 4.0 KiB", pieces),
                                    ("pull: pull of 4.0 KiB", 1), ("load: load", loads)):
                    self.assertEqual(out.count(call), count, f"{call}\n{out}")
                self.assertEqual(out.count("post of 4.0 KiB of op "), pieces, out)
        for room in ("absent", "half"):
            self.assertNotIn("crane", self.timeline(room))
            self.assertNotIn("KiB", self.timeline(room))

    def test_outstanding_work(self):
        for pier in (3, 4):
            found = [e for e in self.evidence("mute") if e.startswith(f"pier {pier}: 1 posted and not completed")]
            self.assertEqual(len(found), 1, self.evidence("mute"))
        for room in STUCK:
            self.assertFalse([e for e in self.evidence(room) if e.startswith(("pier 1:", "pier 2:"))])


if __name__ == "__main__":
    unittest.main()
