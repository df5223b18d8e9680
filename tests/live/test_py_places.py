# SPDX-License-Identifier: Apache-2.0
"""Where an interpreter may be: stripped, linked in, shared, inside another program, in a container with its own
pids and mounts; what cannot be read is said in one line: a version without a table, a build without a lock, no
rights."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import interpreters
import sp
from pyrig import PYDUMP, SCHED, TARGETS, Sched, Target, py_json, same_queues

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
from node import Node  # noqa: E402

LIVE = os.path.join(sp.BUILD, "live")
SHARED = [i for i in interpreters.supported() if i.libpython()]
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
NO_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace")


def setUpModule():
    interpreters.tell()


def yama():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as f:
            return int(f.read())
    except FileNotFoundError:
        return 0


class Base(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="silentpin-test-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)

    def reads(self, target, pid=None):
        """Queues and status of a Sched, by its pid here. What `silentpin py` said."""
        got = py_json(pid or target.pid, "--stacks")
        self.assertEqual(same_queues(got, target.ask("tell")), "")
        return got

    def fails_in_one_line(self, args, *words, prefix=()):
        p = subprocess.run([*prefix, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           stdin=subprocess.DEVNULL, timeout=30 * sp.PATIENCE, check=False)
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)
        for word in words:
            self.assertIn(word, p.stderr)


@interpreters.for_each_interpreter
class Stripped(Base):
    def each_stripped(self, py):
        """Without .symtab: the program, and the library that it brings along, are stripped copies; their
        names say nothing of a version."""
        program = shutil.copy(py.path, os.path.join(self.dir, "server"))
        env = dict(os.environ, PYTHONHOME=py.prefix)
        if py.libpython() and self.loads(py):
            lib = shutil.copy(py.libpython(), self.dir)
            subprocess.run(["strip", lib], check=True)
            env["LD_LIBRARY_PATH"] = self.dir
        subprocess.run(["strip", program], check=True)
        with Sched(program, "--bootstrap", 1, "--inflight", 2, env=env) as target:
            self.assertEqual(self.reads(target)["python"], py.version)

    @staticmethod
    def loads(py):
        return "libpython" in subprocess.run(["ldd", py.path], stdout=subprocess.PIPE, text=True,
                                             check=True).stdout

    def each_deleted(self, py):
        """The interpreter's files are gone, as after an upgrade."""
        program = shutil.copy(py.path, os.path.join(self.dir, os.path.basename(py.path)))
        env = dict(os.environ, PYTHONHOME=py.prefix)
        if py.libpython() and self.loads(py):
            shutil.copy(py.libpython(), self.dir)
            env["LD_LIBRARY_PATH"] = self.dir
        with Sched(program, "--bootstrap", 1, "--inflight", 2, env=env) as target:
            for name in glob.glob(os.path.join(self.dir, "*")):
                os.unlink(name)
            self.assertEqual(self.reads(target)["python"], py.version)

    def each_container(self, py):
        """Own pids and own mounts: the interpreter's files exist only in there, thread ids are those of here."""
        script = (f"mount -t tmpfs none {self.dir} && cp {py.path} {self.dir}/python && "
                  + (f"cp {py.libpython()} {self.dir}/ && " if py.libpython() and self.loads(py) else "")
                  + f"cp {TARGETS}/py_*.py {self.dir}/ && exec \"$@\"")
        prefix = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh")
        env = dict(os.environ, PYTHONHOME=py.prefix, LD_LIBRARY_PATH=self.dir)
        with Target(os.path.join(self.dir, "python"), os.path.join(self.dir, "py_sched.py"), "--inflight", 3,
                    "--busy", 3, prefix=prefix, env=env) as outer:
            self.assertIn('"pid": 1', outer.line())
            pid = sp.children(outer.pid)[0]
            outer.ask = Sched.ask.__get__(outer)
            inner = outer.ask("stacks")
            got = self.reads(outer, pid)
            self.assertEqual(got["pid"], pid)
            here = {self.inner_tid(pid, int(t)): int(t) for t in os.listdir(f"/proc/{pid}/task")}
            self.assertEqual({t["tid"] for t in got["threads"]}, set(here.values()))
            self.assertEqual(got["workers"], [dict(w, tid=here[w["tid"]]) for w in outer.ask("tell")["workers"]])
            by_tid = {t["tid"]: t["stack"] for t in got["threads"]}
            for tid, frames in inner.items():
                self.assertIn(frames[0][2], by_tid[here[int(tid)]][0])
                self.assertEqual(len(frames), len(by_tid[here[int(tid)]]))

    @staticmethod
    def inner_tid(pid, tid):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as f:
            return next(int(line.split()[-1]) for line in f if line.startswith("NSpid:"))


