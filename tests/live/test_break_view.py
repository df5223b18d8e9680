# SPDX-License-Identifier: Apache-2.0
"""Verdicts by the server's own view where they are hardest to give right: rooms that end at their deadline, a watch
that is stopped meanwhile, retries with the same id, a scheduler that is forked, many rooms. Judged by the node's own
ledger, which knows when each room was released."""
import calendar
import collections
import json
import os
import random
import signal
import sqlite3
import time
import unittest

import sp
from scenario_case import QUICK, QUICK_INFLIGHT_S, ScenarioCase, deadlines, model_time
from node import Node

# it looks at a spinning server twenty times a second
ALONE = True

EDGE_AT_S = 2.0    # the deadline
EDGE_S = 0.6       # so far before and after its deadline a room ends
SPREAD_S = 8.0     # over so long the rooms come, and
ROOMS = 150        # at least so many
STOPPED_AT_S = 8.0  # the deadline of the rooms before the stop
STOPPED_S = 13.0   # longer than the model waits for an answer of the view


def ns_of(alert):
    """Its time, in the node's clock."""
    whole, ms = alert["time"][:-1].split(".")
    utc_ns = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(ms) * 10**6
    return utc_ns - (time.time_ns() - time.monotonic_ns())


def ask(watch, sql):
    """The first column so far."""
    try:
        with sqlite3.connect(f"file:{watch.db}?mode=ro", uri=True) as db:
            return {row[0] for row in db.execute(sql)}
    except sqlite3.Error:
        return set()


def seen_rids(watch):
    """The requests that are known by their names so far."""
    return ask(watch, "SELECT rid FROM life WHERE rid IS NOT NULL")


def wait_view(watch):
    """Until a round of looks has been over: from then on a deadline waits for one."""
    sp.wait_for(lambda: ask(watch, "SELECT e.ns FROM event e JOIN role r ON r.id = e.role WHERE r.name = 'view'"
                                   " AND e.kind = 'ok'"), 10, "a round of looks")


class Clock:
    """What is to be done when."""

    def __init__(self):
        self.later = []

    def at(self, when, what):
        self.later.append((when, what))

    def run(self, until=None):
        """Do what is due; until a time, or until nothing is left."""
        while until is None and self.later or until is not None and time.monotonic() < until:
            now = time.monotonic()
            due = [x for x in self.later if x[0] <= now]
            self.later = [x for x in self.later if x[0] > now]
            for _, what in sorted(due, key=lambda x: x[0]):
                what()
            time.sleep(0.002)


class Edge(ScenarioCase):
    KINDS = ("aux-client", "aux-decode", "part-client", "part-announce", "fine")

    def send(self, node, decode, clock, kind, rid, off):
        room, end = node.room(), time.monotonic() + off
        if kind.startswith("aux"):
            node.hook(lose_aux=[room])
        decode.tell("announce", room=room, tokens=48, required=2 if kind.startswith("part") else 1)
        node.post(room, 48, rid=rid, forward_ms=2)
        if kind.endswith("client"):
            clock.at(end, lambda: node.abort_request(rid))
        elif kind == "aux-decode":
            clock.at(end, lambda: decode.tell("abort", room=room))
        elif kind == "part-announce":
            clock.at(end, lambda: decode.tell("announce", room=room, tokens=48, required=1))
        return str(room)

    def test_rooms_that_end_at_their_deadline(self):
        """Within 0.6 s before and after it: nobody is told who had been let go when the deadline passed, whatever the
        look before that had seen."""
        seed = random.Random(5)
        with Node(seed=5, num_pages=4096, item_len=1024) as node:
            decode, clock, kinds = node.decode(), Clock(), {}
            with sp.Watch("-p", node.pid, "--stuck-after", f"inflight={int(EDGE_AT_S)}s", "--stuck-after",
                          f"bootstrap={int(EDGE_AT_S)}s") as watch:
                end = time.monotonic() + SPREAD_S
                while time.monotonic() < end or len(kinds) < ROOMS:
                    kind = seed.choice(self.KINDS)
                    off = EDGE_AT_S + seed.uniform(-EDGE_S, EDGE_S)
                    kinds[self.send(node, decode, clock, kind, f"{kind}-{len(kinds)}", off)] = kind
                    clock.run(time.monotonic() + seed.expovariate(25))
                clock.run()
                state = node.wait_quiet()
                until = state["now_ns"] + int(3e9)  # verdicts wait two seconds for a good look
                sp.wait_for(lambda: model_time(watch.db) > until, 20, "what came due to be told")
                watch.stop()
            self.judge({life["room"]: life for life in node.state()["lives"]}, watch.stuck(), kinds)

    def judge(self, lives, stuck, kinds):
        told = collections.Counter(kinds[a["room"]].split("-")[0] for a in stuck)
        for a in stuck:
            life, at = lives[a["room"]], ns_of(a)
            over = [life[what] for what in ("released_ns", "bootstrapped_ns") if life[what]
                    and (what == "released_ns" or a["stage"] == "bootstrap")]
            # alerts carry milliseconds
            self.assertGreater(min(over), at - 1_000_000, f"{kinds[a['room']]}: it was over by then: {a} {life}")
        self.assertGreater(told["aux"], 10)
        self.assertGreater(told["part"], 10)
        self.assertEqual(told["fine"], 0)


