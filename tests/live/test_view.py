# SPDX-License-Identifier: Apache-2.0
"""The server's own view: pins that are older than the watch, several schedulers, a container, no rights, and what
`py` prints, against the stand-in node's own truth."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import sp
from scenario_case import QUICK, QUICK_LONGEST_S, ScenarioCase, scenarios, wait_deadlines
from node import Node
from proc import node_build

# it looks at a spinning server
ALONE = True

OLD_S = 10.0  # so long before the watch begins


class Late(ScenarioCase):
    """Each scenario that ends with a held room; the watch begins ten seconds later, over all of them at once."""

    NAMES = ("posted-twice", "posted-twice-announced-once", "abort-retry-forward", "decode-stopped", "culprit-ended",
             "killed-reused", "last-chunk-missing", "aux-missing", "transfer-error-held", "worker-died", "rank-absent",
             "bootstrap-thread-killed", "abort-before-request")

    def test_pins_older_than_the_watch(self):
        with contextlib.ExitStack() as stack:
            nodes = {}
            for name in self.NAMES:
                node = stack.enter_context(Node(**scenarios.SCENARIOS[name].node_options))
                node.run(name)
                nodes[name] = node
            time.sleep(OLD_S)  # the age is the point
            for args in ((), ("--only", "python")):
                self.watch_all(nodes, *args)

    def watch_all(self, nodes, *args):
        pids = ",".join(str(node.pid) for node in nodes.values())
        with sp.Watch("-p", pids, "--min-confidence", "possible", "--record", "all", *QUICK, *args) as watch:
            states = {name: node.state() for name, node in nodes.items()}
            held = [e["room"] for name, s in states.items() for e in s["pinned"] + s["delayed"]
                    if self.confidence(name) == "certain"]
            wait_deadlines(watch, max(s["now_ns"] for s in states.values()), held, QUICK_LONGEST_S)
            self.assertEqual(watch.stop(), 3)
            self.check_shape(watch.alerts)
            self.check_replay(watch)
            for name, node in nodes.items():
                with self.subTest(scenario=name, args=args):
                    self.check_late(name, node, states[name], watch.alerts)

    def check_late(self, name, node, state, alerts):
        held = {e["room"]: e for e in state["pinned"] + state["delayed"]}
        told = self.by_room(alerts, node.pid)
        self.assertEqual(set(told), set(held), f"{name}: held {held}, told {told}")
        for room, entry in held.items():
            # lives are counted from the watch's beginning: a pin's earlier lives are not known
            self.check_told(name, dict(entry, life=1), told[room], room in {e["room"] for e in state["delayed"]},
                            self.confidence(name))

    @staticmethod
    def confidence(name):
        """That a thread nobody has ever seen is missing may also mean that this server has another name for it."""
        return "likely" if name == "bootstrap-thread-killed" else "certain"


class Spinning(ScenarioCase):
    def test_loop_that_never_sleeps(self):
        """A main loop without a pause, as the real one's default, makes its lists anew in each of a hundred thousand
        turns a second: rooms that were held before the watch are found, certain."""
        for loop in ("overlap", "normal"):
            with self.subTest(loop=loop), Node(idle_sleep=0.0, loop=loop) as node:
                decode, pinned, half = node.decode(), node.room(), node.room()
                node.hook(lose_aux=[pinned])
                decode.announce(pinned, 96)
                node.post(pinned)
                node.wait_pinned(pinned)
                decode.announce(half, 96, required=2)
                node.post(half)
                node.wait(lambda s: s["delayed"], "the other in bootstrap")
                with sp.Watch("-p", node.pid, *QUICK) as watch:
                    told = {room: watch.wait_stuck(room, 15) for room in (pinned, half)}
                self.assertEqual([(told[r]["cause"], told[r]["confidence"]) for r in (pinned, half)],
                                 [("aux-missing", "certain"), ("quorum-incomplete", "certain")])


class Several(ScenarioCase):
    def test_same_room_on_two_ranks(self):
        """One rank ends the room, the other does not: told on that one, with the other's fate as evidence."""
        with Node() as node:
            room, other = node.room(), node.add_rank()["pid"]
            decodes = [node.decode(rank=rank) for rank in (0, 1)]
            with sp.Watch("-p", f"{node.pid},{other}", "--min-confidence", "possible", *QUICK) as watch:
                node.hook(lose_aux=[room])
                for rank, decode in enumerate(decodes):
                    decode.announce(room, 96)
                    node.post(room, rank=rank, rid=f"req-{room}-{rank}")
                decodes[1].done(room)
                node.wait_pinned(room)
                alert = watch.wait_alert(lambda a: a["type"] == "stuck" and a["confidence"] == "certain", 20, "the pin")
                self.assertEqual((alert["pid"], alert["room"], alert["rid"]), (node.pid, str(room), f"req-{room}-0"))
                self.assertTrue(any(str(other) in line for line in alert["evidence"]), alert)
                self.assertEqual({a["pid"] for a in watch.stuck()}, {node.pid})


