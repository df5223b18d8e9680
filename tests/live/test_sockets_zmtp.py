# SPDX-License-Identifier: Apache-2.0
"""ZMTP as real peers speak it: libzmq through pyzmq, libzmq linked into a stripped program, and raw sockets
whose every byte is decided here. Every wanted message gives one event, and nothing else gives any."""
import collections
import contextlib
import os
import tempfile
import unittest

import zmq

import sp
from sock_case import (LONG, PROFILE_IN, PROFILE_OUT, Peer, SockCase, SockWatch, Truth, profile_in)
import raw_zmtp

READS = ("read", "recv", "recvfrom", "readv", "recvmsg", "recvmmsg", "waitall")
WRITES = ("write", "send", "sendto", "writev", "sendmsg", "sendmmsg")
BACKENDS = ("libc", "syscall")


def backend(name):
    return {"SILENTPIN_SOCKETS": name}


class Pushers:
    """PUSH sockets of this process, each with an agent that announces rooms."""

    def __init__(self, endpoint, n=1, **options):
        self.ctx = zmq.Context()
        self.sockets = []
        for _ in range(n):
            s = self.ctx.socket(zmq.PUSH)
            s.linger = 20000
            for key, value in options.items():
                setattr(s, key, value)
            s.connect(endpoint)
            self.sockets.append(s)

    def send(self, frames, i=0):
        self.sockets[i % len(self.sockets)].send_multipart(
            [f if isinstance(f, bytes) else str(f).encode() for f in frames])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.ctx.destroy()


