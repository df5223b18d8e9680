# SPDX-License-Identifier: Apache-2.0
"""ZMTP 3 over a plain socket, byte for byte as a test wants it (RFC 23/ZMTP, RFC 24/ZMTP-PLAIN)."""
import socket
import struct
import time


def greeting(mechanism=b"NULL", as_server=False, major=3, minor=1):
    return (b"\xff" + struct.pack(">Q", 1) + b"\x7f" + bytes([major, minor])
            + mechanism.ljust(20, b"\0") + bytes([as_server]) + bytes(31))


def command(name, data=b""):
    body = bytes([len(name)]) + name + data
    if len(body) < 256:
        return bytes([4, len(body)]) + body
    return b"\x06" + struct.pack(">Q", len(body)) + body


def properties(**values):
    return b"".join(bytes([len(k)]) + k.encode() + struct.pack(">I", len(v)) + v
                    for k, v in ((k.replace("_", "-"), v) for k, v in values.items()))


def ready(kind=b"PUSH"):
    return command(b"READY", properties(Socket_Type=kind, Identity=b""))


def frame(data, more=False, long=None):
    """long: the eight-byte length, also where one byte would do."""
    if long or len(data) > 255:
        return bytes([2 | more]) + struct.pack(">Q", len(data)) + data
    return bytes([int(more), len(data)]) + data


def message(*frames, long=None):
    frames = [f if isinstance(f, bytes) else str(f).encode() for f in frames]
    return b"".join(frame(f, i < len(frames) - 1, long) for i, f in enumerate(frames))


def opening(kind=b"PUSH", mechanism=b"NULL", as_server=False, minor=1):
    """All that a side says before its first message."""
    out = greeting(mechanism, as_server, minor=minor)
    if mechanism == b"PLAIN":
        out += command(b"WELCOME") if as_server else command(b"HELLO", b"\x04user\x06secret")
        return out + (ready(kind) if as_server else
                      command(b"INITIATE", properties(Socket_Type=kind)))
    return out + ready(kind)


def pieces(data, cuts):
    """data cut at these places."""
    cuts = [0, *sorted(cuts), len(data)]
    return [data[a:b] for a, b in zip(cuts, cuts[1:]) if a < b]


class Connection:
    """One side of a connection with a real peer: the handshake is done on entry."""

    def __init__(self, where, kind=b"PUSH", nodelay=True):
        if isinstance(where, str):
            self.sock = socket.socket(socket.AF_UNIX)
        else:
            self.sock = socket.socket()
            where = ("127.0.0.1", where)
        self.sock.settimeout(20)
        self.sock.connect(where)
        if nodelay and self.sock.family == socket.AF_INET:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.sendall(opening(kind))
        self.read(64)
        self.read_frame()

    def read(self, n):
        got = b""
        while len(got) < n:
            more = self.sock.recv(n - len(got))
            if not more:
                raise EOFError(got)
            got += more
        return got

    def read_frame(self):
        flags = self.read(1)[0]
        size = struct.unpack(">Q", self.read(8))[0] if flags & 2 else self.read(1)[0]
        return flags, self.read(size)

    def send(self, data, cuts=(), pause=0.0):
        for piece in pieces(data, cuts):
            self.sock.sendall(piece)
            if pause:
                time.sleep(pause)

    def close(self):
        self.sock.close()

    def reset(self):
        """Close so that the peer sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