def host_pid(inner, root):
    """The number here of the process that a pid namespace under process root calls inner."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                ns = next(line for line in f if line.startswith("NSpid:")).split()[1:]
            if len(ns) > 1 and int(ns[-1]) == inner and root in ancestors(int(pid)):
                return int(pid)
        except (OSError, StopIteration):
            continue
    raise AssertionError(f"no process {inner} under {root}")


def ancestors(pid):
    while pid:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            pid = int(f.read().rpartition(")")[2].split()[1])
        yield pid


class Container(ScenarioCase):
    def test_other_pid_and_mount_namespace(self):
        """Interpreter and libraries exist only in the server's own mount namespace, and its pids differ inside:
        the pin is certain, by the host's pid and thread ids."""
        hidden = tempfile.mkdtemp(prefix="silentpin-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, hidden, True)
        driver = os.path.join(sp.ROOT, "tests", "node", "scenario.py")
        script = (f"mount -t tmpfs tmpfs {hidden} && cp {node_build()}/*.so {hidden}/ && "
                  f"cp -L /usr/bin/python3 {hidden}/ && export PYTHONHOME=/usr && "
                  f"exec {hidden}/python3 {driver} decode-stopped --pause --hold --build {hidden}")
        p = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            inner = sp.json.loads(p.stdout.readline())["pid"]
            pid = host_pid(inner, p.pid)
            self.assertNotEqual(pid, inner)
            with sp.Watch("-p", pid, *QUICK) as watch:
                p.stdin.write("go\n")
                p.stdin.flush()
                for line in p.stdout:
                    if sp.json.loads(line)["step"] == "phase":
                        break
                sp.wait_for(lambda: len(watch.stuck()) >= 2, 20, "two alerts")
                told = {a["cause"]: a for a in watch.stuck()}
                self.assertEqual(set(told), {"transfer-stalled", "queued-behind"})
                self.assertEqual({a["confidence"] for a in told.values()}, {"certain"})
                culprit = told["queued-behind"]["culprit"]
                self.assertEqual((culprit["pid"], culprit["room"]), (pid, told["transfer-stalled"]["room"]))
                self.assertIn(str(culprit["tid"]), os.listdir(f"/proc/{pid}/task"))
                watch.stop()
            shown = sp.json.loads(sp.run("py", pid, "--json", "--stacks").stdout)
            self.assertEqual({t["tid"] for t in shown["threads"]} - {int(t) for t in os.listdir(f"/proc/{pid}/task")}, set())
        finally:
            p.stdin.close()
            p.stdout.close()
            p.kill()  # --kill-child: the namespace goes with it
            p.wait(20)


class Py(unittest.TestCase):
    def snapshot(self, pid, *args):
        p = sp.run("py", pid, "--json", *args)
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stderr)
        return sp.json.loads(p.stdout)

    def test_against_the_truth(self):
        """Queues and status table of a node with a pin and a room in bootstrap, against /state."""
        with Node() as node:
            decode = node.decode()
            pinned, waiting = node.room(), (1 << 63) - 2
            node.hook(lose_aux=[pinned])
            decode.announce(pinned, 96)
            node.post(pinned)
            node.post(waiting, rid="req-é-waiting")
            node.wait_pinned(pinned)
            node.wait(lambda s: s["bootstrap"], "the other in bootstrap")
            state, got = node.state(), self.snapshot(node.pid, "--stacks")
            self.assertEqual((got["v"], got["pid"], got["stable"]), (1, node.pid, True))
            self.assertRegex(got["python"], r"^3\.\d+\.\d+$")
            self.assertGreater(got["took_us"], 0)
            for queue in ("bootstrap", "waiting", "inflight"):
                self.assertEqual([(e["room"], e["rid"]) for e in got["queues"][queue]],
                                 [(e["room"], e["rid"]) for e in state[queue]], queue)
            self.assertEqual(got["status"], state["status"])
            tids = {t["tid"]: t for t in got["threads"]}
            self.assertEqual(set(tids), {int(t) for t in os.listdir(f"/proc/{node.pid}/task")} & set(tids))
            loop = tids[node.pid]["stack"]
            self.assertTrue(any("disagg_prefill" in line for line in loop), loop)
            self.assertRegex(loop[0], r"^\S+\.py:\d+ \w+")
            for worker in state["workers"]:
                self.assertTrue(any("transfer_worker" in line for line in tids[worker["tid"]]["stack"]))
            text = sp.run("py", node.pid).stdout
            self.assertIn(str(pinned), text)
            self.assertIn(str(waiting), text)

    def test_not_a_server(self):
        for args, words in ((["sleep", "60"], "Python"),
                            (["/usr/bin/python3", "-c", "import time\ntime.sleep(60)"], "")):
            p = subprocess.Popen(args)
            try:
                q = sp.wait_for(lambda p=p: [x for x in [sp.run("py", p.pid)] if x.returncode != 0], 5)[0]
                self.assertEqual((q.returncode, q.stdout), (1, ""))
                self.assertEqual(len(q.stderr.splitlines()), 1, q.stderr)
                self.assertIn(words, q.stderr)
            finally:
                p.kill()
                p.wait()


class Explain(ScenarioCase):
    def test_stacks_are_kept(self):
        """The Python stack of the worker that an alert speaks of is in the recording, and explain shows it."""
        with Node() as node:
            decode = node.decode(rate=100_000)
            room = node.room()
            with sp.Watch("-p", node.pid, *QUICK) as watch:
                decode.announce(room, 192)
                node.post(room, 192)
                node.wait(lambda s: any(w["room"] == str(room) and w["ops"] for w in s["workers"]), "a write under way")
                decode.stop()
                try:
                    watch.wait_stuck(room)
                    watch.stop()
                finally:
                    decode.cont()
                p = sp.run("explain", room, "-i", watch.db, "--json")
                self.assertEqual(p.returncode, 0, p.stderr)
                stacks = sp.json.loads(p.stdout)["stacks"]
                self.assertTrue(any("transfer_worker" in line for s in stacks for line in s["stack"]), stacks)
                self.assertIn("transfer_worker", sp.run("explain", room, "-i", watch.db).stdout)


if __name__ == "__main__":
    unittest.main()
