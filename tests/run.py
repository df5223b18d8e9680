#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run every test and end with one line: `N passed, N failed, N skipped`.

usage: tests/run.py [-k WORD] [--only unit|fuzz|python|live] [--build DIR] [--fuzz-seconds N] [--lanes N]
unit: each build/unit/test_* and build/unit-san/test_* (cmocka). fuzz: each build/fuzz/fuzz_*, all at
once, from tests/fuzz/corpus. python: tests/node. live: tests/live.
-k runs only the programs and Python tests whose name contains WORD. Live tests mostly wait, so
their modules run in two lanes; one that says ALONE = True (it looks for processes all over the
machine, or takes all of it) runs by itself after the others.
"""
import argparse
import concurrent.futures
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.bad = []

    def add(self, passed, failed, skipped, name):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        if failed:
            self.bad.append(name)


def run_cmocka(path, totals, **more):
    """One cmocka program. A crash, a hang or no test at all is a failure."""
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="STDOUT", UBSAN_OPTIONS="print_stacktrace=1", **more)
    start = time.monotonic()
    name = " ".join([f"{k}={v}" for k, v in more.items()] + [os.path.relpath(path, ROOT)])
    try:
        p = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT,
                           env=env, timeout=300, stdin=subprocess.DEVNULL)
        out, rc = p.stdout.decode(errors="replace"), p.returncode
    except subprocess.TimeoutExpired as e:
        out, rc = (e.stdout or b"").decode(errors="replace") + "\ntimed out", -1
    passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", out))
    failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] (\d+) test", out))
    skipped = sum(int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test", out))
    if (rc != 0 and not failed) or (rc == 0 and not passed):
        failed += 1
    totals.add(passed, failed, skipped, name)
    print(f"{'FAIL' if failed else 'ok'}  {name}: {passed} passed, {failed} failed "
          f"({time.monotonic() - start:.1f} s)", flush=True)
    if failed:
        print(out[-6000:], flush=True)


def fuzz_report(name, log, artifacts):
    """What libFuzzer says at its end, and the input that did it."""
    with open(log, errors="replace") as f:
        print(f.read()[-6000:])
    for a in sorted(os.listdir(artifacts)):
        with open(os.path.join(artifacts, a), "rb") as f:
            print(f"{name}: {a}: {f.read().hex()}", flush=True)


def run_fuzz(build, word, seconds, totals):
    """Every libFuzzer program side by side for so many seconds, each one test: a crash, a leak, an
    input that takes 10 s, or a program that tried no input fails it."""
    folder = os.path.join(build, "fuzz")
    names = [n for n in sorted(os.listdir(folder) if os.path.isdir(folder) else [])
             if n.startswith("fuzz_") and "." not in n and word in n]
    running = []
    for n in names:
        work = tempfile.mkdtemp(prefix=f"{n}-")
        for sub in ("new", "bad"):
            os.mkdir(os.path.join(work, sub))
        corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", n[len("fuzz_"):])
        words = os.path.join(ROOT, "tests", "fuzz", n[len("fuzz_"):] + ".dict")
        command = [os.path.abspath(os.path.join(folder, n)), "-max_len=2048", "-timeout=10",
                   f"-max_total_time={seconds}", "-print_final_stats=1",
                   f"-artifact_prefix={work}/bad/", f"{work}/new", corpus]
        if os.path.exists(words):
            command.append(f"-dict={words}")
        with open(os.path.join(work, "log"), "wb") as log:
            running.append((n, work, subprocess.Popen(command, stdout=log, stderr=log,
                                                      stdin=subprocess.DEVNULL)))
    for n, work, p in running:
        try:
            rc = p.wait(timeout=seconds + 120)
        except subprocess.TimeoutExpired:
            p.kill()
            rc = p.wait()
        with open(f"{work}/log", errors="replace") as f:
            tried = re.search(r"stat::number_of_executed_units: (\d+)", f.read())
        bad = rc != 0 or not tried or int(tried[1]) < 2
        totals.add(0 if bad else 1, 1 if bad else 0, 0, n)
        print(f"{'FAIL' if bad else 'ok'}  {n}: {tried[1] if tried else 'no'} inputs", flush=True)
        if bad:
            fuzz_report(n, f"{work}/log", f"{work}/bad")
        shutil.rmtree(work)


class Result(unittest.TextTestResult):
    """One line a test, with its time; a failure's traceback at once."""

    def startTest(self, test):
        super().startTest(test)
        self._t0 = time.monotonic()
        print(f"...  {test.id()}", flush=True)

    def _line(self, word, test):
        print(f"{word}  {test.id()} ({time.monotonic() - self._t0:.1f} s)", flush=True)

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self._line("ok", test)

    def addFailure(self, test, err):
        unittest.TestResult.addFailure(self, test, err)
        self._line("FAIL", test)
        print(self.failures[-1][1], flush=True)

    def addError(self, test, err):
        unittest.TestResult.addError(self, test, err)
        print(f"FAIL  {getattr(test, 'id', lambda: test)()}\n{self.errors[-1][1]}", flush=True)

    def addSubTest(self, test, subtest, err):
        unittest.TestResult.addSubTest(self, test, subtest, err)
        if err is not None:
            print(f"FAIL  {subtest.id()}\n{self._exc_info_to_string(err, test)}", flush=True)

    def addSkip(self, test, reason):
        unittest.TestResult.addSkip(self, test, reason)
        print(f"skip  {test.id()}: {reason}", flush=True)


