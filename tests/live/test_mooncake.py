# SPDX-License-Identifier: Apache-2.0
"""The scenarios of the stand-in node over Mooncake, the alerts against the node's own truth: with the server's own
view, and without it, where operations are tied to rooms by their addresses and ends are told."""
import json
import os
import subprocess
import sys
import unittest

import sp
from scenario_case import NATIVE, Node, Together

# With the view those that say something of Mooncake; the others do not depend on the transport.
SEEN = ("healthy", "two-ranks", "decode-stopped", "posted-twice", "worker-died", "decode-killed",
        "abort-inflight", "call-blocked", "second-chunk-stalled", "engine-error", "engine-timeout")
# Without: what must be told, from `likely` on, of a held room; none: nothing may be.
UNSEEN = {"healthy": set(), "batch": set(), "two-ranks": set(), "engine-error": set(), "decode-killed": set(),
          "second-chunk-stalled": {"transfer-stalled", "queued-behind"}}
# The names of the engine's methods in releases 0.3.4 to 0.3.12 and on the main branch of 2026.
REQUEST = "_ZN8mooncake14MultiTransport14submitTransferEmRKSt6vectorINS_9Transport15TransferRequestESaIS3_EE"
NAMES = {"submit": [REQUEST, REQUEST + "PS1_ImSaImEE"],
         "free": ["_ZN8mooncake14MultiTransport11freeBatchIDEm",
                  "_ZN8mooncake14MultiTransport11freeBatchIDEmRKSt8functionIFvvEE"],
         "open_segment": ["_ZN8mooncake14TransferEngine11openSegmentERKNSt7__cxx1112basic_stringIcSt11char_traitsIc"
                          "ESaIcEEE"]}


class OverMooncake(Together):
    SIDE_BY_SIDE = 5

    def run_scenario(self, name, *args, **how):
        state, watch = super().run_scenario(name, *args, transport="mooncake", **how)
        self.assertEqual({a["profile"] for a in watch.of_type("stuck")} - {"sglang-mooncake-prefill"}, set())
        return state, watch


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


class Profile(unittest.TestCase):
    def test_exception_through_every_probed_method(self):
        """The process lives on with the probes in place, and every exception arrives."""
        p = subprocess.Popen([sys.executable, os.path.join(sp.ROOT, "tests", "node", "throw.py"), "--rounds", "20",
                              "--transport", "mooncake"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = json.loads(p.stdout.readline())
        with sp.Watch("-p", ready["pid"], "--profile", "sglang-mooncake-prefill", "--only", "uprobes"):
            out, _ = p.communicate("go\n", timeout=30 * sp.SLOW)
        self.assertEqual(p.returncode, 0)
        thrown = json.loads(out.splitlines()[-1])["thrown"]
        self.assertEqual(thrown, dict.fromkeys(thrown, 20))
        self.assertEqual(len(thrown), 5)

    def test_names_of_other_releases(self):
        """Each is in the stand-in and is what the profile's glob finds there."""
        so = os.path.join(sp.BUILD, "node", "mooncake", "engine.so")
        exported = subprocess.run(["nm", "-D", "--defined-only", so], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout.split()
        with Node(transport="mooncake") as node:
            said = sp.run("doctor", "-p", node.pid).stdout
        self.assertIn("profile sglang-mooncake-prefill", said)
        for probe, names in NAMES.items():
            for name in names:
                self.assertIn(name, exported)
            line = next(line for line in said.splitlines() if f"probe {probe}:" in line)
            self.assertIn("ok", line.split(), said)
            if len(names) > 1:
                self.assertIn(f"({len(names)} functions)", line)


if __name__ == "__main__":
    unittest.main()
