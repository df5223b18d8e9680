# SPDX-License-Identifier: Apache-2.0
"""The stand-in node without any tracer: is it what the facts say of the server it stands for?

Run with /usr/bin/python3 -m unittest from this folder, or through tests/run.py.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import scenarios
from node import HERE, SLOW, Node, NodeError, wait_until
from proc import alive, node_build

STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
NOTIFS = ("St13unordered_mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt6vectorIS6_"
          "SaIS6_EESt4hashIS6_ESt8equal_toIS6_ESaISt4pairIKS6_S9_EEE")
PROBED = {
    "_ZNK9nixlAgent11makeXferReqERK14nixl_xfer_op_tPK10nixlDlistHRKSt6vectorIiSaIiEES5_SA_RP12"
    "nixlXferReqHPK21nixlAgentOptionalArgs",
    f"_ZNK9nixlAgent13createXferReqERK14nixl_xfer_op_tRK12nixlDescListI13nixlBasicDescES7_"
    f"RK{STRING}RP12nixlXferReqHPK21nixlAgentOptionalArgs",
    "_ZNK9nixlAgent11postXferReqEP12nixlXferReqHPK21nixlAgentOptionalArgs",
    "_ZNK9nixlAgent13getXferStatusEP12nixlXferReqH",
    "_ZNK9nixlAgent14releaseXferReqEP12nixlXferReqH",
    f"_ZN9nixlAgent9getNotifsER{NOTIFS}PK21nixlAgentOptionalArgs",
    f"_ZNK9nixlAgent8genNotifERK{STRING}ES7_PK21nixlAgentOptionalArgs".replace("EEES7_", "EES7_"),
}


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return {line.split()[2] for line in out.splitlines()}


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return f.read()


class TestLibrary(unittest.TestCase):
    """libnixl.so and its binding, within one process."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, node_build())
        import _nixl_standin
        import throw

        cls.nixl, cls.new_pair = _nixl_standin, staticmethod(throw.Pair)

    def setUp(self):
        self.pair = self.new_pair(self.nixl)

    def test_exports_the_probed_symbols(self):
        self.assertLessEqual(PROBED, exported(os.path.join(node_build(), "libnixl.so")))

    def test_each_probed_head_is_exported_once(self):
        symbols = exported(os.path.join(node_build(), "libnixl.so"))
        for symbol in PROBED:
            head = re.match(r"_ZNK?9nixlAgent(\d+)", symbol)
            name = symbol[head.end():head.end() + int(head.group(1))]
            self.assertEqual(1, sum(f"{head.group(0)}{name}E" in s for s in symbols), name)

    def test_write_moves_bytes_and_notifies(self):
        pair = self.pair
        pair.memory[:5], pair.memory[4096:4101] = b"bytes", b"-----"
        handle = pair.writer.make_prepped_xfer(pair.local, [0], pair.remote, [0], b"5_kv_0_1_0")
        state = pair.writer.transfer(handle)
        self.assertEqual("PROC", state)
        self.assertEqual("PROC", pair.writer.check_xfer_state(handle))  # the reader has not run
        pair.reader.progress(0)
        self.assertEqual({"writer": [b"5_kv_0_1_0"]}, pair.reader.get_new_notifs())
        self.assertEqual("DONE", pair.writer.check_xfer_state(handle))
        self.assertEqual(b"bytes", pair.memory[4096:4101])

    def test_a_peer_that_does_not_run_blocks_nobody(self):
        """Far more than the sockets take: post and status come back, and it completes later."""
        pair = self.new_pair(self.nixl, 32 << 20)
        handle = pair.posted()
        for _ in range(100):
            self.assertEqual("PROC", pair.writer.check_xfer_state(handle))
        (op,) = pair.writer.ops()
        self.assertTrue(0 < op[3] < op[2], op)
        while pair.writer.check_xfer_state(handle) != "DONE":
            pair.reader.progress(0)
        self.assertEqual([], pair.writer.ops())

    def test_memory_that_is_not_registered_is_refused(self):
        (src, size), (dst, _) = self.pair.src, self.pair.dst
        with self.assertRaisesRegex(self.nixl.nixlError, "status -4"):
            self.pair.writer.initialize_xfer([(dst, size)], [(dst, size)], "reader", b"x")
        handle = self.pair.writer.initialize_xfer([(src, size)], [(src, size)], "reader", b"x")
        self.pair.writer.transfer(handle)
        self.pair.reader.progress(0)
        with self.assertRaisesRegex(self.nixl.nixlError, "status -6"):
            self.pair.writer.check_xfer_state(handle)

    def test_wrong_arguments_have_their_status(self):
        pair = self.pair
        with self.assertRaisesRegex(self.nixl.nixlError, "status -5"):
            pair.writer.make_prepped_xfer(pair.local, [0], pair.remote, [0, 0], b"x")
        with self.assertRaisesRegex(self.nixl.nixlError, "status -2"):
            pair.writer.make_prepped_xfer(pair.local, [7], pair.remote, [0], b"x")
        with self.assertRaisesRegex(self.nixl.nixlError, "status -1"):
            pair.writer.check_xfer_state(pair.made())
        handle = pair.posted()
        with self.assertRaisesRegex(self.nixl.nixlError, "status -7"):
            pair.writer.transfer(handle)
        pair.reader.progress(0)
        pair.writer.check_xfer_state(handle)
        with self.assertRaisesRegex(self.nixl.nixlError, "status -4"):
            pair.writer.initialize_xfer([pair.src], [pair.dst], "nobody", b"x")

    def test_injected_status(self):
        handle = self.pair.posted()
        self.nixl.test_error("1_kv", -3)
        try:
            with self.assertRaises(self.nixl.nixlBackendError):
                self.pair.writer.check_xfer_state(handle)
        finally:
            self.nixl.test_error("1_kv", 0)
        self.pair.reader.progress(0)

    def test_exception_through_every_probed_function(self):
        out = subprocess.run([sys.executable, os.path.join(HERE, "throw.py"), "--rounds", "20"],
                             input="go\n", stdout=subprocess.PIPE, text=True, timeout=30 * SLOW)
        final = json.loads(out.stdout.splitlines()[-1])
        self.assertEqual({re.match(r"_ZNK?9nixlAgent\d+(\w+?)E[RP]", s).group(1): 20
                          for s in PROBED}, final["thrown"])


