# SPDX-License-Identifier: Apache-2.0
"""An HTTP client that says exactly what a test wants it to: requests as bytes, many at once or in pieces."""
import json
import socket


def body(room=None, host="10.0.0.9", prompt="why is the room pinned?", space=True, last=True, **more):
    """The JSON of a request; room: a number, a list, or None for a request without one."""
    keys = {} if room is None else {"bootstrap_host": host, "bootstrap_port": 8998,
                                    "bootstrap_room": room}
    first = {"text": prompt, "sampling_params": {"max_new_tokens": 16, "custom": [1, {"n": None}]}}
    whole = {**first, **more, **keys} if last else {**keys, **more, **first}
    return json.dumps(whole, separators=None if space else (",", ":")).encode()


def request(data, path="/generate", headers=(), chunks=None, method="POST"):
    """chunks: send it chunked, cut at these places."""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    if chunks is None:
        head.append(f"Content-Length: {len(data)}")
        return "\r\n".join(head).encode() + b"\r\n\r\n" + data
    head.append("Transfer-Encoding: chunked")
    out = "\r\n".join(head).encode() + b"\r\n\r\n"
    cuts = [0, *chunks, len(data)]
    for a, b in zip(cuts, cuts[1:]):
        if a < b:
            out += b"%x;name=value\r\n%s\r\n" % (b - a, data[a:b])
    return out + b"0\r\nX-Trailer: 1\r\n\r\n"


class Client:
    """A connection that is kept alive."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def send(self, *pieces):
        for piece in pieces:
            self.sock.sendall(piece)

    def _more(self):
        got = self.sock.recv(1 << 16)
        if not got:
            raise EOFError(self.buf[-200:])
        self.buf += got

    def _take(self, n):
        while len(self.buf) < n:
            self._more()
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def _head(self):
        while b"\r\n\r\n" not in self.buf:
            self._more()
        head, _, self.buf = self.buf.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        return int(lines[0].split(" ")[1]), {k.lower(): v.strip() for k, _, v in
                                             (line.partition(":") for line in lines[1:])}

    def reply(self):
        """The next reply: (code, body). A 100 Continue is one with an empty body."""
        code, headers = self._head()
        if code < 200:
            return code, b""
        if headers.get("transfer-encoding") == "chunked":
            out = b""
            while True:
                while b"\r\n" not in self.buf:
                    self._more()
                size, _, self.buf = self.buf.partition(b"\r\n")
                piece = self._take(int(size, 16) + 2)[:-2]
                if not piece:
                    return code, out
                out += piece
        if headers.get("connection") == "close" and "content-length" not in headers:
            return code, self._rest()
        return code, self._take(int(headers.get("content-length", 0)))

    def _rest(self):
        """A body without a length: what comes until the server closes."""
        while data := self.sock.recv(65536):
            self.buf += data
        out, self.buf = self.buf, b""
        return out

    def post(self, room, **more):
        self.send(request(body(room, **more)))
        return self.reply()

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
