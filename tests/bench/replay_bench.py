# SPDX-License-Identifier: Apache-2.0
"""Events a second that `silentpin replay` takes from a complete recording, its start included."""
import os
import subprocess
import tempfile
import time

from rig import PROBES, Failed, figure, median

EVENTS, REPEATS = 1_500_000, 3


def record(build, path):
    """A `--record all` recording of healthy rooms; events in it."""
    p = subprocess.run([os.path.join(build, "bench", "model"), "fill", PROBES, path, str(EVENTS)],
                       stdout=subprocess.PIPE, text=True, timeout=120)
    if p.returncode:
        raise Failed(f"the recording could not be made: {p.returncode}")
    return int(p.stdout)


def replay(build, path):
    start = time.monotonic()
    p = subprocess.run([os.path.join(build, "silentpin"), "replay", path, "--alerts", "json"],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    seconds = time.monotonic() - start
    if p.returncode or p.stdout or "partial" in p.stderr:
        raise Failed(f"replay: {p.returncode}, {p.stdout[:200]} {p.stderr[:200]}")
    return seconds


def run(build):
    with tempfile.TemporaryDirectory(prefix="silentpin-bench-") as folder:
        path = os.path.join(folder, "r.db")
        start = time.monotonic()
        events = record(build, path)
        figure("record-all", events / (time.monotonic() - start), "events/s")
        figure("record-all-size", os.path.getsize(path) / events, "bytes/event")
        rate = events / median(replay(build, path) for _ in range(REPEATS))
    figure("replay", rate, "events/s", 500000)
