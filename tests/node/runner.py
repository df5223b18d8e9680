# SPDX-License-Identifier: Apache-2.0
"""What a scenario is, and how one is run and checked: see scenarios.py for the list."""
import dataclasses

from kv import KVPoll
from node import DEADLINE_S, NodeError

SCENARIOS = {}

# Bytes a second at which a chunk (64 tokens) is under way for 3.3 s: time for what a scenario does meanwhile, on a
# busy machine too, and no write of it lasts so long that it could be taken for one that stands still (4 s).
SLOW_LINK = 40_000


@dataclasses.dataclass
class Expect:
    """(room, life) that are held at the end and why; everything else must have ended."""

    pinned: list = dataclasses.field(default_factory=list)
    delayed: list = dataclasses.field(default_factory=list)
    ended: dict = dataclasses.field(default_factory=dict)  # (room, life) -> done failed aborted


class Run:
    """One run of a scenario on a node."""

    def __init__(self, node, seconds, count, say, on_phase):
        self.node = node
        self.seconds = seconds
        self.count = count
        self.say = say or (lambda step, **fields: None)
        self.on_phase = on_phase or (lambda phase: None)
        self.first_life = len(node.state()["lives"])

    def phase(self, name):
        """A point where an observer may take its time before the scenario goes on."""
        self.say("phase", phase=name)
        self.on_phase(name)

    def room(self, worker=None):
        return self.node.room(worker)

    def decode(self, **more):
        decode = self.node.decode(**more)
        self.say("decode", pid=decode.pid, agents=decode.agents)
        return decode

    def post(self, room, tokens=96, **more):
        post = self.node.post(room, tokens, **more)
        self.say("post", room=room, tokens=tokens, **more)
        return post

    def send(self, decode, room, tokens=96, prefix=0, state=False, **more):
        """Announce and post one room; its Post."""
        decode.announce(room, tokens, prefix=prefix, state=state)
        return self.post(room, tokens, **more)

    def writing(self, room, **fields):
        """Wait until a worker has a posted, incomplete write of this room."""
        def under_way(state):
            for worker in state["workers"]:
                if worker["room"] == str(room) and worker["ops"]:
                    return all(worker[k] == v for k, v in fields.items())
            return False
        return self.node.wait(under_way, f"a write of room {room} under way")

    def listed(self, room, where):
        return self.node.wait(lambda s: any(e["room"] == str(room) for e in s[where]),
                              f"room {room} in {where}")

    def in_forward(self, room, life=1):
        """Wait until the room's forward pass runs and the request is in no list."""
        return self.node.wait_life(room, life, forward_ns=True, inflight_ns=None)

    def aborted(self, decode, room):
        """Decode aborts the room; wait until its status says so."""
        decode.abort(room)
        return self.node.wait(lambda s: s["status"].get(str(room)) == KVPoll.Failed,
                              f"room {room} aborted")


def scenario(name, transports=("nixl", "mooncake"), **options):
    def register(function):
        function.transports = transports
        function.scenario_name = name
        function.node_options = options
        SCENARIOS[name] = function
        return function
    return register


def run(node, name, seconds=1.0, count=12, say=None, on_phase=None):
    """Run a scenario on a started node; (Expect, /state at the end), checked against each other.

    `on_phase` is called with the name of each phase, and once more with "final", while the trouble
    is there: that is where an observer looks. NodeError when the node is not as expected.
    """
    one = Run(node, seconds, count, say, on_phase)
    expect = SCENARIOS[name](one)
    state = node.wait_quiet()
    check(expect, state, one.first_life)
    one.phase("final")
    state = node.state()
    check(expect, state, one.first_life)
    return expect, state


def check(expect, state, first_life=0):
    """NodeError unless what is held and what has ended is exactly what the scenario expects."""
    lives = {(e["room"], e["life"]): e for e in state["lives"][first_life:]}

    def keys(pairs):
        return {(str(room), life) for room, life in pairs}

    def now(what):
        return {(e["room"], e["life"]) for e in state[what]} & set(lives)

    for what in ("pinned", "delayed"):
        if now(what) != keys(getattr(expect, what)):
            raise NodeError(f"{what}: {state[what]}, expected {getattr(expect, what)}")
    for (room, life), outcome in expect.ended.items():
        if lives[(str(room), life)]["outcome"] != outcome:
            raise NodeError(f"{lives[(str(room), life)]}, expected {outcome}")
    held = keys(expect.pinned) | keys(expect.delayed)
    for key, life in lives.items():
        if not life["released"] and key not in held:
            raise NodeError(f"never ended: {life}")


def all_done(posts, timeout=DEADLINE_S):
    for post in posts:
        if post.wait(timeout) != 200:
            raise NodeError(f"a request failed: {post.answer}")
