# SPDX-License-Identifier: Apache-2.0
"""What the tests of sockets share: profiles, peers whose commands are lines, and the truth against the
recording: every wanted message is one event, and there is no other."""
import collections
import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading

import sp
from side_by_side import SideBySide

PEERS = os.path.join(sp.ROOT, "tests", "live", "peers")
LIVE = os.path.join(sp.BUILD, "live")
LONG = bool(os.environ.get("SILENTPIN_TEST_LONG"))
sys.path.insert(0, PEERS)
import raw_zmtp  # noqa: E402

GUARD = "NixlMsgGuard"
PROFILE = """
version: 1
profiles:
  - name: peers
    room: {{type: u64, fake: [0, "<64"], fake_hosts: ["2.2.2.2"]}}
    sockets:{entries}
"""
ZMTP_IN = """
      - name: zmtp_in
        process: self
        when: {bytes: zmtp}
        decode: zmtp
        direction: DIRECTION
        messages:
          - name: registration
            frames: [NixlMsgGuard, "None", "{ip:ip}", "{port:u64}", "{agent}", "..."]
            event: {role: register, peer: "{ip}:{port}"}
          - name: metadata
            frames: [NixlMsgGuard, "{room}", "{ip:ip}", "{port:u64}", "{agent}", "{kv:len}", "{aux:len}", "{need}", "..."]
            event: {role: announce, peer: "{ip}:{port}", dummy_if_empty: [kv, aux]}
          - name: abort
            frames: [ABORT, "{room}", "{ip:ip}", "{port:u64}"]
            event: {role: abort, peer: "{ip}:{port}"}"""
# As Mooncake's prefill tells its decode: room, status (a KVPoll number), rank.
ZMTP_OUT = """
      - name: zmtp_out
        process: self
        when: {bytes: zmtp}
        decode: zmtp
        direction: out
        messages:
          - name: told
            frames: ["{room}", "{code:u64}", "{rank}"]
            event: {role: told, status: code}"""
HTTP = """
      - name: http
        process: self
        when: {bytes: http}
        decode: http
        keys: {room: bootstrap_room, host: bootstrap_host, rid: rid}
        abort: /abort_request"""


def profile_in(direction="in"):
    return PROFILE.format(entries=ZMTP_IN.replace("DIRECTION", direction))


PROFILE_IN = profile_in()
PROFILE_OUT = PROFILE.format(entries=ZMTP_OUT)
PROFILE_HTTP = PROFILE.format(entries=HTTP)
PROFILE_ALL = PROFILE.format(entries=ZMTP_IN.replace("DIRECTION", "in") + HTTP)


