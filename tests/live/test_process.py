# SPDX-License-Identifier: Apache-2.0
"""Targets that die, fork, exec, load libraries late, live elsewhere; and silentpin's own end: whatever
happens, the target runs on and is left byte-identical."""
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
from proc import node_build  # noqa: E402
from node import Node  # noqa: E402

# --find sees every process of the machine
ALONE = True

FAST = ("--stuck-after", "inflight=1500ms", "--stuck-after", "ready=3s", "--stuck-after", "bootstrap=3s")
# Where the first alert must have the cause: a busy decode does not take so long for a room's bytes.
CALM = (*FAST, "--stuck-after", "inflight=3s")


def pin(node, decode):
    """One room whose auxiliary write is lost: a pin that native events can tell."""
    room = node.room()
    node.hook(lose_aux=[room])
    decode.announce(room, 96)
    node.post(room, 96)
    node.wait_pinned(room)
    return room


def serve(node, decode, count=6):
    """Healthy requests to their end: the node works."""
    for _ in range(count):
        room = node.room()
        decode.announce(room, 96)
        assert node.post(room, 96).wait() == 200
        decode.done(room)


def text_differences(pid):
    """Bytes of the target's executable mappings of libnixl and libzmq that differ from their files."""
    different = 0
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ \d+ +(\S+)", line)
            if not m or not re.search(r"lib(nixl|zmq)", m.group(4)):
                continue
            lo, hi, off = (int(m.group(i), 16) for i in (1, 2, 3))
            mem.seek(lo)
            now = mem.read(hi - lo)
            with open(f"/proc/{pid}/root{m.group(4)}", "rb") as f:
                f.seek(off)
                was = f.read(hi - lo)
            different += sum(a != b for a, b in zip(now, was))
    return different


class TargetEnds(unittest.TestCase):
    def test_killed(self):
        """The watch ends by itself; a room stuck at that moment makes the exit code 3."""
        with Node() as node:
            with sp.Watch("-p", node.pid, *FAST) as watch:
                room = pin(node, node.decode())
                watch.wait_stuck(room)
                os.kill(node.pid, signal.SIGKILL)
                watch.wait_alert(lambda a: a["type"] == "target" and a["what"] == "exited", 5)
                self.assertEqual(watch.p.wait(10), 3)
                watch.stop()
                self.assertEqual([r["outcome"] for r in sp.rooms(watch.db) if r["room"] == str(room)],
                                 ["failed"])

    def test_killed_while_healthy(self):
        with Node() as node:
            with sp.Watch("-p", node.pid, *FAST) as watch:
                serve(node, node.decode())
                os.kill(node.pid, signal.SIGKILL)
                self.assertEqual(watch.p.wait(10), 0)

    def test_find_waits_for_the_next(self):
        """--find: attached when it appears, goes on when it ends, attached to the next."""
        with sp.Watch("--find", *FAST) as watch:
            pids = []
            for _ in range(2):
                with Node() as node:
                    watch.wait_alert(lambda a, pid=node.pid: a["type"] == "target" and a["pid"] == pid
                                     and a["what"] == "attached", 10)
                    room = pin(node, node.decode())
                    watch.wait_stuck(room)
                    pids.append(node.pid)
                watch.wait_alert(lambda a, pid=pids[-1]: a["type"] == "target" and a["pid"] == pid
                                 and a["what"] == "exited", 10)
                self.assertIsNone(watch.p.poll())


    def test_end_of_one_of_two(self):
        """A stuck room of a process that has ended does not count while another is watched; a healthy
        process that ends does not count the other's stuck room twice."""
        with Node() as one, Node() as two:
            with sp.Watch("-p", f"{one.pid},{two.pid}", *FAST) as watch:
                room = pin(one, one.decode())
                watch.wait_stuck(room)
                os.kill(one.pid, signal.SIGKILL)
                watch.wait_alert(lambda a: a["type"] == "recovered" and a["room"] == str(room))
                serve(two, two.decode())
                self.assertEqual(watch.stop(), 0)