def flatten(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from flatten(t)
        else:
            yield t


def run_python(folder, word, totals, module="test_*"):
    path = os.path.join(ROOT, folder)
    if not os.path.isdir(path):
        return
    sys.path.insert(0, path)
    loader = unittest.TestLoader()
    tests = [t for t in flatten(loader.discover(path, f"{module}.py", top_level_dir=path))
             if not word or word in t.id()]
    result = unittest.TextTestRunner(stream=io.StringIO(), resultclass=Result,
                                     verbosity=0).run(unittest.TestSuite(tests))
    bad = len({str(t) for t, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    totals.add(result.testsRun - bad - skipped if result.testsRun else 0, bad, skipped, folder)
    sys.path.pop(0)


def run_module(name, args):
    """One live module, as a program of its own: its output and its totals."""
    p = subprocess.run([sys.executable, os.path.abspath(__file__), "--only", "live", "--module", name,
                        "--build", args.build, "-k", args.word], stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace")
    end = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z", p.stdout)
    return name, p.stdout[:end.start()] if end else p.stdout, [int(n) for n in end.groups()] if end else None


def run_lanes(args, totals):
    folder = os.path.join(ROOT, "tests", "live")
    alone, others = [], []
    for f in sorted(os.listdir(folder)):
        if f.startswith("test_") and f.endswith(".py"):
            with open(os.path.join(folder, f)) as text:
                (alone if "\nALONE = True\n" in text.read() else others).append(f[:-3])
    for names, lanes in ((others, args.lanes), (alone, 1)):
        with concurrent.futures.ThreadPoolExecutor(lanes) as pool:
            jobs = [pool.submit(run_module, n, args) for n in names]
            for job in concurrent.futures.as_completed(jobs):
                name, out, counts = job.result()
                print(out, end="", flush=True)
                totals.add(*(counts or (0, 1, 0)), f"tests/live/{name}.py")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-k", dest="word", default="")
    ap.add_argument("--only", choices=["unit", "fuzz", "python", "live"])
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("--fuzz-seconds", type=int, default=30)
    ap.add_argument("--lanes", type=int, default=2)
    ap.add_argument("--module", help=argparse.SUPPRESS)
    a = ap.parse_args()
    os.environ["SILENTPIN_BUILD"] = os.path.abspath(a.build)
    totals = Totals()
    if a.module:
        run_python("tests/live", a.word, totals, a.module)
        print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)
        return 1 if totals.failed else 0
    if a.only in (None, "unit"):
        for kind in ("unit", "unit-san"):
            folder = os.path.join(a.build, kind)
            for f in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
                path = os.path.join(folder, f)
                if f.startswith("test_") and "." not in f and a.word in f:
                    run_cmocka(path, totals)
    if a.only in (None, "fuzz"):
        run_fuzz(a.build, a.word, a.fuzz_seconds, totals)
    if a.only in (None, "python"):
        run_python("tests/node", a.word, totals)
    for name in ("attach_smoke", "attach_messages", "attach_process", "attach_calls", "attach_each",
                 "attach_returns", "attach_plans"):
        if a.only in (None, "live") and a.word in name:
            for backend in ("multi", "perf"):
                run_cmocka(os.path.join(a.build, "live", name), totals, SILENTPIN_UPROBE=backend)
    if a.only in (None, "live"):
        run_lanes(a, totals)
    for name in totals.bad:
        print(f"failed: {name}")
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped", flush=True)
    return 1 if totals.failed or not totals.passed else 0


if __name__ == "__main__":
    sys.exit(main())
