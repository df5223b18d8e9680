# SPDX-License-Identifier: Apache-2.0
"""Targets that start and end children, programs, threads and mappings all the time, are stopped, or end
while they are attached: the watch keeps up, keeps no descriptor, and says only what matters."""
import os
import signal
import subprocess
import sys
import unittest

import sp

BUSY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets", "busy.py")


class Busy:
    def __init__(self, what, count):
        self.p = subprocess.Popen([sys.executable, BUSY, what, str(count)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, SILENTPIN_BUILD=sp.BUILD))
        assert self.p.stdout.readline().startswith("ready")
        self.pid = self.p.pid

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()

    def go(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()

    def done(self):
        assert self.p.stdout.readline() == "done\n"


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Busyness(unittest.TestCase):
    def churn(self, what, count):
        """Descriptors before and after are the same; the watch ends with its target. Its alerts."""
        with Busy(what, count) as target, sp.Watch("-p", target.pid) as watch:
            before = descriptors(watch.p.pid)
            target.go()
            target.done()
            sp.wait_for(lambda: descriptors(watch.p.pid) <= before, 10,
                        lambda: f"{descriptors(watch.p.pid)} descriptors to be {before} again")
            target.go()
            self.assertEqual(watch.p.wait(10 * sp.PATIENCE), 0)
            watch.stop()
            self.assertEqual(watch.bad_lines, [])
            self.assertEqual(watch.of_type("loss"), [])
            self.assertEqual([a["what"] for a in watch.alerts if a["pid"] == target.pid],
                             ["attached", "exited"])
            return watch.alerts

    def test_children(self):
        """Each child is a copy with the same libraries: attached, if it lives long enough."""
        for a in self.churn("fork", 300):
            self.assertIn(a["what"], ("attached", "exited"))

    def test_programs(self):
        """Nothing is attached in them, and nothing said of them."""
        self.assertEqual(len(self.churn("spawn", 300)), 2)

    def test_threads(self):
        self.assertEqual(len(self.churn("threads", 100)), 2)

    def test_mappings(self):
        self.churn("map", 300)

    def test_stopped_target(self):
        """A target that is stopped can be attached and left."""
        with Busy("threads", 1) as target:
            os.kill(target.pid, signal.SIGSTOP)
            with sp.Watch("-p", target.pid) as watch:
                self.assertEqual(watch.stop(), 0)
            os.kill(target.pid, signal.SIGCONT)
            target.go()
            target.done()

    def test_ends_during_the_attach(self):
        """At any moment of the attach: a watch that ends at once, or one line and exit 4."""
        for i in range(8):
            with Busy("fork", 0) as target, sp.Watch("-p", target.pid, attached=False) as watch:
                if i:
                    try:  # the attach takes some 50 ms in all
                        watch.p.wait(0.01 * i)
                    except subprocess.TimeoutExpired:
                        pass
                target.p.kill()
                rc = watch.p.wait(10 * sp.PATIENCE)
                watch.stop()
                self.assertIn(rc, (0, 4), watch.err)
                if rc == 4:
                    self.assertIn(str(target.pid), watch.err[-1])


if __name__ == "__main__":
    unittest.main()
