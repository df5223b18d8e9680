# SPDX-License-Identifier: Apache-2.0
"""Which processes' sockets are watched, and how: fronts that come, go and listen late; libc or not; the
target's end, exec and forks; and that a probed libc stays harmless."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import sp

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets", "sock_tree.py")
LIVE = os.path.join(sp.BUILD, "live")
PROBES = """version: 1
profiles:
  - name: socks
    match: {cmdline: "*sock_tree.py child"}
    room: {type: u64}
    sockets:
      - name: own
        process: self
        when: {bytes: zmtp}
        decode: zmtp
        messages:
          - {frames: [ABORT, "{room}"], event: {role: abort}}
      - name: http
        process: {is: [parent, ancestor, sibling], listens: true}
        when: {bytes: http}
        decode: http
        keys: {room: bootstrap_room}
"""


class Process:
    """A program that is told what to do line by line."""

    def __init__(self, *args):
        self.args = args

    def __enter__(self):
        self.p = subprocess.Popen(self.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.ready = self.p.stdout.readline().split()
        assert self.ready[0] == "ready", self.ready
        return self

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        return self.p.stdout.readline().strip()

    def __exit__(self, *exc):
        self.p.stdin.close()
        try:
            self.p.wait(10)
        finally:
            self.p.kill()
            self.p.wait()
            self.p.stdout.close()
        return False


class Tree(Process):
    def __init__(self):
        super().__init__(sys.executable, TREE, "front")

    def __enter__(self):
        super().__enter__()
        self.front, self.child = int(self.ready[1]), int(self.ready[2])
        return self


def libc_text(pid):
    """Bytes of the process's libc in memory that differ from its file."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(\S+/libc[.-]\S*so\S*)", line)
            if not m:
                continue
            lo, hi, off = (int(m.group(i), 16) for i in (1, 2, 3))
            mem.seek(lo)
            now = mem.read(hi - lo)
            with open(m.group(4), "rb") as f:
                f.seek(off)
                was = f.read(hi - lo)
            return sum(a != b for a, b in zip(now, was))
    raise AssertionError(f"process {pid} has no libc")