class Libzmq(SockCase):
    """libzmq on both sides."""

    def target(self, make, where="tcp://127.0.0.1:*"):
        target = make()
        self.addCleanup(target.end)
        return target, target.do("bind", where)

    def mix(self, make, env=None, where="tcp://127.0.0.1:*", count=400, peers=3, **options):
        """Wanted among unwanted messages of 0 to 5,000 bytes and 1 to 200 frames, several peers."""
        target, endpoint = self.target(make, where)
        truth = Truth(1)
        sent = 0
        with SockWatch(target.pid, PROFILE_IN, env=env) as watch, \
                Pushers(endpoint, peers, **options) as push:
            for i in range(peers):
                push.send(truth.register(), i)
            for i in range(count):
                push.send(truth.metadata(), i)
                push.send(truth.unwanted(), i)
                if i % 5 == 0:
                    push.send(truth.abort(), i)
                    push.send(truth.metadata(b"", more=[b""] * (i % 190)), i)
                    sent += 2
                sent += 2
            sp.wait_for(lambda: int(target.do("count")) == sent + peers, 20, "all messages received")
            self.finish(watch, truth)
        return watch

    def test_pyzmq(self):
        self.mix(Peer.pyzmq)

    def test_static(self):
        """No symbol of ZMQ anywhere."""
        self.mix(Peer.zmq)

    def test_pyzmq_libc(self):
        self.mix(Peer.pyzmq, backend("libc"), count=100)

    def test_static_libc(self):
        self.mix(Peer.zmq, backend("libc"), count=100)

    def test_static_syscall(self):
        self.mix(Peer.zmq, backend("syscall"), count=100)

    def test_pyzmq_syscall(self):
        self.mix(Peer.pyzmq, backend("syscall"), count=100)

    def test_unix(self):
        with tempfile.TemporaryDirectory(prefix="silentpin-test-") as folder:
            self.mix(Peer.zmq, where=f"ipc://{folder}/s", count=100)

    def test_abstract_unix(self):
        self.mix(Peer.zmq, where=f"ipc://@silentpin-test-{os.getpid()}", count=100)

    def test_heartbeats(self):
        """PING and PONG between the messages, also in the middle of long ones."""
        target = Peer.zmq()
        self.addCleanup(target.end)
        target.ok("heartbeat", 20)
        endpoint = target.do("bind", "tcp://127.0.0.1:*")
        truth = Truth(2)
        with SockWatch(target.pid, PROFILE_IN) as watch, Pushers(endpoint, heartbeat_ivl=20, heartbeat_timeout=60000) as push:
            for i in range(12):
                push.send(truth.metadata(more=[b"x" * 300000]))
                began = sp.time.monotonic()
                sp.wait_for(lambda began=began: sp.time.monotonic() > began + 0.05, 5, "heartbeats", every=0.05)
            self.finish(watch, truth)

    def test_sizes(self):
        """From one byte to 64 MB in a message."""
        target, endpoint = self.target(Peer.zmq)
        truth = Truth(3)
        sizes = [1, 63, 64, 65, 255, 256, 8191, 8192, 8193, 65535, 65536, 1 << 20, 10_000_000, 64 << 20]
        with SockWatch(target.pid, PROFILE_IN) as watch, Pushers(endpoint) as push:
            for size in sizes:
                push.send(truth.unwanted([size]))
                push.send(truth.metadata(truth.fake_payload(size)))
                push.send(truth.unwanted([size, 1]))
                push.send(truth.metadata(more=[truth.fake_payload(size), b"z"]))
            sp.wait_for(lambda: int(target.do("count")) == 4 * len(sizes), 60, "all messages received")
            self.finish(watch, truth)

    def test_thousands_of_connections(self):
        """Each is opened, says one thing and goes."""
        count = 10000 if LONG else 2000
        target, endpoint = self.target(Peer.zmq)
        port = int(endpoint.rpartition(":")[2])
        truth = Truth(4)
        with SockWatch(target.pid, PROFILE_IN) as watch:
            for i in range(count):
                data = raw_zmtp.opening() + raw_zmtp.message(*truth.metadata())
                with raw_zmtp.socket.create_connection(("127.0.0.1", port)) as s:
                    s.sendall(data)
                    s.shutdown(raw_zmtp.socket.SHUT_WR)
                    with contextlib.suppress(ConnectionResetError):
                        while s.recv(4096):
                            pass
            watch.wait_peer("opened", count=count)
            ends = sp.wait_for(lambda: self.ends(watch, count), 20,
                               lambda: f"the end of {count} agents, got {len(self.ends(watch, 0))}", every=0.1)
            self.assertEqual(len({d["agent"] for d in ends}), count)
            self.finish(watch, truth)
            opened = collections.Counter(d["peer"] for d in watch.peers() if d["kind"] == "opened" and "agent" not in d)
            self.assertEqual(sum(opened.values()), count)

    @staticmethod
    def ends(watch, least):
        """What ended an agent, when there are as many."""
        got = [d for d in watch.peers() if d.get("kind") in ("closed", "reset") and "agent" in d]
        return got if len(got) >= least else None

    def test_many_sockets_at_once(self):
        target, endpoint = self.target(Peer.pyzmq)
        truth = Truth(5)
        with SockWatch(target.pid, PROFILE_IN) as watch, Pushers(endpoint, 200) as push:
            for i in range(1000):
                push.send(truth.metadata(), i)
            self.finish(watch, truth)

    def told(self, make, env=None, where="tcp://127.0.0.1:*"):
        """What the target sends: room, status, rank; and what it sends besides."""
        ctx = zmq.Context()
        self.addCleanup(ctx.destroy)
        pull = ctx.socket(zmq.PULL)
        pull.bind(where)
        truth = Truth(6)
        target = make()
        self.addCleanup(target.end)
        with SockWatch(target.pid, PROFILE_OUT, env=env) as watch:
            n = target.ok("connect", pull.last_endpoint.decode())
            for i in range(200):
                target.ok("send", n, *truth.told(i % 5))
                target.ok("send", n, "AUX_DATA", truth.room(), f"*{i * 50}")
                target.ok("send", n, truth.room(), 4, f"*{i + 1}", "one-too-many")
            for _ in range(600):
                pull.recv_multipart()
            self.finish(watch, truth)

    def test_told_pyzmq(self):
        self.told(Peer.pyzmq)

    def test_told_static(self):
        self.told(Peer.zmq)

    def test_told_syscall(self):
        self.told(Peer.zmq, backend("syscall"))

    def test_told_unix(self):
        with tempfile.TemporaryDirectory(prefix="silentpin-test-") as folder:
            self.told(Peer.zmq, where=f"ipc://{folder}/s")

    def test_curve(self):
        """Encrypted: said to be unreadable, and never an event."""
        target = Peer.pyzmq("curve")
        self.addCleanup(target.end)
        endpoint = target.do("bind", "tcp://127.0.0.1:*")
        public, secret = zmq.curve_keypair()
        with SockWatch(target.pid, PROFILE_IN) as watch, \
                Pushers(endpoint, curve_publickey=public, curve_secretkey=secret,
                        curve_serverkey=target.hello[1].encode()) as push:
            for _ in range(20):
                push.send(Truth(7).metadata())
            sp.wait_for(lambda: int(target.do("count")) == 20, 20, "all messages received")
            got = watch.wait_peer("unreadable")
            watch.stop()
            self.assert_said(watch.db, Truth())
            self.assertEqual(sum(d["kind"] == "unreadable" for d in watch.peers()), 1, watch.peers())
            self.assertRegex(got[0]["note"].lower(), "curve|encrypt")

    def test_plain(self):
        """A user and a password, then as without."""
        target = Peer.pyzmq("plain")
        self.addCleanup(target.end)
        endpoint = target.do("bind", "tcp://127.0.0.1:*")
        truth = Truth(8)
        with SockWatch(target.pid, PROFILE_IN) as watch, \
                Pushers(endpoint, plain_username=b"user", plain_password=b"secret") as push:
            for _ in range(20):
                push.send(truth.metadata())
            self.finish(watch, truth)


