# SPDX-License-Identifier: Apache-2.0
"""CUDA calls of a program on a stand-in libcuda: whose room each belongs to, what is known of it, and calls that
never return. One process and one watch serve all tests of a class."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "cuda"))
import cuda_rig  # noqa: E402

NEVER = ("--stuck-after", "ready=600s", "--stuck-after", "inflight=600s")
OPS_BUSY, OPS_DONE, OPS_ERROR = 1, 2, 3
BOTH = ("", "_ptsz")
# function -> probe, what it is told of a copy of N bytes beside stream and result
COPIES = {
    **{f"cuMemcpy{way}Async{v2}": (f"cuMemcpy{way}Async", lambda n: {"bytes": n})
       for way, v2 in (("", ""), ("HtoD", "_v2"), ("DtoH", "_v2"), ("DtoD", "_v2"), ("HtoA", "_v2"), ("AtoH", "_v2"),
                       ("Peer", ""))},
    "cuMemcpy2DAsync_v2": ("cuMemcpy2DAsync", lambda n: {"note": f"{n // 2} bytes x 2"}),
    "cuMemcpy3DAsync_v2": ("cuMemcpy3DAsync", lambda n: {"note": f"{n // 4} bytes x 2 x 2"}),
    "cuMemcpy3DPeerAsync": ("cuMemcpy3DPeerAsync", lambda n: {"note": f"{n // 4} bytes x 2 x 2"}),
    **{f"cuMemcpy{what}Async{v2}": (f"cuMemcpy{what}Async{v2}", lambda n: {"count": 2})
       for what in ("Batch", "3DBatch") for v2 in ("", "_v2")},
    "cuMemcpyWithAttributesAsync": ("cuMemcpyWithAttributesAsync", lambda n: {"bytes": n}),
    "cuMemcpy3DWithAttributesAsync": ("cuMemcpy3DWithAttributesAsync", lambda n: {"note": f"{n // 4} bytes x 2 x 2"}),
}


def probe_of(function):
    """Two probes for the batches without _v2: no glob fits both of them alone."""
    name, ptsz = function.removesuffix("_ptsz"), function.endswith("_ptsz")
    return COPIES[name][0] + ("_ptsz" if ptsz and name in ("cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync") else "")


class CallsCase(unittest.TestCase):
    ENV = {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.probes = cuda_rig.probes_file(folder.name)
        cls.app = cls.enterClassContext(cuda_rig.App(sp.BUILD))

    @classmethod
    def watch(cls, *args):
        return sp.Watch("-p", cls.app.pid, "--probes", cls.probes, "--record", "all", *args, env=cls.ENV)


class Rooms(CallsCase):
    """Healthy work, looked at afterwards."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with cls.watch(*NEVER) as watch:
            cls.work(cls.app.say)
            watch.stop()
            cls.events = sp.events(watch.db)
            cls.timeline = sp.run("timeline", "-i", watch.db, "101").stdout
        cls.calls = [e for e in cls.events if e["role_name"] == "call" and e["kind"] not in ("count", "work")]
        cls.alerts = watch.alerts

    @classmethod
    def work(cls, say):
        cls.stream = {n: say("a", f"stream {n}")[0] for n in range(8)}
        cls.sizes, size = {}, 4096
        say("a", "announce 101; announce 102; announce 103; announce 104; announce 105")
        for function in COPIES:
            for tail in BOTH:
                size += 4
                cls.sizes[function + tail] = size
                got = say("a", f"fill; send 101; {function}{tail} {size} 1; cuStreamSynchronize 0 1; leave; arrived")
                assert got == ["0", "0", "1"], (function, tail, got)
        # between begin and end of work
        say("b", "cuMemcpyAsync 5000 2; begin 102; cuMemcpyAsync 5001 2; end; cuMemcpyAsync 5002 2; cuEventRecord 1 2;"
                 "begin 102; cuStreamWaitEvent 1 3; cuEventSynchronize 1; cuCtxSynchronize; end")
        # calls within calls, and within what a thread works for
        say("c", "make 104; begin 105; cuMemcpyAsync 6000 3; send 103; cuMemcpyAsync 6001 3; make 104; post 0;"
                 "cuMemcpyAsync 6002 3; leave; cuMemcpyAsync 6003 3; post 64206; cuMemcpyAsync 6004 3; leave; leave;"
                 "cuMemcpyAsync 6005 3; end; post 64206; cuMemcpyAsync 6006 3; leave")
        # errors
        say("d", "result cuMemcpyHtoDAsync 700 1; send 101; cuMemcpyHtoDAsync_v2 7001 1; leave;"
                 "result cuStreamSynchronize 719 1; cuStreamSynchronize 0 2")
        # a poll
        say("e", "begin 102; stall 4; cuMemcpyAsync 8 4; cuEventRecord 2 4; cuEventQuery 2; cuEventQuery 2;"
                 "cuEventQuery 2; release 4; cuEventSynchronize 2; cuEventQuery 2; cuEventQuery 2; end")
        say("f", "begin 102; cuLaunchKernel 0 5; cuLaunchKernel_ptsz 0 5; cuLaunchKernelEx 0 5; cuStreamSynchronize 0 5;"
                 "end")

    def one(self, size):
        found = [e for e in self.calls if e["bytes"] == size]
        self.assertEqual(len(found), 1, f"{size} bytes: {found}")
        return found[0]

    def none(self, size):
        self.assertEqual([e for e in self.calls if e["bytes"] == size], [])

    def test_each_copy(self):
        for function, size in self.sizes.items():
            probe, facts = probe_of(function), COPIES[function.removesuffix("_ptsz")][1](size)
            with self.subTest(function=function):
                found = [e for e in self.calls if e["probe_name"] == probe and e["room"] == "101"
                         and e["code"] == 0 and all(e[k] == v for k, v in facts.items())]
                self.assertEqual(len(found), 2 if facts == {"count": 2} and "_v2" in function else 1, found)
                for e in found:
                    self.assertEqual((e["kind"], e["object"], e["status"]), ("copy", f"stream {self.stream[1]}", OPS_DONE))
                    self.assertGreater(e["took_ns"], 0)

    def test_timeline_shows_them(self):
        self.assertRegex(self.timeline, rf"copy of 4\.0 KiB, stream {self.stream[1]}, took [\d.]+ us")
        self.assertRegex(self.timeline, r"copy .* failed: error 700 \(illegal address\)")

    def test_between_begin_and_end(self):
        self.assertEqual(self.one(5001)["room"], "102")
        for size in (5000, 5002):
            self.none(size)
        for probe, what in (("cuStreamWaitEvent", f"stream {self.stream[3]}"), ("cuCtxSynchronize", "all streams")):
            found = [e for e in self.calls if e["probe_name"] == probe]
            self.assertEqual([(e["room"], e["object"]) for e in found], [("102", what)])

    def test_outside_of_rooms_they_are_counted(self):
        """5000, 5002 and 6006 bytes: no room's."""
        counts = [e for e in self.events if e["role_name"] == "call" and e["kind"] == "count"
                  and e["probe_name"] == "cuMemcpyAsync" and not e["room"]]
        self.assertEqual((sum(e["count"] for e in counts), sum(e["bytes"] for e in counts)), (3, 5000 + 5002 + 6006))

    def test_nested(self):
        for size, room in ((6000, "105"), (6001, "103"), (6002, "104"), (6003, "103"), (6004, "103"), (6005, "105")):
            with self.subTest(size=size):
                self.assertEqual(self.one(size)["room"], room)
        self.none(6006)  # inside a call whose operation nobody knows

    def test_errors_have_names(self):
        found = [(e["probe_name"], e["room"], e["code"], e["note"]) for e in self.calls if e["status"] == OPS_ERROR]
        self.assertEqual(found, [("cuMemcpyHtoDAsync", "101", 700, "illegal address"),
                                 ("cuStreamSynchronize", None, 719, "launch failed")])

    def test_a_poll_is_told_when_its_answer_changes(self):
        found = [(e["room"], e["code"], e["status"]) for e in self.calls if e["probe_name"] == "cuEventQuery"]
        self.assertEqual(found, [("102", 600, OPS_BUSY), ("102", 0, OPS_DONE)])

    def test_kernels_only_when_asked_for(self):
        self.assertEqual([e for e in self.events if "Launch" in (e["probe_name"] or "")], [])

    def test_no_alert(self):
        self.assertEqual([a for a in self.alerts if a["type"] == "stuck"], [])


