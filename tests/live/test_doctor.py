# SPDX-License-Identifier: Apache-2.0
"""doctor: what it finds is what attaching would do."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import sp

# --find sees every process of the machine
ALONE = True

PROBES = """version: 1
profiles:
  - name: smoke
    match: {cmdline: "*smoke_target*"}
    room: {type: u64}
    libraries: {smoke: {file: "libsmoke.so"}, other: {file: "libother*"}}
    probes:
      - {name: text, library: smoke, symbol: smoke_text, on: entry, event: {role: call}}
      - {name: ways, library: smoke, symbol: smoke_ways, on: ret, event: {role: call}}
      - {name: tail, library: smoke, symbol: smoke_tail, on: ret, event: {role: call}}
      - {name: typo, library: smoke, symbol: smoke_texx, on: entry, required: false, event: {role: call}}
      - {name: absent, library: other, symbol: x, on: entry, event: {role: call}}
"""
# Two that fit a process alike, with nothing of their transport in it; --enable is for the first
ALIKE = """version: 1
profiles:
""" + "".join(f"""  - name: {name}
    match: {{cmdline: "*smoke_target*"}}
    room: {{type: u64}}
    libraries: {{smoke: {{file: "{lib}"}}, other: {{file: "libother*"}}}}
    probes:
      - {{name: text, library: smoke, symbol: smoke_text, on: entry, event: {{role: call}}}}
      - {{name: more, library: other, symbol: x, on: entry, required: false, enabled: false, event: {{role: call}}}}
      - {{name: rest, library: other, symbol: y, on: entry, required: false, enabled: false, event: {{role: call}}}}
    sockets:
      - name: wire
        process: self
        when: {{bytes: zmtp}}
        decode: zmtp
        direction: in
        messages:
          - {{name: hello, frames: [HELLO, "{{room}}"], event: {{role: announce}}}}
""" for name, lib in (("north", "libsmoke.so"), ("south", "libsmoke.so*")))
# A process may have the library of a group and be no server
GROUPED = """version: 1
groups:
  - name: common
    libraries: {smoke: {file: "libsmoke.so"}}
    probes: [{name: text, library: smoke, symbol: smoke_text, on: entry, event: {role: call}}]
profiles:
  - name: server
    uses: [common]
    match: {cmdline: "*server*"}
    room: {type: u64}
    libraries: {other: {file: "libother*"}}
    probes: [{name: own, library: other, symbol: x, on: entry, event: {role: call}}]
  - name: plain
    uses: [common]
    room: {type: u64}