class Embedded(Base):
    def test_shared(self):
        """A C program that has libpython mapped."""
        with Sched(os.path.join(LIVE, "py_embed"), "--bootstrap", 1, "--inflight", 2) as target:
            self.reads(target)

    def test_linked_in(self):
        """No symbol is left: the section alone says where the interpreter is."""
        with Sched(os.path.join(LIVE, "py_embed_static"), "--bootstrap", 1, "--inflight", 2) as target:
            self.reads(target)


class Refused(Base):
    def refused(self, name, *words):
        with Target(os.path.join(LIVE, name), "") as target:
            self.assertEqual(target.line(), "ready\n")
            self.fails_in_one_line([sp.SILENTPIN, "py", str(target.pid)], name, *words)
            self.fails_in_one_line([PYDUMP, str(target.pid), "--frame", "x", "--local", "y"], *words)

    def test_unknown_version(self):
        self.refused("py_fake_3.99", "3.99")

    def test_next_version(self):
        """Known by name, but its layout is in no table."""
        self.refused("py_fake_3.14", "3.14")

    def test_free_threaded(self):
        self.refused("py_fake_3.13t", "free-threaded")

    def test_others_found_here(self):
        """Interpreters of this machine that are too old or too new are refused by their version."""
        for py in interpreters.every():
            if py not in interpreters.supported():
                with Target(py, "-c", "print(flush=True); input()") as target:
                    self.assertEqual(target.line(), "\n")
                    self.fails_in_one_line([sp.SILENTPIN, "py", str(target.pid)], f"3.{py.minor[1]}")

    def test_not_python(self):
        with subprocess.Popen(["sleep", "1000"]) as p:
            try:
                self.fails_in_one_line([sp.SILENTPIN, "py", str(p.pid)], str(p.pid), "Python")
            finally:
                p.kill()


class Rights(Base):
    def setUp(self):
        super().setUp()
        self.program = shutil.copy(sp.SILENTPIN, self.dir)
        self.probes = shutil.copy(os.path.join(sp.ROOT, "probes.yaml"), self.dir)
        shutil.copy(os.path.join(TARGETS, "py_report.py"), self.dir)
        self.sched = shutil.copy(SCHED, self.dir)
        for name in glob.glob(os.path.join(self.dir, "*")):
            os.chmod(name, 0o755)

    def py(self, pid):
        return [self.program, "py", str(pid), "--probes", self.probes]

    def test_another_user(self):
        with Sched(sys.executable) as target:
            self.fails_in_one_line(self.py(target.pid), str(target.pid), "CAP_SYS_PTRACE", prefix=NOBODY)

    def test_root_without_the_capability(self):
        with Sched(sys.executable) as target:
            self.fails_in_one_line(self.py(target.pid), str(target.pid), "CAP_SYS_PTRACE", prefix=NO_PTRACE)

    def test_own_process(self):
        """No right is needed for a process of one's own, unless yama says otherwise."""
        with Target(sys.executable, self.sched, "--inflight", 1, prefix=NOBODY, cwd="/") as target:
            self.assertIn("pid", target.line())
            p = subprocess.run([*NOBODY, *self.py(target.pid)], stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, timeout=30 * sp.PATIENCE, check=False)
            if yama():
                self.assertEqual((p.returncode, len(p.stderr.splitlines())), (1, 1))
                self.assertIn("ptrace_scope", p.stderr)
            else:
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                self.assertIn("inflight", p.stdout)

    def test_watch_without_python(self):
        """A watch that is to read nothing but Python, and may not: one line that names the right, and its end."""
        with Sched(sys.executable, "--inflight", 1) as target:
            with sp.Watch("-p", target.pid, "--only", "python", prefix=NO_PTRACE, attached=False) as watch:
                self.assertEqual(watch.p.wait(20 * sp.PATIENCE), 4)
                watch.stop()
                self.assertEqual(len([x for x in watch.err if "CAP_SYS_PTRACE" in x]), 1, watch.err)

    def test_watch_goes_on(self):
        """Where only the memory may not be read, a watch says so once and does the rest."""
        refuse = {"LD_PRELOAD": os.path.join(LIVE, "libpyrefuse.so")}
        with Node() as node, sp.Watch("-p", node.pid, "--stuck-after", "inflight=3s", env=refuse) as watch:
            decode, room = node.decode(), node.room()
            node.hook(lose_aux=[room])
            decode.announce(room, 96)
            node.post(room, 96)
            node.wait_pinned(room)
            self.assertEqual(watch.wait_stuck(room)["cause"], "aux-missing")
            watch.stop()
            self.assertEqual(len([x for x in watch.err if "memory cannot be read" in x]), 1, watch.err)


if __name__ == "__main__":
    unittest.main()