class Stopped(ScenarioCase):
    def test_watch_stopped_beside_a_busy_node(self):
        """The watch is stopped for longer than it waits for an answer of the view, with rooms before it that end
        meanwhile, the last of them by their client. It looks before it judges: only what is held is told."""
        with Node(num_pages=4096, item_len=1024) as node:
            decode, held, over = node.decode(), node.room(), [node.room() for _ in range(12)]
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", *deadlines(STOPPED_AT_S, STOPPED_AT_S)) as watch:
                wait_view(watch)
                node.hook(lose_aux=[held, *over])
                for room in (held, *over):
                    decode.tell("announce", room=room, tokens=48)
                    node.post(room, 48, rid=f"r-{room}")
                node.wait_pinned(held, *over)
                sp.wait_for(lambda: len(seen_rids(watch)) == 13, 10, "all seen")
                os.kill(watch.p.pid, signal.SIGSTOP)
                for room in over:
                    node.abort_request(f"r-{room}")
                self.assertEqual(watch.stuck(), [])  # the deadlines are in the stop
                for _ in range(40):
                    room = node.room()
                    decode.tell("announce", room=room, tokens=96)
                    node.post(room)
                time.sleep(STOPPED_S)  # the time is the point
                os.kill(watch.p.pid, signal.SIGCONT)
                watch.wait_stuck(held)
                until = node.wait_quiet()["now_ns"] + int(3e9)
                sp.wait_for(lambda: model_time(watch.db) > until, 20, "everything to be judged")
                watch.stop()
            self.assertEqual({a["room"] for a in watch.stuck()}, {str(held)}, watch.alerts)
            self.assertEqual(watch.stuck()[-1]["confidence"], "certain")


class Halted(ScenarioCase):
    def test_scheduler_stopped_for_longer_than_a_deadline(self):
        """Nothing of a stopped process is judged, neither before nor right after it goes on; what is held then, is."""
        with Node(num_pages=4096, item_len=1024) as node:
            decode, slow, held = node.decode(), node.decode(rate=60_000), node.room()
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", *QUICK) as watch:
                posts = []
                for to, tokens in [(slow, 96)] * 6 + [(decode, 320)] * 6:
                    room = node.room()
                    to.announce(room, tokens)
                    posts.append(node.post(room, tokens, forward_ms=30))
                node.hook(lose_aux=[held])
                decode.announce(held, 48)
                node.post(held, 48)
                os.kill(node.pid, signal.SIGSTOP)
                try:
                    watch.wait_alert(lambda a: a["type"] == "target" and a["what"] == "stopped", 10, "the stop")
                    since = time.monotonic_ns()
                    until = since + int((QUICK_INFLIGHT_S + 2) * 1e9)
                    sp.wait_for(lambda: model_time(watch.db) > until, 20, "the deadlines to pass")
                    self.assertEqual(watch.stuck(), [])
                finally:
                    os.kill(node.pid, signal.SIGCONT)
                went_on = time.monotonic_ns()
                alert = watch.wait_stuck(held)
                self.assertGreater(ns_of(alert), went_on + int((QUICK_INFLIGHT_S - 0.5) * 1e9))
                for post in posts:
                    self.assertEqual(post.wait(), 200)
                watch.stop()
            self.assertEqual({a["room"] for a in watch.stuck()}, {str(held)}, watch.alerts)


