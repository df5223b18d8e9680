#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Do the probes of the group `cuda` fire for the copies of a real PyTorch process, and what do they cost it?

usage: sudo tests/cuda/gpu_check.py [--python PYTHON] [--build DIR] [--stand-in] [--rounds N]
PYTHON has torch; the machine a GPU of NVIDIA's. --stand-in takes the tests' stand-in library and program instead of
both, to try this script without. Exit code 0: all kinds of calls were seen, 1: some were not.
"""
import argparse
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import cuda_rig

TURNS, SECONDS = 200, 1.0
# what one turn of the process does -> the functions by which its runtime may do it
KINDS = {
    "copy to the device": ("cuMemcpyHtoDAsync", "cuMemcpyAsync"),
    "copy within the device": ("cuMemcpyDtoDAsync", "cuMemcpyAsync"),
    "copy from the device": ("cuMemcpyDtoHAsync", "cuMemcpyAsync"),
    "all three": ("cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyAsync"),
    "record of an event": ("cuEventRecord",),
    "wait of a stream for an event": ("cuStreamWaitEvent",),
    "query of an event": ("cuEventQuery",),
    "wait for an event": ("cuEventSynchronize",),
    "wait for a stream": ("cuStreamSynchronize",),
}
PROFILE = """version: 1
{groups}
profiles:
  - name: gpu
    room: {{type: u64}}
    uses: [cuda]
"""
STAND_IN_TURN = ("cuMemcpyHtoDAsync_v2 4096 1; cuMemcpyDtoDAsync_v2 4096 1; cuMemcpyDtoHAsync_v2 4096 1;"
                 "cuEventRecord 1 1; cuStreamWaitEvent 1 2; cuEventQuery 1; cuEventSynchronize 1;"
                 "cuStreamSynchronize 0 1")


class Torch:
    def __init__(self, python):
        self.p = subprocess.Popen([python, os.path.join(cuda_rig.HERE, "gpu_work.py")], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.pid = self.p.pid
        first = self.p.stdout.readline()
        if not first.startswith("ready "):
            sys.exit("gpu_check: PyTorch did not start: does this --python have torch, and the machine a GPU?")
        print(f"process: {first[6:].strip()}")

    def ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        return self.p.stdout.readline().strip()

    def work(self, turns):
        self.ask(f"work {turns}")

    def rate(self):
        return float(self.ask(f"rate {SECONDS}"))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()


class StandIn(cuda_rig.App):
    def work(self, turns):
        for _ in range(turns):
            self.say("a", STAND_IN_TURN)

    def rate(self):
        end, turns = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            self.say("a", "; ".join([STAND_IN_TURN] * 7))
            turns += 7
        return turns / SECONDS


class Watch:
    def __init__(self, build, pid, probes, db):
        self.p = subprocess.Popen([os.path.join(build, "silentpin"), "watch", "-p", str(pid), "--probes", probes,
                                   "--record", "all", "-o", db], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        said = []
        for line in self.p.stderr:
            said.append(line)
            if "recording to" in line:
                return self
        self.p.wait()
        sys.exit("gpu_check: " + "".join(said))

    def __exit__(self, *exc):
        self.p.send_signal(signal.SIGINT)
        self.p.stderr.read()
        self.p.wait()


def seen(db):
    """function -> calls. Outside of rooms they are counted, failures are told one by one."""
    with sqlite3.connect(db) as c:
        return dict(c.execute("SELECT p.name, sum(CASE WHEN e.kind = 'count' THEN e.count ELSE 1 END) FROM event e"
                              " JOIN probe p ON p.id = e.probe WHERE e.kind NOT IN ('inside', 'left') GROUP BY p.name"))


def check(process, build, probes, folder):
    with Watch(build, process.pid, probes, os.path.join(folder, "seen.db")):
        process.work(TURNS)
    counts = seen(os.path.join(folder, "seen.db"))
    missing = 0
    for kind, functions in KINDS.items():
        n = sum(counts.get(f, 0) for f in functions)
        made = TURNS * (3 if kind == "all three" else 1)
        # an event is asked anew each turn, and told only when its answer has changed
        enough = n >= (1 if kind.startswith("query") else made)
        missing += not enough
        print(f"{'ok' if enough else 'NO':3} {kind}: {made} made, {n} seen"
              f" ({', '.join(f for f in functions if counts.get(f))})")
    return missing


def cost(process, build, probes, folder, rounds):
    ratios, bare = [], []
    for i in range(rounds):
        bare.append(process.rate())
        with Watch(build, process.pid, probes, os.path.join(folder, f"cost{i}.db")):
            ratios.append(process.rate() / bare[-1])
    print(f"rate: {statistics.median(bare):.0f} turns/s without probes, {statistics.median(ratios):.3f} times as many "
          f"with them (median of {rounds}, {min(ratios):.3f} to {max(ratios):.3f})")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--python", default="python3")
    ap.add_argument("--build", default=os.path.join(cuda_rig.ROOT, "build"))
    ap.add_argument("--stand-in", action="store_true")
    ap.add_argument("--rounds", type=int, default=5)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory(prefix="silentpin-gpu-") as folder:
        probes = os.path.join(folder, "gpu.yaml")
        with open(probes, "w") as f:
            f.write(PROFILE.format(groups=cuda_rig.groups()))
        with StandIn(args.build) if args.stand_in else Torch(args.python) as process:
            missing = check(process, args.build, probes, folder)
            cost(process, args.build, probes, folder, args.rounds)
    print("all kinds of calls were seen" if not missing else f"{missing} kinds of calls were not seen: the runtime "
          "may have other addresses than those of the library's symbols (docs/profiles.md, CUDA)")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
