# SPDX-License-Identifier: Apache-2.0
"""HTTP as real servers and clients speak it: a request with a room is one `arrive` for each of its rooms, its
reply one `first` and one `end`; whatever else is said gives nothing."""
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

import sp
from sock_case import PROFILE_HTTP, Peer, SockCase, SockWatch, Truth, rows
from http_client import Client, body, request

FAKE = "2.2.2.2"


class Asked(Truth):
    """What was asked and answered: keys (role, room, ...)."""

    def ask(self, code=200, n=None, host="10.0.0.9", answered=True, rid=None):
        """A room, or a list of n, that is going to be asked for."""
        rooms = [self.room() for _ in range(n or 1)]
        for room in rooms:
            self.said["arrive", str(room), host, rid] += 1
            if answered:
                self.said["reply", str(room), "first", code] += 1
                self.said["reply", str(room), "end", code] += 1
        return rooms if n else rooms[0]

    def gone(self, room):
        self.said["abort", str(room), "client-gone", None] += 1


def heard(db):
    got = collections.Counter()
    for role, room, _, d in rows(db):
        if role == "arrive":
            got[role, room, d.get("peer"), d.get("rid")] += 1
        elif role in ("reply", "abort"):
            got[role, room, d.get("kind"), d.get("code") if role == "reply" else None] += 1
    return got


class HttpCase(SockCase):
    def finish(self, watch, truth, roles=None):
        want = sum(truth.said.values())
        sp.wait_for(lambda: sum(heard(watch.db).values()) >= want, 20,
                    lambda: f"{want} events; missing {list(truth.said - heard(watch.db))[:6]}, "
                            f"wrong {list(heard(watch.db) - truth.said)[:6]}, {watch.err[-4:]}", every=0.05)
        watch.stop()
        got = heard(watch.db)
        self.assertEqual((got - truth.said, truth.said - got), (collections.Counter(),) * 2)
        self.assertEqual(watch.of_type("loss"), [])


