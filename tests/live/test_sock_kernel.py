# SPDX-License-Identifier: Apache-2.0
"""What the kernel side says of sockets, record by record (sock_smoke): shapes, order, reasons, silence."""
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest

from sock_case import HTTP, LIVE, PROFILE, PROFILE_IN, ZMTP_IN, ZMTP_OUT, Peer, Truth
import raw_zmtp

PROFILE_HTTP = PROFILE.format(entries=HTTP)


class Smoke:
    """sock_smoke on processes: the records of what has happened so far."""

    def __init__(self, profile, *pids, env=None):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.file.write(profile)
        self.file.flush()
        self.p = subprocess.Popen([os.path.join(LIVE, "sock_smoke"), self.file.name, *map(str, pids)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, env=dict(os.environ, **(env or {})))
        if not self.p.stdout.readline().startswith("ready"):
            raise AssertionError(self.p.communicate()[1])

    def lines(self, word="x"):
        self.p.stdin.write(word + "\n")
        self.p.stdin.flush()
        return [line.rstrip("\n") for line in iter(self.p.stdout.readline, ".\n") if line]

    def records(self):
        """(kind, what, fields) of each record since the last call."""
        out = []
        for line in self.lines():
            kind, what, rest = line.split(" ", 2)
            fields = dict(re.findall(r"(\w+)=(\S*)", rest))
            fields["rest"] = rest
            out.append((kind, what, fields))
        return out

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.stdin.close()
        self.p.wait()
        self.p.stdout.close()
        self.p.stderr.close()
        self.file.close()


def names(records):
    """The records in short: open kind frame0 frame1 ..."""
    return [what if kind != "frame" else f"frame{what}" for kind, what, _ in records]


class Kernel(unittest.TestCase):
    ENV = {}

    def setUp(self):
        self.truth = Truth(1)
        self.target = Peer.calls()
        self.addCleanup(self.target.end)

    def smoke(self, profile):
        s = Smoke(profile, self.target.pid, env=self.ENV)
        self.addCleanup(s.__exit__)
        return s

    def accepted(self, family=socket.AF_INET, host="127.0.0.1"):
        """A connection to the target: our end, its descriptor."""
        port = int(self.target.ok("listen"))
        here = socket.create_connection((host, port)) if family == socket.AF_INET else None
        self.addCleanup(here.close)
        here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return here, self.target.ok("accept")

    def connected(self):
        """A connection of the target to us."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            fd = self.target.ok("connect", server.getsockname()[1])
            here = server.accept()[0]
        self.addCleanup(here.close)
        return here, fd

    def take(self, here, fd, data, size=65536, call="recv"):
        """data sent by us and read by the target."""
        here.sendall(data)
        self.assertEqual(self.target.do("read", call, fd, len(data), size), str(len(data)))

    def give(self, here, fd, data, call="send"):
        """data written by the target and read by us."""
        self.assertEqual(self.target.do("write", call, fd, data.hex()), str(len(data)))
        got = b""
        while len(got) < len(data):
            got += here.recv(65536)
        self.assertEqual(got, data)


class Records(Kernel):
    def test_a_message(self):
        """Open, kind, then the frames: as those of a uprobe, but of no thread."""
        smoke = self.smoke(PROFILE_IN)
        here, fd = self.accepted()
        frames = self.truth.metadata(kv=b"k" * 300)
        self.take(here, fd, raw_zmtp.opening() + raw_zmtp.message(*frames))
        records = smoke.records()
        self.assertEqual(names(records), ["open", "kind", *(f"frame{i}" for i in range(8))])
        ids = {f["id"] for _, _, f in records}
        self.assertEqual(len(ids), 1)
        self.assertNotIn("0", ids)
        for _, what, f in records[:2]:
            self.assertEqual((f["num"], f["pid"]), ("1", str(self.target.pid)), what)
            lhost, lport = here.getpeername()
            rhost, rport = here.getsockname()
            self.assertTrue(f["rest"].endswith(f" {lhost}:{lport} {rhost}:{rport}"), f["rest"])
        for i, (_, _, f) in enumerate(records[2:]):
            want = frames[i] if isinstance(frames[i], bytes) else str(frames[i]).encode()
            self.assertEqual((f["tid"], f["dir"], f["size"], f["more"]),
                             ("0", "in", str(len(want)), str(int(i < 7))), f["rest"])
            if int(f["len"]) >= 0:
                self.assertEqual(bytes.fromhex(f["data"]), want[:64])
        self.assertEqual(records[2 + 5][2]["len"], "-30001")  # kv:len: its size only

    def test_silence(self):
        """Of messages that nobody wants, of commands and of other protocols: not a record."""
        smoke = self.smoke(PROFILE_IN)
        here, fd = self.accepted()
        self.take(here, fd, raw_zmtp.opening())
        self.assertEqual(names(smoke.records()), ["open", "kind"])
        for _ in range(20):
            self.take(here, fd, raw_zmtp.message(*self.truth.unwanted()) + raw_zmtp.command(b"PING", b"\0\0"))
        self.assertEqual(smoke.records(), [])
        other, fd = self.accepted()
        self.take(other, fd, b"SSH-2.0-x\r\n" + raw_zmtp.opening() + raw_zmtp.message(*self.truth.metadata()))
        self.give(other, fd, b"SSH-2.0-y\r\n")
        other.close()
        self.target.ok("read", "recv", fd, 1)
        self.target.ok("close", fd)
        self.assertEqual(smoke.records(), [])

    def test_ends(self):
        """End of file once, then closed; a reset; a close of ours."""
        smoke = self.smoke(PROFILE_IN)
        ends = []
        for how in ("peer", "reset", "own"):
            here, fd = self.accepted()
            self.take(here, fd, raw_zmtp.opening())
            smoke.records()
            if how == "reset":
                here.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if how != "own":
                here.close()
                self.target.do("read", "recv", fd, 1)
            self.target.ok("close", fd)
            ends.append(names(smoke.records()))
        self.assertEqual(ends, [["eof", "closed"], ["reset"], ["closed"]])

    def test_unix(self):
        """Its end is its last descriptor's; in between, dup changes nothing."""
        with tempfile.TemporaryDirectory() as d:
            smoke = self.smoke(PROFILE_IN)
            path = os.path.join(d, "s")
            self.target.ok("listen", path)
            here = socket.socket(socket.AF_UNIX)
            self.addCleanup(here.close)
            here.connect(path)
            fd = self.target.ok("accept")
            self.take(here, fd, raw_zmtp.opening())
            self.assertEqual(names(smoke.records()), ["open", "kind"])
            other = self.target.ok("dup", fd)
            self.target.ok("close", fd)
            self.take(here, other, raw_zmtp.message(*self.truth.abort()))
            self.assertEqual(names(smoke.records()), ["frame0", "frame1", "frame2", "frame3"])
            self.target.ok("close", other)
            self.assertEqual(names(smoke.records()), ["closed"])

    def test_an_address_used_again(self):
        """Many connections one after the other: each is itself."""
        smoke = self.smoke(PROFILE_IN)
        ids = set()
        for _ in range(200):
            here, fd = self.accepted()
            self.take(here, fd, raw_zmtp.opening() + raw_zmtp.message(*self.truth.abort()))
            self.target.ok("close", fd)
            here.close()
            records = smoke.records()
            self.assertEqual(names(records), ["open", "kind", "frame0", "frame1", "frame2", "frame3", "closed"])
            ids.add(records[0][2]["id"])
        self.assertEqual(len(ids), 200)


SCATTERED = """
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c = s.accept()[0]
for line in sys.stdin:
    size, n = map(int, line.split())
    parts = [bytearray(size) for _ in range(n)] + [bytearray(0)] * (1024 - n)
    print(c.recvmsg_into(parts, 0, socket.MSG_WAITALL)[0], flush=True)
"""


class Scattered(unittest.TestCase):
    """Reads into as many buffers as a call can have."""

    ENV = {}

    def test_segments(self):
        truth = Truth(1)
        with Peer("/usr/bin/python3", "-c", SCATTERED) as target, Smoke(PROFILE_IN, target.pid, env=self.ENV) as smoke:
            with socket.create_connection(("127.0.0.1", int(target.hello[0]))) as here:
                data = raw_zmtp.opening() + raw_zmtp.message(*truth.metadata(), b"x" * 5000) * 3
                here.sendall(data)
                at = 0
                for size, n in ((1, 1024), (3, 1000), (700, 2), (11, len(data))):
                    n = min(n, (len(data) - at) // size)
                    at += size * n
                    self.assertEqual(target.do(size, n), str(size * n))
                self.assertEqual(target.do(1, len(data) - at), str(len(data) - at))
                self.assertEqual(names(smoke.records()), ["open", "kind", *(f"frame{i}" for i in range(9))] +
                                 [f"frame{i}" for _ in range(2) for i in range(9)])


class ScatteredSyscall(Scattered):
    ENV = {"SILENTPIN_SOCKETS": "syscall"}


class Lost(Kernel):
    def lost(self, records):
        return [f["why"] for _, what, f in records if what == "lost"]

    def test_another_process_reads(self):
        """A forked child takes bytes: what follows is not decoded from a false boundary."""
        smoke = self.smoke(PROFILE_IN)
        here, fd = self.accepted()
        self.take(here, fd, raw_zmtp.opening() + raw_zmtp.message(*self.truth.abort()))
        smoke.records()
        inner = raw_zmtp.message(*self.truth.abort())
        outer = raw_zmtp.message("ABORT", inner * 3)
        here.sendall(outer)
        # the child is watched too, unless it is done before that: of what it takes, all or nothing is told
        self.assertEqual(self.target.ok("child", "read", "sysread", fd, 20), "20")
        self.assertEqual(self.target.do("read", "recv", fd, len(outer) - 20), str(len(outer) - 20))
        records = smoke.records()
        self.assertIn(self.lost(records), ([], ["gap"]))
        self.assertNotIn(inner, [bytes.fromhex(f.get("data", "")) for _, _, f in records])
        if self.lost(records):
            self.assertEqual([n for n in names(records) if n.startswith("frame")], [])

    def test_sendfile(self):
        """Bytes that nobody can read, outside of a body: the direction is given up, with the reason."""
        smoke = self.smoke(PROFILE.format(entries=ZMTP_OUT))
        here, fd = self.connected()
        self.give(here, fd, raw_zmtp.opening() + raw_zmtp.message(*self.truth.told()))
        self.assertIn("frame2", names(smoke.records()))
        self.give(here, fd, raw_zmtp.message(*self.truth.told()), call="sendfile")
        self.assertEqual(self.lost(smoke.records()), ["sendfile"])
        self.give(here, fd, raw_zmtp.message(*self.truth.told()))
        self.assertEqual(smoke.records(), [])  # no silence before it: not believed

    def test_a_broken_frame(self):
        smoke = self.smoke(PROFILE_IN)
        here, fd = self.accepted()
        self.take(here, fd, raw_zmtp.opening() + b"\x55\x55")
        self.assertEqual(self.lost(smoke.records()), ["bad"])

    def test_a_gap_in_a_body(self):
        """Does no harm: the message's frames, and the next one's."""
        smoke = self.smoke(PROFILE.format(entries=ZMTP_OUT))
        here, fd = self.connected()
        big = raw_zmtp.message(*self.truth.told(), b"x" * 100000)
        self.give(here, fd, raw_zmtp.opening() + big[:-90000])
        self.give(here, fd, big[-90000:], call="sendfile")
        self.give(here, fd, raw_zmtp.message(*self.truth.told()))
        got = names(smoke.records())
        self.assertEqual(got, ["open", "kind", "frame0", "frame1", "frame2", "frame3", "frame0", "frame1", "frame2"])


class Middle(Kernel):
    """Attached when the connection exists: from when on it is believed."""

    def begin(self):
        here, fd = self.accepted()
        self.take(here, fd, raw_zmtp.opening())
        return here, fd, self.smoke(PROFILE_IN)

    def without_a_pause(self, chunks):
        """What is told of chunks that are read one after the other, never with a second between two: that would be a
        silence. Where the machine makes one, it begins anew with another connection."""
        for _ in range(20):
            before, got = [time.monotonic()], []
            here, fd, smoke = self.begin()
            for chunk in chunks:
                before.append(time.monotonic())
                self.take(here, fd, chunk)
                if time.monotonic() - before[-2] > 0.8:
                    break
                got += names(smoke.records())
            else:
                return got
            here.close()
            self.target.ok("close", fd)
            smoke.__exit__()
        raise AssertionError("no connection without a pause")

    def test_after_a_silence(self):
        here, fd, smoke = self.begin()
        time.sleep(1.1)  # the silence
        self.take(here, fd, raw_zmtp.message(*self.truth.abort()))
        records = smoke.records()
        self.assertEqual(names(records), ["open", "kind", "trust", "frame0", "frame1", "frame2", "frame3"])
        self.assertEqual([f["num"] for _, what, f in records if what in ("open", "kind")], ["0", "0"])

    def test_a_silence_in_a_message(self):
        """The rest of a frame that looks like messages: believed are messages that a read ends with."""
        here, fd, smoke = self.begin()
        inner = raw_zmtp.message(*self.truth.abort())
        outer = raw_zmtp.message("x", inner + inner[:10])
        self.take(here, fd, outer[:-len(inner) - 10])
        time.sleep(1.1)
        self.take(here, fd, outer[-len(inner) - 10:])
        self.assertEqual(names(smoke.records()), ["open", "lost"])

    def test_a_head_that_is_not_ours(self):
        here, fd, smoke = self.begin()
        time.sleep(1.1)
        self.take(here, fd, raw_zmtp.message("x", b"y" * 10))
        self.assertEqual(names(smoke.records()), ["open", "lost"])  # it may be one of ours: told, once
        self.take(here, fd, raw_zmtp.message("x", b"y" * 10))
        self.assertEqual(smoke.records(), [])

    def test_without_a_silence(self):
        """Read for read whole messages: believed in the end, and nothing told of those before."""
        got = self.without_a_pause([raw_zmtp.message(*self.truth.abort())] * 12)
        self.assertEqual(got[:4], ["open", "lost", "kind", "trust"])
        self.assertIn(got[4:].count("frame0"), (3, 4))
        self.assertEqual(len(got) - 4, 4 * got[4:].count("frame0"))

    def test_reads_that_end_in_a_message(self):
        data = raw_zmtp.message(*self.truth.abort()) * 20
        self.assertEqual(self.without_a_pause([data[i:i + 50] for i in range(0, len(data), 50)]), ["open", "lost"])


class Http(Kernel):
    def test_one_by_one(self):
        """Requests and replies, HEAD and 204 without a body, a chunked reply, one that the end ends."""
        smoke = self.smoke(PROFILE_HTTP)
        here, fd = self.accepted()
        body = b'{"text": "\\"bootstrap_room\\": 1", "rid": "r1", "bootstrap_room": [5, 6]}'
        self.take(here, fd, b"POST /generate?x=1 HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
                  size=7)
        self.give(here, fd, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            b"3\r\nabc\r\n0\r\n\r\n")
        self.take(here, fd, b"HEAD / HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n")
        self.give(here, fd, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"
                            b"HTTP/1.1 500 No\r\n\r\nuntil the end")
        self.target.ok("close", fd)
        got = [(what, f.get("req"), f.get("code"), f["rest"].partition("text=")[2] or f.get("num"))
               for kind, what, f in smoke.records() if kind == "http"]
        self.assertEqual(got, [
            ("request", "1", None, "POST /generate"), ("value", "1", None, "r1"), ("value", "1", None, "0"),
            ("value", "1", None, "5"), ("value", "1", None, "6"), ("request_end", "1", None, None),
            ("reply", "1", "200", None), ("reply_end", "1", None, None),
            ("request", "2", None, "HEAD /"), ("request_end", "2", None, None),
            ("request", "3", None, "GET /b"), ("request_end", "3", None, None),
            ("request", "4", None, "GET /c"), ("request_end", "4", None, None),
            ("reply", "2", "200", None), ("reply_end", "2", None, None),
            ("reply", "3", "204", None), ("reply_end", "3", None, None),
            ("reply", "4", "500", None), ("reply_end", "4", None, None)])

    def test_open_end(self):
        """A reply without a length is over when its server closes first; when the client does, nobody knows."""
        smoke = self.smoke(PROFILE_HTTP)
        for first in ("server", "client"):
            here, fd = self.accepted()
            self.take(here, fd, b"GET / HTTP/1.1\r\n\r\n")
            if first == "client":
                here.shutdown(socket.SHUT_WR)
                self.assertEqual(self.target.do("read", "recv", fd, 1, 1), "0")
            self.give(here, fd, b"HTTP/1.1 200 OK\r\n\r\nabc")
            if first == "server":
                self.target.ok("shutdown", fd, int(socket.SHUT_WR))
            self.target.ok("close", fd)
            got = [(what, f.get("why")) for _, what, f in smoke.records() if what in ("reply_end", "lost")]
            self.assertEqual(got, [("reply_end", None)] if first == "server" else [("lost", "open-end")])

    def test_tls(self):
        smoke = self.smoke(PROFILE_HTTP)
        here, fd = self.accepted()
        self.take(here, fd, b"\x16\x03\x01\x00\x05hello")
        records = smoke.records()
        self.assertEqual(names(records), ["open", "unreadable"])
        self.assertEqual(records[1][2]["why"], "tls")

    def test_a_client(self):
        """Requests that the process itself makes are not those of its clients."""
        smoke = self.smoke(PROFILE_HTTP)
        here, fd = self.connected()
        self.give(here, fd, b"GET / HTTP/1.1\r\n\r\n")
        self.take(here, fd, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(smoke.records(), [])


class Ports(Kernel):
    def test_a_port_of_ours(self):
        """Announced at first sight; without `bytes`, no other protocol is thought of."""
        here, fd = self.accepted()
        port = here.getpeername()[1]
        entry = ZMTP_IN.replace("DIRECTION", "in").replace("{bytes: zmtp}", f"{{listen: {port}}}")
        smoke = self.smoke(PROFILE.format(entries=entry))
        with socket.create_connection(("127.0.0.1", port)) as second:
            fd = self.target.ok("accept")
            records = smoke.records()
            self.assertEqual([(what, f["num"]) for _, what, f in records], [("open", "0"), ("open", "1")])
            self.take(second, fd, b"GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(names(smoke.records()), ["kind", "lost"])


class RecordsSyscall(Records):
    ENV = {"SILENTPIN_SOCKETS": "syscall"}

    test_unix = None  # this way does not show a unix socket's last close (docs/profiles.md)


class HttpSyscall(Http):
    ENV = {"SILENTPIN_SOCKETS": "syscall"}


class LostSyscall(Lost):
    ENV = {"SILENTPIN_SOCKETS": "syscall"}


if __name__ == "__main__":
    unittest.main()
