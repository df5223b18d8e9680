# SPDX-License-Identifier: Apache-2.0
"""The process that is read ends, runs another program, forks, is stopped, all in the middle of snapshots: clean
errors, no hang, no crash, for each interpreter found."""
import json
import os
import signal
import subprocess
import unittest

import interpreters
import sp
from pyrig import MUTATE, OBJECTS, PYDUMP, Sched, Target, py_json, same_queues

NO_PROBES = ("--only", "python", "--python-every", "50ms")


def setUpModule():
    interpreters.tell()


class Hammer:
    """pydump that reads again and again until it fails."""

    def __init__(self, pid, frame="*Keeper.hold", local="table"):
        self.args = [PYDUMP, str(pid), "--frame", frame, "--local", local, "--repeat", "1000000000"]
        self.start()

    def start(self):
        self.p = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def __enter__(self):
        # the first look may come in a moment when the frame is not to be found
        for _ in range(5):
            if self.p.stdout.readline():
                return self
            said = self.p.communicate()[1]
            self.start()
        raise AssertionError(said)

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()
        self.p.stderr.close()

    def end(self):
        """It ends by itself and soon: (exit code, what it said on stderr)."""
        try:
            _, err = self.p.communicate(timeout=10 * sp.PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("still reading much later") from None
        return self.p.returncode, err.decode()


class Base(unittest.TestCase):
    def fails_in_one_line(self, pid, *words):
        """`silentpin py`: exit code 1, one line that says why."""
        p = sp.run("py", pid)
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)