"""
LIVE = os.path.join(sp.BUILD, "live")


class Target:
    """smoke_target with some libraries, until the end of the with."""

    def __init__(self, *libs):
        self.args = [os.path.join(LIVE, "smoke_target"), *libs]

    def __enter__(self):
        self.p = subprocess.Popen(self.args, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.p.stdout.readline() == b"ready\n"
        return self.p.pid

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()
        return False


class Doctor(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        cls.addClassCleanup(cls.tmp.cleanup)
        cls.probes = os.path.join(cls.tmp.name, "p.yaml")
        with open(cls.probes, "w", encoding="ascii") as f:
            f.write(PROBES)

        cls.alike = os.path.join(cls.tmp.name, "alike.yaml")
        with open(cls.alike, "w", encoding="ascii") as f:
            f.write(ALIKE)

    def doctor(self, *args, probes=None):
        return sp.run("doctor", *args, "--probes", probes or self.probes)

    def watch(self, *args, probes=None):
        return sp.run("watch", *args, "--probes", probes or self.alike, "--for", "200ms", "-o",
                      os.path.join(self.tmp.name, "w.db"))

    def line(self, out, word):
        found = [line for line in out.splitlines() if word in line]
        self.assertEqual(len(found), 1, f"lines with '{word}' in:\n{out}")
        return found[0].strip()

    def test_kernel_and_rights(self):
        r = sp.run("doctor")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn(f"kernel {os.uname().release}", r.stdout)
        self.assertTrue(self.line(r.stdout, "probes will be attached by").startswith("ok"))
        self.assertTrue(self.line(r.stdout, "CAP_SYS_PTRACE").startswith("ok"))

    def test_returns_that_would_crash(self):
        """A kernel whose return probes crash what a filter refuses their system call: the trial finds out, and a
        filtered target gets other probes and lives."""
        version = tuple(map(int, os.uname().release.split(".")[:2]))
        if os.uname().machine != "x86_64" or version < (6, 11):
            return  # no such system call
        refuse = [os.path.join(LIVE, "refuse"), "335"]
        probes = os.path.join(self.tmp.name, "returns.yaml")
        with open(probes, "w", encoding="ascii") as f:
            f.write(PROBES.replace("smoke_ways, on: ret,", "smoke_ways, on: return,"))
        target = Target(os.path.join(LIVE, "libsmoke.so"))
        with target as pid:
            target.p.stdin.write(b"filter\n")
            target.p.stdin.flush()
            self.assertEqual(target.p.stdout.readline(), b"ok\n")
            for env, said, why in (({}, "would crash it", "it has a seccomp filter"),
                                   ({"SILENTPIN_RETURNS": "ret"}, "SILENTPIN_RETURNS=ret", "SILENTPIN_RETURNS=ret")):
                r = subprocess.run([*refuse, sp.SILENTPIN, "doctor", "-p", str(pid), "--probes", probes],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **env})
                self.assertIn("refused: 335", r.stderr)
                self.assertIn(said, self.line(r.stdout, "return probes:"))
                self.assertIn(why, self.line(r.stdout, "returns are probed at ret instructions:"))
                self.assertIn("3 ret", self.line(r.stdout, "probe ways:"))
            if "also in processes with a seccomp filter" in sp.run("doctor").stdout:  # as it is here, no child refused
                self.assertIn("; return", self.line(self.doctor("-p", pid, probes=probes).stdout, "probe ways:"))
        r = subprocess.run([*refuse, os.path.join(LIVE, "attach_returns"), "test_filter_by_trial"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertIn("would crash it", r.stdout)
        self.assertEqual(r.stderr.count("refused: 335"), 1, r.stderr)  # in the trial's child alone

    def test_each_probe(self):
        with Target(os.path.join(LIVE, "libsmoke.so")) as pid:
            for how in (["-p", pid], ["--find"]):
                r = self.doctor(*how)
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                self.assertRegex(self.line(r.stdout, "profile smoke"), "^ok .*: its match fits the command line$")
                self.assertTrue(self.line(r.stdout, "probe text:").startswith("ok"))
                self.assertIn("3 ret", self.line(r.stdout, "probe ways:"))
                tail = self.line(r.stdout, "probe tail:")
                self.assertTrue(tail.startswith("NO") and "leaves the function" in tail, tail)
                typo = self.line(r.stdout, "probe typo:")
                self.assertIn("near: smoke_text", typo)
                self.assertIn("(not required)", typo)
                self.assertIn("no mapped file is named libother*", self.line(r.stdout, "probe absent:"))

    def test_text_of_the_target(self):
        """What a process calls itself and its files forges no line and steers no terminal."""
        forged = os.path.join(self.tmp.name, "a\n  ok  all is well\x1b[2J\u009b")
        os.mkdir(forged)
        lib = shutil.copy(os.path.join(LIVE, "libsmoke.so"), forged)
        target = Target(lib)
        target.args[0] = shutil.copy(target.args[0], os.path.join(self.tmp.name, "smoke_target\u009b2J"))
        with target as pid:
            said = [self.doctor("-p", pid), self.doctor("-p", pid, "--profile", "smoke")]
            self.assertIn("libsmoke.so", self.line(said[0].stdout, "library smoke"))
            said.append(self.watch("-p", pid, probes=self.probes))
        for r in said:
            self.assertEqual([line for line in r.stdout.splitlines() if line.startswith("  ok  all")], [])
            self.assertEqual(set(r.stdout + r.stderr) & {"\x1b", "\u009b"}, set())

    def test_nothing_to_attach(self):
        with Target() as pid:
            r = self.doctor("-p", pid)
        self.assertEqual(r.returncode, 4, r.stdout + r.stderr)
        self.assertIn("no probe can be attached", r.stdout)

    def test_why_this_profile(self):
        """A guess is none that is fine."""
        with Target(os.path.join(LIVE, "libsmoke.so")) as pid:
            alike = self.doctor("-p", pid, probes=self.alike)
            named = self.doctor("-p", pid, "--profile", "south", probes=self.alike)
        with Target() as pid:
            bare = self.doctor("-p", pid, probes=self.alike)
        p = subprocess.Popen(["sleep", "60"])
        try:
            other = self.doctor("-p", p.pid)
        finally:
            p.kill()
            p.wait()
        self.assertRegex(self.line(alike.stdout, "profile north"), "^-- .*: a guess: its match fits the command line, its "
                         "libraries are mapped, and so it is with 1 more profile: say --profile NAME$")
        self.assertRegex(self.line(named.stdout, "profile south"), "^ok .*: --profile names it$")
        self.assertRegex(self.line(bare.stdout, "profile north"), "^-- .*: a guess: its match fits the command line, and")
        self.assertRegex(self.line(other.stdout, "profile smoke"), "^-- .*: a guess: no match fits the command line, ")
        self.assertEqual((alike.returncode, named.returncode, bare.returncode, other.returncode), (0, 0, 0, 4))

    def test_a_profile_of_something_else(self):
        """Its sockets alone make no server of it. Those who want just them can have them."""
        p = subprocess.Popen(["sleep", "60"])
        try:
            said = self.doctor("-p", p.pid, "--profile", "north", probes=self.alike)
            watch = self.watch("-p", p.pid, "--profile", "north")
            sockets = self.watch("-p", p.pid, "--profile", "north", "--only", "sockets")
        finally:
            p.kill()
            p.wait()
        self.assertEqual((said.returncode, watch.returncode, sockets.returncode), (4, 4, 0), watch.stderr)
        self.assertTrue(self.line(said.stdout, "nothing of profile north").startswith("NO"), said.stdout)
        self.assertIn("nothing of profile north", watch.stderr.splitlines()[-1])

    def test_a_library_that_any_program_may_have(self):
        path = os.path.join(self.tmp.name, "grouped.yaml")
        with open(path, "w", encoding="ascii") as f:
            f.write(GROUPED)
        with Target(os.path.join(LIVE, "libsmoke.so")) as pid:
            for name, code in (("server", 4), ("plain", 0)):
                said = self.doctor("-p", pid, "--profile", name, probes=path)
                watch = self.watch("-p", pid, "--profile", name, probes=path)
                self.assertEqual((said.returncode, watch.returncode), (code, code), said.stdout + watch.stderr)
                self.assertTrue(self.line(said.stdout, "probe text:").startswith("ok"))

    def test_enabled_and_not_there(self):
        with Target(os.path.join(LIVE, "libsmoke.so")) as pid:
            watch = self.watch("-p", pid, "--profile", "north", "--enable", "more,rest,text")
        self.assertEqual(watch.returncode, 0, watch.stderr)
        self.assertEqual(self.line(watch.stderr, "--enable"),
                         f"silentpin: pid {pid}: --enable more,rest: not in place: no mapped file is named libother*")

    def test_gone_and_wrong(self):
        p = subprocess.Popen(["true"])
        p.wait()
        r = self.doctor("-p", p.pid)
        self.assertEqual(r.returncode, 4, r.stderr)
        self.assertRegex(r.stderr, rf"\Asilentpin: process {p.pid}: does not exist: .+\n\Z")
        for bad in (["-p", "x"], ["-p", "99999999999"], ["x"], ["--profile", "none", "-p", "1"]):
            r = self.doctor(*bad)
            self.assertEqual(r.returncode, 2, (bad, r.stderr))
            self.assertRegex(r.stderr, r"\Asilentpin: .+\n\Z")

    def test_a_thread_is_no_process(self):
        code = ("import threading\n"
                "t = threading.Thread(target=input); t.start()\n"
                "print(t.native_id, flush=True)\n")
        p = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            tid = int(p.stdout.readline())
            r = self.doctor("-p", tid)
            self.assertEqual(r.returncode, 4, r.stderr)
            self.assertIn("is a thread of another process", r.stderr)
        finally:
            p.communicate("\n")

    def test_few_rights(self):
        with Target(os.path.join(LIVE, "libsmoke.so")) as pid:
            r = subprocess.run(
                ["setpriv", "--bounding-set", "-sys_ptrace,-checkpoint_restore,-sys_admin",
                 "--inh-caps", "-all", sp.SILENTPIN, "doctor", "-p", str(pid), "--probes", self.probes],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * sp.PATIENCE)
        self.assertIn("NO  CAP_SYS_PTRACE", r.stdout)
        self.assertIn("NO  CAP_CHECKPOINT_RESTORE", r.stdout)
        self.assertIn("ok  CAP_BPF and CAP_PERFMON", r.stdout)


if __name__ == "__main__":
    unittest.main()
