# SPDX-License-Identifier: Apache-2.0
"""The ferryman and the peers that it ships to."""
import os
import socket
import struct
import subprocess
import threading

WIRE = struct.Struct("<IIQiI48s32s")
LABEL = struct.Struct("<IIQiI64s")
HAIL, WAVE_OFF, RECEIPT, CARGO, FAREWELL = range(1, 6)
SIZE = 4096


def checksum(data):
    total = 0
    for byte in data:
        total = (total * 31 + byte) % 2 ** 32
    return total


class Peer:
    """One connection: hails, answers cargo with receipts, hears farewells."""

    def __init__(self, port, name):
        self.name = name
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.mute, self.codes = set(), {}
        self.farewells, self.cargo, self.spoiled, self.kept = {}, {}, [], {}
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def send(self, word, room="", need=0, handle=0, code=0):
        with self.lock:
            self.sock.sendall(WIRE.pack(word, need, handle, code, 0, room.encode(), self.name.encode()))

    def hail(self, room, need=1):
        self.send(HAIL, room, need)

    def _read(self, size):
        got = b""
        while len(got) < size:
            more = self.sock.recv(size - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def _serve(self):
        try:
            while True:
                word, size, handle, code, seal, tag = LABEL.unpack(self._read(LABEL.size))
                tag = tag.rstrip(b"\0").decode()
                data = self._read(size)
                if word == FAREWELL:
                    self.farewells[tag] = code
                else:
                    self._take(handle, tag, data, seal)
        except (EOFError, OSError):
            return

    def _take(self, handle, tag, data, seal):
        room = tag.split("/")[0]
        if data != bytes((ord(room[0]) + i) % 256 for i in range(SIZE)) or seal != checksum(data):
            self.spoiled.append(tag)
        self.cargo.setdefault(room, []).append(tag)
        if room in self.mute and "/meta/" in tag:
            self.kept[room] = handle
            return
        self.send(RECEIPT, handle=handle, code=self.codes.get(room, 0) if "/kv/1/" in tag else 0)

    def answer(self, room):
        """The receipt that was kept back."""
        self.send(RECEIPT, handle=self.kept[room])

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.sock.close()


class Ferryman:
    def __init__(self, build, workers=4):
        self.p = subprocess.Popen([os.path.join(build, "fourth", "ferryman"), str(workers)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.pid = self.p.pid
        self.port = int(self.p.stdout.readline().split()[1])

    def say(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()
        answer = self.p.stdout.readline()
        assert answer == "ok\n", (line, answer)

    def close(self):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()
