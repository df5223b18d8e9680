#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Run one scenario of the stand-in node from a shell.

usage: scenario.py NAME [--seconds S] [--count N] [--loop overlap|normal] [--node PORT]
                   [--json] [--pause] [--hold] [--log FILE]        or: scenario.py --list

It prints JSON lines: {"step":"ready","pid":SCHEDULER,"front_pid":..,"port":..} first, then what it
does, and at the end {"step":"final","pinned":[..],"delayed":[..],"expect":..}.
  --pause  wait for a line on stdin after "ready" and in each phase (attach meanwhile, say "go")
  --hold   after "final" keep the node until stdin ends or a line comes
  --json   "final" carries the whole /state
Exit: 0 as expected, 1 not as expected, 2 wrong usage.
"""
import argparse
import json
import sys
import time

import scenarios
from node import Node, NodeError


def say(step, **fields):
    print(json.dumps(dict(fields, step=step, ns=time.monotonic_ns())), flush=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=sorted(scenarios.SCENARIOS), metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--loop", choices=("overlap", "normal"), default="overlap")
    parser.add_argument("--spin", action="store_true", help="the main loop never sleeps")
    parser.add_argument("--bootstrap-timeout", type=float, default=300.0)
    parser.add_argument("--node", type=int, metavar="PORT", help="use a running node")
    parser.add_argument("--build", help="folder of libnixl.so")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pause", action="store_true")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--log", type=argparse.FileType("w"), help="stderr of the node")
    args = parser.parse_args()
    if not args.name and not args.list:
        parser.error("a NAME, or --list")
    return args


def start(args):
    function = scenarios.SCENARIOS[args.name]
    options = dict(function.node_options, log=args.log)
    if args.build:
        options["build"] = args.build
    if args.node:
        return Node.attach(args.node, **options)
    if args.spin:
        options["idle_sleep"] = 0.0
    return Node(loop=args.loop, bootstrap_timeout=args.bootstrap_timeout, **options).start()


def main():
    args = parse_args()
    if args.list:
        for name, function in scenarios.SCENARIOS.items():
            print(f"{name:24} {function.__doc__.splitlines()[0]}")
        return 0
    wait = (lambda phase: sys.stdin.readline()) if args.pause else None
    try:
        node = start(args)
    except (NodeError, OSError) as e:
        print(f"scenario: {e}", file=sys.stderr)
        return 1
    try:
        say("ready", scenario=args.name, pid=node.pid, front_pid=node.front_pid, port=node.port)
        if wait:
            wait("ready")
        expect, state = node.run(args.name, seconds=args.seconds, count=args.count, say=say,
                                 on_phase=wait)
        more = {"state": state} if args.json else {}
        say("final", pinned=state["pinned"], delayed=state["delayed"], expect={
            "pinned": expect.pinned, "delayed": expect.delayed,
            "ended": [[*key, outcome] for key, outcome in expect.ended.items()]}, **more)
        if args.hold:
            sys.stdin.readline()
    except NodeError as e:
        say("failed", why=str(e))
        return 1
    finally:
        node.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
