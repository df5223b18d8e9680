# SPDX-License-Identifier: Apache-2.0
"""What a hit costs the traced process, by who listens: nobody, a null program, silentpin, bpftrace.

A round measures two of them one after the other, so that they share the machine's mood; the median of the
rounds' ratios counts. What is compared is what a call costs beyond a call without a probe, the least of many
bursts.
"""
import os
import re
import subprocess

from rig import PROBES, Bpftrace, Elf, Failed, Lines, Process, Target, Watch, figure, median, wait_for

ROUNDS = 9
CALLS, REPEATS, PAUSE_MS = 2000, 40, 12  # a burst is within what a reader takes in one turn
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


def measure(build, target, function, listen, base=null, rounds=ROUNDS):
    """Least cost of a hit with `listen` and with `base`, and the median of the rounds' ratios."""
    pairs = []
    for _ in range(rounds):
        bare = target.burst("plain", 1000000, 5)
        pairs.append([each(build, target, function) - bare for each in (listen, base)])
    return min(p[0] for p in pairs), min(p[1] for p in pairs), median(p[0] / p[1] for p in pairs)


def run(build):
    with Target(build) as target:
        for function, reach in (("scalars", 1.3), ("string", 1.6)):
            ours, least, ratio = measure(build, target, function, silentpin)
            figure(f"hit-null-{function}", least, "ns")
            figure(f"hit-silentpin-{function}", ours, "ns")
            figure(f"hit-{function}-per-null", ratio, "ratio", reach)
            _, theirs, ratio = measure(build, target, function, silentpin, bpftrace, 3)
            figure(f"hit-bpftrace-{function}", theirs, "ns")
            figure(f"hit-{function}-per-bpftrace", ratio, "ratio", 0.4)
        for function, listen in (("nop5", silentpin), ("step", silentpin), ("poll", poll)):
            ours, _, ratio = measure(build, target, function, listen, null, 3)
            figure(f"hit-silentpin-{function}", ours, "ns")
            figure(f"hit-{function}-per-null", ratio, "ratio")
