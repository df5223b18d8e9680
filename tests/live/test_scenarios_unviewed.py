# SPDX-License-Identifier: Apache-2.0
"""Probes and sockets without the server's own view (--no-python): what the answers to clients add to what the
transport's calls can know."""
import unittest

from scenario_case import NATIVE, Together

# Scenario -> the cause that must be told, from `likely` on, of the room that is held; none: nothing may be.
MUST = {
    "posted-twice": {"room-reused"},
    "posted-twice-announced-once": {"abort-not-reaped", "room-reused"},
    "transfer-error-held": {"transfer-error"},
    "killed-reused": {"done-not-released"},
    "abort-before-request": {"abort-before-open"},
    "rank-absent": {"quorum-incomplete"},
    "aux-missing": {"aux-missing"},
    "client-gone": set(),
    "decode-killed": set(),
    "abort-inflight": set(),
    "abort-waiting": set(),
    "batch": set(),
    "fake-rooms": set(),
    "two-ranks": set(),
}


class Scenario(Together):
    """One test a scenario, added below."""

    def run_scenario(self, name, *args, **how):
        return super().run_scenario(name, "--no-python", *args, **how)

    def check_seen(self, name, state, alerts, pid=None):
        held = {e["room"]: e["why"] for e in state["pinned"] + state["delayed"]}
        sure = {}
        for a in alerts:
            if a["type"] == "stuck" and a["confidence"] != "possible":
                self.assertIn(a["room"], held, f"{name}: false alarm: {a}")
                sure.setdefault(a["room"], []).append(a["cause"])
        for room, why in held.items():
            self.assertIn(room, sure, f"{name}: {room} is held ({why}) and nobody was sure: {alerts}")
            self.assertIn(sure[room][-1], MUST[name] | NATIVE.get(why, set()), f"{name}: {room} is held: {why}")
        self.assertEqual(bool(held), bool(MUST[name]))


for _name in MUST:
    Scenario.add(_name)

if __name__ == "__main__":
    unittest.main()
