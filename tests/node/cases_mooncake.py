# SPDX-License-Identifier: Apache-2.0
"""Scenarios that only Mooncake's way of transfer can show."""
from node import wait_until
from runner import SLOW_LINK, Expect, all_done, scenario

MOONCAKE = ("mooncake",)


@scenario("engine-error", MOONCAKE)
def engine_error(run):
    """A hook fails the writes of one room: its call returns -1 and the room fails at once; another room
    of the same decode is fine."""
    decode, room, fine = run.decode(), run.room(), run.room()
    run.node.hook(fail=[room])
    run.send(decode, room)
    run.node.wait_life(room, 1, outcome="failed")
    all_done([run.send(decode, fine)])
    return Expect(ended={(room, 1): "failed", (fine, 1): "done"})


@scenario("engine-timeout", MOONCAKE, transfer_timeout=1)
def engine_timeout(run):
    """Decode is stopped in mid-transfer and the call gives up by itself: the room fails, nothing is held."""
    decode, room = run.decode(rate=SLOW_LINK), run.room()
    run.send(decode, room, 192)
    run.writing(room)
    decode.stop()
    run.node.wait_life(room, 1, outcome="failed")
    return Expect(ended={(room, 1): "failed"})


@scenario("call-blocked", MOONCAKE)
def call_blocked(run):
    """A hook keeps one submission in the engine's call for ever: its room never moves again, one behind it
    on the same worker waits, one of another worker is fine."""
    decode, other = run.decode(worker=0), run.decode(worker=1)
    blocked, victim, fine = run.room(), run.room(), run.room()
    run.node.hook(block=[blocked])
    run.send(decode, blocked)
    wait_until(lambda: any(w["blocked"] for w in run.node.state()["workers"]), "the call blocked")
    run.listed(blocked, "inflight")
    run.send(decode, victim)
    all_done([run.send(other, fine)])
    run.node.wait_pinned(blocked, victim)
    return Expect(pinned=[(blocked, 1), (victim, 1)], ended={(fine, 1): "done"})


@scenario("second-chunk-stalled", MOONCAKE)
def second_chunk_stalled(run):
    """Decode is stopped within the second chunk of a room, whose first chunk was no last one and told
    nobody anything; another room of that decode waits behind it."""
    decode, first, second = run.decode(worker=0), run.room(), run.room()
    run.node.hook(passes=1)
    run.send(decode, first, 128)
    run.node.wait(lambda s: s["counters"]["chunks"] >= 1, "the first chunk sent")
    decode.do("rate", bytes=SLOW_LINK)
    decode.announce(second, 32)
    run.node.hook(passes=-1)
    run.writing(first, last=True)
    decode.stop()
    run.post(second, 32)
    run.listed(first, "inflight")
    run.node.wait_pinned(first, second)
    return Expect(pinned=[(first, 1), (second, 1)])


@scenario("in-turns", MOONCAKE, take_turns=True)
def in_turns(run):
    """Two rooms whose chunks take turns on one worker: first chunk of a, of b, last chunk of a, of b."""
    a, b = two_by_turns(run)
    run.node.hook(passes=-1)
    all_done([a[2], b[2]])
    return Expect(ended={(a[1], 1): "done", (b[1], 1): "done"})


@scenario("in-turns-stalled", MOONCAKE, take_turns=True)
def in_turns_stalled(run):
    """The same, and the decode of b is stopped before its last chunk: that stalls when a's has just been sent."""
    a, b = two_by_turns(run)
    b[0].stop()
    run.node.hook(passes=-1)
    all_done([a[2]])
    run.node.wait_pinned(b[1])
    return Expect(pinned=[(b[1], 1)], ended={(a[1], 1): "done"})


def two_by_turns(run):
    """[(decode, room, post)] of two rooms on one worker, the first chunk of each sent."""
    run.node.hook(passes=0)
    before = run.node.state()["counters"]["chunks"]
    both, decodes = [], [run.decode(worker=0), run.decode(worker=0)]
    run.phase("registered")
    for decode in decodes:
        room = run.room()
        both.append((decode, room, run.send(decode, room, 128)))
        run.listed(room, "waiting")
    run.node.hook(passes=2)
    run.node.wait(lambda s: s["counters"]["chunks"] == before + 2
                  and not any(w["room"] for w in s["workers"]), "the first chunk of each sent")
    return both