class Server(HttpCase):
    """Two servers of Python's, watched."""

    def served(self, kind, talk, env=None):
        truth = Asked(1)
        with Peer.http(kind) as target, SockWatch(target.pid, PROFILE_HTTP, env=env) as watch:
            talk(truth, int(target.hello[1]), target)
            self.finish(watch, truth)
        return watch

    def both(self, talk):
        for kind in ("asyncio", "server"):
            with self.subTest(kind):
                self.served(kind, talk)

    def basics(self, truth, port, _):
        with Client(port) as c:
            self.assertEqual(c.post(truth.ask())[0], 200)
            self.assertEqual(c.post(truth.ask(n=3))[0], 200)
            self.assertEqual(c.post(None)[0], 200)  # no room: nothing
            self.assertEqual(c.post(truth.ask(), last=False)[0], 200)
            self.assertEqual(c.post(truth.ask(), space=False)[0], 200)
            self.assertEqual(c.post(truth.ask(rid="req-7"), rid="req-7")[0], 200)
            self.assertEqual(c.post(truth.ask(host=FAKE), host=FAKE)[0], 200)
            c.send(request(b"", method="GET", path="/health"))
            self.assertEqual(c.reply()[0], 200)
            c.send(request(body(truth.ask(503)), path="/code/503"))
            self.assertEqual(c.reply()[0], 503)
            c.send(request(body(truth.ask()), path="/chunked"))
            self.assertEqual(c.reply()[0], 200)
            c.send(request(body(truth.ask()), path="/close"))
            self.assertEqual(c.reply()[0], 200)

    def test_basics_asyncio(self):
        self.served("asyncio", self.basics)

    def test_basics_http_server(self):
        self.served("server", self.basics)

    def test_basics_libc(self):
        self.served("asyncio", self.basics, {"SILENTPIN_SOCKETS": "libc"})

    def test_basics_syscall(self):
        self.served("server", self.basics, {"SILENTPIN_SOCKETS": "syscall"})

    def test_fake_host(self):
        """A room asked for with host 2.2.2.2 is a health check: it needs no peer."""
        truth = Asked(2)
        with Peer.http("asyncio") as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            fake, real = truth.ask(host=FAKE), truth.ask()
            with Client(int(target.hello[1])) as c:
                c.post(fake, host=FAKE)
                c.post(real)
            self.finish(watch, truth)
            with contextlib.closing(sqlite3.connect(watch.db)) as c:
                told = dict(c.execute("SELECT room, fake FROM life"))
            self.assertTrue(told[str(fake)], told)
            self.assertFalse(told[str(real)], told)

    def test_pipelining(self):
        """Many requests before the first reply; replies in their order."""
        def talk(truth, port, _):
            with Client(port) as c:
                codes = [200, 503, 200, 500, 200] * 8
                c.send(b"".join(request(body(truth.ask(code, n=i % 3 or None)), path=f"/code/{code}")
                                for i, code in enumerate(codes)))
                self.assertEqual([c.reply()[0] for _ in codes], codes)
        self.both(talk)

    def test_chunked_requests(self):
        def talk(truth, port, _):
            with Client(port) as c:
                for i in range(30):
                    data = body(truth.ask())
                    cuts = sorted(truth.random.sample(range(1, len(data)), i))
                    c.send(request(data, chunks=cuts))
                    self.assertEqual(c.reply()[0], 200)
        self.both(talk)

    def test_chunks_of_one_byte(self):
        def talk(truth, port, _):
            with Client(port) as c:
                data = body(truth.ask(n=2))
                c.send(request(data, chunks=range(1, len(data))))
                self.assertEqual(c.reply()[0], 200)
        self.both(talk)

    def test_expect(self):
        """Expect: 100-continue: the informational reply is none."""
        def talk(truth, port, _):
            with Client(port) as c:
                for _ in range(3):
                    data = body(truth.ask())
                    head, _, rest = request(data, headers=["Expect: 100-continue"]).partition(b"\r\n\r\n")
                    c.send(head + b"\r\n\r\n")
                    self.assertEqual(c.reply()[0], 100)
                    c.send(rest)
                    self.assertEqual(c.reply()[0], 200)
        self.both(talk)

    def test_prompts_that_look_like_requests(self):
        def talk(truth, port, _):
            with Client(port) as c:
                for prompt in ('"bootstrap_room": 77', '\\"bootstrap_room\\": 78, ', '{"bootstrap_room": 79}',
                               '\\', '\\\\"', 'bootstrap_room', "\u2028\"bootstrap_room\":80,\"", '\n"\t\\u0022',
                               "POST /generate HTTP/1.1\r\nContent-Length: 22\r\n\r\n{\"bootstrap_room\": 81}"):
                    c.post(truth.ask(), prompt=prompt)
                    c.post(truth.ask(), prompt=prompt, last=False)
                    c.post(None, prompt=prompt)
                    # not of the outermost object
                    c.post(None, inner={"bootstrap_room": 82}, more=[{"bootstrap_room": 83}, "bootstrap_room", 84])
                    c.post(None, bootstrap_rooms=85, xbootstrap_room=86)
        self.both(talk)

    def test_numbers(self):
        """Rooms as the wire allows them: the largest, spaces and newlines around; null is no room."""
        def talk(truth, port, _):
            with Client(port) as c:
                for room, text in (((1 << 63) - 1, b'{"bootstrap_room"\n:\t %d\r\n}'), (64, b'{ "bootstrap_room":%d}'),
                                   (1 << 40, b'{"a":[],"bootstrap_room" : %d ,"b":{}}')):
                    for what in (("arrive", str(room), None, None), ("reply", str(room), "first", 200),
                                 ("reply", str(room), "end", 200)):
                        truth.said[what] += 1
                    c.send(request(text % room))
                    self.assertEqual(c.reply()[0], 200)
                for text in (b'{"bootstrap_room": null}', b'{"bootstrap_room": []}', b'{"bootstrap_room": {"a": 91}}',
                             b'[{"bootstrap_room": 92}]', b'"bootstrap_room"', b"", b"{", b'{"bootstrap_room'):
                    c.send(request(text))
                    self.assertEqual(c.reply()[0], 200)
        self.both(talk)

    def test_body_of_16_megabytes(self):
        """The room at its end, behind a prompt full of quotes."""
        def talk(truth, port, _):
            with Client(port) as c:
                for prompt in ("x" * (16 << 20), 'say "bootstrap_room": 7, \\ ' * 600_000):
                    self.assertEqual(c.post(truth.ask(), prompt=prompt)[0], 200)
        self.both(talk)

    def test_curl(self):
        """Keep-alive, Expect (curl sends it for large bodies), chunked uploads."""
        def talk(truth, port, _):
            with tempfile.TemporaryDirectory(prefix="silentpin-test-") as folder:
                files = []
                for i, size in enumerate((10, 3000, 2_000_000)):
                    files.append(os.path.join(folder, str(i)))
                    with open(files[-1], "wb") as f:
                        f.write(body(truth.ask(), prompt="p" * size))
                url = f"http://127.0.0.1:{port}/generate"
                words = ["curl", "-sS", "--fail", "-H", "Expect: 100-continue"]
                for file in files:
                    words += ["--data-binary", f"@{file}", url, "--next", "-sS", "--fail"]
                with open(os.path.join(folder, "3"), "wb") as f:
                    f.write(body(truth.ask(n=2), prompt="p" * 100_000))
                words += ["-H", "Transfer-Encoding: chunked", "-H", "Content-Type: application/json",
                          "--data-binary", f"@{f.name}", url]
                got = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                                     check=False)
                self.assertEqual(got.returncode, 0, got.stderr)
                self.assertEqual(got.stdout.count(b'"got"'), 4)
        self.both(talk)

    def test_python_client(self):
        def talk(truth, port, _):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            for i in range(50):
                c.request("POST", "/generate", body(truth.ask(n=i % 4 or None)),
                          {"Content-Type": "application/json"})
                self.assertEqual(c.getresponse().read().count(b"got"), 1)
            c.request("POST", "/generate", iter([body(truth.ask())]), {"Transfer-Encoding": "chunked"},
                      encode_chunked=True)
            self.assertEqual(json.loads(c.getresponse().read())["got"], len(body(1 << 62)))
            c.close()
        self.both(talk)

    def test_client_gone(self):
        """Closed or reset before the answer; another that waits is answered."""
        truth = Asked(3)
        with Peer.http("asyncio") as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            port = int(target.hello[1])
            gone, many, stays = truth.ask(answered=False), truth.ask(answered=False, n=2), truth.ask()
            one, two, three = Client(port), Client(port), Client(port)
            for c, room in ((one, gone), (two, many), (three, stays)):
                c.send(request(body(room), path="/hold"))
            sp.wait_for(lambda: sum(k[0] == "arrive" for k in heard(watch.db).elements()) == 4, 20, "arrivals",
                        every=0.05)
            one.close()
            two.sock.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER 0: a reset
            two.close()
            for room in (gone, *many):
                truth.gone(room)
            sp.wait_for(lambda: sum(k[2] == "client-gone" for k in heard(watch.db).elements()) == 3, 20,
                        "clients gone", every=0.05)
            target.tell("go")
            self.assertEqual(three.reply()[0], 200)
            three.close()
            sp.wait_for(lambda: truth.said <= heard(watch.db), 20, lambda: f"{truth.said - heard(watch.db)}",
                        every=0.05)
            watch.stop()
            # what the server still writes to those who have gone is a reply to nobody, seen or not
            got = collections.Counter({k: n for k, n in heard(watch.db).items()
                                       if not (k[0] == "reply" and k[1] in {str(r) for r in (gone, *many)})})
            self.assertEqual(got, truth.said)

    def test_answered_unseen(self):
        """An answer that no watched call has sent, as in the moment of the attach, and the connection ends: the client
        has not gone unanswered; nobody knows."""
        truth = Asked(4)
        with Peer.http("server") as target, SockWatch(target.pid, PROFILE_HTTP,
                                                      env={"SILENTPIN_SOCKETS": "libc"}) as watch:
            room = truth.ask(answered=False)
            with Client(int(target.hello[1])) as c:
                c.send(request(body(room), path="/unseen"))
                self.assertEqual(c.reply()[0], 200)
            [lost] = watch.wait_peer("untracked", room=str(room))
            self.assertEqual(lost["note"], "bytes passed unseen")
            self.finish(watch, truth)

    def test_reset_behind_the_answer(self):
        """A client that has its answer and resets: often before the server's thread is back from its call, which
        tells of the answer. Nobody has gone unanswered."""
        def talk(truth, port, _):
            def clients(rooms):
                for room in rooms:
                    with Client(port) as c:
                        self.assertEqual(c.post(room)[0], 200)
                        c.sock.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER 0: a reset
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(clients, [[truth.ask() for _ in range(100)] for _ in range(4)]))
        self.served("asyncio", talk)

    def test_abort_request(self):
        """A request to the profile's abort path with a rid aborts that request."""
        truth = Asked(4)
        with Peer.http("asyncio") as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            room = truth.ask(rid="r-1")
            with Client(int(target.hello[1])) as held, Client(int(target.hello[1])) as other:
                held.send(request(body(room, rid="r-1"), path="/hold"))
                sp.wait_for(lambda: heard(watch.db), 20, "the arrival", every=0.05)
                other.send(request(b'{"rid": "r-1"}', path="/abort_request"))
                self.assertEqual(other.reply()[0], 200)
                sp.wait_for(lambda: any(k[0] == "abort" for k in heard(watch.db)), 20, "the abort", every=0.05)
                aborts = [(r, d.get("rid")) for role, r, _, d in rows(watch.db) if role == "abort"]
                self.assertEqual([a for a in aborts if a[0] == str(room) or a[1] == "r-1"], aborts)
                self.assertEqual(len(aborts), 1)
                target.tell("go")
                self.assertEqual(held.reply()[0], 200)


