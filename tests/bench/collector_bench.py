# SPDX-License-Identifier: Apache-2.0
"""CPU time of a watch (all its threads, of one core) at a given rate of events, and what it lost."""
import re
import time

from rig import PROBES, Failed, Target, Watch, figure

SECONDS = 5


def one(build, rate):
    with Target(build) as target, Watch(build, "-p", target.pid, "--probes", PROBES, "--profile",
                                        "rooms", "--record", "auto") as w:
        target.say("rooms 1000 200")
        cpu, start = w.cpu_s(), time.monotonic()
        made, ns = map(int, target.say(f"rooms {rate} {SECONDS * 1000}").split())
        share = (w.cpu_s() - cpu) / (time.monotonic() - start)
        got = w.stop()
        ended = re.findall(r"rooms ended: (\d+) done", w.told)
    if made < 0.9 * rate * SECONDS:
        raise Failed(f"the target made {made / (ns / 1e9):.0f} events a second, not {rate}")
    if not ended or not got["lost"] and int(ended[-1]) < made / 5:
        raise Failed(f"{made} events of the target, {ended} rooms ended: {got}")
    name = f"{rate // 1000}k"
    figure(f"collector-cpu-{name}", 100 * share, "percent-of-a-core")
    figure(f"collector-lost-{name}", got["lost"], "events")


def run(build):
    one(build, 10_000)
    one(build, 100_000)
