# SPDX-License-Identifier: Apache-2.0
"""Containers read while threads change them as fast as they can. Each read is told apart by what it says that
was never so: nothing that was never in a container may be read twice in a row, the same both times.

20 s in all, shared by the interpreters; SILENTPIN_TEST_LONG=1: 20 s for each. The rates of single wrong reads
and of reads given up as unstable are printed.
"""
import contextlib
import json
import os
import sqlite3
import subprocess
import time
import unittest

import interpreters
import sp
from pyrig import MUTATE, PYDUMP, Sched, Target, normal, py_json

SECONDS = 20.0 if os.environ.get("SILENTPIN_TEST_LONG") == "1" else 20.0 / max(
    1, len(interpreters.supported()))
SLICE = SECONDS * 0.8 / 6  # for each container; the rest for the scheduler
WATCHED_S = 20 if SECONDS == 20 else 2
TAGS = {"list": 1, "key": 2, "value": 3, "deque": 4, "attr": 5, "slot": 6, "room": 7}
# local variable -> (what it is, attributes to ask for)
WHAT = {"rows": ("list", "x"), "table": ("dict", "x"), "line": ("deque", "x"),
        "plain": ("attributes", ",".join(f"a{i}" for i in range(24))),
        "slots": ("slots", ",".join(f"s{i}" for i in range(8))),
        "queue": ("requests", "rid,bootstrap_room,status")}


def setUpModule():
    interpreters.tell()


def tagged(v, tag):
    return list(v) == ["int"] and int(v["int"]) >> 40 == TAGS[tag]


def request(v):
    """A request is whole: room and rid belong together."""
    a = v.get("attrs", {})
    return (v.get("obj") == "Req" and set(a) <= {"rid", "bootstrap_room", "status"}
            and ("bootstrap_room" not in a or (tagged(a["bootstrap_room"], "room")
                                               and a.get("rid") == {"str": f"rid-{a['bootstrap_room']['int']}"}))
            and a.get("status", {"none": 1}) == {"none": 1})


def attributes(v, tag, kind, letter):
    return v.get("obj") == kind and all(n[0] == letter and n[1:].isdigit() and tagged(x, tag)
                                        for n, x in v["attrs"].items())


RIGHT = {
    "list": lambda v: all(tagged(x, "list") for x in v["list"]),
    "dict": lambda v: all(tagged(k, "key") and tagged(x, "value") for k, x in v["dict"]),
    "deque": lambda v: all(tagged(x, "deque") for x in v["deque"]),
    "attributes": lambda v: attributes(v, "attr", "Plain", "a"),
    "slots": lambda v: attributes(v, "slot", "Slots", "s"),
    "requests": lambda v: all(request(x) for x in v["list"]),
}


def given_up(v):
    """Does a value say of itself, or of a part, that it could not be read?"""
    if isinstance(v, dict):
        return "!unstable" in v or "refused" in v or any(given_up(x) for x in v.values())
    return isinstance(v, list) and any(given_up(x) for x in v)


class Reads:
    """What consecutive reads of one container said."""

    def __init__(self, name):
        self.name = name
        self.reads = self.unstable = self.wrong = self.changed = 0
        self.last, self.twice = None, []

    def add(self, v):
        self.reads += 1
        if given_up(v):
            self.unstable += 1
            return
        wrong = not RIGHT[self.name](v)
        self.wrong += wrong
        if self.last is not None and v != self.last:
            self.changed += 1
        if wrong and v == self.last:
            self.twice.append(json.dumps(v)[:300])
        self.last = v

    def tell(self):
        return (f"{self.reads} reads, wrong {100 * self.wrong / self.reads:.2f} %, unstable "
                f"{100 * self.unstable / self.reads:.1f} %")


