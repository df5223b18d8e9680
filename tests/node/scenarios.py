# SPDX-License-Identifier: Apache-2.0
"""The scenarios: what can befall a room, each by name, and what must then be true of it.

A scenario is a function of a Run. It drives the node until nothing moves that it did not mean to
move, and returns an Expect. Its docstring says what makes the trouble: a natural race or failure
under the server's own semantics, or a hook. No scenario waits by the clock where it can ask /state.
"""
import dataclasses
import time

from node import NodeError

SCENARIOS = {}


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


def scenario(name, **options):
    def register(function):
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


def all_done(posts, timeout=30):
    for post in posts:
        if post.wait(timeout) != 200:
            raise NodeError(f"a request failed: {post.answer}")


# ---- healthy -----------------------------------------------------------------------------------
@scenario("healthy")
def healthy(run):
    """Requests of one to four chunks, for run.seconds, at most eight at a time. Nothing is wrong."""
    decode, ended, posts = run.decode(), {}, []
    end = time.monotonic() + run.seconds
    while time.monotonic() < end or len(ended) < run.count:
        room = run.room()
        posts.append((room, run.send(decode, room, tokens=40 + 72 * (len(ended) % 4))))
        ended[(room, 1)] = "done"
        while len(posts) >= 8:
            room, post = posts.pop(0)
            all_done([post])
            decode.done(room)
    for room, post in posts:
        all_done([post])
        decode.done(room)
    return Expect(ended=ended)


@scenario("batch")
def batch(run):
    """One POST with three prompts and three parallel lists. Nothing is wrong."""
    decode, rooms = run.decode(), [run.room() for _ in range(3)]
    for room in rooms:
        decode.announce(room, 96)
    all_done([run.post(rooms, 96)])
    for room in rooms:
        decode.done(room)
    return Expect(ended={(room, 1): "done" for room in rooms})


@scenario("two-ranks")
def two_ranks(run):
    """Two decode ranks, each takes every room: two writes a chunk. Nothing is wrong."""
    decode, rooms = run.decode(ranks=2), [run.room() for _ in range(4)]
    all_done([run.send(decode, room) for room in rooms])
    for room in rooms:
        decode.done(room)
    return Expect(ended={(room, 1): "done" for room in rooms})


@scenario("prefix-cached")
def prefix_cached(run):
    """Decode has the whole prompt cached (only {room}_aux_nokv is written), or the first pages."""
    decode, ended = run.decode(), {}
    for tokens, prefix in ((96, 96), (200, 200), (96, 32), (200, 64)):
        room = run.room()
        all_done([run.send(decode, room, tokens, prefix)])
        decode.done(room)
        ended[(room, 1)] = "done"
    return Expect(ended=ended)


@scenario("hybrid", hybrid=True)
def hybrid(run):
    """A model with state besides KV: {room}_state_{rank} is written before {room}_aux."""
    decode, rooms = run.decode(), [run.room() for _ in range(3)]
    all_done([run.send(decode, room, state=True) for room in rooms])
    for room in rooms:
        decode.done(room)
    return Expect(ended={(room, 1): "done" for room in rooms})


@scenario("fake-rooms")
def fake_rooms(run):
    """Health checks: host 2.2.2.2, small room numbers again and again, no peer traffic by design."""
    decode, ended = run.decode(), {}
    for life in range(1, 4):
        for room in (0, 1):
            all_done([run.post(room, 16, host="2.2.2.2")])
    room = run.room()
    all_done([run.send(decode, room)])
    decode.done(room)
    ended[(room, 1)] = "done"
    return Expect(ended=ended)


@scenario("slow-forward")
def slow_forward(run):
    """A forward pass of run.seconds: the room is quiet and in no list, and nothing is wrong."""
    decode, room = run.decode(), run.room()
    post = run.send(decode, room, 48, forward_ms=run.seconds * 1000)
    run.in_forward(room)
    run.phase("in forward")
    all_done([post], timeout=run.seconds + 20)
    decode.done(room)
    return Expect(ended={(room, 1): "done"})


