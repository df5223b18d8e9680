# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the stand-in node over Mooncake, the alerts against the node's own truth: with the server's own
view, and without it, where operations are tied to rooms by their addresses and ends are told."""
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

import sp
from scenario_case import DEADLINES, NATIVE, Node, Together, wait_deadlines

# With the view those that say something of Mooncake; the others do not depend on the transport.
SEEN = ("healthy", "two-ranks", "decode-stopped", "posted-twice", "worker-died", "decode-killed",
        "abort-inflight", "call-blocked", "second-chunk-stalled", "engine-error", "engine-timeout", "in-turns",
        "in-turns-stalled", "abort-before-request", "abort-bootstrap", "abort-waiting", "abort-forward",
        "abort-late", "aux-missing", "bootstrap-thread-killed", "culprit-ended", "decode-continued", "fake-rooms",
        "hybrid", "last-chunk-missing", "prefix-cached", "rank-absent")
# Of these, where nothing comes to a transfer.
NOTHING_SENT = {"abort-before-request", "abort-bootstrap", "abort-forward"}
# Without: what must be told, from `likely` on, of a held room; none: nothing may be.
UNSEEN = {"healthy": set(), "batch": set(), "two-ranks": set(), "engine-error": set(), "decode-killed": set(),
          "call-blocked": {"transfer-stalled"}, "in-turns": set(), "in-turns-stalled": {"transfer-stalled"},
          "second-chunk-stalled": {"transfer-stalled", "queued-behind"}}
# The names of the engine's methods in releases 0.3.6 to 0.3.12 and on the main branch of 2026.
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
    SIDE_BY_SIDE = 7

    def run_scenario(self, name, *args, **how):
        told = {}
        state, watch = super().run_scenario(name, *args, transport="mooncake",
                                            inside=lambda w: told.update(posts(w.db)), **how)
        self.assertEqual({a["profile"] for a in watch.of_type("stuck")} - {"sglang-mooncake-prefill"}, set())
        self.assertEqual(not state["batches"], name in NOTHING_SENT)
        self.check_batches(state["batches"], told)
        if name == "call-blocked":
            self.check_blocked(state, watch)
        return state, watch

    def check_told(self, name, *args, **how):
        """That of a room it is the auxiliary data that is missing nobody knows: a batch does not say what it is."""
        super().check_told("" if name == "aux-missing" else name, *args, **how)

    def check_blocked(self, state, watch):
        """The evidence names the call, as the room's own, and of the one behind it as its thread's."""
        blocked, behind = ([a["evidence"] for a in watch.of_type("stuck") if a["room"] == e["room"]][-1]
                           for e in sorted(state["pinned"], key=lambda e: e["why"], reverse=True))
        self.assertTrue(any(re.match(r"blocked in submitTransfer\w* for [\d.]+ s, thread \d+$", e)
                            for e in blocked), blocked)
        self.assertFalse(any(e.startswith("blocked in") for e in behind), behind)

    def check_batches(self, batches, told):
        """Every batch is in the recording, and where that says whose it is, it is as the engine's caller says."""
        true = {}
        for batch, room in batches:
            true.setdefault(batch, []).append(room)
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


class Inside(unittest.TestCase):
    """Without the view: what a submission calls is of the room that its address tells."""

    CUDA = os.path.join(sp.BUILD, "cuda", "libcuda.so.1")

    def test_copies_inside_a_submission(self):
        """Of two rooms they are over; of the third the copy hangs, in a submission that hangs with it."""
        with Node(transport="mooncake") as node:
            node.hook(cuda=[self.CUDA, None])
            with sp.Watch("-p", node.pid, "--no-python", "--record", "all", *DEADLINES) as watch:
                decode, rooms = node.decode(worker=0), [node.room() for _ in range(3)]
                node.hook(copy={str(room): 5001 + i for i, room in enumerate(rooms)})
                for room in rooms[:2]:
                    self.assertEqual(self.send(node, decode, room).wait(), 200)
                node.hook(cuda=[self.CUDA, "cuMemcpyAsync"])
                self.send(node, decode, rooms[2])
                alert = watch.wait_stuck(rooms[2])
                node.hook(cuda=[self.CUDA, None])
                decode.done(rooms[2])
                watch.stop()
                found = [(e["its_room"], e["bytes"], e["code"]) for e in sp.events(watch.db)
                         if (e["probe_name"], e["kind"]) == ("cuMemcpyAsync", "copy")]
        self.assertEqual(found, [(str(room), 5001 + i, 0) for i, room in enumerate(rooms)])
        self.assertEqual((alert["cause"], alert["confidence"], alert["pin"]), ("transfer-stalled", "likely", True))
        self.assertRegex("\n".join(alert["evidence"]), r"blocked in cuMemcpyAsync \(stream 0x0\) for ")
        self.assertEqual({a["room"] for a in watch.of_type("stuck")}, {str(rooms[2])})

    @staticmethod
    def send(node, decode, room):
        decode.announce(room, 32)
        return node.post(room, 32)


