# SPDX-License-Identifier: Apache-2.0
"""What a hit costs the traced process, by who listens: nobody, a null program, silentpin, bpftrace.

Each round measures all of them, so that they share the machine's mood; of the rounds the least counts.
What is compared is what a call costs beyond a call without a probe.
"""
import os
import re
import subprocess

from rig import PROBES, Bpftrace, Elf, Failed, Lines, Process, Target, Watch, figure, wait_for

ROUNDS = 3
CALLS, REPEATS, PAUSE_MS = 2000, 60, 12  # a burst is within what a reader takes in one turn
PRINT_CALLS, PRINT_REPEATS = 1000, 20


def null(build, target, function):
    lib = os.path.join(build, "bench", "libbench.so")
    offset, _ = Elf(lib).find(f"bench_{function}")
    with Process([os.path.join(build, "bench", "null"), os.path.join(build, "bench", "null.bpf.o"),
                  target.pid, lib, offset], 1, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        Lines(p.p.stdout).next(10)
        return target.burst(function, CALLS, REPEATS, PAUSE_MS)


def silentpin(build, target, function):
    with Watch(build, "-p", target.pid, "--probes", PROBES, "--profile", function) as w:
        least = target.burst(function, CALLS, REPEATS, PAUSE_MS)
        got = w.stop()
    if got["lost"] or got["records"] < CALLS * REPEATS:
        raise Failed(f"{function}: {got}: not every hit became a record")
    return least


def poll(build, target, function):
    """A poll whose answer stays: what is looked at is thrown away in the kernel."""
    with Watch(build, "-p", target.pid, "--probes", PROBES, "--profile", function) as w:
        least = target.burst(function, CALLS, REPEATS)
        got = w.stop()
    if got["lost"] or got["records"] != 1:
        raise Failed(f"poll: {got}: one record was to be expected")
    return least


def bpftrace(build, target, function):
    what = "str(arg1)" if function == "string" else "arg1"
    form = "%s" if function == "string" else "%lx"
    lib = os.path.join(build, "bench", "libbench.so")
    program = (f'uprobe:{lib}:bench_{function} {{ printf("hit %lu {form}\\n", arg0, {what}); }}')
    with Bpftrace(program, target.pid) as b:
        wait_for(lambda: target.burst(function, 1, 1) and "\nhit " in b.output(), 60,
                 "bpftrace to be attached", 0.1)
        least = target.burst(function, PRINT_CALLS, PRINT_REPEATS, 100)
        b.interrupt()
        hits, lost = b.output().count("\nhit "), re.findall(r"Lost \d+", b.output())
    if lost or hits < PRINT_CALLS * PRINT_REPEATS:
        raise Failed(f"bpftrace: {hits} lines, {lost[:3]}")
    return least


def measure(build, target, function, listeners):
    """Least cost of a hit by listener, over the rounds."""
    least = {}
    for _ in range(ROUNDS):
        bare = target.burst("plain", 1000000, 5)
        for listen in listeners:
            cost = listen(build, target, function) - bare
            least[listen] = min(cost, least.get(listen, cost))
    return least


def run(build):
    with Target(build) as target:
        for function, reach in (("scalars", 1.3), ("string", 1.6)):
            cost = measure(build, target, function, (null, silentpin, bpftrace))
            figure(f"hit-null-{function}", cost[null], "ns")
            figure(f"hit-silentpin-{function}", cost[silentpin], "ns")
            figure(f"hit-bpftrace-{function}", cost[bpftrace], "ns")
            figure(f"hit-{function}-per-null", cost[silentpin] / cost[null], "ratio", reach)
            figure(f"hit-{function}-per-bpftrace", cost[silentpin] / cost[bpftrace], "ratio", 0.4)
        for function, listen in (("nop5", silentpin), ("step", silentpin), ("poll", poll)):
            cost = measure(build, target, function, (null, listen))
            figure(f"hit-silentpin-{function}", cost[listen], "ns")
            figure(f"hit-{function}-per-null", cost[listen] / cost[null], "ratio")
