# SPDX-License-Identifier: Apache-2.0
"""Scenarios after which nothing is held: healthy load, aborts that end well, failures that end."""
import time

from node import DEADLINE_S, NodeError
from runner import SLOW_LINK, Expect, all_done, scenario


# ---- healthy -----------------------------------------------------------------------------------
@scenario("healthy")
def healthy(run):
    """Requests of one to four chunks, for run.seconds, eight at a time. Nothing is wrong."""
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
    """Health checks: host 2.2.2.2, small room numbers again and again, by design without peer."""
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
    all_done([post], timeout=run.seconds + DEADLINE_S)
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
    all_done(posts, timeout=run.seconds * 3 + DEADLINE_S)
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
    client the second. The hook that holds the next forward pass back makes the time for it."""
    decode, long, first, second = run.decode(), run.room(), run.room(), run.room()
    run.node.hook(passes=1)  # of its five
    post = run.send(decode, long, 320, forward_ms=100)
    run.in_forward(long)
    run.send(decode, first)
    run.send(decode, second, rid="second")
    run.listed(first, "waiting")
    run.listed(second, "waiting")
    run.aborted(decode, first)
    run.node.abort_request("second")
    run.node.wait_life(second, 1, outcome="aborted")
    run.node.hook(passes=-1)
    run.node.wait_life(first, 1, outcome="failed")
    all_done([post])
    decode.done(long)
    return Expect(ended={(long, 1): "done", (first, 1): "failed", (second, 1): "aborted"})


@scenario("abort-forward")
def abort_forward(run):
    """Decode aborts a room during its forward pass, when the request is in no list."""
    decode, room = run.decode(), run.room()
    run.node.hook(passes=1)  # of its two
    run.send(decode, room, 128, forward_ms=300)
    run.in_forward(room)
    run.aborted(decode, room)
    run.node.hook(passes=-1)
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


@scenario("abort-inflight")
def abort_inflight(run):
    """Decode aborts a room in mid-transfer (a slow link makes the time): it is released at once,
    its write goes on, and a room behind it on the same worker waits for that and then is done."""
    decode, first, second = run.decode(rate=SLOW_LINK), run.room(0), run.room(0)
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
    decode, room = run.decode(rate=SLOW_LINK), run.room()
    post = run.send(decode, room, 64)
    run.writing(room)
    run.listed(room, "inflight")
    post.hang_up()
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


# ---- failures that the server ends -------------------------------------------------------------
@scenario("decode-killed")
def decode_killed(run):
    """Decode is killed (SIGKILL) in mid-transfer: the write ends in -10, the room at once."""
    decode, room = run.decode(rate=SLOW_LINK), run.room()
    run.send(decode, room, 192)
    run.writing(room)
    decode.kill()
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


@scenario("transfer-error", ("nixl",))
def transfer_error(run):
    """A hook lets the status call of one room's writes answer -3: the room fails at once."""
    decode, room, fine = run.decode(), run.room(0), run.room(0)
    run.node.hook(error=[f"{room}_", -3])
    run.send(decode, room)
    run.node.wait_life(room, 1, outcome="failed")
    all_done([run.send(decode, fine)])
    return Expect(ended={(room, 1): "failed", (fine, 1): "done"})
