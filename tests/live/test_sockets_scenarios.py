# SPDX-License-Identifier: Apache-2.0
"""Sockets as the only source. The stand-in node's scenarios: what is told for sure is held, with a cause that is
true; what sockets alone can know is told; what is healthy gives no alert. And situations that are made call by
call, for the causes that the node does not hold still for."""
import unittest

import sp
from scenario_case import DEADLINES, ScenarioCase, Together, deadlines, scenarios, wait_deadlines
from node import Node
from side_by_side import SideBySide
from sock_case import PROFILE_ALL, Peer, SockCase, SockWatch, Truth
import raw_zmtp
from http_client import Client, body, request

# Why /state says that a room is held -> what sockets alone may be sure of. Most of what goes wrong inside the
# server they cannot see.
SURE = {
    "announced-by-some": {"quorum-incomplete"},
    "announced-by-none": {"decode-absent", "abort-before-open"},
    "status-lost": {"room-reused", "abort-not-reaped"},
    "write-outstanding": {"room-reused", "peer-gone"},
}
# Where the truth must be told.
MUST = {
    "rank-absent": {"quorum-incomplete"},
    "abort-before-request": {"abort-before-open"},
    "many-open": {"quorum-incomplete"},
    "posted-twice-announced-once": {"abort-not-reaped"},
}
SKIP = ("healthy", "decode-continued")  # tests of their own


class Scenario(Together):
    """One test a scenario, added below."""

    def run_scenario(self, name, *args, **how):
        return super().run_scenario(name, "--only", "sockets", *args, **how)

    def check_seen(self, name, state, alerts, pid=None):
        held = {e["room"]: e for e in state["pinned"] + state["delayed"]}
        for room, lines in self.by_room(alerts, pid).items():
            sure = [a for a in lines if a["confidence"] != "possible"]
            if room not in held:
                self.assertEqual(sure, [], f"{name}: false alarm")
                continue
            why = held[room]["why"]
            for a in sure:
                self.assertIn(a["cause"], SURE.get(why, ()), f"{name}: {room} is held: {why}")
        if name in MUST:
            for room in held:
                told = [a["cause"] for a in alerts if a["type"] == "stuck" and a["room"] == room
                        and a["confidence"] != "possible"]
                self.assertTrue(told and told[-1] in MUST[name], f"{name}: {room}: {held[room]}, told {told}")
        if not held:
            self.assertEqual([a for a in alerts if a["type"] == "stuck" and a["confidence"] != "possible"], [])


for _name in scenarios.SCENARIOS:
    if _name not in SKIP and "nixl" in scenarios.SCENARIOS[_name].transports:
        Scenario.add(_name)


class Healthy(SideBySide, ScenarioCase):
    def test_healthy(self):
        """No alert of any confidence; every room is seen to arrive, be announced and be answered."""
        with Node() as node:
            with sp.Watch("-p", node.pid, "--only", "sockets", "--min-confidence", "possible", "--record", "all",
                          *DEADLINES) as watch:
                node.run("healthy", seconds=2.0, count=24)
                wait_deadlines(watch, node.state()["now_ns"])
                watch.stop()
                self.assertEqual(watch.of_type("stuck") + watch.of_type("loss"), [])
                got = sp.rooms(watch.db)
                self.assertGreater(len(got), 20)
                self.assertEqual({r["outcome"] for r in got}, {"done"})

    def test_decode_absent(self):
        with Node() as node:
            with sp.Watch("-p", node.pid, "--only", "sockets", *DEADLINES) as watch:
                room = node.room()
                node.post(room)
                alert = watch.wait_stuck(room)
                self.assertEqual((alert["cause"], alert["pin"]), ("decode-absent", False))

    def test_peer_gone(self):
        """Decode is killed when it has announced the room and nothing is posted yet."""
        with Node() as node:
            with sp.Watch("-p", node.pid, "--only", "sockets", "--min-confidence", "possible", *DEADLINES) as watch:
                decode, room = node.decode(), node.room()
                decode.announce(room, 96)
                node.post(room, 96, forward_ms=20000)
                node.wait_life(room, 1, forward_ns=True)
                decode.kill()
                alert = watch.wait_alert(lambda a: a["type"] == "stuck" and a["room"] == str(room)
                                         and a["cause"] == "peer-gone", 20, f"peer-gone of {room}")
                self.assertIn(alert["confidence"], ("possible", "likely"))


