# SPDX-License-Identifier: Apache-2.0
"""What a CUDA call costs the traced process with the probes of the shipped group `cuda` on: beside the same call
untraced, and with the null program on its entry and return.

The program is that of tests/cuda on its stand-in libcuda. cuStreamSynchronize on a stream that has nothing to do, and
a cuMemcpyAsync that is only queued (the stream stands still meanwhile): what is left is the call.
"""
import os
import subprocess
import sys
import tempfile

from rig import ROOT, Elf, Failed, Lines, Process, Watch, figure, median

sys.path.insert(0, os.path.join(ROOT, "tests", "cuda"))
import cuda_rig  # noqa: E402

ROUNDS = 7
CALLS, REPEATS, PAUSE_MS = 2000, 30, 12  # a burst is within what a reader takes in one turn
CALL = {"sync": "cuStreamSynchronize 0 3", "copy": "cuMemcpyAsync 64 4"}
# where the call is made
PLACES = {
    "out": "{}",
    "call": "send 7; {}; leave",
    "thread": "begin 7; {}; end",
}


def burst(app, call, place="out"):
    steps = PLACES[place].format(f"burst {CALLS} {REPEATS} {PAUSE_MS} {CALL[call]}")
    least = app.say("a", f"stall 4; {steps}; release 4; cuStreamSynchronize 0 4", 120)[0]
    return float(least)


def null(build, app, call):
    lib = os.path.join(build, "cuda", "libcuda.so.1")
    offset = Elf(lib).symbols[CALL[call].split()[0]][0]
    with Process([os.path.join(build, "bench", "null"), os.path.join(build, "bench", "null.bpf.o"), app.pid, lib,
                  offset, offset], 1, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        Lines(p.p.stdout).next(10)
        return burst(app, call)


def silentpin(build, app, probes, call, place):
    with Watch(build, "-p", str(app.pid), "--probes", probes, "--profile", "calls") as w:
        least = burst(app, call, place)
        got = w.stop()
    if got["lost"] or got["records"] < CALLS * REPEATS:
        raise Failed(f"{call} {place}: {got}: not every call became a record")
    return least


def measure(build, app, probes, call, place):
    """Least cost beyond the untraced call: of silentpin, of null; the medians of the ratios to null and to an
    untraced call."""
    rounds = []
    for _ in range(ROUNDS):
        bare = burst(app, call)
        ours, least = silentpin(build, app, probes, call, place) - bare, null(build, app, call) - bare
        rounds.append((ours, least, ours / least, (ours + bare) / bare))
    return (min(r[0] for r in rounds), min(r[1] for r in rounds), median(r[2] for r in rounds),
            median(r[3] for r in rounds))


def run(build):
    with tempfile.TemporaryDirectory(prefix="silentpin-bench-") as folder, \
            cuda_rig.App(build, prefix=("taskset", "-c", "0")) as app:
        probes = cuda_rig.probes_file(folder)
        for call in CALL:
            for place in PLACES:
                ours, least, per_null, per_bare = measure(build, app, probes, call, place)
                if place == "out":
                    figure(f"calls-null-{call}", least, "ns")
                figure(f"calls-silentpin-{call}-{place}", ours, "ns")
                figure(f"calls-{call}-{place}-per-null", per_null, "ratio")
                figure(f"calls-{call}-{place}-traced-per-untraced", per_bare, "ratio")
