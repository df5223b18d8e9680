# SPDX-License-Identifier: Apache-2.0
"""Scenarios after which rooms are held: pins, and waits that only a timeout ends."""
from node import wait_until
from runner import SLOW_LINK, Expect, all_done, scenario


# ---- pins --------------------------------------------------------------------------------------
@scenario("posted-twice")
def posted_twice(run):
    """The same room posted twice, two full chunks each, announced for each. A natural race: the
    first life ends and clears the entry while the first chunk of the second computes; the chunks of
    the second are dropped and its poll falls to the default for ever. An abort does not free it."""
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
    run.node.hook(passes=3)  # the second one's last pass begins when the first one has ended
    decode.announce(room, 128, times=announces)
    all_done([first])
    run.node.hook(passes=-1)
    decode.done(room)
    run.node.wait_pinned(room)
    if run.node.transport == "nixl":  # a sender of Mooncake remembers the abort and ends
        run.node.abort_request(f"b-{room}")
    return Expect(pinned=[(room, 2)], ended={(room, 1): "done"})


@scenario("abort-retry-forward", ("nixl",))
def abort_retry_forward(run):
    """Decode aborts a room and retries it within one forward pass. A natural race: the retry finds
    the entry Failed and clears it; the first life comes out of its forward pass and has none."""
    decode, room = run.decode(), run.room()
    run.node.hook(passes=1)  # of its two
    run.send(decode, room, 128, forward_ms=700)
    run.in_forward(room)
    run.aborted(decode, room)
    retry(run, decode, room, 128)
    run.node.hook(passes=-1)
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)], ended={(room, 2): "failed"})


def retry(run, decode, room, tokens):
    """Once more, of a room whose entry says Failed."""
    before = run.node.state()["counters"]["metadata"]
    decode.announce(room, tokens)
    run.node.wait(lambda s: s["counters"]["metadata"] > before, "the room announced again")
    run.post(room, tokens, forward_ms=10)
    run.node.wait_life(room, 2, outcome="failed")


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
    slow, healthy = run.node.decodes[-3:-1]
    slow.cont()
    slow.do("rate", bytes=0)
    slow.done(stalled)
    healthy.done(victim)
    return Expect(ended={(stalled, 1): "done", (victim, 1): "done", (fine, 1): "done"})


def stop_decode(run):
    slow, healthy = run.decode(rate=SLOW_LINK, worker=0), run.decode(worker=0)
    other = run.decode(worker=1)
    stalled, victim, fine = run.room(0), run.room(0), run.room(1)
    run.send(slow, stalled, 192, forward_ms=20)
    run.writing(stalled)
    slow.stop()
    run.say("stopped", pid=slow.pid)
    run.listed(stalled, "inflight")
    run.send(healthy, victim)
    all_done([run.send(other, fine)])
    other.done(fine)
    run.node.wait_pinned(stalled, victim)
    return stalled, victim, fine


@scenario("culprit-ended")
def culprit_ended(run):
    """decode-stopped, and the client aborts the stalled room: it is released, its write stays, and
    the room behind it waits for a room that no longer exists."""
    slow, healthy = run.decode(rate=SLOW_LINK, worker=0), run.decode(worker=0)
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


@scenario("killed-reused", ("nixl",))
def killed_reused(run):
    """Decode is killed in mid-transfer and the room id reused with another decode. Natural: the
    write that ended in an error stays counted, so the second life's entry says Success and its
    poll still says Transferring. Its bytes have all come."""
    first, room = run.decode(rate=SLOW_LINK), run.room()
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


@scenario("transfer-error-held", ("nixl",))
def transfer_error_held(run):
    """Natural: abort and retry while the first chunk is being written clear the entry; then decode
    is killed, the write ends in an error, and Failed is ignored because there is no entry."""
    decode, room = run.decode(rate=SLOW_LINK), run.room()
    run.node.hook(passes=1)  # of its three
    run.send(decode, room, 192, forward_ms=50)
    run.writing(room, chunk=0)
    run.aborted(decode, room)
    retry(run, decode, room, 192)
    run.node.hook(passes=-1)
    run.listed(room, "inflight")
    decode.kill()
    run.node.wait_pinned(room)
    run.node.wait(lambda s: all(w["room"] is None for w in s["workers"]), "the worker free")
    return Expect(pinned=[(room, 1)], ended={(room, 2): "failed"})


@scenario("worker-died")
def worker_died(run):
    """A hook ends one transfer worker: its rooms are never sent, those of the others are."""
    decode, other = run.decode(worker=0), run.decode(worker=1)
    room, fine = run.room(0), run.room(1)
    run.node.hook(kill_worker=0)
    run.node.wait(lambda s: not s["workers"][0]["alive"], "the worker dead")
    run.send(decode, room)
    all_done([run.send(other, fine)])
    run.node.wait_pinned(room)
    return Expect(pinned=[(room, 1)], ended={(fine, 1): "done"})


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
    """run.count rooms, asked for in one batch, that one of two decode ranks announces."""
    decode, rooms = run.decode(), [run.room() for _ in range(run.count)]
    before = run.node.brief()
    run.node.post(rooms, 16)
    decode.announce_part(rooms)
    for name, now in (("bootstrap", lambda b: b["bootstrap"]),
                      ("metadata", lambda b: b["counters"]["metadata"])):
        wait_until(lambda: now(run.node.brief()) >= now(before) + run.count, name, 120)
    return Expect(delayed=[(room, 1) for room in rooms])
