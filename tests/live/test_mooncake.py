# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the stand-in node over Mooncake, the alerts against the node's own truth: with the server's own
view, and without it, where operations are tied to rooms by their addresses and ends are told."""
import json
import os
import sqlite3
import subprocess
import sys
import unittest

import sp
from scenario_case import DEADLINES, NATIVE, Node, Together, wait_deadlines

# With the view those that say something of Mooncake; the others do not depend on the transport.
SEEN = ("healthy", "two-ranks", "decode-stopped", "posted-twice", "worker-died", "decode-killed",
        "abort-inflight", "call-blocked", "second-chunk-stalled", "engine-error", "engine-timeout", "in-turns",
        "in-turns-stalled")
# Without: what must be told, from `likely` on, of a held room; none: nothing may be.
UNSEEN = {"healthy": set(), "batch": set(), "two-ranks": set(), "engine-error": set(), "decode-killed": set(),
          "in-turns": set(), "in-turns-stalled": {"transfer-stalled"},
          "second-chunk-stalled": {"transfer-stalled", "queued-behind"}}
# The names of the engine's methods in releases 0.3.4 to 0.3.12 and on the main branch of 2026.
REQUEST = "_ZN8mooncake14MultiTransport14submitTransferEmRKSt6vectorINS_9Transport15TransferRequestESaIS3_EE"
NAMES = {"submit": REQUEST, "free": "_ZN8mooncake14MultiTransport11freeBatchIDEm",
         "open_segment": "_ZN8mooncake14TransferEngine11openSegmentERKNSt7__cxx1112basic_stringIcSt11char_traitsIc"
                         "ESaIcEEE"}
# What the main branch has besides, and these go through: the probes that take their place.
NEWER = {"submit_sizes": REQUEST + "PS1_ImSaImEE",
         "free_after": "_ZN8mooncake14MultiTransport11freeBatchIDEmRKSt8functionIFvvEE"}


def posts(db):
    """{batch: [room, or None]} of a recording, in the order of posting: the id of a freed batch comes again."""
    found = {}
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
        for op, room in c.execute("SELECT e.op, coalesce(nullif(e.room, ''), l.room) FROM event e"
                                  " JOIN role r ON r.id = e.role LEFT JOIN life l ON l.id = e.life"
                                  " WHERE r.name = 'post' ORDER BY e.ns, e.seq"):
            found.setdefault(op, []).append(room)
    return found


class OverMooncake(Together):
    SIDE_BY_SIDE = 5

    def run_scenario(self, name, *args, **how):
        told = {}
        state, watch = super().run_scenario(name, *args, transport="mooncake",
                                            inside=lambda w: told.update(posts(w.db)), **how)
        self.assertEqual({a["profile"] for a in watch.of_type("stuck")} - {"sglang-mooncake-prefill"}, set())
        self.check_batches(state["batches"], told)
        return state, watch

    def check_batches(self, batches, told):
        """Every batch is in the recording, and where that says whose it is, it is as the engine's caller says."""
        true = {}
        for batch, room in batches:
            true.setdefault(batch, []).append(room)
        self.assertTrue(true)
        self.assertEqual({b: len(rooms) for b, rooms in told.items()}, {b: len(rooms) for b, rooms in true.items()})
        wrong = [(b, true[b], rooms) for b, rooms in told.items()
                 if any(r not in (None, true[b][i]) for i, r in enumerate(rooms))]
        self.assertEqual(wrong, [])


class Seen(OverMooncake):
    """One test a scenario, added below."""


class Unseen(OverMooncake):
    """The same without the server's own view."""

    def run_scenario(self, name, *args, **how):
        return super().run_scenario(name, "--no-python", *args, **how)

    def check_seen(self, name, state, alerts, pid=None):
        held = {e["room"]: e["why"] for e in state["pinned"] + state["delayed"]}
        sure = {}
        for a in alerts:
            if a["type"] == "stuck" and a["confidence"] != "possible":
                self.assertIn(a["room"], held, f"{name}: false alarm: {a}")
                sure.setdefault(a["room"], []).append(a["cause"])
        self.assertEqual(bool(sure), bool(UNSEEN[name]), f"{name}: {held}: {alerts}")
        for room, causes in sure.items():
            self.assertIn(causes[-1], UNSEEN[name] & NATIVE[held[room]], f"{name}: {room}: {held[room]}")