class Peer:
    """A process of peers/ that answers each line with a line."""

    def __init__(self, *argv, **kw):
        self.p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, **kw)
        self.pid = self.p.pid
        self.lock = threading.Lock()
        self.hello = self.p.stdout.readline().split()

    @classmethod
    def calls(cls, static=False, **kw):
        return cls(os.path.join(LIVE, "sock_peer_static" if static else "sock_peer"), **kw)

    @classmethod
    def zmq(cls):
        return cls(os.path.join(LIVE, "zmq_peer"))

    @classmethod
    def pyzmq(cls, *security):
        return cls("/usr/bin/python3", os.path.join(PEERS, "zmq_target.py"), *security)

    @classmethod
    def http(cls, kind):
        return cls("/usr/bin/python3", os.path.join(PEERS, "http_target.py"), kind)

    def tell(self, *words):
        self.p.stdin.write(" ".join(map(str, words)) + "\n")
        self.p.stdin.flush()

    def do(self, *words):
        with self.lock:
            self.tell(*words)
            answer = self.p.stdout.readline()
        if not answer:
            raise AssertionError(f"{self.p.args} ended at {' '.join(map(str, words))[:200]}")
        return answer.rstrip("\n")

    def ok(self, *words):
        """The answer, which is no failure."""
        answer = self.do(*words)
        assert not answer.startswith("-") and not answer.partition(" ")[2], (words[:3], answer)
        return answer

    def end(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.end()


class Truth:
    """What the peers have said, as keys of events."""

    def __init__(self, seed=None):
        self.random = random.Random(seed)
        self.said = collections.Counter()
        self.n = 0
        self.lock = threading.Lock()

    def room(self):
        return self.random.randrange(1 << 62, 1 << 63)  # 19 digits

    def metadata(self, kv=b"\0\0\0\0", room=None, more=()):
        """The frames of an announcement that is going to be sent."""
        with self.lock:
            room = room or self.room()
            self.n += 1
            agent = f"agent-{self.n}"
        self.said["announce", str(room), agent] += 1
        return [GUARD, room, "10.0.0.7", 40001, agent, kv, "3", "2", *more]

    def register(self):
        with self.lock:
            self.n += 1
            agent = f"agent-{self.n}"
        self.said["register", None, agent] += 1
        return [GUARD, "None", "10.0.0.7", 40001, agent, b"m" * 300]

    def abort(self):
        room = self.room()
        self.said["abort", str(room), None] += 1
        return ["ABORT", room, "10.0.0.7", 40001]

    def told(self, status=4):
        room = self.room()
        self.said["told", str(room), None] += 1
        return [room, status, 0]

    def fake_payload(self, size):
        """size bytes that hold whole messages of rooms that nobody ever said."""
        one = raw_zmtp.message(GUARD, self.room(), "10.0.0.7", 40001, "fake", b"\0\0\0\0", "3", "2")
        return (one * (size // len(one) + 1))[:size]

    def fake_size(self):
        """Of one of these messages: every room has as many digits."""
        return len(raw_zmtp.message(GUARD, self.room(), "10.0.0.7", 40001, "fake", b"\0\0\0\0", "3", "2"))

    def unwanted(self, sizes=None):
        """Frames of a message that is none of ours."""
        sizes = sizes or [self.random.choice((0, 1, 60, 254, 255, 256, 257, 5000))
                          for _ in range(self.random.choice((1, 2, 5, 200)))]
        first = self.random.choice((b"\x80\x04\x95", b"NixlMsgGuard2", b"ABORTED", b"GuardXYZ", b""))
        return [first, *(self.fake_payload(n) for n in sizes)]


MESSAGES = ("announce", "register", "abort", "told")


def rows(db):
    """(role, room, probe, detail) of the recording's events so far."""
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=10)) as c:
        return [(role, room, probe, json.loads(detail or "{}")) for role, room, probe, detail in
                c.execute("SELECT role, room, probe, detail FROM events ORDER BY time_ns")]


def said(db, roles=MESSAGES):
    """The messages of a recording as keys of Truth."""
    return collections.Counter((role, room, detail.get("agent"))
                               for role, room, _, detail in rows(db) if role in roles)


class SockWatch(sp.Watch):
    """watch --only sockets of a process, with a profile of its own."""

    def __init__(self, pid, profile, *args, **kw):
        super().__init__("--only", "sockets", "-p", pid, "--record", "all", "--min-confidence", "possible",
                         "--probes", "PROFILE", *args, **kw)
        self.profile_path = os.path.join(self.dir.name, "probes.yaml")
        with open(self.profile_path, "w", encoding="ascii") as f:
            f.write(profile)
        self.args[self.args.index("PROFILE")] = self.profile_path

    def peers(self):
        """The details of its peer events."""
        return [dict(d, room=room) for role, room, _, d in rows(self.db) if role == "peer"]

    def wait_said(self, want, timeout=20):
        """Until at least so many messages are in the recording."""
        def enough():
            try:
                return sum(said(self.db).values()) >= want
            except sqlite3.OperationalError:
                return False
        sp.wait_for(enough, timeout, lambda: f"{want} messages; so far {self.told()}", every=0.05)

    def told(self):
        return {"messages": sum(said(self.db).values()), "peers": self.peers()[-5:], "stderr": self.err[-5:]}

    def wait_peer(self, kind, timeout=20, count=1, **fields):
        """Until so many peer events of that kind (and these details) are in the recording."""
        def seen():
            got = [d for d in self.peers() if d.get("kind") == kind
                   and all(d.get(k) == v for k, v in fields.items())]
            return got if len(got) >= count else None
        return sp.wait_for(seen, timeout, lambda: f"peer {kind} {fields}: {self.told()}", every=0.05)


class SockCase(SideBySide):
    maxDiff = 2000

    def assert_said(self, db, truth, roles=MESSAGES):
        """Exactly what was said, once each."""
        got = said(db, roles)
        missing, wrong = truth.said - got, got - truth.said
        self.assertFalse(missing or wrong, f"{sum(truth.said.values())} said; missing "
                                           f"{sum(missing.values())}: {list(missing)[:5]}; "
                                           f"wrong {sum(wrong.values())}: {list(wrong)[:5]}")

    def assert_only_said(self, db, truth, roles=MESSAGES):
        """Nothing that was not said, and nothing twice."""
        wrong = said(db, roles) - truth.said
        self.assertFalse(wrong, f"never said: {list(wrong)[:5]}")

    def finish(self, watch, truth, roles=MESSAGES):
        """All is there; after the end, exactly that."""
        watch.wait_said(sum(truth.said.values()))
        watch.stop()
        self.assertEqual(watch.of_type("loss"), [], "events were lost")
        self.assert_said(watch.db, truth, roles)
