# SPDX-License-Identifier: Apache-2.0
"""Verbs of a program on stand-in providers, whose functions no symbol names: of a running process they are found in
the provider's file, of one that opens its device later by the pointers that its calls return. Both are watched at
once, do the same, and must be seen to do the same."""
import concurrent.futures
import errno
import os
import re
import sys
import tempfile
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "verbs"))
import verbs_rig  # noqa: E402

OPS_ERROR = 3
EV_GAP = 8
RETRY_EXCEEDED, ACCESS_ERROR = 12, 3  # enum ibv_wc_status, enum ibv_event_type


def qp(number):
    return f"queue pair standin0/{number}"


class Posts:
    """One program, from its start to the end of its watch."""

    def __init__(self, app, name, probes):
        self.app, self.name, self.probes = app, name, probes
        self.provider = verbs_rig.provider(sp.BUILD, name)

    def open(self):
        return self.app.say("a", f"open {self.provider}; qp 0; qp 1; qp 2")

    def watch(self):
        return sp.Watch("-p", self.app.pid, "--probes", self.probes, "--record", "all", "-v", "--stuck-after",
                        "bootstrap=2s", "--stuck-after", "inflight=3s", "--stuck-after", "ready=6s",
                        "--min-confidence", "possible")

    def run(self):
        say = self.app.say
        if self.name == "standin":
            self.open()
        self.doctor = sp.run("doctor", "-p", self.app.pid, "--probes", self.probes).stdout
        with self.watch() as w:
            if self.name == "hidden":
                self.open()
                self.opened = sp.run("doctor", "-p", self.app.pid, "--probes", self.probes).stdout
                sp.wait_for(lambda: sum("probes in place in" in line and "hidden" in line for line in list(w.err)) == 2,
                            10, lambda: f"both functions, each on its own: {w.err}")
            say("a", "announce 301; announce 302")
            self.moved = say("a", "fill; send 301; write 0 4 100; leave; drain 4; arrived 0 4 100")
            self.alone = say("a", "write 0 1; drain 1")
            say("b", "stall 1; send 302; write 1 3 64 quiet; write 1 1 64; leave")
            self.failed = say("c", f"fail 0 {RETRY_EXCEEDED}; write 0 3; drain 3; event {ACCESS_ERROR} 1; async")
            sp.wait_for(lambda: self.tallies(w.db), 10, "posts without completion")
            self.waiting = w.wait_stuck(302)
            say("b", "release 1; drain 2")
            sp.wait_for(lambda: self.tallies(w.db)[-1]["code"] == 0, 10, "their completion")
            self.refused = say("b", "qp 3; stall 3; limit 3 2; write 3 5; waiting 3")
            sp.wait_for(lambda: self.tallies(w.db, 259), 10, "another post without completion")
            say("b", "destroy 3")
            sp.wait_for(lambda: self.tallies(w.db, 259)[-1]["kind"] == "dropped", 10, "a queue pair that is gone")
            say("b", "qp 3; stall 3; write 3 1")
            sp.wait_for(lambda: self.tallies(w.db, 259)[-1]["code"] == 1, 10, "that of another with its number")
            say("b", "reset 3; write 3 2")
            sp.wait_for(lambda: self.tallies(w.db, 259)[-1]["code"] == 2, 10, "what was posted after a reset")
            self.app.tell("d", "block post_send; announce 303; send 303; write 2 1; leave")
            self.stuck = w.wait_stuck(303)
            say("c", "unblock")
            self.app.answer("d")
            w.stop()
            self.events, self.err = sp.events(w.db), w.err
        return self

    def calls(self, probe, *kinds):
        return [e for e in self.events if e["role_name"] == "call" and e["probe_name"] == probe and e["kind"] in kinds]

    def tallies(self, db, number=257):
        return [e for e in sp.events(db) if e["kind"] in ("tally", "dropped") and e["object"] == qp(number)]


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        cls.addClassCleanup(folder.cleanup)
        probes = verbs_rig.probes_file(folder.name)
        # the running one has its completions by the second of two functions
        prefix = {"standin": ("env", "STANDIN_OTHER_POLL=1"), "hidden": ()}
        runs = [Posts(cls.enterClassContext(verbs_rig.App(sp.BUILD, prefix[n])), n, probes) for n in prefix]
        with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
            cls.runs = list(pool.map(Posts.run, runs))

    def test_the_program_itself_worked(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                self.assertEqual(run.moved, ["0", "0", "0", "0", "0", "1"])
                self.assertEqual(run.alone, ["0", "0"])
                self.assertEqual(run.failed, ["0", "12", "5", "5", "3"])
                self.assertEqual(run.refused, ["259", str(errno.ENOMEM), "2"])
                self.assertEqual([(e["probe_name"], e["code"]) for e in run.events if e["kind"] == "dropped"],
                                 [("ibv_destroy_qp", 2), ("ibv_modify_qp", 1)])

    def test_how_they_were_found(self):
        running, late = self.runs
        self.assertRegex(running.doctor, r"ok +probe ibv_post_send: libstandin-rdmav0\.so\+0x[0-9a-f]+ at ops table; ")
        self.assertRegex(running.doctor, r"ok +probe ibv_poll_cq: libstandin-rdmav0\.so\+0x[0-9a-f]+ at ops table, 2 f")
        self.assertNotRegex(late.doctor, r"ok +probe ibv_post_send")
        self.assertRegex(late.opened, r"-- +probe ibv_post_send: not yet: when ibv_create_qp next returns: ")
        libs = [(e["note"], bool(e["flags"] & EV_GAP)) for e in late.events
                if (e["role_name"], e["kind"]) == ("target", "lib")]
        self.assertEqual(libs, [(late.provider, True)] * 2, "what was before is said to be unseen")

    def test_a_post_within_a_call_is_its_rooms(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                found = [(e["its_room"], e["object"], e["count"], e["code"])
                         for e in run.calls("ibv_post_send", "post")]
                self.assertEqual(found, [("301", qp(256), 4, 0), ("302", qp(257), 3, 0),
                                         ("302", qp(257), None, 0), (None, qp(259), 5, errno.ENOMEM),
                                         ("303", qp(258), None, 0)], "and one that failed")

    def test_others_are_counted(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                self.assertEqual(sum(e["count"] for e in run.calls("ibv_post_send", "count")), 7)
                self.assertTrue(any("belong to no room: ibv_post_send 7" in line for line in run.err), run.err)

    def test_failed_completions_have_names(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                found = [(e["its_room"], e["object"], e["status"], e["note"])
                         for e in run.calls("ibv_poll_cq", "completion")]
                self.assertEqual(found, [(None, qp(256), OPS_ERROR, "transport retry counter exceeded"),
                                         (None, qp(256), OPS_ERROR, "work request flushed error"),
                                         (None, qp(256), OPS_ERROR, "work request flushed error")])

    def test_asynchronous_events(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                found = [(e["object"], e["status"], e["note"]) for e in run.calls("ibv_get_async_event", "async")]
                self.assertEqual(found, [(qp(257), OPS_ERROR, "queue pair access error")])

    def test_posted_and_not_completed(self):
        """Four requests, of which two ask for a completion."""
        for run in self.runs:
            with self.subTest(provider=run.name):
                found = [(e["its_room"], e["object"], e["code"]) for e in run.calls("ibv_post_send", "tally")
                         if e["object"] == qp(257)]
                self.assertEqual((found[0], found[-1]), (("302", qp(257), 2), (None, qp(257), 0)))
                self.assertIn("queue pair standin0/257: 2 posted and not completed", " ".join(run.waiting["evidence"]))
                self.assertNotIn(("tally", qp(256)), [(e["kind"], e["object"]) for e in run.events],
                                 "all that was posted there came back")

    def test_posted_in_part(self):
        """Of five requests the queue pair takes two: these are open."""
        for run in self.runs:
            with self.subTest(provider=run.name):
                found = [e["code"] for e in run.calls("ibv_post_send", "tally") if e["object"] == qp(259)]
                self.assertEqual([code for code in found if code], [2, 1, 2])
                found = [(e["count"], e["status"], e["note"]) for e in run.calls("ibv_post_send", "post")
                         if e["object"] == qp(259)]
                self.assertEqual(found, [(5, OPS_ERROR, "queue full")])

    def test_blocked_in_a_post(self):
        for run in self.runs:
            with self.subTest(provider=run.name):
                words = "\n".join(str(line) for line in run.stuck["evidence"])
                self.assertEqual(re.findall(r"blocked in (\S+)", words), ["ibv_post_send"], words)
                for kind in ("inside", "left"):
                    self.assertEqual([e["its_room"] for e in run.calls("ibv_post_send", kind)], ["303"])

    def test_no_word_of_what_was_found(self):
        """What the file does not tell is no failure once a pointer has told it."""
        for run in self.runs:
            with self.subTest(provider=run.name):
                self.assertEqual([line for line in run.err if "chosen at run time" in line], [])


if __name__ == "__main__":
    unittest.main()