class TestScenarios(unittest.TestCase):
    """Each scenario under both event loops; run() compares it with what /state says."""

    def play(self, name, loop, transport):
        options = scenarios.SCENARIOS[name].node_options
        with Node(loop=loop, transport=transport, **options) as node:
            node.run(name)
            decodes = [d.pid for d in node.decodes]
            pids = [node.pid, node.front_pid] + decodes
        for pid in pids:
            wait_until(lambda: not alive(pid), f"process {pid} gone")


for _name, _scenario in scenarios.SCENARIOS.items():
    for _how in (("overlap", "nixl"), ("normal", "nixl"), ("overlap", "mooncake")):
        if _how[1] in _scenario.transports:
            setattr(TestScenarios, f"test_{_name.replace('-', '_')}_{'_'.join(_how)}",
                    lambda self, name=_name, how=_how: self.play(name, *how))


class TestNode(unittest.TestCase):
    def test_every_scenario_says_what_makes_it_and_is_in_the_readme(self):
        with open(os.path.join(HERE, "README.md")) as f:
            listed = set(re.findall(r"^\| `([a-z-]+)` \|", f.read(), re.M))
        self.assertEqual(set(scenarios.SCENARIOS), listed)
        for name, function in scenarios.SCENARIOS.items():
            self.assertGreater(len(function.__doc__), 40, name)

    def test_check_notices_what_is_not_as_expected(self):
        """The checks of the scenarios can fail."""
        with Node() as node:
            expect, state = node.run("posted-twice")
            room = expect.pinned[0][0]
            for wrong in (scenarios.Expect(), scenarios.Expect(pinned=[(room, 1)]),
                          scenarios.Expect(pinned=expect.pinned, delayed=[(room, 1)]),
                          scenarios.Expect(pinned=expect.pinned, ended={(room, 1): "failed"})):
                with self.assertRaises(NodeError):
                    scenarios.check(wrong, state)

    def test_bootstrap_timeout_ends_a_delayed_room(self):
        with Node(bootstrap_timeout=0.3) as node:
            room = node.room()
            self.assertEqual(500, node.post(room).wait())
            node.wait_life(room, 1, outcome="failed")
            self.assertIn('num_bootstrap_failed_reqs_total{tp_rank="0"} 1',
                          node.http("GET", "/metrics"))

    def test_a_pin_outlives_everything_the_server_does(self):
        """No timeout, no abort and no later traffic frees it; the gauge stays at one."""
        with Node(bootstrap_timeout=0.3) as node:
            expect, _ = node.run("posted-twice")
            time.sleep(0.6)  # twice the only timeout that the server has
            node.run("healthy", seconds=0.2)
            self.assertEqual([str(expect.pinned[0][0])],
                             [p["room"] for p in node.state()["pinned"]])
            self.assertIn('num_prefill_inflight_queue_reqs{tp_rank="0"} 1',
                          node.http("GET", "/metrics"))

    def test_metadata_may_come_first_and_partial_quorum_waits(self):
        with Node() as node:
            one, two = node.decode(), node.decode(first_rank=1)
            room = node.room()
            one.announce(room, 96, required=2)
            post = node.post(room)
            state = node.wait(lambda s: s["delayed"], "the room in bootstrap")
            self.assertEqual((1, 2), (state["delayed"][0]["announced"],
                                      state["delayed"][0]["required"]))
            two.announce(room, 96, required=2)
            self.assertEqual(200, post.wait())
            one.done(room)
            two.done(room)

    def test_a_stuck_worker_polls_and_the_caller_is_never_blocked(self):
        with Node() as node:
            node.run("decode-stopped")
            first = node.wait(lambda s: s["workers"][0]["polls"] > 10, "polls")
            later = node.wait(lambda s: s["workers"][0]["polls"]
                              > first["workers"][0]["polls"] + 1000, "1000 more polls")
            rate = 1e9 * (later["workers"][0]["polls"] - first["workers"][0]["polls"]) / (
                later["now_ns"] - first["now_ns"])
            self.assertGreater(rate, 500)

    def test_process_title_and_library(self):
        with Node(title="sglang::scheduler_TP0", lazy_nixl=True) as node:
            with open(f"/proc/{node.pid}/cmdline") as f:
                self.assertTrue(f.read().startswith("sglang::scheduler_TP0"))
            self.assertNotIn("libnixl.so", maps(node.pid))
            self.assertIn("libzmq", maps(node.pid))
            node.decode()
            self.assertIn("libnixl.so", maps(node.pid))

    def test_more_schedulers(self):
        """One started by the front, one forked by the first scheduler, each with its own rooms."""
        with Node() as node:
            others = [node.add_rank(), node.add_rank(fork=True)]
            self.assertEqual([1, 2], [o["rank"] for o in others])
            for rank, pid in [(0, node.pid)] + [(o["rank"], o["pid"]) for o in others]:
                decode, room = node.decode(rank=rank), node.room()
                decode.announce(room, 96)
                self.assertEqual(200, node.post(room, rank=rank).wait())
                decode.done(room)
                state = node.state(rank)
                self.assertEqual((pid, [str(room)]),
                                 (state["pid"], [life["room"] for life in state["lives"]]))
        for other in others:
            wait_until(lambda: not alive(other["pid"]), "the other scheduler gone")

    def test_attach_to_a_running_node(self):
        with Node() as node:
            other = Node.attach(node.port)
            self.addCleanup(other.stop)
            self.assertEqual(node.pid, other.pid)
            other.run("last-chunk-missing")
            other.run("healthy", seconds=0.1)
            self.assertEqual(1, len(node.state()["pinned"]))

    def test_bad_requests_are_refused(self):
        with Node() as node:
            for body in ({}, {"text": "x"}, {"text": "x", "bootstrap_room": -1},
                         {"text": ["x", "y"], "bootstrap_room": [1]},
                         {"text": 5, "bootstrap_room": 1},
                         {"text": "x", "bootstrap_room": 1, "data_parallel_rank": 7}):
                with self.assertRaisesRegex(NodeError, "400"):
                    node.http("POST", "/generate", body)
            with self.assertRaisesRegex(NodeError, "404"):
                node.http("GET", "/nothing")
            self.assertEqual([], node.state()["lives"])

    def test_nothing_is_left_when_the_test_is_killed(self):
        code = ("import sys; sys.path.insert(0, %r); from node import Node; n = Node().start(); "
                "d = n.decode(); print(n.pid, n.front_pid, d.pid, flush=True); input()" % HERE)
        test = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True)
        pids = [int(p) for p in test.stdout.readline().split()]
        os.kill(test.pid, signal.SIGKILL)
        test.communicate()
        self.assertEqual(3, len(pids))
        for pid in pids:
            wait_until(lambda: not alive(pid), f"process {pid} gone")

    def test_command_line_with_pauses(self):
        run = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "scenario.py"), "decode-continued", "--pause",
             "--hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        steps, stops = [], 0
        for line in run.stdout:
            steps.append(json.loads(line))
            if steps[-1]["step"] == "phase" and steps[-1]["phase"] == "stalled":
                state = Node.attach(steps[0]["port"]).state()
                self.assertEqual({"transfer-stalled", "queued-behind"},
                                 {p["why"] for p in state["pinned"]})
            if steps[-1]["step"] in ("ready", "phase", "final"):
                stops += 1
                run.stdin.write("go\n")
                run.stdin.flush()
        run.communicate()
        self.assertEqual((0, 4), (run.returncode, stops))
        self.assertEqual([], steps[-1]["pinned"])


if __name__ == "__main__":
    unittest.main()
