# SPDX-License-Identifier: Apache-2.0
"""Reading the server's own view: time of a snapshot by the number of rooms, by layout and by interpreter; CPU time
of a watch that does nothing else; what a process that does nothing but Python work notices of it."""
import json
import os
import re
import signal
import subprocess
import sys

from rig import NODE_PROBES, ROOT, Failed, Lines, Process, Watch, figure, median

sys.path.insert(0, os.path.join(ROOT, "tests", "live"))
import interpreters  # noqa: E402

SCHED = os.path.join(ROOT, "tests", "live", "targets", "py_sched.py")
COUNTS = (10, 1000, 10000)
LAYOUTS = ("split", "slots")  # "combined", the real server's, is measured on every interpreter
SNAPSHOT_S = 1.5
ROUNDS, ROUND_S = 11, 0.5
LOOK = ("--only", "python", "--probes", NODE_PROBES)


class Sched(Process):
    """tests/live/targets/py_sched.py with so many requests, most of them inflight as in a busy server."""

    def __init__(self, py, count, layout="combined", cpu=0):
        super().__init__([py.path, SCHED, "--layout", layout, "--bootstrap", count // 5, "--waiting", count // 5,
                          "--inflight", count - 2 * (count // 5)], cpu, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        self.lines = Lines(self.p.stdout)
        self.lines.until("pid", 30)

    def ask(self, do, **more):
        self.p.stdin.write(json.dumps(dict(more, do=do)).encode() + b"\n")
        self.p.stdin.flush()
        return json.loads(self.lines.next(60))


def watch_for(w, seconds):
    try:
        w.p.wait(seconds)
    except subprocess.TimeoutExpired:
        return
    raise Failed(f"the watch ended: {w.lines.rest()}")


def told(w):
    """What a watch counted: snapshots, ms each, unstable, failed, requests held now."""
    w.stop()
    got = re.search(r"(\d+) snapshots, ([0-9.]+) ms each .*?(\d+) unstable, (\d+) failed.*; (\d+) requests held",
                    w.told)
    if not got:
        raise Failed(f"silentpin told no snapshots: {w.told}")
    return [float(x) for x in got.groups()]


def snapshot(build, py, count, layout="combined"):
    """Milliseconds a snapshot took, with all `count` requests in it."""
    with Sched(py, count, layout) as target, Watch(build, "-p", str(target.pid), *LOOK, "--python-every",
                                                   "50ms") as w:
        # a long snapshot is taken less often: never more than a tenth of the time
        watch_for(w, SNAPSHOT_S * (3 if count > 1000 else 1))
        taken, ms, unstable, failed, held = told(w)
    if taken < 5 or unstable or failed or held != count:
        raise Failed(f"{py.version} {layout} {count}: {w.told}")
    return ms


def snapshots(build):
    for py in interpreters.supported():
        for count in COUNTS if py is interpreters.supported()[0] else COUNTS[1:]:
            figure(f"python-snapshot-{py.word.replace('_', '.', 2).replace('_', '-')}-{count}",
                   snapshot(build, py, count), "ms")
    for layout in LAYOUTS:
        for count in COUNTS[1:]:
            figure(f"python-snapshot-{layout}-{count}",
                   snapshot(build, interpreters.supported()[0], count, layout), "ms")


def watch_cpu(build, count, seconds=4):
    """Percent of a core that a watch uses which only reads Python, at its default period."""
    with Sched(interpreters.supported()[0], count) as target, Watch(build, "-p", str(target.pid), *LOOK) as w:
        before = w.cpu_s()
        watch_for(w, seconds)
        used = w.cpu_s() - before
        w.stop()
    figure(f"python-watch-cpu-{count}", 100 * used / seconds, "%")


def churn(build, py, name, pause, seconds=3):
    """A server whose requests come and go at such a rate, up to as fast as it can: how many snapshots are given up
    as unstable."""
    with Sched(py, 0) as target, Watch(build, "-p", str(target.pid), *LOOK, "--python-every", "50ms") as w:
        target.ask("churn", seconds=seconds + 1, pause=pause)
        watch_for(w, seconds)
        taken, _, unstable, failed, _ = told(w)
        if failed:
            raise Failed(f"{py.version} churn: {w.told}")
        requests = json.loads(target.lines.next(60))["requests"]
    figure(f"python-{name}-requests", requests / (seconds + 1), "requests/s")
    figure(f"python-{name}-unstable", 100 * unstable / taken, "% of the snapshots")


def effect(build, py, count=1000):
    """Python work while a watch looks and while it is stopped, by turns; and while it is stopped twice in a row,
    which says how much of the difference is chance."""
    with Sched(py, count) as target, Watch(build, "-p", str(target.pid), *LOOK) as w:
        rounds = max(1, int(100 * ROUND_S / target.ask("work", rounds=100)["seconds"]))

        def work(look):
            w.p.send_signal(signal.SIGCONT if look else signal.SIGSTOP)
            return target.ask("work", rounds=rounds)["seconds"]

        traced, bare = [], []
        work(True)
        for _ in range(ROUNDS):
            before, during, after = work(False), work(True), work(False)
            traced.append(2 * during / (before + after))
            bare.append(after / before)
        w.p.send_signal(signal.SIGCONT)
        told(w)
    figure("python-work-traced-per-untraced", median(traced), "ratio")
    figure("python-work-untraced-per-untraced", median(bare), "ratio")


def run(build):
    if not interpreters.supported():
        raise Failed("no interpreter that can be read")
    snapshots(build)
    for count in COUNTS:
        watch_cpu(build, count)
    churn(build, interpreters.supported()[0], "busy", 0.005)
    churn(build, interpreters.supported()[0], "churn", 0)
    effect(build, interpreters.supported()[0])
