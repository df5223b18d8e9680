#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers of the library with two makeXferReq, one through each of them.

usage: made.py [--build DIR] [--title TITLE]

Prints {"step":"ready","pid":..}, waits for a line on stdin (attach meanwhile), makes and posts a chunk of room 71 by
the function over std::span and one of room 72 by the older one, and prints {"step":"final","done":..}.
"""
import argparse
import json
import os
import sys

from proc import die_with_parent, node_build
from throw import Pair


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(node_build(), "newer"))
    parser.add_argument("--title", default="sglang::scheduler")
    args = parser.parse_args()
    sys.path.insert(0, args.build)
    import _nixl_standin
    import setproctitle

    die_with_parent()
    setproctitle.setproctitle(args.title)
    pair = Pair(_nixl_standin)
    halves = [[(at + i * size // 2, size // 2) for i in range(2)] for at, size in (pair.src, pair.dst)]
    local, remote = pair.writer.prep_xfer_dlist("", halves[0]), pair.writer.prep_xfer_dlist("reader", halves[1])
    print(json.dumps({"step": "ready", "pid": os.getpid()}), flush=True)
    sys.stdin.readline()
    handles = [pair.writer.make_prepped_xfer(local, which, remote, which, text)
               for which, text in (([0], b"71_kv_0_1_0"), ([0, 1], b"72_kv_0_1_0"))]
    for handle in handles:
        pair.writer.transfer(handle)
    done = 0
    while done < len(handles):
        pair.reader.progress(1)
        done = sum(pair.writer.check_xfer_state(h) == "DONE" for h in handles)
    print(json.dumps({"step": "final", "done": done}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
