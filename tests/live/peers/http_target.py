#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server to be watched: http_target.py asyncio|server. Says "port N" on stdout.

POST anything: 200 with the number of bytes that came. /code/N: N as status. /chunked, /close: a chunked
reply, one that ends with the connection. /unseen (server): a system call of its own sends the reply and ends the
connection. /hold: no reply before a line comes on
stdin (asyncio: none when the client closes meanwhile).
"""
import asyncio
import ctypes
import http.server
import json
import platform
import sys
import threading

STATUS = {200: "OK", 503: "Service Unavailable", 500: "Internal Server Error", 400: "Bad Request"}
held = threading.Event()


def reply(path, n):
    """The bytes of a reply, and whether the connection goes on."""
    data = json.dumps({"got": n, "text": "x" * 100}).encode()
    code = int(path.rpartition("/")[2]) if path.startswith("/code/") else 200
    head = f"HTTP/1.1 {code} {STATUS[code]}\r\nContent-Type: application/json\r\n".encode()
    if path == "/chunked":
        return (head + b"Transfer-Encoding: chunked\r\n\r\n"
                + b"".join(b"%x\r\n%s\r\n" % (len(d), d) for d in (data[:9], data[9:], b"")), True)
    if path == "/close":
        return head + b"Connection: close\r\n\r\n" + data, False
    return head + b"Content-Length: %d\r\n\r\n" % len(data) + data, True


async def read_body(reader, headers):
    if headers.get("transfer-encoding") != "chunked":
        return len(await reader.readexactly(int(headers.get("content-length", 0))))
    total = 0
    while size := int((await reader.readline()).split(b";")[0], 16):
        await reader.readexactly(size + 2)
        total += size
    while await reader.readline() != b"\r\n":
        pass
    return total


async def answer_is_wanted(reader):
    """After a line on stdin; False: the client has closed before, which ends its request."""
    gone = asyncio.ensure_future(reader.read(1))
    while not held.is_set() and not gone.done():
        await asyncio.wait([gone], timeout=0.01)
    if gone.done():
        gone.exception()  # a reset; looked at, or it is complained of
        return False
    gone.cancel()
    await asyncio.wait([gone])
    return True


async def on_connection(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in head[1:])}
            path = head[0].split(" ")[1]
            if headers.get("expect"):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            n = await read_body(reader, headers)
            if path == "/hold" and not await answer_is_wanted(reader):
                break
            data, on = reply(path, n)
            writer.write(data)
            await writer.drain()
            if not on:
                break
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def asyncio_server():
    server = await asyncio.start_server(on_connection, "127.0.0.1", 0, limit=1 << 20)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        n = 0
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                n += len(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline() != b"\r\n":
                pass
        else:
            n = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if self.path == "/hold":
            held.wait()
        data, on = reply(self.path, n)
        if self.path == "/unseen":
            write = {"x86_64": 1, "aarch64": 64}[platform.machine()]
            ctypes.CDLL(None).syscall(write, self.connection.fileno(), data, len(data))
            on = False
        else:
            self.wfile.write(data)
        self.close_connection = not on

    do_GET = do_POST

    def log_message(self, *args):
        pass


def wait_for_line():
    for _ in sys.stdin:
        held.set()


def main():
    threading.Thread(target=wait_for_line, daemon=True).start()
    if sys.argv[1] == "asyncio":
        asyncio.run(asyncio_server())
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print("port", server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