@interpreters.for_each_interpreter
class Mutation(unittest.TestCase):
    def each_containers(self, py):
        with Target(py, MUTATE) as target:
            self.assertEqual(target.line(), "ready\n")
            for i, (local, (name, attrs)) in enumerate(WHAT.items()):
                before = int(target.say().line().split()[i])
                once = self.read(target.pid, local, attrs, Reads(name), SLICE / 4, "--once")
                reads = self.read(target.pid, local, attrs, Reads(name), SLICE * 3 / 4)
                changes = int(target.say().line().split()[i]) - before
                print(f"mutation {py.version} {name}: {changes / SLICE:.0f} changes/s, {reads.tell()}; without the "
                      f"second look {once.tell()}", flush=True)
                self.assertEqual(reads.twice, [], f"{name}: wrong, and the same twice")
                # it did change under the reader's eyes, and was not always given up
                self.assertGreaterEqual(reads.changed, 10, name)

    def read(self, pid, local, attrs, reads, seconds, *more):
        dump = subprocess.Popen([PYDUMP, str(pid), "--frame", "*Keeper.hold", "--local", local, "--attrs", attrs,
                                 "--repeat", "1000000000", *more], stdout=subprocess.PIPE, text=True,
                                stdin=subprocess.DEVNULL)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end or (reads.changed < 10 and time.monotonic() < end + 20 * sp.SLOW):
                line = dump.stdout.readline()
                self.assertTrue(line, "pydump has ended")
                reads.add(normal(json.loads(line)))
            return reads
        finally:
            dump.kill()
            dump.wait()
            dump.stdout.close()

    def each_scheduler(self, py):
        """A scheduler whose requests go their way as fast as can be: `silentpin py` shows no room that never was,
        and no request with another's name."""
        with Sched(py) as target:
            self.assertEqual(target.ask("churn", seconds=SECONDS / 5), {"churning": True})
            end, shown, unstable, wrong, last = time.monotonic() + SECONDS / 5 - 0.3, 0, 0, [0, 0], set()
            while time.monotonic() < end:
                told = py_json(target.pid)
                requests = {(r["room"], r["rid"]) for q in told["queues"].values() for r in q or ()}
                bad = {r for r in requests if r[0][-1] != "7" or r[1].split("-")[2] != r[0]}
                bad |= {(room, "") for room, v in (told["status"] or {}).items() if room[-1] != "7" or not 0 <= v <= 4}
                shown, unstable = shown + 1, unstable + (not told["stable"])
                wrong[told["stable"]] += bool(bad)
                if told["stable"]:
                    self.assertFalse(bad & last, "wrong, and the same twice")
                    last = bad
            done = json.loads(target.line())
        print(f"mutation {py.version} scheduler: {done['requests']} requests, {shown} snapshots, {unstable} unstable, "
              f"{wrong[1]} stable and {wrong[0]} unstable ones with a wrong room", flush=True)
        self.assertGreater(shown, 1 / sp.SLOW)

    def each_watched(self, py):
        """What a watch believes, because two snapshots agree on it: rooms that are, none released before it was let
        go, and no stuck one, although every request passes through all queues while it looks."""
        with Sched(py) as target, sp.Watch("-p", target.pid, "--only", "python", "--python-every", "50ms", "--record",
                                           "all") as watch:
            self.assertEqual(target.ask("churn", seconds=WATCHED_S, alive=60, pause=0.03), {"churning": True})
            told = json.loads(target.line())
            watch.stop()
            self.assertEqual(watch.stuck(), [])
            with contextlib.closing(sqlite3.connect(f"file:{watch.db}?mode=ro", uri=True)) as db:
                held = set(db.execute("SELECT DISTINCT room, json_extract(detail, '$.rid') FROM events "
                                      "WHERE role = 'held'"))
                gone = dict(db.execute("SELECT room, min(time_ns) FROM events WHERE role = 'release' GROUP BY room"))
            rooms = {room for room, rid in held}
            self.assertGreater(len(rooms), 20 / sp.SLOW)
            self.assertGreater(len(gone), 10 / sp.SLOW)
            self.assertLessEqual(set(gone), rooms)
            self.assertTrue(any(rid for room, rid in held))
            self.assertEqual([h for h in held if h[0][-1] != "7" or (h[1] and h[1].split("-")[2] != h[0])], [])
            early = {room: ns for room, ns in gone.items() if ns < told["cleared"].get(room, ns + 1)}
            self.assertEqual(early, {}, "released before the server let it go")

    def each_followed(self, py):
        """A watch that remembers where it has found things sees every change of them: in place, by another object,
        in a table that has moved."""
        with Sched(py, "--layout", "mixed", "--inflight", 81) as target, sp.Watch(
                "-p", target.pid, "--only", "python", "--python-every", "50ms", "--record", "all") as watch:
            for step in range(4):
                if step:
                    target.ask("change")
                told = target.ask("tell")
                want = {(r["room"], r["rid"]): (told["status"][r["room"]], r["sent"], r["total"])
                        for r in told["queues"]["inflight"]}
                self.assertEqual(len(want), 81)
                self.wait_held(watch.db, want)

    def wait_held(self, db, want):
        def wrong():
            got = self.last_held(db, want)
            return [(k, v, got.get(k)) for k, v in want.items() if v != got.get(k)]

        sp.wait_for(lambda: not wrong(), 10, lambda: f"what is held to be seen (is, seen): {wrong()[:5]}")

    @staticmethod
    def last_held(path, which):
        """What was last believed of these requests: status, sent, total."""
        try:
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                rows = db.execute("SELECT room, detail FROM events WHERE role = 'held' ORDER BY time_ns")
                held = {(room, d.get("rid")): (d.get("code"), d.get("sent"), d.get("total"))
                        for room, d in ((room, json.loads(text)) for room, text in rows)}
        except sqlite3.OperationalError:  # there is no recording yet
            return {}
        return {k: v for k, v in held.items() if k in which}


if __name__ == "__main__":
    unittest.main()