class TargetChanges(unittest.TestCase):
    def test_fork_of_a_second_scheduler(self):
        with Node() as node:
            with sp.Watch("-p", node.pid, *FAST) as watch:
                second = node.add_rank(fork=True)
                watch.wait_alert(lambda a: a["type"] == "target" and a["pid"] == second["pid"]
                                 and a["what"] == "attached", 20, "the child attached")
                decode = node.decode(rank=second["rank"])
                room = node.room()
                node.hook(rank=second["rank"], lose_aux=[room])
                decode.announce(room, 96)
                node.post(room, 96, rank=second["rank"])
                node.wait_pinned(room) if second["rank"] == 0 else node.wait(
                    lambda s: any(p["room"] == str(room) for p in s["pinned"]), "a pin", rank=second["rank"])
                self.assertEqual(watch.wait_stuck(room)["pid"], second["pid"])

    def test_library_loaded_after_the_attach(self):
        with Node(lazy_nixl=True) as node:
            with sp.Watch("-p", node.pid, *CALM) as watch:
                decode = node.decode()
                serve(node, decode, 1)  # maps libnixl
                watch.wait_err("libnixl", 30)  # five seconds between two looks, at most
                room = pin(node, decode)
                self.assertEqual(watch.wait_stuck(room)["cause"], "aux-missing")

    def test_two_targets_at_once(self):
        """The same handles and rooms in two processes are kept apart."""
        with Node(seed=1) as one, Node(seed=1) as two:
            with sp.Watch("-p", f"{one.pid},{two.pid}", *FAST) as watch:
                decodes = one.decode(), two.decode()
                serve(one, decodes[0])
                room = pin(two, decodes[1])
                alert = watch.wait_stuck(room)
                self.assertEqual(alert["pid"], two.pid)
                serve(one, decodes[0])
                self.assertEqual({a["pid"] for a in watch.stuck()}, {two.pid})

    def test_command(self):
        """-- COMMAND: the whole node is started under watch; its scheduler is a child that appears later."""
        driver = os.path.join(sp.ROOT, "tests", "node", "scenario.py")
        with sp.Watch(*CALM, "--", "/usr/bin/python3", driver, "aux-missing", "--pause", "--hold",
                      stdin=subprocess.PIPE) as watch:
            ready = sp.wait_for(lambda: next((x for x in list(watch.bad_lines) if '"ready"' in x), None), 20,
                                "the node ready")
            pid = sp.json.loads(ready)["pid"]
            sp.wait_for(lambda: any(f"pid {pid}: probes in place" in e and "libnixl" in e
                                    for e in list(watch.err)), 30, "probes in the scheduler's libnixl")
            watch.p.stdin.write("go\n")
            watch.p.stdin.flush()
            alert = watch.wait_alert(lambda a: a["type"] == "stuck")
            self.assertEqual((alert["pid"], alert["cause"]), (pid, "aux-missing"))
            self.assertIn(pid, {a["pid"] for a in watch.of_type("target") if a["what"] == "attached"})
            watch.p.stdin.close()  # ends the scenario, its node, and with them the watch
            self.assertEqual(watch.p.wait(20 * sp.PATIENCE), 3)
            watch.stop()


