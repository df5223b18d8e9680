#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write the inputs that the corpus grew from: tests/fuzz/seeds.py FOLDER -> FOLDER/{zmtp,http,elf,...}.

`make fuzz-corpus` fuzzes from these and from the kept corpus, and keeps the smallest set of inputs
that reaches as much of the decoders.
"""
import os
import struct
import sys

NULL = b"\xff" + bytes(7) + b"\1\x7f\3\0NULL" + bytes(16 + 32)
READY = b"\4\x1a\5READY\x0bSocket-Type\0\0\0\4PULL"
CRLF = b"\r\n"
KEYS = b'"bootstrap_room":%d,"bootstrap_host":"10.0.0.7","rid":"a1"'


def frame(body, more=0, command=0, long=False):
    flags = more | command << 2
    if long or len(body) > 255:
        return bytes([flags | 2]) + struct.pack(">Q", len(body)) + body
    return bytes([flags, len(body)]) + body


def message(*parts, long=False):
    return b"".join(frame(p, int(i + 1 < len(parts)), long=long) for i, p in enumerate(parts))


def zmtp():
    ping = frame(b"\4PING\0\0", command=1)
    yield 0, NULL + READY + message(b"NixlMsgGuard", b"17", b"10.0.0.1", b"5000", b"agent", bytes(64))
    for name in (b"PLAIN", b"CURVE", b"GSSAPI", b"OTHER"):
        yield 0, NULL[:12] + name.ljust(20, b"\0") + bytes(32) + READY
    for head in (b"\1\0", b"\6\0hello", b"\xff" + bytes(8) + b"\0", NULL[:10] + b"\1\0", b"\0"):
        yield 0, head + bytes(8)
    yield 1, message(b"ABORT", b"5") + ping + message(b"", b"", b"x")
    yield 1, message(b"a", b"b" * 63, b"c" * 64, b"d" * 65, b"e" * 300) + message(b"f", long=True)
    yield 1, frame(b"a", 1) + ping + frame(b"\1x", 0) + frame(b"\x09SUBSCRIBEa", command=1)
    yield 1, b"\2\0\0\1" + bytes(5) + b"abc"
    for bad in (b"\5\1\1", b"\4\0", b"\4\1\5", b"\x80", b"\2\x80" + bytes(7), b"\2\0\0\1\0\0\0\0\1"):
        yield 1, frame(b"x") + bad


def chunked(body, size):
    parts = [body[i:i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x%s" % (len(p), CRLF) + p + CRLF for p in parts) + b"0" + CRLF + CRLF


def request(body, headers=b"", size=0):
    frame_ = b"Transfer-Encoding: chunked" if size else b"Content-Length: %d" % len(body)
    head = b"POST /generate?a=b HTTP/1.1" + CRLF + headers + frame_ + CRLF + CRLF
    return head + (chunked(body, size) if size else body)


def bodies():
    yield b"{" + KEYS % 7 + b"}"
    yield b'{"text":"\\"bootstrap_room\\":1 \\\\\\\\", ' + KEYS % (2**64 - 1) + b" }"
    yield b'{"a":{"bootstrap_room":1,"b":[1,"]",{}]},"c":[[[]]],' + KEYS % 0 + b"}"
    yield b'{"bootstrap_room":[1,null,-2,3.5,"x",[4],{"y":5},6],"rid":["a","b\\n"],"bootstrap_host":[]}'
    yield b'{"rid":"' + b"r" * 70 + b'","bootstrap_room":18446744073709551616,"bootstrap_room":9e9}'
    yield b'\xef\xbb\xbf [{"rid":1}]'
    yield b'{ "bootstrap_roo" : 1 , "rid\\u0064" : 2 , "rid" : true }'
    yield b'{"input_ids":[' + b",".join(b"%d" % i for i in range(40)) + b'],"rid":"q"}'


def http():
    for body in bodies():
        for size in (0, 1, 5, 1000):
            yield 0, 7, request(body, size=size)
        for seed in (7, 90):
            yield 16, seed, body
    yield 0, 3, request(b"abc", b"Expect: 100-continue\r\nX: a\r\n b\r\n") * 3
    yield 0, 3, request(b"abc", b"Content-Encoding: gzip, identity\r\nContent-Length: 3, 3\r\n")
    yield 0, 3, request(b"abc", b"Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", 2)
    for line in (b"GET http://h/p?q HTTP/1.0", b"OPTIONS * HTTP/1.1", b"CONNECT h:1 HTTP/1.1",
                 b"PRI * HTTP/2.0", b"GET /", b"get /a#b HTTP/1.1\nHost: x\n"):
        yield 0, 1, CRLF + line + CRLF + CRLF + b"GET / HTTP/1.1" + CRLF + CRLF
    yield 0, 9, b"POST / HTTP/1.1\nTransfer-Encoding:chunked\n\n1;x\na\r\n00\nTrailer: 1\n\nGET"
    for status in (b"100 Continue", b"101 Up", b"200 OK", b"204 No", b"304 Not", b"404"):
        for more in (b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Content-Length : 0",
                     b"Transfer-Encoding: chunked, gzip;a"):
            reply = b"HTTP/1.1 " + status + CRLF + more + CRLF + CRLF
            for switches in (1, 5, 9):
                yield switches, 5, (reply + b"3\r\n") * 2
    for text in (b'plain \\" text', b"\\\\\\", b'""""', b'{"rid":"x"}]}', b"\xff" * 40, b"\\u0041" * 9):
        yield 2, 77, text