@interpreters.for_each_interpreter
class Lifecycle(Base):
    def each_exit(self, py):
        """SIGKILL at some moment of a snapshot, several times."""
        for i in range(4):
            with Target(py, MUTATE) as target:
                self.assertEqual(target.line(), "ready\n")
                with Hammer(target.pid) as hammer:
                    for _ in range(3 * i):
                        hammer.p.stdout.readline()
                    target.p.kill()
                    rc, err = hammer.end()
                    self.assertEqual(rc, 1, err)
                    self.assertEqual(len(err.splitlines()), 1, err)
                    # a zombie has no memory either
                    self.fails_in_one_line(target.pid, str(target.pid))
                target.p.wait()
                self.fails_in_one_line(target.pid, str(target.pid))

    def each_exec(self, py):
        """Another program under the same pid."""
        with Sched(py, "--inflight", 2) as target:
            with Hammer(target.pid, "event_loop_normal_disagg_prefill", "self") as hammer:
                target.say(json.dumps({"do": "exec", "argv": ["/bin/sleep", "1000"]}))
                rc, err = hammer.end()
                self.assertEqual((rc, len(err.splitlines())), (1, 1), err)
            self.fails_in_one_line(target.pid, "Python")

    def each_exec_other_interpreter(self, py):
        other = next((i for i in interpreters.supported() if i.minor != py.minor), py)
        with Sched(py, "--inflight", 2) as target:
            self.assertEqual(py_json(target.pid)["python"], py.version)
            target.say(json.dumps({"do": "exec", "argv": [other.path, *target.p.args[1:], "--seed", "2"]}))
            self.assertEqual(json.loads(target.line())["pid"], target.pid)
            got = py_json(target.pid)
            self.assertEqual(got["python"], other.version)
            self.assertEqual(same_queues(got, target.ask("tell")), "")

    def each_fork(self, py):
        """The child holds what the parent held when it forked, in one thread of its own; the parent goes on."""
        with Sched(py, "--bootstrap", 1, "--inflight", 3) as target:
            told = target.ask("tell")
            child = target.ask("fork")["pid"]
            try:
                got = py_json(child, "--stacks")
                self.assertEqual(same_queues(got, told), "")
                self.assertEqual([t["tid"] for t in got["threads"]], [child])
                self.assertIn("do_fork", got["threads"][0]["stack"][0])
                self.assertTrue(target.ask("lose_status"))
                self.assertEqual(same_queues(py_json(target.pid), target.ask("tell")), "")
                self.assertEqual(same_queues(py_json(child), told), "")
            finally:
                os.kill(child, signal.SIGKILL)

    def each_forks_all_the_time(self, py):
        """Snapshots of a process that keeps making children (its pages become copies)."""
        with Sched(py, "--bootstrap", 2, "--inflight", 3) as target:
            told, children = target.ask("tell"), []
            try:
                for _ in range(20):
                    target.say(json.dumps({"do": "fork"}))
                    self.assertEqual(same_queues(py_json(target.pid), told), "")
                    children.append(json.loads(target.line())["pid"])
            finally:
                for child in children:
                    os.kill(child, signal.SIGKILL)

    def each_stopped(self, py):
        """A stopped process can be read; one stopped while it changes things is read without a hang, and
        whatever is seen then stays so."""
        with Sched(py, "--bootstrap", 3, "--waiting", 1, "--inflight", 3) as target:
            told = target.ask("tell")
            os.kill(target.pid, signal.SIGSTOP)
            self.assertEqual(same_queues(py_json(target.pid), told), "")
            os.kill(target.pid, signal.SIGCONT)
            self.assertEqual(target.ask("tell"), told)
            for _ in range(5):
                self.assertEqual(target.ask("churn", seconds=0.2), {"churning": True})
                os.kill(target.pid, signal.SIGSTOP)
                looks = [py_json(target.pid) for _ in range(3)]
                os.kill(target.pid, signal.SIGCONT)
                self.assertTrue(json.loads(target.line())["requests"])
                for look in looks:
                    look.pop("took_us")
                self.assertEqual(looks[0], looks[1])
                self.assertEqual(looks[1], looks[2])

    def each_stopped_reader(self, py):
        """The reader itself is stopped for a while: it goes on, and what it then says is of then."""
        with Target(py, MUTATE) as target:
            self.assertEqual(target.line(), "ready\n")
            with Hammer(target.pid) as hammer:
                hammer.p.send_signal(signal.SIGSTOP)
                before = int(target.say().line().split()[0])
                sp.wait_for(lambda: int(target.say().line().split()[0]) > before + 10000)
                hammer.p.send_signal(signal.SIGCONT)
                for _ in range(20):
                    self.assertTrue(json.loads(hammer.p.stdout.readline()))

    def each_watch_to_the_end(self, py):
        """A watch that only reads Python: it ends with its target, and says what it was."""
        with Sched(py, "--bootstrap", 2, "--inflight", 2) as target:
            with sp.Watch("-p", target.pid, *NO_PROBES) as watch:
                self.assertEqual(target.ask("churn", seconds=1), {"churning": True})
                self.assertTrue(json.loads(target.line())["requests"])
                target.p.kill()
                self.assertIn(watch.p.wait(10 * sp.PATIENCE), (0, 3))
                watch.stop()
                self.assertEqual(watch.bad_lines, [])
                self.assertEqual(watch.stuck(), [])


class Young(Base):
    def test_while_it_starts(self):
        """From its first instruction on: one line that it is not the server looked for, or not yet."""
        for _ in range(3):
            with Target(interpreters.supported()[0], OBJECTS) as target:
                os.set_blocking(target.p.stdout.fileno(), False)
                while not target.p.stdout.read(1):
                    self.fails_in_one_line(target.pid)

    def test_many_at_once(self):
        """Eight readers of one process do not disturb each other."""
        with Sched(interpreters.supported()[0], "--bootstrap", 100, "--inflight", 100) as target:
            told = target.ask("tell")
            some = [subprocess.Popen([sp.SILENTPIN, "py", str(target.pid), "--json"], stdout=subprocess.PIPE)
                    for _ in range(8)]
            for p in some:
                out, _ = p.communicate(timeout=30 * sp.PATIENCE)
                self.assertEqual((p.returncode, same_queues(json.loads(out), told)), (0, ""))


if __name__ == "__main__":
    unittest.main()