@scenario("backpressure")
def backpressure(run):
    """A slow but healthy decode: every queue is deep, every room is late, none is lost."""
    rate = 4 << 20
    decode, rooms = run.decode(rate=rate), []
    per_room = 192 * 2048  # bytes of a request of three chunks
    for _ in range(max(8, int(run.seconds * rate / per_room))):
        rooms.append(run.room())
    posts = [run.send(decode, room, 192) for room in rooms]
    run.phase("deep queues")
    all_done(posts, timeout=run.seconds * 3 + 30)
    for room in rooms:
        decode.done(room)
    return Expect(ended={(room, 1): "done" for room in rooms})


# ---- aborts that end well ----------------------------------------------------------------------
@scenario("abort-bootstrap")
def abort_bootstrap(run):
    """Decode aborts two rooms in bootstrap: one nobody announced, one that one of two ranks did."""
    decode, first, second = run.decode(), run.room(), run.room()
    decode.announce(second, 96, required=2)
    for room in (first, second):
        run.post(room)
        run.listed(room, "bootstrap")
        decode.abort(room)
        run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(first, 1): "failed", (second, 1): "failed"})


@scenario("abort-waiting")
def abort_waiting(run):
    """Two rooms in the waiting queue, behind the chunks of a long one: decode aborts the first, the
    client the second. The long forward pass makes the time for it."""
    decode, long, first, second = run.decode(), run.room(), run.room(), run.room()
    post = run.send(decode, long, 320, forward_ms=150)
    run.in_forward(long)
    run.send(decode, first)
    run.send(decode, second, rid="second")
    run.listed(first, "waiting")
    run.listed(second, "waiting")
    decode.abort(first)
    run.node.abort_request("second")
    run.node.wait_life(second, 1, outcome="aborted")
    run.node.wait_life(first, 1, outcome="failed")
    all_done([post])
    decode.done(long)
    return Expect(ended={(long, 1): "done", (first, 1): "failed", (second, 1): "aborted"})


@scenario("abort-forward")
def abort_forward(run):
    """Decode aborts a room during its forward pass, when the request is in no list."""
    decode, room = run.decode(), run.room()
    run.send(decode, room, 48, forward_ms=300)
    run.in_forward(room)
    decode.abort(room)
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


@scenario("abort-inflight")
def abort_inflight(run):
    """Decode aborts a room in mid-transfer (a slow link makes the time): it is released at once, its
    write goes on, and a room behind it on the same worker waits for that and then is done."""
    decode, first, second = run.decode(rate=300_000), run.room(0), run.room(0)
    run.send(decode, first, 64)
    run.writing(first, last=True)
    run.listed(first, "inflight")
    post = run.send(decode, second, 32)
    decode.abort(first)
    state = run.node.wait_life(first, 1, outcome="failed")
    if not any(w["room"] == str(first) for w in state["workers"]):
        raise NodeError("the write of the aborted room did not go on")
    decode.do("rate", bytes=0)
    all_done([post])
    decode.done(second)
    return Expect(ended={(first, 1): "failed", (second, 1): "done"})


@scenario("abort-late")
def abort_late(run):
    """Decode aborts a room that is done: ignored, and the next life of the room id is not hurt."""
    decode, room = run.decode(), run.room()
    for _ in range(2):
        all_done([run.send(decode, room)])
        decode.done(room)
        ignored = run.node.state()["counters"]["abort_ignored"]
        decode.abort(room)
        run.node.wait(lambda s: s["counters"]["abort_ignored"] > ignored, "the abort ignored")
    return Expect(ended={(room, 1): "done", (room, 2): "done"})


@scenario("client-gone")
def client_gone(run):
    """The client hangs up in mid-transfer: the server aborts the room and releases it."""
    decode, room = run.decode(rate=300_000), run.room()
    post = run.send(decode, room, 64)
    run.writing(room)
    run.listed(room, "inflight")
    post.hang_up()
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


# ---- pins --------------------------------------------------------------------------------------
@scenario("posted-twice")
def posted_twice(run):
    """The same room posted twice, two full chunks each, announced for each. A natural race: the first
    life ends and clears the entry while the first chunk of the second computes; the second's chunks
    are dropped and its poll falls to the default for ever. An abort request does not free it."""
    return post_twice(run, announces=2)


@scenario("posted-twice-announced-once")
def posted_twice_announced_once(run):
    """posted-twice by a router that retries on its own: decode announces the room once."""
    return post_twice(run, announces=1)


