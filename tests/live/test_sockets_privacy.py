# SPDX-License-Identifier: Apache-2.0
"""Prompts stay in the target. A marker goes through it as a prompt, as a pickled message and as frames that no
pattern names; then it is looked for wherever silentpin is, has been or has spoken."""
import json
import os
import pickle
import secrets
import subprocess
import unittest

import sp
from sock_case import PROFILE_ALL, Peer, SockCase, SockWatch, Truth
from http_client import Client, body, request
from test_sockets_http import heard
from test_sockets_zmtp import Pushers

VERBS = (("rooms",), ("rooms", "--json"), ("timeline",), ("explain",), ("replay",), ("replay", "--alerts", "json"))


def memory_of(pid):
    """Every readable mapping, the ring buffer with it: (name, bytes)."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            words = line.split(maxsplit=5)
            name = words[5].strip() if len(words) > 5 else ""
            if words[1][0] != "r" or name in ("[vvar]", "[vvar_vclock]", "[vsyscall]"):
                continue
            at, end = (int(x, 16) for x in words[0].split("-"))
            mem.seek(at)
            out = b""
            try:
                while at + len(out) < end and (piece := mem.read(min(1 << 24, end - at - len(out)))):
                    out += piece
            except OSError as e:
                if "bpf" in name:
                    raise AssertionError(f"{line}: {e}") from e
            yield name, out


def bytes_in(value):
    """The bytes of all keys and values of `bpftool -j map dump`."""
    if isinstance(value, list) and value and all(isinstance(v, str) and v.startswith("0x") for v in value):
        yield bytes(int(v, 16) for v in value)
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from bytes_in(inner)


def bpf_maps():
    """(name, contents, text of bpftool) of silentpin's maps, whoever's watch they are."""
    tool = next((t for t in ("/usr/sbin/bpftool", "/usr/bin/bpftool") if os.path.exists(t)), "bpftool")
    shown = subprocess.run([tool, "-j", "map", "show"], stdout=subprocess.PIPE, check=True).stdout
    for one in json.loads(shown):
        name = one.get("name", "")
        if not name.startswith("sp_") or one["type"] == "ringbuf":
            continue
        dump = subprocess.run([tool, "-j", "map", "dump", "id", str(one["id"])], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if dump.returncode == 0:  # it may have gone with its watch
            yield name, b"\n".join(bytes_in(json.loads(dump.stdout))), dump.stdout


class Privacy(SockCase):
    def setUp(self):
        self.marker = "marker" + secrets.token_hex(8)
        self.spoken = self.marker.encode()
        # where a piece of it may be left, too
        self.pieces = [self.spoken[i:i + 12] for i in range(0, len(self.spoken) - 11)]

    def search(self, data, where):
        for piece in self.pieces:
            self.assertNotIn(piece, data, f"a piece of the prompt is in {where}")

    def prompts(self, truth, target, port, endpoint):
        """Every way in which a prompt passes through the target."""
        room = truth.room()
        prompt = f"{self.marker} " * 500
        with Client(port) as c:
            for more in ({}, {"last": False}, {"note": self.marker}, {self.marker: self.marker}):
                c.post(room, prompt=prompt, **more)
            c.send(request(body(room, prompt=prompt), path="/generate?" + self.marker,
                           headers=[f"Cookie: {self.marker}"]))
            c.reply()
            c.send(request(body(room, prompt=prompt), chunks=range(7, 3000, 7)))
            c.reply()
        with Pushers(endpoint) as push:
            push.send([pickle.dumps({"text": prompt, "rid": self.marker})])
            push.send([self.marker, self.marker])
            for size in (1, 50, 5000):
                push.send([pickle.dumps([self.marker] * size), self.marker * size])
            push.send(truth.metadata((self.marker * 100).encode(), more=[self.marker, self.marker * 1000]))
            sp.wait_for(lambda: int(target.do("count")) == 6, 20, "all messages received")
        return str(room)

    def watched(self, env):
        truth = Truth(50)
        with Peer.pyzmq() as target, Peer.http("asyncio") as front, \
                SockWatch(f"{target.pid},{front.pid}", PROFILE_ALL, "-v", env=env) as watch:
            endpoint = target.do("bind", "tcp://127.0.0.1:*")
            room = self.prompts(truth, target, int(front.hello[1]), endpoint)
            watch.wait_said(1)
            sp.wait_for(lambda: sum(k[0] == "reply" for k in heard(watch.db).elements()) >= 12, 20,
                        lambda: f"replies: {heard(watch.db)}")
            found = {name: data.count(b"agent-1") + data.count(room.encode()) for name, data in
                     memory_of(watch.p.pid)}
            self.assertTrue(any(found.values()), "what is told is found in memory, so a prompt would be")
            self.assertTrue([name for name in found if "bpf" in name], "the ring buffer is among the mappings")
            for name, data in memory_of(watch.p.pid):
                self.search(data, f"the memory of silentpin, {name}")
            names = set()
            for name, data, text in bpf_maps():
                names.add(name)
                self.search(data, f"the BPF map {name}")
                self.search(text, f"the BPF map {name}")
            self.assertIn("sp_conns", names)
            watch.stop()
            self.assert_said(watch.db, truth)
            self.search("\n".join([*watch.err, *watch.bad_lines, json.dumps(watch.alerts)]).encode(),
                        "what watch said")
            for suffix in ("", "-wal", "-shm"):
                if os.path.exists(watch.db + suffix):
                    with open(watch.db + suffix, "rb") as f:
                        self.search(f.read(), "the recording" + suffix)
            for verb in VERBS:
                args = [*verb, "-i", watch.db] if verb[0] != "replay" else [verb[0], watch.db, *verb[1:]]
                if verb[0] in ("timeline", "explain"):
                    args = [verb[0], room, "-i", watch.db]
                p = sp.run(*args)
                self.assertIn(p.returncode, (0, 3), p.stderr)
                self.search((p.stdout + p.stderr).encode(), " ".join(verb))

    def test_default(self):
        self.watched(None)

    def test_libc(self):
        self.watched({"SILENTPIN_SOCKETS": "libc"})

    def test_syscall(self):
        self.watched({"SILENTPIN_SOCKETS": "syscall"})


if __name__ == "__main__":
    unittest.main()