for _name in SEEN:
    Seen.add(_name)
# an engine with the layouts of releases before 0.3.9; the layers of a chunk on threads of their own
HOW = {"healthy": {"old_engine": True}, "two-ranks": {"layer_threads": True}, "batch": {"aux_by_zmq": True}}
for _name in UNSEEN:
    Unseen.add(_name, **HOW.get(_name, {}))


class Untied(unittest.TestCase):
    def test_b_stalls_and_a_was_just_sent(self):
        """in-turns-stalled, natively, attached after the registrations: no batch can be tied to a room, and
        of the room that stalls nobody is sure; of the other one nothing is said."""
        kept = {}

        def attach(phase):
            if phase == "registered":
                kept["watch"] = sp.Watch("-p", node.pid, "--no-python", "--min-confidence", "possible", "--record",
                                         "all", *DEADLINES)
                self.addCleanup(kept["watch"].__exit__, None, None, None)
                kept["watch"].__enter__()

        with Node(transport="mooncake", take_turns=True) as node:
            _, state = node.run("in-turns-stalled", on_phase=attach)
            watch, (held,) = kept["watch"], state["pinned"]
            alert = watch.wait_alert(lambda a: a["type"] == "stuck")
            wait_deadlines(watch, node.state()["now_ns"])
            watch.stop()
            self.assertEqual({r for rooms in posts(watch.db).values() for r in rooms}, {None})
        told = watch.of_type("stuck")
        self.assertEqual({a["room"] for a in told}, {held["room"]})
        self.assertEqual({a["confidence"] for a in told}, {"possible"}, told)
        self.assertTrue(any("unknown" in e or "no room" in e for e in map(str, alert["evidence"])), alert)


class Profile(unittest.TestCase):
    def test_check_says_what_ends_a_room(self):
        """What there is to send is not known: no number of complete operations is the end."""
        said = sp.run("check").stdout.split("profile sglang-mooncake-prefill", 1)[1]
        done = next(line for line in said.splitlines() if line.startswith("  done "))
        self.assertEqual(done.split(maxsplit=1)[1], "(when its peers are told how it ended)")

    def test_exception_through_every_probed_method(self):
        """The process lives on with the probes in place, and every exception arrives."""
        p = subprocess.Popen([sys.executable, os.path.join(sp.ROOT, "tests", "node", "throw.py"), "--rounds", "20",
                              "--transport", "mooncake"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(p.stdout.readline())
        with sp.Watch("-p", ready["pid"], "--profile", "sglang-mooncake-prefill", "--only", "uprobes"):
            out, _ = p.communicate("go\n", timeout=30 * sp.PATIENCE)
        self.assertEqual(p.returncode, 0)
        thrown = json.loads(out.splitlines()[-1])["thrown"]
        self.assertEqual(thrown, dict.fromkeys(thrown, 20))
        self.assertEqual(len(thrown), 5)

    def test_names_of_other_releases(self):
        """Each is in the stand-in and is what the profile finds there: of two, the one that the other calls."""
        for old, probes in ((False, {**NEWER, "open_segment": NAMES["open_segment"]}), (True, NAMES)):
            so = os.path.join(sp.BUILD, "node", *(["old"] if old else []), "mooncake", "engine.so")
            exported = subprocess.run(["nm", "-D", "--defined-only", so], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout.split()
            self.assertEqual({n for n in {**NAMES, **NEWER}.values() if n in exported},
                             {*NAMES.values()} | (set() if old else {*NEWER.values()}))
            with Node(transport="mooncake", old_engine=old) as node:
                said = sp.run("doctor", "-p", node.pid).stdout
            self.assertIn("profile sglang-mooncake-prefill", said)
            found = {probe: line for line in said.splitlines() for probe in (*NAMES, *NEWER)
                     if f"probe {probe}:" in line}
            self.assertEqual(set(found), set(probes), said)
            for probe, line in found.items():
                self.assertRegex(line, f" ok +probe {probe}: {probes[probe][:60]}")


if __name__ == "__main__":
    unittest.main()
