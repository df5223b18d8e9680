#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A target that survives anything it is told: a PULL socket, and two agents that write to each other.

Prints {"pid", "port"}; then for each line of stdin, a list of hexadecimal notification texts, creates
(and releases) an operation with each, and answers with {"created", "messages"}.
"""
import json
import os
import sys
import threading

import zmq

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "node"))
from proc import node_build  # noqa: E402
from throw import Pair  # noqa: E402


def main():
    sys.path.insert(0, node_build())
    import _nixl_standin

    pair = Pair(_nixl_standin)
    seen = [0]
    socket = zmq.Context.instance().socket(zmq.PULL)
    socket.setsockopt(zmq.RCVHWM, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    def pull():
        while True:
            socket.recv_multipart()
            seen[0] += 1

    threading.Thread(target=pull, daemon=True).start()
    print(json.dumps({"pid": os.getpid(), "port": port}), flush=True)
    for line in sys.stdin:
        texts = [bytes.fromhex(t) for t in json.loads(line)]
        for text in texts:
            pair.writer.release_xfer_handle(pair.writer.initialize_xfer(
                [pair.src], [pair.dst], "reader", text))
            pair.writer.release_xfer_handle(pair.writer.make_prepped_xfer(
                pair.local, [0], pair.remote, [0], text))
        print(json.dumps({"created": len(texts), "messages": seen[0]}), flush=True)


if __name__ == "__main__":
    main()
