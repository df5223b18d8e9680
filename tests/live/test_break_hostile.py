# SPDX-License-Identifier: Apache-2.0
"""A target whose texts and messages are out of all bounds: the watch goes on, what it writes stays
readable, and no prompt gets into it."""
import json
import os
import sqlite3
import subprocess
import sys
import time
import unittest

import zmq

import sp

# floods take all of the machine
ALONE = True

GUARD = b"NixlMsgGuard"
SECRET = b"zanzibarquux"


def metadata(room, agent=b"agent-1", need=b"2", prefix=b"0"):
    return [GUARD, room, b"127.0.0.1", b"41000", agent, b"kkkk", b"1", need, b"", prefix]


class Target:
    """targets/hostile.py, and a PUSH socket to it."""

    def __enter__(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets", "hostile.py")
        self.p = subprocess.Popen([sys.executable, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, env=dict(os.environ, SILENTPIN_BUILD=sp.BUILD))
        hello = json.loads(self.p.stdout.readline())
        self.pid = hello["pid"]
        self.socket = zmq.Context.instance().socket(zmq.PUSH)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.connect(f"tcp://127.0.0.1:{hello['port']}")
        self.sent = 0
        return self

    def __exit__(self, *exc):
        self.socket.close(0)
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()

    def send(self, *messages):
        for frames in messages:
            self.socket.send_multipart(frames)
            self.sent += 1

    def create(self, *texts):
        self.p.stdin.write(json.dumps([t.hex() for t in texts]) + "\n")
        self.p.stdin.flush()
        return json.loads(self.p.stdout.readline())

    def received(self):
        """Until all that was sent has been received."""
        sp.wait_for(lambda: self.create()["messages"] == self.sent, 30, "every message received")


class Hostile(unittest.TestCase):
    def watch(self, target, *args):
        return sp.Watch("-p", target.pid, "--record", "all", "--min-confidence", "possible",
                        "--stuck-after", "bootstrap=2s", "--stuck-after", "inflight=2s",
                        "--stuck-after", "ready=2s", *args)

    def settle(self, target, watch):
        """Until the model has seen what the target has done."""
        target.received()
        until = time.monotonic_ns()

        def passed():
            with sqlite3.connect(f"file:{watch.db}?mode=ro", uri=True) as c:
                return (c.execute("SELECT max(model_ns) FROM progress").fetchone()[0] or 0) > until
        sp.wait_for(passed, 20, "the model's time")

    def readable(self, watch):
        """Every line is JSON, the file is whole, and each room can be asked for by its name."""
        self.assertEqual(watch.bad_lines, [])
        with sqlite3.connect(f"file:{watch.db}?mode=ro", uri=True) as c:
            self.assertEqual(c.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        found = {row["room"] for row in sp.rooms(watch.db)}
        for room in sorted(found)[:6]:
            for verb in ("timeline", "explain"):
                p = sp.run(verb, "-i", watch.db, room)
                self.assertEqual(p.returncode, 0, p.stderr)
        p = sp.run("replay", watch.db, "--alerts", "json", "--min-confidence", "possible")
        self.assertIn(p.returncode, (0, 3), p.stderr)
        return found

    def test_texts(self):
        """Notifications and rooms of every shape: only what is a room becomes one."""
        good = [b"1000", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615"]
        bad = [b"", b"-1", b"007", b"18446744073709551616", b"9" * 10000, b"1e5", b"0x10", b" 1", b"1 ",
               b"+1", b"\xff\xfe", b"\n", b"None", b"\xd9\xa1\xd9\xa2", b"%s%n", b"';DROP TABLE event;--"]
        with Target() as target, self.watch(target) as watch:
            for room in good + bad:
                target.create(room + b"_kv_0_1_0", room + b"_aux", room + b"_aux_nokv_0", room)
                target.send(metadata(room), [b"ABORT", room, b"127.0.0.1", b"1"], [b"ABORT", room])
            target.create(b"\x01" * 200, bytes(range(1, 256)), b"1000_kv_99999999999_1_0", b"1000_kv_0_2_0",
                          b"1000_kv_-1_1_0", b"1000_kv_0_1_18446744073709551615", b"x" * 1000000,
                          b"1000_kv_0_1_0_part_0_18446744073709551615", b"1000_kv_0_1_0\n")
            self.settle(target, watch)
            watch.stop()
            self.assertEqual(self.readable(watch), {room.decode() for room in good})

    def test_messages(self):
        """Messages with a thousand frames, frames of 64 MB, counts that make no sense; then a normal one,
        which is understood."""
        with Target() as target, self.watch(target) as watch:
            target.send([GUARD] + [b"%d" % i for i in range(1000)], [GUARD], [b""], [b"", b""],
                        [b"x" * (64 << 20)], metadata(b"2000", agent=b"a" * (64 << 20)),
                        [GUARD] * 10, [b"ABORT"] * 2000, metadata(b"2001") + [b"y"] * 500,
                        *(metadata(b"2002", need=n) for n in (b"0", b"-1", b"99999999999999999999", b"", b"1" * 99)),
                        metadata(b"2003", agent=b""), metadata(b"2004", agent=b"\xff\0\n" * 20),
                        metadata(b"2005", prefix=b"-1"), metadata(b"3000", need=b"1"))
            self.settle(target, watch)
            watch.stop()
            found = self.readable(watch)
            self.assertTrue({"2000", "2002", "3000"} <= found, found)
            self.assertLess(len(found), 12, found)
            self.assertEqual(watch.of_type("loss"), [])

    def test_prompts(self):
        """What follows a first frame that fits is not kept unless the whole message fits; what no pattern
        names is not copied at all."""
        prompt = b"the secret word is " + SECRET + b" " * 30
        with Target() as target, self.watch(target) as watch:
            target.send([GUARD, prompt], [GUARD, b"77", prompt], [GUARD, prompt] + [prompt] * 20,
                        [b"ABORT", prompt], [b"ABORT", b"78", prompt, prompt], [b"WATERMARK", prompt, prompt],
                        [prompt], [prompt, GUARD], [b"STAGING_RSP", prompt], metadata(b"4000") + [prompt] * 5,
                        [GUARD, b"79", b"127.0.0.1", b"41000", b"agent", prompt, prompt, b"1", prompt, b"0", prompt])
            target.create(prompt, prompt + b"_aux", b"80_kv_0_1_" + prompt, b"81_" + prompt)
            self.settle(target, watch)
            watch.stop()
            self.assertIn("4000", self.readable(watch))
            for name in (watch.db, watch.db + "-wal"):
                if os.path.exists(name):
                    with open(name, "rb") as f:
                        self.assertNotIn(SECRET, f.read())
            self.assertNotIn(SECRET.decode(), json.dumps(watch.alerts))

    def test_floods(self):
        """Aborts of rooms that nobody knows, and announcements of one room by thousands of agents: bounded,
        and the rooms beside them are judged as ever."""
        with Target() as target, self.watch(target) as watch:
            flood = [[b"ABORT", b"%d" % (10 ** 9 + i)] for i in range(20000)]
            flood += [metadata(b"5000", agent=b"agent-%d" % i, need=b"1000000") for i in range(6000)]
            flood += [metadata(b"5001", agent=b"agent-0", need=b"1") for i in range(500)]
            # all at once would be more than the ring holds: a watch that gets no CPU meanwhile would lose some
            for at in range(0, len(flood), 2000):
                target.send(*flood[at:at + 2000])
                self.settle(target, watch)
            target.send(metadata(b"5002", need=b"2"))
            self.settle(target, watch)
            alert = watch.wait_stuck(5002)
            self.assertEqual((alert["cause"], alert["confidence"]), ("quorum-incomplete", "likely"))
            watch.stop()
            self.assertEqual(watch.of_type("loss"), [])
            self.assertTrue({"5000", "5001", "5002"} <= self.readable(watch))


if __name__ == "__main__":
    unittest.main()