class Splits(HttpCase):
    """A server whose reads are decided here: where its reads are cut is where the kernel side's are."""

    def answer(self, target, fd):
        target.ok("write", "send", fd, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".hex())

    def every_split(self, request_of, env=None, static=False):
        truth = Asked(5)
        with Peer.calls(static) as target, SockWatch(target.pid, PROFILE_HTTP, env=env) as watch:
            with Client(int(target.ok("listen"))) as c:
                fd = target.ok("accept")
                for cut in range(1, len(request_of(1 << 62))):
                    data = request_of(truth.ask())
                    c.send(data)
                    target.ok("read", "recv", fd, cut)
                    target.ok("read", "recv", fd, len(data) - cut)
                    self.answer(target, fd)
                    self.assertEqual(c.reply()[0], 200)
                self.finish(watch, truth)

    def test_every_split(self):
        self.every_split(lambda room: request(body(room, prompt='a "b" \\ c')))

    def test_every_split_chunked(self):
        self.every_split(lambda room: request(body(room, prompt='a "b" \\ c', space=False), chunks=[30, 100, 160]))

    def test_static_program(self):
        self.every_split(lambda room: request(body(room, prompt="short", space=False)),
                         {"SILENTPIN_SOCKETS": "syscall"}, static=True)

    def test_byte_by_byte(self):
        truth = Asked(6)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            with Client(int(target.ok("listen"))) as c:
                fd = target.ok("accept")
                for call in ("read", "recv", "recvfrom", "readv", "recvmsg", "recvmmsg"):
                    for size in (1, 3, 65536):
                        data = request(body(truth.ask(n=2)))
                        c.send(data)
                        target.ok("read", call, fd, len(data), size)
                        self.answer(target, fd)
                        self.assertEqual(c.reply()[0], 200)
                self.finish(watch, truth)

    def test_reply_calls(self):
        """The reply in every way of writing, and byte by byte."""
        truth = Asked(7)
        reply = b"HTTP/1.1 503 Service Unavailable\r\nX: y\r\nContent-Length: 12\r\n\r\nHTTP/1.1 200"
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            with Client(int(target.ok("listen"))) as c:
                fd = target.ok("accept")
                for call in ("write", "send", "sendto", "writev", "sendmsg", "sendmmsg"):
                    for size in (1, 20, 65536):
                        data = request(body(truth.ask(503)))
                        c.send(data)
                        target.ok("read", "recv", fd, len(data))
                        target.ok("write", call, fd, reply.hex(), size)
                        self.assertEqual(c.reply(), (503, b"HTTP/1.1 200"))
                self.finish(watch, truth)

    def test_reply_body_by_sendfile(self):
        """The body of a reply is not looked at: that it passes unseen does no harm."""
        for call in ("sendfile", "splice"):
            truth = Asked(8)
            with self.subTest(call), Peer.calls() as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
                with Client(int(target.ok("listen"))) as c:
                    fd = target.ok("accept")
                    for _ in range(3):
                        data = request(body(truth.ask()))
                        c.send(data)
                        target.ok("read", "recv", fd, len(data))
                        target.ok("write", "send", fd, b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n".hex())
                        target.ok("write", call, fd, (b"z" * 50000).hex())
                        self.assertEqual(c.reply()[0], 200)
                    self.finish(watch, truth)

    def test_not_http(self):
        """What begins otherwise is nobody's."""
        truth = Asked(9)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            port = int(target.ok("listen"))
            for data in (b"\x16\x03\x01\x02\x00" + request(body(truth.room())), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                         b"\0" + request(body(truth.room())), b"POSTMAN /x\r\n\r\n" + request(body(truth.room()))):
                with Client(port) as c:
                    c.send(data)
                    fd = target.ok("accept")
                    target.ok("read", "recv", fd, len(data))
                    target.ok("close", fd)
            with Client(port) as c:
                data = request(body(truth.ask(answered=False)))
                c.send(data)
                fd = target.ok("accept")
                target.ok("read", "recv", fd, len(data))
                self.finish(watch, truth)

    def test_compressed_body(self):
        """Cannot be searched: no event of it. The next request is seen."""
        truth = Asked(11)
        with Peer.calls() as target, SockWatch(target.pid, PROFILE_HTTP) as watch:
            with Client(int(target.ok("listen"))) as c:
                fd = target.ok("accept")
                for data in (request(body(1 << 62), headers=["Content-Encoding: gzip"]), request(body(truth.ask()))):
                    c.send(data)
                    target.ok("read", "recv", fd, len(data))
                    self.answer(target, fd)
                    self.assertEqual(c.reply()[0], 200)
                self.finish(watch, truth)

    def test_attach_to_a_connection_that_is_kept_alive(self):
        """Idle for a second: the next request is known by its complete head."""
        truth = Asked(10)
        with Peer.calls() as target, Client(int(target.ok("listen"))) as c:
            fd = target.ok("accept")
            before = request(body(Truth(11).room()))
            c.send(before)
            target.ok("read", "recv", fd, len(before))
            self.answer(target, fd)
            c.reply()
            idle = sp.time.monotonic()
            with SockWatch(target.pid, PROFILE_HTTP) as watch:
                sp.wait_for(lambda: sp.time.monotonic() > idle + 1.2, 5, "a second")
                for _ in range(3):
                    data = request(body(truth.ask()))
                    c.send(data)
                    target.ok("read", "recv", fd, len(data))
                    self.answer(target, fd)
                    self.assertEqual(c.reply()[0], 200)
                self.finish(watch, truth)


if __name__ == "__main__":
    unittest.main()
