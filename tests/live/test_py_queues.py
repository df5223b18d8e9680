# SPDX-License-Identifier: Apache-2.0
"""Snapshots of queues while the server changes them: what a stable snapshot says of a request was so, and no two
in a row miss one that was there. The rates of unstable and of short snapshots are printed."""
import json
import os
import subprocess
import unittest

import interpreters
import sp
from pyrig import TARGETS, Target

PYSNAP = os.path.join(sp.BUILD, "live", "pysnap")
QUEUES = os.path.join(TARGETS, "py_queues.py")
PROBES = os.path.join(sp.ROOT, "probes.yaml")
BASE = 2**62
N = 60


def setUpModule():
    interpreters.tell()


def wrong(row, turns):
    """What is not so in a request; turns: what it has sent may have any thousands."""
    queue, room, rid, sent, total = row
    number = int(room) - BASE
    if rid != f"req-{number}":
        return True
    if queue != "inflight":
        return (sent, total) != (-1, -1)
    if total != BASE + number:
        return True
    return sent % 1000 != number % 1000 or (not turns and sent != number % 1000)


class Queues(unittest.TestCase):
    def snapshots(self, py, mode, n=N, repeat=150, pause_ms=3):
        with Target(py, QUEUES, mode, n) as target:
            self.assertEqual(target.line(), "ready\n")
            p = subprocess.run([PYSNAP, str(target.pid), PROBES, str(repeat), str(pause_ms)], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60 * sp.PATIENCE)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        lines = [json.loads(x) for x in p.stdout.splitlines()]
        self.assertEqual(len(lines), repeat + 1)
        for s in lines[:-1]:
            self.assertTrue(s["complete"])
            self.assertTrue(s["bootstrap"] or not s["stable"])
        return lines[:-1], lines[-1]

    def check(self, mode, hot, n=N, present=N, **more):
        """hot: changes without a pause, faster than any server; present: how many requests there are always."""
        for py in interpreters.supported():
            with self.subTest(python=str(py)):
                lines, stats = self.snapshots(py, mode, n, **more)
                stable = [s for s in lines if s["stable"]]
                bad = [r for s in stable for r in s["requests"] if wrong(r, mode == "edit")]
                self.assertEqual(bad[:5], [])
                short = [i for i, s in enumerate(lines) if s["stable"] and len(s["requests"]) < present]
                print(f"  {mode}, {py}: {stats['unstable']} of {len(lines)} unstable, {len(short)} short, "
                      f"{stats['mean_us']} us", flush=True)
                there = {i: {r[2] for r in lines[i]["requests"]} for i in short}
                # of one that never pauses two in a row may be chance
                self.assertFalse(any(there[i] == there.get(i + 1) == there.get(i + 2) for i in short),
                                 "the same requests missing three times in a row")
                if not hot:
                    self.assertEqual(short, [])
                    self.assertGreater(len(stable), len(lines) * 0.8)

    def test_still(self):
        for py in interpreters.supported():
            with self.subTest(python=str(py)):
                lines, stats = self.snapshots(py, "still", 5000, 5)
                self.assertEqual(stats["unstable"], 0)
                want = [["inflight", str(BASE + i), f"req-{i}", i % 1000, BASE + i] for i in range(5000)]
                for s in lines:
                    self.assertEqual(s["requests"], want)
                    self.assertEqual(s["status"], {str(BASE + i): i % 5 for i in range(5000)})

    def test_rebuilt_in_each_turn(self):
        self.check("rebuild", hot=True)

    def test_rotating(self):
        self.check("rotate", hot=True, present=N - 1)

    def test_coming_and_going(self):
        self.check("churn", hot=False)

    def test_long_and_going(self):
        self.check("churn", hot=False, n=3000, present=3000, repeat=20)

    def test_values_set_anew(self):
        self.check("edit", hot=False)

    def test_moving_between_queues(self):
        self.check("move", hot=False, n=300, present=300)


if __name__ == "__main__":
    unittest.main()