class Stuck(CallsCase):
    """Calls that never return."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        app = cls.app
        with cls.watch("--stuck-after", "ready=4s", "--enable", "cuLaunchKernel", "--disable", "cuEventRecord",
                       "--min-confidence", "possible") as watch:
            app.say("a", "announce 201; announce 202; announce 203; announce 204; stall 1; block cuMemcpyDtoHAsync;"
                         "begin 201; cuLaunchKernel 0 5; cuEventRecord 1 5; cuMemcpyAsync 64 1")
            cls.stream = app.say("a", "stream 1")[0]
            app.tell("a", "cuStreamSynchronize 0 1; end")
            app.tell("b", "send 202; cuStreamSynchronize 0 1; leave")
            app.tell("c", "begin 203; cuMemcpyDtoHAsync_v2 64 2; end")
            app.tell("d", "cuEventRecord 1 1; cuEventSynchronize 1")
            cls.stuck = {room: watch.wait_stuck(room) for room in (201, 202, 203, 204)}
            app.say("e", "release 1; unblock")
            cls.answers = [app.answer(t) for t in "abcd"]
            sp.wait_for(lambda: len(cls.calls_of(sp.events(watch.db), "left")) == 5, 20, "the calls to be left")
            watch.stop()
            cls.events = sp.events(watch.db)

    @staticmethod
    def calls_of(events, kind):
        return [e["probe_name"] for e in events if e["role_name"] == "call" and e["kind"] == kind]

    def evidence(self, room):
        return "\n".join(str(line) for line in self.stuck[room]["evidence"])

    def blocked(self, room):
        return re.findall(r"blocked in (\S+).* for ([\d.]+) s", self.evidence(room))

    def test_in_a_rooms_work(self):
        for room, function in ((201, "cuStreamSynchronize"), (203, "cuMemcpyDtoHAsync")):
            with self.subTest(room=room):
                self.assertEqual([name for name, _ in self.blocked(room)], [function], self.evidence(room))
                self.assertGreaterEqual(float(self.blocked(room)[0][1]), 1.0)
        self.assertIn(self.stream, self.evidence(201))

    def test_in_a_call_that_has_not_returned_itself(self):
        self.assertEqual([name for name, _ in self.blocked(202)], ["cuStreamSynchronize"], self.evidence(202))

    def test_of_no_room_it_is_the_processs(self):
        self.assertEqual(self.blocked(204), [], self.evidence(204))
        self.assertRegex(self.evidence(204),
                         r"in this process thread \d+ has been in cuEventSynchronize \(event 0x[0-9a-f]+\) for")

    def test_enabled_and_disabled(self):
        names = {e["probe_name"] for e in self.events if e["role_name"] == "call"}
        self.assertIn("cuLaunchKernel", names)
        self.assertNotIn("cuEventRecord", names)

    def test_it_is_told_that_they_were_left(self):
        self.assertEqual(self.answers, [["0"], ["0"], ["0"], ["0", "0"]])
        for kind in ("inside", "left"):
            self.assertEqual(sorted(self.calls_of(self.events, kind)),
                             ["cuEventSynchronize", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuStreamSynchronize",
                              "send"])


class AtRets(CallsCase):
    ENV = {"SILENTPIN_RETURNS": "ret"}

    def test_a_call_in_a_rooms_call(self):
        """Where the kernel's return probes are not to be used it belongs to the room all the same."""
        with self.watch(*NEVER) as watch:
            self.app.say("a", "announce 301; cuMemcpyAsync 50 1; send 301; cuMemcpyAsync 51 1; leave; cuMemcpyAsync 52 1")
            watch.stop()
            found = [(e["room"], e["bytes"]) for e in sp.events(watch.db)
                     if (e["probe_name"], e["kind"]) == ("cuMemcpyAsync", "copy")]
        self.assertEqual(found, [("301", 51)])


class Script(unittest.TestCase):
    """gpu_check.py, which is for a machine with a GPU, on what there is here."""

    def test_gpu_check(self):
        p = subprocess.run([sys.executable, os.path.join(cuda_rig.HERE, "gpu_check.py"), "--stand-in", "--build", sp.BUILD,
                            "--rounds", "1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=60 * sp.PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertIn("ok  all three: 600 made, 600 seen", p.stdout)
        self.assertRegex(p.stdout, r"rate: \d+ turns/s without probes, [\d.]+ times as many with them")


if __name__ == "__main__":
    unittest.main()
