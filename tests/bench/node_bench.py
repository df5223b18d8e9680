# SPDX-License-Identifier: Apache-2.0
"""Rooms a second of the stand-in node, traced against untraced: as it is, with workers that poll all the
time, with a main loop that spins, and of another node that nobody traces while this one is traced."""
import contextlib
import os
import sys
import time

from rig import NODE_PROBES, ROOT, Failed, Target, Watch, figure, median

ROOMS, ROUNDS, AT_ONCE = 120, 5, 8
POLL_ROOMS = 60


def node_module():
    sys.path.insert(0, os.path.join(ROOT, "tests", "node"))
    import node

    return node


def rooms_per_second(node, decode, count, workers=(None,)):
    """Healthy rooms of one to four chunks, AT_ONCE at a time."""
    posts, start = [], time.monotonic()
    for i in range(count + AT_ONCE):
        if len(posts) == AT_ONCE or i >= count:
            room, post = posts.pop(0)
            if post.wait() != 200:
                raise Failed(f"room {room}: {post.answer}")
            post.conn.close()
            decode.done(room)
        if i < count:
            room = node.room(worker=workers[i % len(workers)])
            tokens = 40 + 72 * (i % 4)
            decode.announce(room, tokens)
            posts.append((room, node.post(room, tokens)))
    return count / (time.monotonic() - start)


def watched(build, pid):
    return Watch(build, "-p", pid, "--probes", NODE_PROBES, cpu=None)


def compare(measure, trace):
    """Untraced and traced by turns; the median of the ratios, and the median untraced rate."""
    pairs = []
    for _ in range(ROUNDS):
        off = measure()
        with trace():
            pairs.append((off, measure()))
    return median(on / off for off, on in pairs), median(off for off, _ in pairs)


def healthy(build, node, other):
    decode, far = node.decode(), other.decode()
    rooms_per_second(node, decode, AT_ONCE)
    rooms_per_second(other, far, AT_ONCE)
    ratio, rate = compare(lambda: rooms_per_second(node, decode, ROOMS),
                          lambda: watched(build, node.pid))
    figure("node-rooms", rate, "rooms/s")
    figure("node-traced-per-untraced", ratio, "ratio")
    ratio, _ = compare(lambda: rooms_per_second(other, far, ROOMS),
                       lambda: watched(build, node.pid))
    figure("node-untraced-neighbour", ratio, "ratio")


def polls_of(node):
    return sum(w["polls"] or 0 for w in node.state()["workers"])


def polling(build, node):
    """Two of the four workers wait for a stopped decode, and ask 12,000 times a second each."""
    healthy_decode, stopped = node.decode(), node.decode(rate=1 << 20)
    rooms_per_second(node, healthy_decode, AT_ONCE, (2, 3))
    for worker in (0, 1):
        room = node.room(worker=worker)
        stopped.announce(room, 256)
        node.post(room, 256)
        node.wait(lambda s: any(w["room"] == str(room) and w["ops"] for w in s["workers"]),
                  f"a write of room {room}")
    stopped.stop()
    try:
        start, before = time.monotonic(), polls_of(node)
        ratio, rate = compare(lambda: rooms_per_second(node, healthy_decode, POLL_ROOMS, (2, 3)),
                              lambda: watched(build, node.pid))
        figure("node-polls", (polls_of(node) - before) / (time.monotonic() - start), "polls/s")
    finally:
        stopped.cont()
    figure("node-polling-rooms", rate, "rooms/s")
    figure("node-polling-traced-per-untraced", ratio, "ratio")


def spinning(build, node):
    """A forward pass takes no time and the main loop never sleeps, as the real one: it asks its own socket
    tens of thousands of times a second, through the probed zmq_msg_recv."""
    decode = node.decode()
    rooms_per_second(node, decode, AT_ONCE)
    ratio, rate = compare(lambda: rooms_per_second(node, decode, ROOMS),
                          lambda: watched(build, node.pid))
    figure("node-spinning-rooms", rate, "rooms/s")
    figure("node-spinning-traced-per-untraced", ratio, "ratio")


def neighbour_call(build):
    """A call of a probed function in a process that is not watched, while another is."""
    with Target(build) as traced, Target(build) as other:
        off = other.burst("scalars", 200_000, 20)
        with Watch(build, "-p", traced.pid, "--probes", os.path.join(ROOT, "tests/bench/bench.yaml"),
                   "--profile", "scalars"):
            on = other.burst("scalars", 200_000, 20)
    figure("neighbour-call", on / off, "ratio")


def run(build):
    node = node_module()
    with open(os.devnull, "w") as log, contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(node.Node(log=log)) for _ in range(2))
        healthy(build, first, second)
        polling(build, first)
    with open(os.devnull, "w") as log, node.Node(log=log, forward_ms=0, idle_sleep=0) as third:
        spinning(build, third)
    neighbour_call(build)