class Scripted(SockCase):
    """A server of one process whose every call is decided here: what it holds is true by construction."""

    # In one of them everything else must be over before the first deadline.
    DEADLINE_S = {"test_answered_is_over": 8}

    def setUp(self):
        self.truth, seconds = Truth(60), self.DEADLINE_S.get(self._testMethodName, 2)
        self.target = Peer.calls()
        self.addCleanup(self.target.end)
        self.port = int(self.target.ok("listen"))
        self.watch = SockWatch(self.target.pid, PROFILE_ALL, *deadlines(seconds, seconds))
        self.addCleanup(self.watch.__exit__)
        self.watch.__enter__()

    def decode(self):
        """A peer's connection: (socket, descriptor in the target)."""
        here = raw_zmtp.socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.addCleanup(here.close)
        fd = self.target.ok("accept")
        self.say(here, fd, raw_zmtp.opening())
        return here, fd

    def say(self, here, fd, data):
        here.sendall(data)
        self.assertEqual(self.target.ok("read", "recv", fd, len(data)), str(len(data)))

    def ask(self, room, **more):
        client = Client(self.port)
        self.addCleanup(client.close)
        fd = self.target.ok("accept")
        data = request(body(room, **more))
        client.send(data)
        self.target.ok("read", "recv", fd, len(data))
        return client, fd

    def answer(self, fd, code=200):
        self.target.ok("write", "send", fd, (f"HTTP/1.1 {code} X\r\nContent-Length: 2\r\n\r\n" + "{}").encode().hex())

    def announce(self, peer, room, need=1):
        frames = self.truth.metadata(room=room)
        frames[7] = str(need)
        self.say(*peer, raw_zmtp.message(*frames))

    def abort(self, peer, room):
        self.say(*peer, raw_zmtp.message("ABORT", room, "10.0.0.7", 40001))

    def stuck(self, room, cause, confidences=("likely", "certain")):
        return self.watch.wait_alert(lambda a: a["type"] == "stuck" and a["room"] == str(room)
                                     and a["cause"] == cause and a["confidence"] in confidences,
                                     20, f"{cause} of {room}")

    def test_decode_absent(self):
        room = self.truth.room()
        self.ask(room)
        self.assertFalse(self.stuck(room, "decode-absent")["pin"])

    def test_quorum_incomplete(self):
        peer, room = self.decode(), self.truth.room()
        self.ask(room)
        self.announce(peer, room, need=2)
        self.stuck(room, "quorum-incomplete")

    def test_abort_before_open(self):
        peer, room = self.decode(), self.truth.room()
        self.abort(peer, room)
        self.ask(room)
        self.stuck(room, "abort-before-open")

    def test_abort_not_reaped(self):
        peer, room = self.decode(), self.truth.room()
        self.ask(room)
        self.announce(peer, room)
        self.abort(peer, room)
        # it may have come before the server knew the request, whose own timeout then ends it
        self.assertIsNone(self.stuck(room, "abort-not-reaped")["pin"])

    def test_peer_gone(self):
        peer, room = self.decode(), self.truth.room()
        self.ask(room)
        self.announce(peer, room)
        peer[0].close()
        self.assertEqual(self.target.ok("read", "recv", peer[1], 1), "0")
        self.target.ok("close", peer[1])
        self.stuck(room, "peer-gone")

    def test_recovers(self):
        """The answer ends what was told."""
        room = self.truth.room()
        _, fd = self.ask(room)
        self.stuck(room, "decode-absent")
        self.answer(fd, 503)
        self.watch.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == str(room), 20, "recovered")
        self.assertEqual(self.watch.stop(), 0)

    def test_answered_is_over(self):
        """Announced, aborted, their peer gone, their client gone: whatever had happened, an answer ends it. One
        that is not answered is told beside them."""
        peer, rooms = self.decode(), [self.truth.room() for _ in range(5)]
        asked = [self.ask(room) for room in rooms]
        for room in rooms[1:]:
            self.announce(peer, room)
        self.abort(peer, rooms[2])
        for _, fd in asked[:4]:
            self.answer(fd)
        fake = self.truth.room()
        self.ask(fake, host="2.2.2.2")
        asked[4][0].close()
        self.target.ok("read", "recv", asked[4][1], 1)
        self.answer(asked[4][1])
        self.target.do("close", asked[4][1])
        peer[0].close()
        held = self.truth.room()
        self.ask(held)
        self.stuck(held, "decode-absent")
        sure = [a for a in self.watch.of_type("stuck") if a["confidence"] != "possible"]
        self.assertEqual({a["room"] for a in sure}, {str(held)}, sure)


if __name__ == "__main__":
    unittest.main()
