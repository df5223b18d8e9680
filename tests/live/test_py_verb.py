# SPDX-License-Identifier: Apache-2.0
"""`silentpin py PID`: queues, status table and stacks of a process that looks like a scheduler, for each interpreter
found, against what the process says of itself."""
import json
import os
import re
import unittest

import interpreters
import sp
from pyrig import SCHED, STACKS, Sched, py_json, same_queues

STACK_LINE = re.compile(r"(.+\.py|<.+>):(\d+) (.+)")

FRAMES_MAX = 512  # of a stack: PY_FRAMES_MAX of user/python/frame.h


def setUpModule():
    interpreters.tell()


@interpreters.for_each_interpreter
class Verb(unittest.TestCase):
    def each_queues(self, py):
        for layout in ("combined", "split", "slots"):
            with Sched(py, "--layout", layout, "--bootstrap", 3, "--waiting", 2, "--inflight", 5) as target:
                got, told = py_json(target.pid), target.ask("tell")
                self.assertEqual(same_queues(got, told), "", layout)
                self.assertEqual((got["v"], got["pid"], got["python"]), (1, target.pid, py.version))
                self.assertGreater(got["took_us"], 0)
                self.assertNotIn("threads", got)

    def each_workers(self, py):
        """Which worker is at which room, and who waits behind it."""
        with Sched(py, "--inflight", 12, "--busy", 12, "--workers", 3) as target:
            target.ask("stacks")
            told = target.ask("tell")["workers"]
            self.assertTrue(any(w["behind"] for w in told))
            self.assertEqual(py_json(target.pid)["workers"], told)
        with Sched(py, "--inflight", 2, "--workers", 2) as target:
            target.ask("stacks")
            self.assertEqual([w["room"] for w in py_json(target.pid)["workers"]], [None, None])

    def each_empty(self, py):
        with Sched(py) as target:
            got = py_json(target.pid)
            self.assertEqual(got["queues"], {"bootstrap": [], "waiting": [], "inflight": []})
            self.assertEqual((got["status"], got["stable"]), ({}, True))

    def each_ten_thousand(self, py):
        with Sched(py, "--bootstrap", 3000, "--waiting", 3000, "--inflight", 4000) as target:
            self.assertEqual(same_queues(py_json(target.pid), target.ask("tell")), "")

    def each_lost_status(self, py):
        """Held in the inflight list, absent from the table."""
        with Sched(py, "--inflight", 3) as target:
            room = target.ask("lose_status")["room"]
            got = py_json(target.pid)
            self.assertIn(room, [r["room"] for r in got["queues"]["inflight"]])
            self.assertNotIn(room, got["status"])
            self.assertEqual(len(got["status"]), 2)

    def each_odd_values(self, py):
        """Requests without a room, or with one that is none, hide nothing: the others are shown as they are."""
        with Sched(py, "--inflight", 2) as target:
            two = target.ask("tell")["queues"]["inflight"]
            target.ask("odd")
            got = py_json(target.pid)
            self.assertTrue(got["stable"] and got["complete"])
            seen = got["queues"]["inflight"]
            self.assertEqual(seen[:2], two)
            self.assertEqual([r["room"] for r in seen[2:]], ["text", "17", "27", "37", "38", "47", "1", str((1 << 64) - 9)])
            rids = {r["room"]: r["rid"] for r in seen}
            self.assertIsNone(rids["17"])
            self.assertEqual(rids["27"], "\u4f60\u597d \U0001f4cc \"quoted\"")
            self.assertRegex(rids["37"], "^r{46}~[0-9a-f]{16}$")
            self.assertIsNone(rids["38"])  # too long to be read: no half of it is taken for it
            self.assertEqual([got["status"][room] for room in ("47", "text", "57")], [3, 1, -1])

    def each_queue_of_another_type(self, py):
        """A list, a tuple and a deque are queues; anything else is no empty queue but a missing one."""
        for what in ("tuple", "deque", "none", "number", "dict"):
            with Sched(py, "--inflight", 3) as target:
                want = target.ask("tell")["queues"]["inflight"]
                target.ask("swap", what=what)
                got = py_json(target.pid)
                queue = what in ("tuple", "deque")
                self.assertEqual(got["queues"]["inflight"], want if queue else None, what)
                self.assertEqual(got["complete"], queue)

    def each_too_many(self, py):
        """More than the cap: said to be incomplete, not shown as few."""
        with Sched(py, "--layout", "split", "--inflight", 65537) as target:
            got = py_json(target.pid)
            self.assertFalse(got["stable"] and got["complete"])
            self.assertFalse(got["queues"]["inflight"])

    def same_stacks(self, target):
        """File, line and function of each frame of each thread are what the interpreter itself says. How many."""
        told = target.ask("stacks")
        tids = target.ask("tell")["tids"]
        threads = {str(t["tid"]): t for t in py_json(target.pid, "--stacks")["threads"]}
        self.assertLessEqual(set(told), set(threads))
        self.assertEqual(len(threads), len(tids))
        for tid, frames in told.items():
            self.assertEqual(len(threads[tid]["stack"]), min(len(frames), FRAMES_MAX), threads[tid])
            for text, (path, line, name, qualname) in zip(threads[tid]["stack"], frames):
                file, at, function = STACK_LINE.fullmatch(text).groups()
                self.assertTrue(path == file or path.endswith("/" + file), (file, path))
                self.assertIn(os.path.basename(path), file)
                self.assertEqual(int(at), line, text)
                self.assertIn(function, (name, qualname))
        return len(told)

    def each_stacks(self, py):
        with Sched(py, "--inflight", 4, "--busy", 4, "--workers", 3) as target:
            self.assertEqual(self.same_stacks(target), 5)

    def each_stacks_of_every_shape(self, py):
        """Functions whose lines are hard to tell: see py_stacks.py."""
        with Sched(py, script=STACKS) as target:
            self.assertGreater(self.same_stacks(target), 20)

    def each_thread_names(self, py):
        """The names that the program gave its threads, where they can be read; never another thread's."""
        with Sched(py, "--workers", 3) as target:
            tids = target.ask("tell")["tids"]
            got = {t["tid"]: t["name"] for t in py_json(target.pid, "--stacks")["threads"]}
            with open(f"/proc/{target.pid}/comm", encoding="ascii") as f:
                comm = f.read().strip()
            for name, tid in tids.items():
                self.assertIn(got[tid], (name, name[:15], comm))

    def each_text(self, py):
        """The form for people has every room and every frame too."""
        with Sched(py, "--bootstrap", 1, "--inflight", 2, "--busy", 1) as target:
            target.ask("stacks")
            told = target.ask("tell")
            p = sp.run("py", target.pid, "--stacks")
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            for queue, requests in told["queues"].items():
                self.assertIn(queue, p.stdout)
                for r in requests:
                    self.assertIn(r["room"], p.stdout)
                    self.assertIn(r["rid"], p.stdout)
            for name in ("recv_requests", "transfer_worker", "poll_until_done", "recv_multipart"):
                self.assertRegex(p.stdout, rf"{os.path.basename(SCHED)}:\d+ \S*{name}")

    def each_stays_readable(self, py):
        """A look leaves the process as it was: the same answer from it, before and after many."""
        with Sched(py, "--bootstrap", 2, "--inflight", 2) as target:
            before = target.ask("tell")
            for _ in range(20):
                py_json(target.pid, "--stacks")
            self.assertEqual(target.ask("tell"), before)