class TargetElsewhere(unittest.TestCase):
    def copy_of_node(self):
        folder = tempfile.mkdtemp(prefix="silentpin-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, True)
        for name in os.listdir(node_build()):
            if ".so" in name:
                shutil.copy(os.path.join(node_build(), name), folder)
        return folder

    def test_deleted_library(self):
        folder = self.copy_of_node()
        with Node(build=folder) as node:
            decode = node.decode()
            serve(node, decode, 1)
            shutil.rmtree(folder)
            with sp.Watch("-p", node.pid, *CALM) as watch:
                room = pin(node, decode)
                self.assertEqual(watch.wait_stuck(room)["cause"], "aux-missing")

    def test_other_mount_namespace(self):
        """The library's path exists only in the target's own mount namespace, as in a container."""
        folder = self.copy_of_node()
        hidden = tempfile.mkdtemp(prefix="silentpin-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, hidden, True)
        driver = os.path.join(sp.ROOT, "tests", "node", "scenario.py")
        script = (f"mount -t tmpfs tmpfs {hidden} && cp {folder}/*.so {hidden}/ && "
                  f"exec /usr/bin/python3 {driver} aux-missing --pause --hold --build {hidden}")
        p = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        try:
            ready = sp.json.loads(p.stdout.readline())
            self.assertEqual(os.listdir(hidden), [])
            with sp.Watch("-p", ready["pid"], *CALM) as watch:
                p.stdin.write("go\n")  # from "ready"; the phase "final" then waits for another line
                p.stdin.flush()
                for line in p.stdout:
                    if sp.json.loads(line)["step"] == "phase":
                        break
                self.assertEqual(sp.wait_for(watch.stuck, 10, "an alert")[0]["cause"], "aux-missing")
        finally:
            p.stdin.close()  # the scenario goes on to its end, then stops holding
            p.stdout.read()
            p.stdout.close()
            p.wait(20)


class Harmless(unittest.TestCase):
    def kill_silentpin(self, backend):
        with Node() as node:
            decode = node.decode()
            self.assertEqual(text_differences(node.pid), 0)
            with sp.Watch("-p", node.pid, *FAST, env={"SILENTPIN_UPROBE": backend}) as watch:
                serve(node, decode)
                self.assertGreater(text_differences(node.pid), 0, "the probes are not in place?")
                sp.wait_for(lambda: [r["outcome"] for r in sp.rooms(watch.db)] == ["done"] * 6, 10,
                            "the rooms' ends in the recording")
                watch.p.kill()
                watch.p.wait()
                sp.wait_for(lambda: text_differences(node.pid) == 0, 30, "the target's text as it was")
                serve(node, decode)
                watch.rc = -9
                self.assertEqual([r["outcome"] for r in sp.rooms(watch.db)], ["done"] * 6)

    def test_sigkill_multi(self):
        self.kill_silentpin("multi")

    def test_sigkill_perf(self):
        self.kill_silentpin("perf")

    def test_sigkill_at_any_moment(self):
        """Ten times, from the first instant of the attach on."""
        with Node() as node:
            decode = node.decode()
            for i in range(10):
                p = subprocess.Popen([sp.SILENTPIN, "watch", "-p", str(node.pid), "-o", "/dev/null"],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    p.wait(0.02 * i * sp.SLOW)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
            sp.wait_for(lambda: text_differences(node.pid) == 0, 30, "the target's text as it was")
            serve(node, decode)

    def test_normal_end_restores_the_text(self):
        with Node() as node:
            decode = node.decode()
            with sp.Watch("-p", node.pid, *FAST) as watch:
                serve(node, decode)
                self.assertEqual(watch.stop(), 0)
            self.assertEqual(text_differences(node.pid), 0)
            serve(node, decode)

    def test_stopped_silentpin_does_not_stop_the_target(self):
        """SIGSTOP for 3 s: the target serves on, and the stall is told, not blamed on a room."""
        with Node() as node:
            decode = node.decode()
            with sp.Watch("-p", node.pid, *FAST) as watch:
                serve(node, decode, 2)
                watch.p.send_signal(signal.SIGSTOP)
                end = sp.time.monotonic() + 3
                while sp.time.monotonic() < end:
                    serve(node, decode, 2)
                watch.p.send_signal(signal.SIGCONT)
                watch.wait_err("did not run", 10)
                serve(node, decode, 2)
                self.assertEqual(watch.stop(), 0)
                self.assertEqual(watch.stuck(), [])

    def test_exception_through_every_probed_function(self):
        """A C++ exception crosses each probed function while its probe is in place, of each profile: harmless."""
        script = os.path.join(sp.ROOT, "tests", "node", "throw.py")
        for profile in ("sglang-nixl-prefill", "sglang-nixl-decode", "vllm-nixl"):
            p = subprocess.Popen(["/usr/bin/python3", script, "--rounds", "20"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
            try:
                pid = sp.json.loads(p.stdout.readline())["pid"]
                with self.subTest(profile=profile), sp.Watch("-p", pid, "--profile", profile, "--only", "uprobes",
                                                             "-v") as watch:
                    watch.wait_err("probes in place")
                    out, _ = p.communicate("go\n", timeout=30 * sp.PATIENCE)
                    self.assertEqual(p.returncode, 0, out)
                    thrown = sp.json.loads(out.splitlines()[-1])["thrown"]
                    self.assertEqual(thrown, dict.fromkeys(thrown, 20))
                    watch.stop()
            finally:
                p.kill()
                p.wait()
                p.stdout.close()
                p.stdin.close()


class Recording(unittest.TestCase):
    def test_unwritable(self):
        """Named and impossible: refused before anything starts."""
        with Node() as node, tempfile.TemporaryDirectory() as folder:
            for path in (folder, os.path.join(folder, "no", "such", "x.db"), "/proc/x.db"):
                p = sp.run("watch", "-p", node.pid, "-o", path, "--for", "1s")
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(path, p.stderr.splitlines()[-1])
            text = os.path.join(folder, "notes.txt")
            with open(text, "w", encoding="ascii") as f:
                f.write("not a recording\n" * 100)
            p = sp.run("watch", "-p", node.pid, "-o", text, "--for", "1s")
            self.assertEqual(p.returncode, 2, p.stderr)
            with open(text, encoding="ascii") as f:
                self.assertEqual(f.read(), "not a recording\n" * 100)

    def test_second_writer_is_refused(self):
        with Node() as node:
            with sp.Watch("-p", node.pid, *FAST) as watch:
                p = sp.run("watch", "-p", node.pid, "-o", watch.db, "--for", "1s")
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(str(watch.p.pid), p.stderr.splitlines()[-1])
                room = pin(node, node.decode())
                watch.wait_stuck(room)

    def test_full_disk(self):
        """Watching and alerting go on; the file stays readable; the loss is counted and told."""
        folder = tempfile.mkdtemp(prefix="silentpin-test-")
        self.addCleanup(shutil.rmtree, folder, True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], check=True)
        try:
            db = os.path.join(folder, "t.db")
            with Node() as node:
                with sp.Watch("-p", node.pid, "--record", "all", *FAST, db=db) as watch:
                    decode = node.decode()
                    sp.wait_for(lambda: serve(node, decode, 10) or any("recording:" in e for e in watch.err),
                                60, "a full disk")
                    room = pin(node, decode)
                    watch.wait_stuck(room)
                    self.assertEqual(watch.stop(), 3)
                with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as c:
                    self.assertEqual(c.execute("PRAGMA integrity_check").fetchone()[0], "ok")
                    self.assertGreater(c.execute("SELECT count(*) FROM rooms").fetchone()[0], 0)
        finally:
            subprocess.run(["umount", folder], check=True)

    def test_blocked_and_closed_stdout(self):
        """A reader that never reads, and one that goes away: neither stops watching or recording."""
        with Node() as node, tempfile.TemporaryDirectory() as folder:
            decode = node.decode()
            for close in (False, True):
                db = os.path.join(folder, f"{close}.db")
                p = subprocess.Popen([sp.SILENTPIN, "watch", "-p", str(node.pid), "-o", db, "-v", *FAST],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for line in p.stderr:
                    if "recording to" in line:
                        break
                if close:
                    p.stdout.close()
                room = pin(node, decode)
                sp.wait_for(lambda db=db, room=room: any(
                    r["room"] == str(room) and r["cause"] == "aux-missing" for r in sp.rooms(db)), 15,
                    "the pin in the recording")
                p.send_signal(signal.SIGTERM)
                self.assertEqual(p.wait(15), 3)
                for pipe in (p.stdout, p.stderr):
                    pipe.close()

    def test_exit_codes_of_a_watch_with_a_time(self):
        with Node() as node, tempfile.TemporaryDirectory() as folder:
            db = os.path.join(folder, "t.db")
            decode = node.decode()
            self.assertEqual(sp.run("watch", "-p", node.pid, "-o", db, "--for", "1s").returncode, 0)
            with sp.Watch("-p", node.pid, *FAST, "--for", "12s", db=db) as watch:
                room = pin(node, decode)
                watch.wait_stuck(room)
                self.assertEqual(watch.p.wait(20), 3)
            self.assertEqual(sp.run("rooms", "--stuck", "-i", db).returncode, 3)
            self.assertEqual(sp.run("rooms", "-i", db).returncode, 0)
            shown = sp.run("timeline", room, "-i", db)
            self.assertEqual(shown.returncode, 0)
            for word in ("inflight", "aux", "STUCK", ">>"):
                self.assertIn(word, shown.stdout)
            self.assertIn("aux-missing", sp.run("explain", room, "-i", db).stdout)

    def test_prompts_are_not_in_the_recording(self):
        with Node(idle_sleep=0.0) as node:
            with sp.Watch("-p", node.pid, "--record", "all", *FAST) as watch:
                decode = node.decode()
                for _ in range(5):
                    room = node.room()
                    decode.announce(room, 96)
                    node.post(room, 96, prompt="zanzibarquux " * 20).wait()
                watch.stop()
                for name in os.listdir(watch.dir.name):
                    with open(os.path.join(watch.dir.name, name), "rb") as f:
                        self.assertNotIn(b"zanzibarquux", f.read(), name)
                self.assertNotIn("zanzibarquux", str(watch.alerts) + str(watch.err))


if __name__ == "__main__":
    unittest.main()