def post_twice(run, announces):
    decode, room = run.decode(), run.room()
    first = run.post(room, 128, forward_ms=100, rid=f"a-{room}")
    run.listed(room, "bootstrap")
    run.post(room, 128, forward_ms=100, rid=f"b-{room}")
    run.node.wait(lambda s: sum(e["room"] == str(room) for e in s["bootstrap"]) == 2, "both lives")
    for _ in range(announces):
        decode.announce(room, 128)
    all_done([first])
    decode.done(room)
    run.node.wait_pinned(room)
    run.node.abort_request(f"b-{room}")
    return Expect(pinned=[(room, 2)], ended={(room, 1): "done"})


@scenario("abort-retry-forward")
def abort_retry_forward(run):
    """Decode aborts a room and retries it within one forward pass. A natural race: the retry finds
    the entry Failed and clears it; the first life comes out of its forward pass and has none."""
    decode, room = run.decode(), run.room()
    run.send(decode, room, 128, forward_ms=300)
    run.in_forward(room)
    decode.abort(room)
    run.send(decode, room, 128, forward_ms=10)
    run.node.wait_life(room, 2, outcome="failed")
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)], ended={(room, 2): "failed"})


@scenario("decode-stopped")
def decode_stopped(run):
    """Decode is stopped (SIGSTOP) in mid-transfer, on a slow link. Its room never moves again; a
    room of a healthy decode waits behind it on the same worker; one on another worker is fine."""
    stalled, victim, fine = stop_decode(run)
    return Expect(pinned=[(stalled, 1), (victim, 1)], ended={(fine, 1): "done"})


@scenario("decode-continued")
def decode_continued(run):
    """decode-stopped, and after the phase "stalled" decode goes on (SIGCONT): all recover."""
    stalled, victim, fine = stop_decode(run)
    run.phase("stalled")
    slow, healthy = run.node.decodes[-2:]
    slow.cont()
    slow.do("rate", bytes=0)
    slow.done(stalled)
    healthy.done(victim)
    return Expect(ended={(stalled, 1): "done", (victim, 1): "done", (fine, 1): "done"})


def stop_decode(run):
    slow, healthy = run.decode(rate=400_000), run.decode()
    stalled, victim, fine = run.room(0), run.room(0), run.room(1)
    run.send(slow, stalled, 192, forward_ms=20)
    run.writing(stalled)
    slow.stop()
    run.say("stopped", pid=slow.pid)
    run.listed(stalled, "inflight")
    run.send(healthy, victim)
    all_done([run.send(healthy, fine)])
    healthy.done(fine)
    run.node.wait_pinned(stalled, victim)
    return stalled, victim, fine


@scenario("culprit-ended")
def culprit_ended(run):
    """decode-stopped, and the client aborts the stalled room: it is released, its write stays, and
    the room behind it waits for a room that no longer exists."""
    slow, healthy = run.decode(rate=400_000), run.decode()
    culprit, victim = run.room(0), run.room(0)
    run.send(slow, culprit, 64, rid=f"c-{culprit}")
    run.writing(culprit)
    run.listed(culprit, "inflight")
    slow.stop()
    run.node.abort_request(f"c-{culprit}")
    run.node.wait_life(culprit, 1, outcome="failed")
    run.send(healthy, victim)
    run.node.wait_pinned(victim)
    return Expect(pinned=[(victim, 1)], ended={(culprit, 1): "failed"})


@scenario("killed-reused")
def killed_reused(run):
    """Decode is killed in mid-transfer and the room id reused with another decode. Natural: the
    write that ended in an error stays counted, so the second life's entry says Success and its
    poll still says Transferring. Its bytes have all come."""
    first, room = run.decode(rate=300_000), run.room()
    run.send(first, room, 64)
    run.writing(room, last=True)
    run.listed(room, "inflight")
    first.kill()
    run.node.wait_life(room, 1, outcome="failed")
    second = run.decode()
    run.send(second, room, 64)
    second.done(room)
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 2)], ended={(room, 1): "failed"})


@scenario("last-chunk-missing")
def last_chunk_missing(run):
    """Natural: decode claims a cached prefix that ends inside a page, so the pages of the chunks do
    not add up to the pages announced, and no chunk ever counts as the last one."""
    decode, room = run.decode(), run.room()
    run.send(decode, room, 97, prefix=1)
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)])