class Usage(unittest.TestCase):
    def one_line(self, args, rc, *words):
        p = sp.run("py", *args)
        self.assertEqual((p.returncode, p.stdout), (rc, ""), p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)

    def test_no_python(self):
        with Sched(interpreters.supported()[0]) as target:
            target.say(json.dumps({"do": "exec", "argv": ["/bin/sleep", "1000"]}))
            sp.wait_for(lambda: os.readlink(f"/proc/{target.pid}/exe").endswith(("sleep", "coreutils")))
            self.one_line([target.pid], 1, str(target.pid), "Python")

    def test_no_scheduler_in_it(self):
        """A Python without the frame that the profile names."""
        with Sched(interpreters.supported()[0]) as target:
            argv = [interpreters.supported()[0].path, "-c", "print(flush=True); input()"]
            target.say(json.dumps({"do": "exec", "argv": argv}))
            self.assertEqual(target.line(), "\n")
            self.one_line([target.pid], 1, "event_loop")

    def test_bad_pids(self):
        for args in (["0"], ["-3"], ["x"], [], ["1", "2"], ["99999999999999999999"]):
            p = sp.run("py", *args)
            self.assertEqual((p.returncode, p.stdout), (2, ""), args)
            self.assertTrue(p.stderr)
        self.one_line([4194304], 1, "4194304")


if __name__ == "__main__":
    unittest.main()
