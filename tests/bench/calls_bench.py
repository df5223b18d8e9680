# SPDX-License-Identifier: Apache-2.0
"""What a call that carries no room costs the traced process with the probes of the shipped groups on: CUDA calls, and
ibv_post_send, beside the same call untraced, and with the null program on its entry and its return.

The programs are those of tests/cuda and tests/verbs on their stand-in libraries. What is called is the least that each
does: a wait for a stream that has nothing to do, a copy that is only queued (the stream stands still meanwhile), a
request that is queued. `work` is a copy of 64 KiB and the wait for it.
"""
import os
import re
import subprocess
import sys
import tempfile

from rig import ROOT, Elf, Failed, Lines, Process, Watch, figure, median

for folder in ("cuda", "verbs"):
    sys.path.insert(0, os.path.join(ROOT, "tests", folder))
import cuda_rig  # noqa: E402
import verbs_rig  # noqa: E402

ROUNDS = 5
REPEATS, PAUSE_MS = 30, 12  # a burst is within what a reader takes in one turn
PINNED = ("taskset", "-c", "0")
# where the call is made
PLACES = {"out": "{}", "call": "send 7; {}; leave", "thread": "begin 7; {}; end"}


class Subject:
    """A program, the call that is measured, and where that is."""

    def __init__(self, build, app, probes, profile):
        self.build, self.app, self.probes, self.profile = build, app, probes, profile

    def of(self, steps, calls, library, offset, before="", after=""):
        self.steps, self.calls, self.library, self.offset = steps, calls, library, offset
        self.before, self.after = before, after
        return self

    def burst(self, place="out"):
        steps = PLACES[place].format(f"burst {self.calls} {REPEATS} {PAUSE_MS} {self.steps}")
        return float(self.app.say("a", f"{self.before}{steps}{self.after}", 120)[0])

    def null(self):
        with Process([os.path.join(self.build, "bench", "null"), os.path.join(self.build, "bench", "null.bpf.o"),
                      self.app.pid, self.library, self.offset, self.offset], 1, stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE) as p:
            Lines(p.p.stdout).next(10)
            return self.burst()

    def silentpin(self, place):
        with Watch(self.build, "-p", str(self.app.pid), "--probes", self.probes, "--profile", self.profile) as w:
            least = self.burst(place)
            got = w.stop()
        if got["lost"] or got["records"] < self.calls * REPEATS:
            raise Failed(f"{self.steps} {place}: {got}: not every call became a record")
        return least

    def measure(self, name, place):
        """Figures of what is beyond the untraced call: the least, and the median of the ratios to null."""
        rounds = [(self.burst(), self.silentpin(place), self.null()) for _ in range(ROUNDS)]
        bare, ours, least = (min(column) for column in zip(*rounds))
        figure(f"calls-null-{name}-{place}", least - bare, "ns")
        figure(f"calls-silentpin-{name}-{place}", ours - bare, "ns")
        figure(f"calls-{name}-{place}-per-null", median((r[1] - bare) / (r[2] - bare) for r in rounds), "ratio")

    def work(self, name):
        rounds = []
        for _ in range(ROUNDS):
            bare = self.burst()
            rounds.append((bare, self.silentpin("call") / bare))
        figure(f"calls-untraced-{name}", min(r[0] for r in rounds), "ns")
        figure(f"calls-{name}-traced-per-untraced", median(r[1] for r in rounds), "ratio")


def cuda(build, folder):
    library = os.path.join(build, "cuda", "libcuda.so.1")
    symbols = Elf(library).symbols
    with cuda_rig.App(build, PINNED) as app:
        s = Subject(build, app, cuda_rig.probes_file(folder), "calls")
        for place in PLACES:
            s.of("cuStreamSynchronize 0 3", 2000, library, symbols["cuStreamSynchronize"][0])
            s.measure("sync", place)
        for place in PLACES:
            s.of("cuMemcpyAsync 64 4", 2000, library, symbols["cuMemcpyAsync"][0], "stall 4; ",
                 "; release 4; cuStreamSynchronize 0 4")
            s.measure("copy", place)
        s.of("cuMemcpyAsync 65536 5 + cuStreamSynchronize 0 5", 500, library, 0).work("work")


def verbs(build, folder):
    library = verbs_rig.provider(build, "standin")
    with verbs_rig.App(build, PINNED) as app:
        app.say("a", f"open {library}; qp 0")
        s = Subject(build, app, verbs_rig.probes_file(folder), "posts")
        told = subprocess.run([os.path.join(build, "silentpin"), "doctor", "-p", str(app.pid), "--probes", s.probes],
                              stdout=subprocess.PIPE, text=True).stdout
        place = re.search(r"probe ibv_post_send: \S+\+(0x[0-9a-f]+) at", told)
        if not place:
            raise Failed(f"where ibv_post_send is, doctor does not tell: {told}")
        for where in ("out", "call"):
            s.of("write 0", 500, library, place[1])
            s.measure("post-send", where)


def run(build):
    with tempfile.TemporaryDirectory(prefix="silentpin-bench-") as folder:
        cuda(build, folder)
        verbs(build, folder)
