# SPDX-License-Identifier: Apache-2.0
"""Memory of an open room: of the model alone, counted and as the process grows, and of a watch."""
import os
import subprocess

from rig import PROBES, Failed, Target, Watch, figure, wait_for

ROOMS = 100_000
RATE = 60_000  # events a second


def model(build):
    p = subprocess.run([os.path.join(build, "bench", "model"), "memory", PROBES, str(ROOMS)],
                       stdout=subprocess.PIPE, text=True, timeout=120)
    if p.returncode:
        raise Failed(f"model: {p.returncode}")
    rooms, counted, grown = map(int, p.stdout.split())
    figure("room-memory-counted", counted / rooms, "bytes", 1024)
    figure("room-memory-model", grown / rooms, "bytes", 1024)


def rss(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_idle(w, state):
    """Has the watch taken in what there was? It then needs next to no CPU time."""
    last, state["cpu"] = state.get("cpu", -1), w.cpu_s()
    return last >= 0 and state["cpu"] - last <= 0.02


def watch(build):
    """The whole of a watch: model, store and output; what the ring holds is not its memory."""
    with Target(build) as target, Watch(build, "-p", target.pid, "--probes", PROBES, "--profile",
                                        "rooms", "--stuck-after", "inflight=1h") as w:
        target.say("open 100 1000")
        wait_for(lambda state={}: cpu_idle(w, state), 30, "a watch at rest", 0.5)
        before = rss(w.pid)
        events = int(target.say(f"open {ROOMS} {RATE}"))
        wait_for(lambda state={}: cpu_idle(w, state), 60, "a watch at rest", 0.5)
        after = rss(w.pid)
        got = w.stop()
    if got["lost"] or got["events"] < events:
        raise Failed(f"memory: {got}, {events} made")
    figure("room-memory-watch", (after - before) / ROOMS, "bytes", 1024)


def run(build):
    model(build)
    watch(build)
