# SPDX-License-Identifier: Apache-2.0
"""Bad input, and the agreement of README, manual and --help. One line, the place, the remedy, exit 2."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import sp

# --find sees every process of the machine
ALONE = True

VERBS = ["watch", "rooms", "timeline", "explain", "replay", "py", "doctor", "check"]
NOBODY = 65534


def shipped(name):
    return os.path.join(sp.ROOT, name)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        self.addCleanup(self.tmp.cleanup)

    def path(self, name, content=None):
        p = os.path.join(self.tmp.name, name)
        if content is not None:
            with open(p, "wb") as f:
                f.write(content)
        return p

    def refused(self, *args, code=2, words=(), **kw):
        p = sp.run(*args, cwd=self.tmp.name, **kw)
        self.assertEqual(p.returncode, code, f"{args}: {p.stderr}{p.stdout}")
        lines = [x for x in p.stderr.splitlines() if x]
        self.assertEqual(len(lines), 1, f"{args}: not one line: {p.stderr!r}")
        self.assertTrue(lines[0].startswith("silentpin: "), lines[0])
        self.assertGreaterEqual(lines[0].count(":"), 2, f"no reason or remedy: {lines[0]}")
        for w in words:
            self.assertIn(w, lines[0])
        self.assertEqual(p.stdout, "")
        return lines[0]

    def test_usage(self):
        self.refused("frobnicate", words=["frobnicate", "--help"])
        for verb in VERBS:
            with self.subTest(verb=verb):
                self.refused(verb, "--frobnicate", words=["--frobnicate"])
        for args in (["watch"], ["watch", "-p"], ["watch", "-p", "abc"], ["watch", "-p", "-1"],
                     ["watch", "-p", "1,,2"], ["watch", "-p", "1,"], ["watch", "-p", "0"], ["watch", "-p", "99999999999"],
                     ["watch", "-p", "1,1"], ["watch", "-p", "1", "--find"],
                     ["watch", "--find", "--", "true"], ["watch", "python3"],
                     ["watch", "-p", "1", "--alerts", "xml"], ["watch", "-p", "1", "--for", "10"],
                     ["watch", "-p", "1", "--for", "-1s"], ["watch", "-p", "1", "--record", "some"],
                     ["watch", "-p", "1", "--keep-mb", "0"], ["watch", "-p", "1", "--keep-mb", "x"],
                     ["watch", "-p", "1", "--stuck-after", "inflight"],
                     ["watch", "-p", "1", "--stuck-after", "flight=3s"],
                     ["watch", "-p", "1", "--stuck-after", "inflight=0s"],
                     ["watch", "-p", "1", "--min-confidence", "sure"],
                     ["watch", "-p", "1", "--only", "magic"], ["watch", "-p", "1", "--only", "socket"],
                     ["watch", "-p", "1", "--only", "python", "--no-python"],
                     ["watch", "-p", "1", "--python-every", "10ms"], ["watch", "-p", "1", "--python-every", "2"],
                     ["watch", "-p", "1", "--python-every", "2h"],
                     ["py"], ["py", "x"], ["py", "0"], ["py", "1", "2"], ["py", "1", "--profile", "nope"], ["watch", "-p", "1", "--profile", "nope"],
                     ["watch", "-p", "1", "-o", ""],
                     ["timeline"], ["explain"], ["replay"], ["rooms", "surplus"],
                     ["timeline", "1", "--pid", "x"], ["timeline", "1", "--life", "0"],
                     ["timeline", "1", "2"], ["check", "a", "b"], ["check", "--profile", "nope"], ["doctor", "-p", "x"]):
            with self.subTest(args=args):
                self.refused(*args)

    def test_uprobe_choice(self):
        self.refused("watch", "-p", os.getpid(), env={"SILENTPIN_UPROBE": "magic"}, words=["magic", "perf"])
        self.refused("watch", "-p", os.getpid(), env={"SILENTPIN_RETURNS": "magic"}, words=["magic", "unfiltered"])

    def test_probes_file(self):
        bad = self.path("bad.yaml", b"version: 1\nprofiles:\n  - name: x\n    colour: red\n")
        for verb in (["check"], ["watch", "-p", os.getpid(), "--probes"]):
            line = self.refused(*verb, bad, words=["bad.yaml:4:5: ", "colour"])
            self.assertRegex(line, r"bad\.yaml:\d+:\d+: ")
        self.refused("check", self.tmp.name, words=["directory"])
        self.refused("watch", "-p", os.getpid(), "--probes", self.tmp.name, words=["directory"])
        self.refused("check", self.path("none.yaml"), words=["none.yaml"])
        self.refused("check", self.path("empty.yaml", b""))
        self.refused("check", self.path("binary.yaml", bytes(range(256)) * 10))
        self.refused("check", self.path("tab.yaml", b"version: 1\n\tprofiles: []\n"))

    def test_recording(self):
        for verb in ("rooms", "timeline 1", "explain 1"):
            with self.subTest(verb=verb):
                args = verb.split()
                self.refused(*args, words=["silentpin.db"])
                self.refused(*args, "-i", self.tmp.name)
                self.refused(*args, "-i", self.path("text.db", b"this is not a database, not at all\n" * 50))
        self.refused("replay", self.path("none.db"))
        text = self.path("text2.db", b"this is not a database, not at all\n" * 50)
        self.refused("replay", text)
        self.assertEqual(open(text, "rb").read(), b"this is not a database, not at all\n" * 50)

    def test_target_gone(self):
        p = subprocess.Popen(["true"])
        p.wait()
        self.refused("watch", "-p", p.pid, code=4, words=[str(p.pid)])
        self.assertEqual(os.listdir(self.tmp.name), [])

    def test_target_without_libraries(self):
        p = subprocess.Popen(["sleep", "60"])
        try:
            q = sp.run("watch", "-p", p.pid, cwd=self.tmp.name)
            self.assertEqual(q.returncode, 4, q.stderr)
            self.assertIn("no probe", q.stderr)
            self.assertIn("doctor", q.stderr.splitlines()[-1])
            self.assertEqual(os.listdir(self.tmp.name), [])
            self.assertIsNone(p.poll())
        finally:
            p.kill()
            p.wait()

    def test_command_that_does_not_exist(self):
        for name in ("/no/such/program", "no-such-program", "/etc/passwd", "/etc", ""):
            p = sp.run("watch", "--", name, cwd=self.tmp.name)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(f"{name}: cannot be started: ", p.stderr)
            self.assertEqual(os.listdir(self.tmp.name), [])

    def test_command_does_not_run_unwatched(self):
        """What cannot be recorded is not started."""
        ran = os.path.join(self.tmp.name, "ran")
        p = sp.run("watch", "-o", self.tmp.name, "--", "touch", ran)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn(self.tmp.name, p.stderr.splitlines()[-1])
        p = sp.run("watch", "-o", os.path.join(self.tmp.name, "r.db"), "--", "touch", ran)
        self.assertTrue(os.path.exists(ran), p.stderr)

    def test_without_rights(self):
        os.chmod(self.tmp.name, 0o777)
        # a home folder may be closed to others: run a copy
        program = shutil.copy(sp.SILENTPIN, self.tmp.name)
        shutil.copy(shipped("probes.yaml"), self.tmp.name)
        patch = mock.patch.object(sp, "SILENTPIN", program)
        patch.start()
        self.addCleanup(patch.stop)
        p = subprocess.Popen(["sleep", "60"])
        try:
            line = self.refused("watch", "-p", p.pid, code=4, user=NOBODY, group=NOBODY, extra_groups=[])
            self.assertIn("CAP_", line)
        finally:
            p.kill()
            p.wait()
        d = sp.run("doctor", user=NOBODY, group=NOBODY, extra_groups=[], cwd=self.tmp.name)
        self.assertIn("CAP_BPF", d.stdout)
        self.assertNotEqual(d.returncode, 0)


class Help(unittest.TestCase):
    def test_verbs(self):
        p = sp.run("--help")
        self.assertEqual(p.returncode, 0)
        self.assertEqual(re.findall(r"^  (\w+)  ", p.stdout, re.M), VERBS)
        self.assertEqual(sp.run().returncode, 2)
        self.assertRegex(sp.run("--version").stdout, r"^silentpin \d+\.\d+\.\d+\n$")

    def options(self, verb):
        p = sp.run(verb, "--help")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr, "")
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", p.stdout))

    def test_manual_and_help_agree(self):
        with open(shipped("docs/silentpin.1"), encoding="utf-8") as f:
            man = f.read().replace("\\-", "-")
        sections = dict(re.findall(r'^\.SS "?silentpin (\w+)"?\n(.*?)(?=^\.S[SH] |\Z)', man, re.M | re.S))
        self.assertEqual(sorted(sections), sorted(VERBS))
        for verb in VERBS:
            with self.subTest(verb=verb):
                self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", sections[verb])) | {"--help"},
                                 self.options(verb))

    def test_readme_speaks_of_real_options(self):
        known = {verb: self.options(verb) for verb in VERBS}
        for name in ["README.md"] + ["docs/" + n for n in os.listdir(shipped("docs")) if n.endswith(".md")]:
            with open(shipped(name), encoding="utf-8") as f:
                text = f.read()
            for verb, rest in re.findall(r"silentpin (\w+)((?: +[^\s`|;]+)*)", text):
                if verb not in known:
                    continue
                rest = rest.split(" -- ")[0]
                for opt in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest):
                    with self.subTest(file=name, verb=verb):
                        self.assertIn(opt, known[verb])

    def test_check_shows_what_the_manual_of_profiles_says_of_sockets(self):
        with open(shipped("docs/profiles.md"), encoding="utf-8") as f:
            text = next(t for t in re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S) if "sockets:" in t)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(text)
            f.flush()
            p = sp.run("check", f.name)
        self.assertEqual(p.returncode, 0, p.stderr)
        for line in ("no probes: only sockets are watched", "fake host selftest",
                     "receivers zmtp both ways", "in the process itself",
                     "sockets that begin with a ZMTP greeting, accepted at port 9100",
                     'first frame "HELLO", copied of its message: frames 0 1 2 3', "end: told status=code",
                     "clients http requests in, replies out", "in its parent, of the same program, that listens",
                     "keys room = session, host = origin, rid = id", "abort a request to /cancel with a rid"):
            self.assertIn(line, re.sub(r" +", " ", p.stdout))

    def test_check_shows_each_probe_once(self):
        head = re.compile(r"^    (\w+) +\w+ +(?:entry|return|ret) ", re.M)
        whole, one, brief = (sp.run("check", *args, shipped("probes.yaml")) for args in
                             ([], ["--profile", "vllm-nixl"], ["--summary"]))
        for p in whole, one, brief:
            self.assertEqual((p.returncode, p.stderr), (0, ""))
        names = head.findall(whole.stdout)
        self.assertEqual(names, head.findall(brief.stdout))
        for name in ("cuMemcpyHtoDAsync", "ibv_poll_cq"):
            self.assertEqual(names.count(name), 1, "of a group that all profiles use")
            self.assertEqual(head.findall(one.stdout).count(name), 1)
        self.assertEqual(names.count("xfer_make"), 2, "of two profiles")
        self.assertEqual(re.findall(r"^profile (.*)", one.stdout, re.M), ["vllm-nixl"])
        self.assertEqual(set(one.stdout.splitlines()) - set(whole.stdout.splitlines()), set())
        self.assertLess(4 * len(brief.stdout), len(whole.stdout))

    def test_every_make_target_exists(self):
        for target in "all deps demo test bench install lint format clean dist".split():
            p = subprocess.run(["make", "-C", sp.ROOT, "-n", target], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, check=False)
            self.assertNotIn("No rule to make target", p.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main())