class SockAttach(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tmp = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        cls.addClassCleanup(tmp.cleanup)
        cls.probes = os.path.join(tmp.name, "p.yaml")
        with open(cls.probes, "w", encoding="ascii") as f:
            f.write(PROBES)

    def watch(self, *pids, **kw):
        return sp.Watch("-p", ",".join(str(p) for p in pids), "-v", "--probes", self.probes, "--profile", "socks",
                        **kw)

    def test_front_that_listens(self):
        with Tree() as tree:
            tree.ask("listen")
            with self.watch(tree.child) as watch:
                watch.wait_err(f"pid {tree.child}: its sockets are watched: the calls of ")
                watch.wait_err(f"pid {tree.front}: its sockets are watched, it is the front of {tree.child}")

    def test_front_that_listens_later(self):
        with Tree() as tree, self.watch(tree.child) as watch:
            watch.wait_err(f"pid {tree.child}: its sockets are watched")
            self.assertFalse(any("it is the front" in line for line in watch.err))
            tree.ask("listen")
            watch.wait_err(f"pid {tree.front}: its sockets are watched, it is the front of {tree.child}")

    def test_no_front(self):
        """It is said, once there was time for one to come."""
        with Tree() as tree, self.watch(tree.child) as watch:
            watch.wait_err(f"pid {tree.child}: its sockets are not watched: http: no process related to it fits", 30)

    def test_sibling_that_comes_and_goes(self):
        with Tree() as tree, self.watch(tree.child) as watch:
            watch.wait_err(f"pid {tree.child}: its sockets are watched")
            with Process(sys.executable, TREE, "child") as stranger:  # it is no relative
                stranger.ask("listen")
                sibling = int(tree.ask("sibling"))
                tree.ask("listen")  # the next look has seen the stranger too
                watch.wait_err(f"pid {tree.front}: its sockets are watched, it is the front of {tree.child}")
                self.assertFalse(any(f"pid {stranger.p.pid}:" in line for line in watch.err), watch.err)
            self.assertFalse(any(f"pid {sibling}:" in line for line in watch.err), "it does not listen")
            rank = int(tree.ask("rank"))  # it listens, but is a server like the target
            second = int(tree.ask("listening"))
            watch.wait_err(f"pid {second}: its sockets are watched, it is the front of {tree.child}")
            os.kill(second, signal.SIGKILL)
            watch.wait_err(f"pid {second}: exited: it was the front of {tree.child}")
            self.assertFalse(any(f"pid {rank}:" in line for line in watch.err), watch.err)

    def test_two_targets_are_no_fronts_of_each_other(self):
        with Tree() as tree:
            tree.ask("listen")
            tree.ask("child listen")
            other = int(tree.ask("sibling"))
            with self.watch(tree.child, other) as watch:
                watch.wait_err(f"pid {tree.front}: its sockets are watched, it is the front of {other}")
                watch.wait_err(f"pid {tree.front}: its sockets are watched, it is the front of {tree.child}")
                fronts = {line.split()[2] for line in watch.err if "it is the front" in line}
                self.assertEqual(fronts, {f"{tree.front}:"})

    def test_exec(self):
        with Tree() as tree, self.watch(tree.child) as watch:
            watch.wait_err(f"pid {tree.child}: its sockets are watched")
            before = len(watch.err)
            tree.ask("child exec")
            sp.wait_for(lambda: any(f"pid {tree.child}: its sockets are watched" in line
                                    for line in watch.err[before:]), what="the sockets of the new program")

    def test_command(self):
        """The root of what silentpin starts is the front, though it is a target itself."""
        with sp.Watch("-v", "--probes", self.probes, "--profile", "socks", "--", sys.executable, TREE, "front",
                      stdin=subprocess.PIPE) as watch:
            watch.p.stdin.write("listen\n")
            watch.p.stdin.flush()
            watch.wait_err("it is the front of ", 20)
            self.assertFalse(any("silentpin watch" in line for line in watch.err), "its own copy before the exec")
            watch.p.stdin.close()  # the tree ends, and so the watch
            self.assertEqual(watch.p.wait(20), 0)

    def test_io_uring(self):
        with Tree() as tree:
            got = tree.ask("child uring")
            if got.startswith("errno"):
                self.skipTest(f"no io_uring here: {got}")
            with self.watch(tree.child) as watch:
                watch.wait_err(f"pid {tree.child}: uses io_uring")
                tree.ask("listen")
                watch.wait_err(f"pid {tree.front}: its sockets are watched")
                self.assertEqual(sum("uses io_uring" in line for line in watch.err), 1)

    def test_without_libc(self):
        with subprocess.Popen([os.path.join(LIVE, "sock_peer_static")], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL) as peer:
            try:
                with self.watch(peer.pid, attached=False) as watch:
                    watch.wait_err(f"pid {peer.pid}: its sockets are not watched: no libc is mapped")
                    self.assertTrue(any("SILENTPIN_SOCKETS=syscall" in line for line in watch.err))
                with self.watch(peer.pid, env={"SILENTPIN_SOCKETS": "syscall"}) as watch:
                    watch.wait_err(f"pid {peer.pid}: its sockets are watched: system calls")
            finally:
                peer.kill()

    def test_doctor(self):
        with Tree() as tree:
            tree.ask("listen")
            r = sp.run("doctor", "-p", tree.child, "--probes", self.probes)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            self.assertIn("sockets: own: its own sockets, through libc", r.stdout)
            self.assertIn(f"sockets: http: sockets of process {tree.front}, through libc", r.stdout)

    def test_libc_is_left_as_it_was(self):
        with Tree() as tree:
            tree.ask("listen")
            with self.watch(tree.child) as watch:
                watch.wait_err(f"pid {tree.front}: its sockets are watched")
                self.assertGreater(libc_text(tree.child), 0)
                self.assertGreater(libc_text(tree.front), 0)
            sp.wait_for(lambda: not libc_text(tree.child) and not libc_text(tree.front), what="libc as it was")
            self.assertTrue(tree.ask("child listen").isdigit())

    def cancel(self, backend):
        with Process(os.path.join(LIVE, "sock_cancel")) as target:
            for _ in range(3):
                with self.watch(target.p.pid, env={"SILENTPIN_UPROBE": backend}) as watch:
                    watch.wait_err(f"pid {target.p.pid}: its sockets are watched")
            self.assertIsNone(target.p.poll(), "it has died")
            done = target.ask("end").split()
            self.assertEqual(done[0], "done")
            self.assertGreater(int(done[1]), 100)
            self.assertEqual(target.p.wait(10), 0)

    def test_cancelled_in_a_probed_call_multi(self):
        self.cancel("multi")

    def test_cancelled_in_a_probed_call_perf(self):
        self.cancel("perf")