# What fuzz_sockets.c makes of bytes: an operation, then 0x80: the front, | milliseconds.
REQUEST, VALUE, REQUEST_END, REPLY, REPLY_END = range(1, 6)
OPEN, KIND, TRUST, LOST, UNREADABLE, EOF, CLOSED, RESET = range(1, 9)
RELEASE = b"\7"


def rec_http(what, conn=1, req=1, key=0, index=255, text=b"", num=None, code=200):
    b = conn | what << 2 | (num is not None) << 5
    return bytes([0, 0x81, b, req, num or req, code // 4, key, index, len(text)]) + text


def rec_conn(what, conn=1, rule=0, why=0, out=0, front=0):
    return bytes([3, 1 | front << 7, conn | what << 2 | 0x40,
                  why | out << 4 | (2 if rule == 1 else 1) << 5 | 0x80, rule, 2, 9, 9, 16]) + \
        b"\x0a\0\0\7" + bytes(12)


def rec_message(probe, *frames, conn=0, out=0):
    b = probe | out << 2 | conn << 3 | (len(frames) - 1) << 5
    return bytes([5, 1, b]) + b"".join(bytes([0, len(f)]) + f for f in frames)


def sockets():
    opened = b"".join(rec_conn(w, rule=1, front=1) for w in (OPEN, KIND))
    asked = rec_http(REQUEST, text=b"POST /generate") + rec_http(VALUE, num=7) + \
        rec_http(VALUE, key=1, text=b"10.0.0.7") + rec_http(VALUE, key=2, text=b"r1") + \
        rec_http(REQUEST_END)
    replied = rec_http(REPLY) + rec_http(REPLY_END)
    yield b"", opened + asked + replied + RELEASE + rec_conn(CLOSED, rule=1)
    yield b"", opened + asked + rec_conn(RESET, rule=1) + RELEASE
    yield b"", opened + asked + rec_conn(LOST, rule=1, why=1, out=1) + rec_conn(UNREADABLE, rule=1, why=10)
    lists = b"".join(rec_http(VALUE, key=k, index=i, num=5 + i % 9 if k == 0 else None, text=b"x" * (k > 0))
                     for k in range(3) for i in (254, 0, 1))
    yield b"", opened + rec_http(REQUEST, text=b"POST /g") + lists + rec_http(REQUEST_END) + replied
    yield b"", opened + rec_http(REQUEST, text=b"POST /abort_request") + \
        rec_http(VALUE, key=2, text=b"r1") + rec_http(REQUEST_END) + replied + asked
    meta = (b"G", b"7", b"10.0.0.7", b"agent")
    zmtp_conn = rec_conn(OPEN) + rec_conn(KIND)
    yield b"", zmtp_conn + rec_message(1, *meta) + rec_message(0, *meta) + RELEASE * 2
    yield b"", rec_message(0, *meta) + zmtp_conn + rec_message(1, *meta) + rec_conn(EOF) + rec_conn(CLOSED)
    yield b"", zmtp_conn + rec_message(1, b"A", b"7") + b"\7" + rec_message(3, b"7", b"4", out=1) + \
        rec_message(3, b"7", b"4") + rec_conn(TRUST)
    yield b"", zmtp_conn + rec_message(1, *meta) + b"\6\1\1\1" + rec_conn(RESET) + RELEASE


def change(where, what):
    return struct.pack("<HQ", where, what & 2**64 - 1)


def elf():
    """The offsets are those of tests/unit/elf_image.h."""
    for machine in (0, 1):
        yield machine, 0
        for where in (0x12, 0x20, 0x28, 0x38, 0x48, 0x50, 0x60, 0x80, 0x98, 0xb8, *range(0x128, 0x1b0, 16),
                      0x1f8, 0x228, 0x230, 0x260, 0x268, 0x270, 0x278, 0x280, 0x290, 0x2d0, 0x2d8, 0x2e0,
                      0x300, 0x308, 0x318, 0x320, 0x328, 0x4c8, 0x4d8):
            for what in (0, 1, 2**64 - 8):
                yield machine, 1, change(where, what)
    push, call, jump, test = b"\x53", b"\xe8\xd0\xff\xff\xff", b"\xeb\xf0", b"\x74\x05"
    lea, cmov, spill = b"\x48\x8d\x35\0\xff\xff\xff", b"\x48\x0f\x44\xf0", b"\x48\x89\x74\x24\x08"
    load, fill, far = b"\x48\x8b\x74\x24\x08", b"\x48\x8b\x46\x08\x48\x89\x47\x10", b"\x48\xbe" + b"\x7f" * 8
    for code in (push + lea + test + lea + spill + load + call, lea + cmov + call + jump, fill * 5 + b"\xc3",
                 far + b"\x48\x83\xc6\x7f" + call + b"\xc3", lea + jump, b"\x0f\x05\x48\x3d\0\xf0\xff\xff\x77\x01\xc3\xc3"):
        yield 0, 0, code
    words = (0x90000001, 0x91000021, 0xf90007e1, 0xf94007e1, 0x54000040, 0x17fffffe, 0x9a810001, 0x97fffff2,
             0xd65f03c0, 0x580000a1, 0xd2effff1, 0xd4000001, 0xa9bf7bfd)
    for i in range(len(words)):
        yield 1, 0, struct.pack("<8I", *(words[(i + k * 3) % len(words)] for k in range(8)))


def main():
    for name, inputs in (("zmtp", zmtp()), ("http", http()), ("sockets", sockets()),
                         ("elf", elf())):
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        for i, parts in enumerate(inputs):
            with open(os.path.join(folder, f"seed-{i:03}"), "wb") as f:
                f.write(b"".join(bytes([p]) if isinstance(p, int) else p for p in parts))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