class Retry(ScenarioCase):
    def test_the_same_id_again(self):
        """A client hangs up and posts the same room and rid again, which nobody announces a second time: the second
        request is a life of its own that waits for a decode, whatever the first one had."""
        with Node() as node:
            decode, first, blocker = node.decode(), node.room(), node.room()
            with sp.Watch("-p", node.pid, "--min-confidence", "possible", "--python-every", "50ms",
                          *QUICK) as watch:
                decode.announce(blocker, 320)
                node.post(blocker, 320, forward_ms=400)  # five passes
                node.wait_life(blocker, 1, forward_ns=True)
                decode.announce(first, 48)
                post = node.post(first, 48, rid="again")
                # it waits behind them for longer than two looks take; one that was never seen out of the queue
                # into which the second one comes would be the same one
                sp.wait_for(lambda: ask(watch, "SELECT 1 FROM event e JOIN role r ON r.id = e.role JOIN life l"
                                               " ON l.id = e.life WHERE r.name = 'held' AND e.kind = 'waiting'"
                                               " AND l.rid = 'again'"), 10, "it to be seen waiting")
                post.hang_up()
                node.wait_life(first, 1, released=True)
                node.post(first, 48, rid="again")
                state = node.wait(lambda s: s["delayed"], "the second one in bootstrap")
                self.assertEqual([(e["room"], e["life"]) for e in state["delayed"]], [(str(first), 2)])
                alert = watch.wait_stuck(first)
                watch.stop()
            self.assertEqual((alert["cause"], alert["confidence"], alert["life"], alert["rid"]),
                             ("decode-absent", "certain", 2, "again"), alert)
            self.assertEqual({a["life"] for a in watch.stuck()}, {2}, watch.alerts)


class Spinning(ScenarioCase):
    def test_lists_made_anew_in_every_turn(self):
        """An idle main loop that never sleeps makes its lists anew a hundred thousand times a second, at the same few
        addresses: rooms in bootstrap are not lost sight of, and told."""
        with Node(loop="normal", idle_sleep=0.0) as node:
            rooms = [node.room() for _ in range(6)]
            node.post(rooms, 16)
            node.wait(lambda s: len(s["delayed"]) == 6, "all in bootstrap")
            with sp.Watch("-p", node.pid, "--only", "python", "--python-every", "50ms", "--record", "all", *QUICK) as watch:
                for room in rooms:
                    self.assertEqual(watch.wait_stuck(room)["cause"], "decode-absent")
                watch.stop()
                with sqlite3.connect(f"file:{watch.db}?mode=ro", uri=True) as db:
                    queues = {kind for kind, in db.execute("SELECT kind FROM event WHERE rid IS NOT NULL")}
            self.assertEqual(queues, {"bootstrap"})
            self.assertEqual(watch.of_type("recovered"), [])


class Forked(ScenarioCase):
    def test_the_child_is_read_not_its_parent(self):
        """A scheduler that its parent forks out of an event loop: the parent's objects are still there, in an outer
        frame of the same thread."""
        with Node() as node:
            with sp.Watch("-p", node.pid, *QUICK) as watch:
                rank = node.add_rank(fork=True)
                watch.wait_err(f"pid {rank['pid']}: CPython")
                decode, room = node.decode(rank=rank["rank"]), node.room()
                node.hook(rank=rank["rank"], lose_aux=[room])
                decode.announce(room, 48)
                node.post(room, 48, rank=rank["rank"], rid="forked")
                alert = watch.wait_stuck(room)
                self.assertEqual((alert["pid"], alert["rid"], alert["cause"], alert["confidence"]),
                                 (rank["pid"], "forked", "aux-missing", "certain"))


class Often(unittest.TestCase):
    def test_py_again_and_again(self):
        """Of a busy node no look shows a room that never was, a rid of another room, or a status out of range."""
        with Node(num_pages=4096, item_len=1024, idle_sleep=0.0) as node:
            decode, rids, stable = node.decode(), {}, 0
            for n in range(150):
                batch = [node.room() for _ in range(3)]
                for room in batch:
                    decode.tell("announce", room=room, tokens=48)
                    rids[str(room)] = f"rid-of-{room}"
                    node.post(room, 48, rid=rids[str(room)], forward_ms=2)
                p = sp.run("py", node.pid, "--json")
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                shown = json.loads(p.stdout)
                stable += shown["stable"]
                if shown["stable"]:  # else a queue that could not be read whole is null
                    self.assertNotIn(None, shown["queues"].values(), shown)
                for queue in shown["queues"].values():
                    for entry in queue or ():
                        self.assertEqual(entry["rid"], rids.get(entry["room"]), shown)
                self.assertEqual({room: code for room, code in (shown["status"] or {}).items()
                                  if room not in rids or code not in range(5)}, {}, shown)
            self.assertGreater(stable, 75)


if __name__ == "__main__":
    unittest.main()
