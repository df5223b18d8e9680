# SPDX-License-Identifier: Apache-2.0
"""vllm-nixl against a stand-in prefill engine and decode worker (tests/vllm): what is finished and never read is told,
what is notified is over, heartbeats and odd ids do no harm, ids that differ in their ends are two requests."""
import json
import os
import sys
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "vllm"))
from pair import Pair  # noqa: E402

DEADLINES = ("--stuck-after", "inflight=5s", "--stuck-after", "releasing=5s")
# as a proxy of disaggregated serving makes them
PROXY = "chatcmpl-___prefill_addr_10.0.0.1:20001___decode_addr_10.0.0.2:20002_4f0d2a31e8ab4c55a1b2c3d4e5f60718"
UNREAD = PROXY + "-0"
ODD = (PROXY + "-1", "chatcmpl-___prefill_10.0.0.1:20001___x:7", "a_kv_0_1_0", "täglich:1", "HB-1:2", "x" * 63,
       "ä" * 40, "😀" * 16 + "-2", PROXY + PROXY)
MASK = (1 << 64) - 1


def name(req_id):
    """What the request is called: its id; of a long one the beginning and a hash."""
    whole = req_id.encode()
    if len(whole) < 64:
        return req_id
    h = 0xcbf29ce484222325
    for byte in whole:  # FNV-1a
        h = (h ^ byte) * 0x100000001b3 & MASK
    for factor in (0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53):
        h = (h ^ h >> 33) * factor & MASK
    return whole[:46].decode(errors="ignore") + f"~{h ^ h >> 33:016x}"


class Engine(unittest.TestCase):
    def test_requests(self):
        with Pair("--lease", "30") as pair:
            engine, consumer = pair.engine, pair.consumer
            with sp.Watch("-p", engine.pid, "--min-confidence", "possible", *DEADLINES) as watch, \
                    sp.Watch("-p", engine.pid, "--no-python", "--min-confidence", "possible", *DEADLINES) as native, \
                    sp.Watch("-p", consumer.pid, "--min-confidence", "possible", *DEADLINES) as reader:
                pair.finish(UNREAD)
                for i, req_id in enumerate(ODD):
                    pair.finish(req_id)
                    consumer.do(("notify", "read")[i % 2], id=req_id, **({"bytes": 1 << 20} if i % 2 else {}))
                    engine.expect("freed", id=req_id, expired=False)
                    consumer.do("heartbeat", ids=[UNREAD, "gone-long-ago"])
                told = watch.wait_stuck(name(UNREAD))
                self.assertEqual((told["cause"], told["stage"], told["pin"]), ("never-sent", "inflight", False))
                self.assertEqual(told["confidence"], "likely")
                # read after all
                consumer.do("notify", id=UNREAD)
                engine.expect("freed", id=UNREAD, expired=False)
                watch.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == name(UNREAD))
                self.check_second_consumer(pair, watch)
                self.check_not_freed(pair, watch)
                self.check_stalled_read(pair, reader)
                for one in (watch, native, reader):
                    one.stop()
                self.check_told(watch, native, reader)

    def check_told(self, watch, native, reader):
        self.assertEqual({a["room"] for a in watch.stuck()}, {name(UNREAD), "two-readers", "kept"})
        self.assertEqual(native.stuck(), [])
        self.assertEqual({a["room"] for a in reader.stuck()}, {"stalled"})
        seen = {r["room"]: r["outcome"] for r in sp.rooms(watch.db)}
        self.assertEqual({seen[name(req_id)] for req_id in (*ODD, UNREAD, "two-readers")}, {"done"})
        # only what was read is seen there, and no heartbeat is taken for a request
        self.assertEqual({r["room"] for r in sp.rooms(native.db)},
                         {*map(name, ODD), name(UNREAD), "two-readers", "kept"})
        self.assertEqual({r["outcome"] for r in sp.rooms(native.db) if r["room"] in map(name, ODD)}, {"done"})
        for verb in ("explain", "timeline"):  # asked for by the whole id
            for req_id in (PROXY + "-1", "ä" * 40):
                p = sp.run(verb, "-i", watch.db, req_id)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertIn(name(req_id), p.stdout)

    def check_second_consumer(self, pair, watch):
        """One of two decode workers has read: the other is still waited for."""
        pair.finish("two-readers", consumers=2)
        pair.consumer.do("notify", id="two-readers", count=2)
        watch.wait_stuck("two-readers")
        pair.consumer.do("notify", id="two-readers", count=2)
        pair.engine.expect("freed", id="two-readers", expired=False)
        watch.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == "two-readers")

    def check_not_freed(self, pair, watch):
        """Notified, but the scheduler never hears of it: no lease ends that."""
        pair.engine.tell("forget_to_free")
        pair.finish("kept")
        pair.consumer.do("notify", id="kept")
        told = watch.wait_stuck("kept")
        self.assertEqual((told["cause"], told["pin"]), ("done-not-released", True))

    def check_stalled_read(self, pair, reader):
        """The decode side: its read stands still, since the prefill engine is stopped."""
        os.kill(pair.engine.pid, sp.signal.SIGSTOP)
        pair.consumer.do("read", id="stalled", bytes=32 << 20)
        told = reader.wait_stuck("stalled")
        self.assertEqual((told["cause"], told["pin"]), ("transfer-stalled", True))

    def test_queues(self):
        """Of both kinds of waiting queue, with a second one and without; what waits or runs is not what waits to be
        read."""
        for args in ((), ("--priority", "--skipped"), ("--skipped",)):
            skipped = ["skipped-0", "skipped-1"] if "--skipped" in args else None
            with Pair("--lease", "30", *args) as pair:
                pair.finish("done")
                pair.engine.tell("add", id="runs", steps=1000000)
                sp.wait_for(lambda: self.queues(pair.engine.pid).get("waiting-run"), 10, "it to run")
                pair.engine.tell("hold")
                for i in range(3):
                    pair.engine.tell("add", id=f"waits-{i}")
                for req_id in skipped or ():
                    pair.engine.tell("skip", id=req_id)
                sp.wait_for(lambda: self.queues(pair.engine.pid) == {
                    "inflight": ["done"], "waiting": ["waits-0", "waits-1", "waits-2"],
                    "waiting-skipped": skipped, "waiting-run": ["runs"]}, 10, lambda: f"{args}: {self.queues(pair.engine.pid)}")

    @staticmethod
    def queues(pid):
        p = sp.run("py", pid, "--json")
        if p.returncode:
            return {"failed": p.stderr}
        return {name: rows and sorted(r["room"] for r in rows)
                for name, rows in json.loads(p.stdout)["queues"].items()}


if __name__ == "__main__":
    unittest.main()
