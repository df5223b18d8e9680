# SPDX-License-Identifier: Apache-2.0
"""A made-up server described by a profile without probes: the right profile finds its stuck order for certain; one
with a slip is certain of nothing, and `py` and `doctor` say where the slip is."""
import contextlib
import json
import os
import re
import sys
import tempfile
import unittest

import sp
from pyrig import TARGETS, Target



def documented():
    """The profile of docs/profiles.md, with a shorter deadline and a glob for the root's type."""
    with open(os.path.join(sp.ROOT, "docs", "profiles.md"), encoding="utf-8") as f:
        (text,) = [x for x in re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S) if "name: bakery" in x]
    for old, new in (("inflight: 5s", "inflight: 3s"), ("type: Bakery", "type: Bak*")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


RIGHT = documented()

INFLIGHT = ("s.baking[*] -> {room: ticket}", "s.baking[*] -> {room: name}")
# name: (what is written wrong, what it says then)
SLIPS = {
    "the queue's owner": (("serves: oven.q", "serves: oven"), "no worker serves what it names: what waits is in s.oven.q"),
    "no such frame": (("*.bake_loop", "*.bake_lop"), "no thread is in *.bake_lop"),
    "no such local": (("busy: order", "busy: ordr"), "busy: ordr.ticket cannot be read in 1 of 1 threads"),
    "no such attribute": (("order.ticket", "order.tickt"), "busy: order.tickt cannot be read in 1 of 1 threads"),
    "no such queue": (("serves: oven.q", "serves: ovn"), "serves: no local ovn in 1 of 1 threads"),
    "another room": (INFLIGHT, "queues.inflight: none of its"),
    "no such wait": (("idle: take", "idle: tak"), "idle: no thread is in tak"),
}


class Bakery(Target):
    def __init__(self):
        super().__init__(sys.executable, os.path.join(TARGETS, "py_bakery.py"))

    def ask(self, do, **more):
        self.say(json.dumps(dict(more, do=do)))
        return json.loads(self.line())

    def wait_until(self, cond, what):
        return sp.wait_for(lambda: cond(self.ask("tell")), what=what)


class ProfilePython(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.dir = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.files = {"right": self.write("right", RIGHT)}
        for i, (name, ((old, new), _)) in enumerate(SLIPS.items()):
            self.assertEqual(RIGHT.count(old), 1, old)
            self.files[name] = self.write(f"slip-{i}", RIGHT.replace(old, new))
        self.bakery = self.stack.enter_context(Bakery())
        self.delivered = 0
        self.bake()

    def bake(self, n=1, **more):
        self.bakery.ask("bake", n=n, **more)
        self.all_delivered(n)

    def all_delivered(self, n):
        self.delivered += n
        self.bakery.wait_until(lambda t: t["delivered"] == self.delivered, "all delivered")

    def write(self, name, text):
        path = os.path.join(self.dir, name + ".yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def notes(self, name):
        p = sp.run("py", self.bakery.pid, "--json", "--probes", self.files[name])
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return json.loads(p.stdout).get("notes", [])

    def says(self, name):
        """py and doctor say what is wrong in the profile, each in one line; check cannot know."""
        text = SLIPS[name][1]
        self.assertEqual(len([n for n in self.notes(name) if text in n]), 1, (name, self.notes(name)))
        shown = sp.run("py", self.bakery.pid, "--probes", self.files[name]).stdout
        self.assertIn(text, shown)
        doctor = sp.run("doctor", "-p", self.bakery.pid, "--probes", self.files[name])
        lines = [x for x in doctor.stdout.splitlines() if text in x]
        self.assertEqual(len(lines), 1, doctor.stdout)
        self.assertRegex(lines[0], "^  (NO|--)  ")
        self.assertEqual(sp.run("check", self.files[name]).returncode, 0)

    def test_slips_are_named(self):
        self.bakery.ask("hold")
        self.bakery.ask("bake", n=2)
        self.bakery.wait_until(lambda t: t["queued"] == 2 and 2 in t["status"], "an order at work, and two behind it")
        self.assertEqual(self.notes("right"), [])
        doctor = sp.run("doctor", "-p", self.bakery.pid, "--probes", self.files["right"])
        self.assertEqual(doctor.returncode, 0, doctor.stdout + doctor.stderr)
        self.assertIn("server's own view: CPython", doctor.stdout)
        self.assertIn("it has no probes", doctor.stdout)
        self.assertEqual(doctor.stdout.count("server's own view: "), 1)
        for name in SLIPS:
            if name != "no such wait":
                self.says(name)
        for name in ("no such local", "no such attribute"):
            p = sp.run("py", self.bakery.pid, "--json", "--probes", self.files[name])
            (worker,) = json.loads(p.stdout)["workers"]
            self.assertEqual((worker["room"], worker["unknown"]), (None, True))
        self.bakery.ask("let_go")
        self.all_delivered(3)
        self.assertEqual(self.notes("right"), [])
        self.says("no such wait")

    def watch(self, name):
        return self.stack.enter_context(sp.Watch("--probes", self.files[name], "-p", self.bakery.pid,
                                                 "--min-confidence", "possible"))

    def replayed(self, watch):
        """A recording keeps what took the certainty away."""
        watch.stop()
        p = sp.run("replay", watch.db, "--alerts", "json", "--min-confidence", "possible")
        keys = ("type", "room", "life", "cause", "confidence")
        told = [[tuple(a.get(k) for k in keys) for a in alerts if a["type"] == "stuck"]
                for alerts in (watch.alerts, [json.loads(x) for x in p.stdout.splitlines() if x[:1] == "{"])]
        self.assertTrue(told[0])
        self.assertEqual(told[0], told[1], p.stderr)

    def certain(self, watch):
        return [(a["room"], a["cause"]) for a in watch.stuck() if a["confidence"] == "certain"]

    def test_only_the_stuck_order_is_certain(self):
        watches = {name: self.watch(name) for name in self.files}
        # The last one waits in the oven's queue for more than two deadlines, behind others that get on.
        self.bake(11, seconds=0.8)
        self.assertEqual(watches["right"].stuck(), [])
        for name, watch in watches.items():
            self.assertEqual(self.certain(watch), [], name)
        # A slip shows by what it takes for stuck, so that it was put to the test.
        self.assertEqual({(a["cause"], a["confidence"]) for a in watches["another room"].stuck()},
                         {("status-lost", "likely")})
        (burnt,) = self.bakery.ask("burn")["tickets"]
        tickets = self.bakery.ask("bake", n=3)["tickets"]
        alert = watches["right"].wait_stuck(burnt)
        self.assertEqual((alert["cause"], alert["confidence"], alert["pin"]), ("status-lost", "certain", True))
        self.all_delivered(3)
        self.assertEqual([x for x in watches["right"].stuck() if x["room"] in map(str, tickets)], [])
        # A slip that leaves the table alone leaves this verdict certain.
        self.assertEqual(watches["no such frame"].wait_stuck(burnt)["cause"], "status-lost")
        for name, watch in watches.items():
            self.assertLessEqual({room for room, _ in self.certain(watch)}, {str(burnt), f"loaf-{burnt}"}, name)
            self.assertEqual(watch.bad_lines, [])
        for name in ("another room", "no such frame"):
            self.replayed(watches[name])

    def test_a_worker_that_left(self):
        """That nobody serves the queue is certain where somebody has been seen to serve it."""
        names = ("right", "the queue's owner", "no such queue", "no such frame")
        watches = {name: self.watch(name) for name in names}
        self.bake(3, seconds=0.4)
        self.bakery.ask("leave")
        left = self.bakery.ask("bake", n=2)["tickets"]
        for room in left:
            alert = watches["right"].wait_stuck(room)
            self.assertEqual((alert["cause"], alert["confidence"]), ("thread-died", "certain"))
        for name in names[1:]:
            for room in left:
                watches[name].wait_stuck(room)
            self.assertEqual(self.certain(watches[name]), [], name)


if __name__ == "__main__":
    unittest.main()