class Wire(SockCase):
    """A target whose calls are decided one by one, and the bytes too."""

    def opened(self, target, kind=b"PUSH", call="read", where=None):
        """(socket here, descriptor there) after the handshake."""
        where = where or int(target.ok("listen"))
        here = raw_zmtp.socket.socket(raw_zmtp.socket.AF_UNIX if isinstance(where, str) else
                                      raw_zmtp.socket.AF_INET)
        here.settimeout(20)
        here.connect(where if isinstance(where, str) else ("127.0.0.1", where))
        self.addCleanup(here.close)
        fd = target.ok("accept")
        other = b"PULL" if kind == b"PUSH" else b"PUSH"
        here.sendall(raw_zmtp.opening(kind))
        target.ok("write", "send", fd, raw_zmtp.opening(other, as_server=True).hex())
        self.assertEqual(target.ok("read", call, fd, len(raw_zmtp.opening(kind))),
                         str(len(raw_zmtp.opening(kind))))
        here.recv(4096)
        return here, fd

    def reads(self, target, truth, call, size, kind=b"PUSH"):
        here, fd = self.opened(target, kind, call)
        data = b"".join(raw_zmtp.message(*frames) for frames in (
            truth.metadata(), truth.unwanted([5, 300]), truth.metadata(truth.fake_payload(700)), truth.abort(),
            truth.register(), truth.metadata(b"", more=["a", "b"])))
        here.sendall(data)
        self.assertEqual(target.ok("read", call, fd, len(data), size), str(len(data)), call)
        target.ok("close", fd)

    def all_reads(self, env=None, static=False):
        truth = Truth(10)
        with Peer.calls(static) as target, SockWatch(target.pid, PROFILE_IN, env=env) as watch:
            for call in READS:
                for size in (1, 2, 7, 64, 1000, 65536):
                    self.reads(target, truth, call, size)
            self.finish(watch, truth)

    def test_reads(self):
        """Each call that reads, from byte by byte to all at once."""
        self.all_reads()

    def test_reads_syscall(self):
        self.all_reads(backend("syscall"))

    def test_reads_of_a_static_program(self):
        self.all_reads(backend("syscall"), static=True)

    def test_static_program_under_libc(self):
        """There is no libc to probe: what to do instead is said, and nothing is invented."""
        env = backend("libc")
        with Peer.calls(static=True) as target:
            with SockWatch(target.pid, PROFILE_IN, env=env, attached=False) as watch:
                watch.wait_err("SILENTPIN_SOCKETS=syscall")
                self.assertEqual(sp.wait_for(lambda: watch.p.poll(), 20, "the watch to give up"), 4)
                told = sp.run("doctor", "-p", target.pid, "--probes", watch.profile_path, env=env)
                self.assertIn("SILENTPIN_SOCKETS=syscall", told.stdout + told.stderr)

    def all_writes(self, env=None, static=False):
        truth = Truth(12)
        with Peer.calls(static) as target, SockWatch(target.pid, PROFILE_OUT, env=env) as watch:
            for call in WRITES:
                for size in (1, 5, 64, 65536):
                    here, fd = self.opened(target, b"PULL")
                    data = b"".join(raw_zmtp.message(*frames) for frames in (
                        truth.told(), ["AUX_DATA", truth.room(), b"y" * 400], truth.told(0)))
                    self.assertEqual(target.ok("write", call, fd, data.hex(), size), str(len(data)), call)
                    target.ok("close", fd)
                    here.close()
            self.finish(watch, truth)

    def test_writes(self):
        self.all_writes()

    def test_writes_syscall(self):
        self.all_writes(backend("syscall"))

    def test_writes_of_a_static_program(self):
        self.all_writes(backend("syscall"), static=True)

    def test_both_directions_of_one_connection(self):
        truth = Truth(13)
        with Peer.calls() as target, SockWatch(target.pid, profile_in("both")) as watch:
            here, fd = self.opened(target)
            for _ in range(20):
                data = raw_zmtp.message(*truth.metadata())
                here.sendall(data)
                target.ok("read", "read", fd, len(data), 50)
                target.ok("write", "send", fd, raw_zmtp.message(*truth.abort()).hex())
            self.finish(watch, truth)

    def test_only_the_wanted_direction(self):
        """direction in: what the target itself says is no event, in the same words."""
        truth = Truth(14)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            here, fd = self.opened(target)
            target.ok("write", "send", fd, raw_zmtp.message(*Truth(15).metadata()).hex())
            data = raw_zmtp.message(*truth.metadata())
            here.sendall(data)
            target.ok("read", "read", fd, len(data))
            self.finish(watch, truth)

    def ported(self, when, wanted):
        """Two connections that the target accepted on two ports, and one that it opened to here."""
        truth, other = Truth(27), Truth(28)
        server = raw_zmtp.socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        with Peer.calls() as target:
            ends, ports = [], []
            for _ in range(2):
                ports.append(int(target.ok("listen")))
                here = raw_zmtp.socket.create_connection(("127.0.0.1", ports[-1]), timeout=20)
                self.addCleanup(here.close)
                ends.append((here, target.ok("accept")))
            ports.append(server.getsockname()[1])
            fd = target.ok("connect", ports[-1])
            here = server.accept()[0]
            self.addCleanup(here.close)
            ends.append((here, fd))
            profile = PROFILE_IN.replace("when: {bytes: zmtp}", "when: {%s}" % when(ports))
            with SockWatch(target.pid, profile) as watch:
                for i, (here, fd) in enumerate(ends):
                    data = raw_zmtp.opening() + raw_zmtp.message(*(truth if i == wanted else other).metadata())
                    here.sendall(data)
                    target.ok("read", "recv", fd, len(data), 50)
                self.finish(watch, truth)

    def test_by_listening_port(self):
        self.ported(lambda ports: f"listen: {ports[1]}, bytes: zmtp", 1)

    def test_by_listening_port_alone(self):
        self.ported(lambda ports: f'listen: "{ports[0]}-{ports[0]}"', 0)

    def test_by_port_of_the_peer(self):
        self.ported(lambda ports: f"peer: {ports[2]}", 2)

    def test_peeked_bytes_are_not_taken(self):
        truth = Truth(16)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            here, fd = self.opened(target)
            for peeked in (1, 20, None):
                data = raw_zmtp.message(*truth.metadata())
                here.sendall(data)
                target.ok("peek", fd, peeked or len(data))
                target.ok("read", "recv", fd, len(data), 40)
            self.finish(watch, truth)

    def test_unix(self):
        truth = Truth(17)
        with tempfile.TemporaryDirectory(prefix="silentpin-test-") as folder, Peer.calls() as target, \
                SockWatch(target.pid, PROFILE_IN) as watch:
            target.ok("listen", f"{folder}/s")
            here, fd = self.opened(target, where=f"{folder}/s")
            for size in (1, 30, 65536):
                data = raw_zmtp.message(*truth.metadata()) + raw_zmtp.message(*truth.abort())
                here.sendall(data)
                target.ok("read", "recv", fd, len(data), size)
            self.finish(watch, truth)

    def test_every_split(self):
        """Two reads, cut at every place of the handshake and of a message."""
        truth = Truth(18)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.ok("listen"))
            length = len(raw_zmtp.opening() + raw_zmtp.message(*Truth().metadata(room=1 << 62)))
            for cut in range(1, length):
                data = raw_zmtp.opening() + raw_zmtp.message(*truth.metadata())
                with raw_zmtp.socket.create_connection(("127.0.0.1", port)) as here:
                    here.sendall(data)
                    fd = target.ok("accept")
                    target.ok("read", "recv", fd, cut)
                    target.ok("read", "recv", fd, len(data) - cut)
                    target.ok("close", fd)
            self.finish(watch, truth)

    def test_long_form_of_short_frames(self):
        truth = Truth(19)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            here, fd = self.opened(target)
            data = raw_zmtp.message(*truth.metadata(), long=True)
            here.sendall(data)
            target.ok("read", "read", fd, len(data), 11)
            self.finish(watch, truth)

    def test_version_3_0(self):
        """A peer that speaks 3.0; PING and unknown commands between messages and between frames."""
        truth = Truth(20)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.ok("listen"))
            with raw_zmtp.socket.create_connection(("127.0.0.1", port)) as here:
                one, two = (raw_zmtp.message(*truth.metadata()) for _ in range(2))
                data = (raw_zmtp.opening(minor=0) + raw_zmtp.command(b"PING", b"\0\0ctx") + one
                        + raw_zmtp.command(b"SOMETHING", b"q" * 600) + two)
                here.sendall(data)
                fd = target.ok("accept")
                target.ok("read", "read", fd, len(data), 33)
                self.finish(watch, truth)

    def test_version_2_is_unreadable(self):
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.ok("listen"))
            with raw_zmtp.socket.create_connection(("127.0.0.1", port)) as here:
                data = b"\xff" + bytes(8) + b"\x7f\x01\x08\0\0" + raw_zmtp.message(*Truth(21).metadata())
                here.sendall(data)
                fd = target.ok("accept")
                target.ok("read", "read", fd, len(data))
                watch.wait_peer("unreadable")
                watch.stop()
                self.assert_said(watch.db, Truth())

    def test_a_frame_that_breaks_the_protocol(self):
        """Reserved flags: the connection is lost, and what follows is no event."""
        truth = Truth(22)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            here, fd = self.opened(target)
            data = (raw_zmtp.message(*truth.metadata()) + b"\xf0\x03abc"
                    + raw_zmtp.message(*Truth(23).metadata()))
            here.sendall(data)
            target.ok("read", "read", fd, len(data))
            watch.wait_peer("lost")
            self.finish(watch, truth)

    def test_slow_writer(self):
        """Bytes one by one, to a real libzmq."""
        truth = Truth(24)
        with Peer.zmq() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.do("bind", "tcp://127.0.0.1:*").rpartition(":")[2])
            with raw_zmtp.Connection(port) as here:
                for _ in range(3):
                    data = raw_zmtp.message(*truth.unwanted([40])) + raw_zmtp.message(*truth.metadata())
                    here.send(data, range(len(data)), pause=0.0005)
                self.finish(watch, truth)

    def test_coalesced(self):
        """Thousands of messages in one write, and cut at random."""
        truth = Truth(25)
        with Peer.zmq() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.do("bind", "tcp://127.0.0.1:*").rpartition(":")[2])
            with raw_zmtp.Connection(port) as here:
                for _ in range(3):
                    data = b"".join(raw_zmtp.message(*(truth.metadata() if i % 2 else truth.unwanted([i % 300])))
                                    for i in range(2000))
                    here.send(data, truth.random.sample(range(len(data)), 300))
                self.finish(watch, truth)

    def test_names_of_the_connection(self):
        """Opened and closed are told with the address, and for the agent that spoke over it."""
        truth = Truth(26)
        with Peer.zmq() as target, SockWatch(target.pid, PROFILE_IN) as watch:
            port = int(target.do("bind", "tcp://127.0.0.1:*").rpartition(":")[2])
            with raw_zmtp.Connection(port) as here:
                me = "%s:%d" % here.sock.getsockname()
                here.send(raw_zmtp.message(*truth.register()))
                watch.wait_peer("opened", peer=me)
                watch.wait_peer("opened", agent="agent-1")
            watch.wait_peer("closed", agent="agent-1")
            with raw_zmtp.Connection(port) as here:
                me = "%s:%d" % here.sock.getsockname()
                here.send(raw_zmtp.message(*truth.register()))
                watch.wait_peer("opened", agent="agent-2")
                here.reset()
            watch.wait_peer("reset", agent="agent-2")
            self.finish(watch, truth)


if __name__ == "__main__":
    unittest.main()
