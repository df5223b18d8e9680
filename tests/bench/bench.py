#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measure, one line a figure: bench NAME VALUE UNIT reach VALUE (- where there is none).

usage: tests/bench/bench.py [--build DIR] [GROUP...]
Groups are the files *_bench.py here; without any, all of them. docs/performance.md says what each figure
means. Exit 1: something could not be measured; 0 also where a figure misses its reach.
"""
import argparse
import importlib
import os
import signal
import sys
import time

from rig import ROOT

GROUPS = ("attach", "hit", "calls", "node", "collector", "replay", "memory", "python", "sockets")


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--build", default=os.path.join(ROOT, "build"))
    ap.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP")
    args = ap.parse_args()
    build = os.path.abspath(args.build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the with blocks clean up
    os.environ["SILENTPIN_BUILD"] = build
    failed = 0
    if os.geteuid():
        print("bench: attaching needs root: run sudo make bench", file=sys.stderr)
        return 1
    for name in args.groups or GROUPS:
        start = time.monotonic()
        try:
            importlib.import_module(f"{name}_bench").run(build)
        except Exception as e:  # whatever it was: the other groups can still be measured
            print(f"bench: {name}: could not be measured: {type(e).__name__}: {e}", file=sys.stderr)
            failed = 1
        print(f"bench: {name} took {time.monotonic() - start:.0f} s", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