@scenario("aux-missing")
def aux_missing(run):
    """A hook loses the auxiliary write of one room; its KV is complete."""
    decode, room, fine = run.decode(), run.room(), run.room()
    run.node.hook(lose_aux=[room])
    run.send(decode, room)
    all_done([run.send(decode, fine)])
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)], ended={(fine, 1): "done"})


@scenario("transfer-error-held")
def transfer_error_held(run):
    """Natural: abort and retry while the first chunk is being written clear the entry; then decode
    is killed, the write ends in an error, and Failed is ignored because there is no entry."""
    decode, room = run.decode(rate=100_000), run.room()
    run.send(decode, room, 192, forward_ms=200)
    run.writing(room, chunk=0)
    decode.abort(room)
    run.send(decode, room, 192, forward_ms=10)
    run.node.wait_life(room, 2, outcome="failed")
    run.listed(room, "inflight")
    decode.kill()
    run.node.wait_pinned(room)
    run.node.wait(lambda s: all(w["room"] is None for w in s["workers"]), "the worker free")
    return Expect(pinned=[(room, 1)], ended={(room, 2): "failed"})


@scenario("worker-died")
def worker_died(run):
    """A hook ends one transfer worker: its rooms are never sent, those of the others are."""
    decode, room, fine = run.decode(), run.room(0), run.room(1)
    run.node.hook(kill_worker=0)
    run.node.wait(lambda s: not s["workers"][0]["alive"], "the worker dead")
    run.send(decode, room)
    all_done([run.send(decode, fine)])
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)], ended={(fine, 1): "done"})


# ---- failures that the server ends -------------------------------------------------------------
@scenario("decode-killed")
def decode_killed(run):
    """Decode is killed (SIGKILL) in mid-transfer: the write ends in -10, the room at once."""
    decode, room = run.decode(rate=300_000), run.room()
    run.send(decode, room, 192)
    run.writing(room)
    decode.kill()
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


@scenario("transfer-error")
def transfer_error(run):
    """A hook lets the status call of one room's writes answer -3: the room fails at once."""
    decode, room, fine = run.decode(), run.room(0), run.room(0)
    run.node.hook(error=[f"{room}_", -3])
    run.send(decode, room)
    run.node.wait_life(room, 1, outcome="failed")
    all_done([run.send(decode, fine)])
    return Expect(ended={(room, 1): "failed", (fine, 1): "done"})


# ---- waits that the server's timeout ends ------------------------------------------------------
@scenario("abort-before-request")
def abort_before_request(run):
    """The abort comes before the request: dropped; decode never announces the room."""
    decode, room = run.decode(), run.room()
    decode.abort(room)
    run.node.wait(lambda s: s["counters"]["abort_ignored"], "the abort ignored")
    run.post(room)
    run.listed(room, "bootstrap")
    return Expect(delayed=[(room, 1)])


@scenario("rank-absent")
def rank_absent(run):
    """One of two decode ranks never announces the room; another room has both."""
    decode, room, fine = run.decode(ranks=2), run.room(), run.room()
    decode.announce(room, 96, ranks=[0], required=2)
    run.post(room)
    all_done([run.send(decode, fine)])
    run.listed(room, "bootstrap")
    return Expect(delayed=[(room, 1)], ended={(fine, 1): "done"})


@scenario("bootstrap-thread-killed")
def bootstrap_thread_killed(run):
    """A message of a foreign kind ends the bootstrap thread; no later room leaves bootstrap."""
    decode, before, first, second = run.decode(), run.room(), run.room(), run.room()
    all_done([run.send(decode, before)])
    decode.do("raw", frames=[b"OtherEngine".hex(), b"17".hex()])
    run.node.wait(lambda s: not s["bootstrap_thread"]["alive"], "the bootstrap thread dead")
    for room in (first, second):
        run.send(decode, room)
        run.listed(room, "bootstrap")
    return Expect(delayed=[(first, 1), (second, 1)], ended={(before, 1): "done"})


@scenario("many-open")
def many_open(run):
    """run.count rooms, asked for in one batch, that no decode announces."""
    run.decode()
    rooms = [run.room() for _ in range(run.count)]
    run.node.post(rooms, 16)
    run.node.wait(lambda s: len(s["bootstrap"]) >= run.count, "all rooms open", 120)
    return Expect(delayed=[(room, 1) for room in rooms])
