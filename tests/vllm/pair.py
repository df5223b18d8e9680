# SPDX-License-Identifier: Apache-2.0
"""Start a stand-in prefill engine of vLLM and a decode worker that reads from it, and talk to them.

    with Pair() as pair:
        pair.engine.tell("add", id="cmpl-1-0")
        pair.engine.expect("finished", id="cmpl-1-0")
        pair.consumer.do("notify", id="cmpl-1-0")
        pair.engine.expect("freed", id="cmpl-1-0")
"""
import collections
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "node"))
from node import DEADLINE_S, Child, NodeError, node_build, node_log  # noqa: E402


class Part(Child):
    def __init__(self, name, *args):
        super().__init__([os.path.join(HERE, name), "--build", node_build(), *args], node_log())
        self.events = collections.deque()
        self.ready = self.expect("ready")

    def tell(self, what, **fields):
        self.proc.stdin.write(json.dumps(dict(fields, do=what)).encode() + b"\n")
        self.proc.stdin.flush()

    def do(self, what, **fields):
        self.tell(what, **fields)
        return self.expect("ok")

    def expect(self, ev, timeout=DEADLINE_S, **fields):
        """The next event of that kind with those fields; others are kept for later."""
        end = time.monotonic() + timeout
        seen = 0
        while True:
            while seen < len(self.events):
                event = self.events[seen]
                if event["ev"] == ev and all(event.get(k) == v for k, v in fields.items()):
                    del self.events[seen]
                    return event
                seen += 1
            event = self.lines.next(max(0.0, end - time.monotonic()))
            if event is None:
                raise NodeError(f"{self.pid}: no {ev} {fields} within {timeout} s; had {list(self.events)}")
            self.events.append(event)


class Pair:
    def __init__(self, *args):
        self.args = args
        self.engine = self.consumer = None

    def __enter__(self):
        try:
            self.engine = Part("engine.py", *self.args)
            self.consumer = Part("consumer.py")
            self.consumer.do("peer", **{k: self.engine.ready[k] for k in ("agent", "metadata", "base", "size")})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for part in (self.engine, self.consumer):
            if part:
                part.end()

    def finish(self, req_id, **more):
        """A prefill from its start to where its blocks wait to be read."""
        self.engine.tell("add", id=req_id, **more)
        self.engine.expect("finished", id=req_id)