class Program(unittest.TestCase):
    """A program of the C API, with the library as it is built, and as a build that hides its C++ symbols."""

    C_NAMES = {"post": "c_submit", "status": "c_submitted", "close": "c_free", "register": "c_open"}
    HIDDEN = ("--enable", ",".join(C_NAMES.values()), "--disable", "submit,free")
    CXX_NAMES = {"post": "submit_sizes", "status": "submitTransfer_sizes", "close": "free_after",
                 "register": "open_segment"}
    BUSY, DONE, ERROR = 1, 2, 3

    def run_with(self, library, *args):
        """(what the program says, {role: [event]}) after it has run."""
        p = subprocess.Popen([os.path.join(sp.BUILD, "node", "mooncake_app"), os.path.join(sp.BUILD, "node", library)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(p.stdout.readline(), "ready\n")
            with sp.Watch("-p", p.pid, "--profile", "sglang-mooncake-prefill", "--only", "uprobes", "--record", "all",
                          "-v", *args) as watch:
                out, _ = p.communicate("go\n", timeout=30 * sp.PATIENCE)
                self.assertEqual(p.returncode, 0)
                watch.stop()
                found = {}
                for e in sp.events(watch.db):
                    if e["probe_name"]:
                        found.setdefault(e["role_name"], []).append(e)
        finally:
            p.kill()
            p.wait()
        self.assertEqual(watch.of_type("loss"), [])
        # of zmq, which the program does not have
        self.assertEqual([line.split(": ")[2] for line in watch.err if "that the profile requires" in line],
                         ["2 probes that the profile requires are not"])
        return json.loads(out), found

    def check(self, names, several, told, found):
        self.assertEqual([what for _, what, _ in told["batches"]],
                         ["written", "written", "failed", "written", "refused"])
        self.assertEqual(told["thrown"], 60)
        self.assertEqual({role: {e["probe_name"] for e in events} for role, events in found.items()},
                         {role: {name} for role, name in names.items()})
        n = len(told["batches"])
        self.assertEqual([e["op"] for e in found["post"][:n]], [batch for batch, _, _ in told["batches"]])
        self.assertEqual([(e["status"], e["code"], e["note"]) for e in found["status"][:n]],
                         [(self.BUSY, 0, None)] * 4 + [(self.ERROR, 3, "address not registered")])
        self.assertEqual([e["status"] for e in found["close"][:n - 1]], [self.DONE, several, self.ERROR, self.DONE])
        self.assertEqual({e["agent"] for e in found["register"]}, {told["segment"]})
        self.assertEqual(told["opened"], [-1, 0])

    def test_c_names_of_a_build_that_hides_the_others(self):
        self.check(self.C_NAMES, self.DONE, *self.run_with("hidden/libtransfer_engine.so", *self.HIDDEN))

    def test_the_same_by_its_methods(self):
        """Of two requests, each polled for itself, nothing is told as their common end."""
        self.check(self.CXX_NAMES, 0, *self.run_with("libtransfer_engine.so"))


class Profile(unittest.TestCase):
    def test_check_says_what_ends_a_room(self):
        """What there is to send is not known: no number of complete operations is the end."""
        said = sp.run("check").stdout.split("profile sglang-mooncake-prefill", 1)[1]
        done = next(line for line in said.splitlines() if line.startswith("  done "))
        self.assertEqual(done.split(maxsplit=1)[1], "(when its peers are told how it ended)")
        self.assertNotIn("no call gives a room to those inside it", said)

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
        self.assertEqual(len(thrown), 6)

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
