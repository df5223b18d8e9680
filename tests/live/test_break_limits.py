# SPDX-License-Identifier: Apache-2.0
"""Limits of the process (files, their size), and signals that end a session: nothing dies of them."""
import os
import signal
import subprocess
import tempfile
import unittest

import sp

# --find sees every process of the machine
ALONE = True


class Limits(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        self.addCleanup(self.tmp.cleanup)
        self.db = os.path.join(self.tmp.name, "t.db")

    def limited(self, limit, *args):
        return subprocess.run(["bash", "-c", f'ulimit {limit}; exec "$@"', "-", sp.SILENTPIN, "watch", "-o",
                               self.db, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=30 * sp.PATIENCE, check=False)

    def test_file_size(self):
        """SIGXFSZ would kill: a recording that cannot be begun is an error, one that cannot go on a
        warning."""
        p = self.limited("-f 8", "--find", "--for", "300ms")
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("cannot be written", p.stderr)

    def test_file_size_of_a_command_is_its_own(self):
        """The command started under watch meets its limits as it would without us."""
        out = os.path.join(self.tmp.name, "out")
        self.limited("-f 200", "--", "bash", "-c", f"head -c 1000000 /dev/zero > {out}; echo $? > {out}.rc;"
                     f"ulimit -Sn > {out}.fds")
        with open(out + ".rc", encoding="ascii") as f:
            self.assertEqual(int(f.read()), 128 + signal.SIGXFSZ)

    def test_open_files(self):
        p = self.limited("-n 12", "--find", "--for", "300ms")
        self.assertEqual(p.returncode, 4, p.stderr)
        self.assertEqual(len(p.stderr.splitlines()), 1, p.stderr)

    def test_soft_limit_is_raised_for_us_only(self):
        out = os.path.join(self.tmp.name, "out")
        p = self.limited("-Sn 64", "--", "bash", "-c",
                         f"ulimit -Sn > {out}; grep 'open files' /proc/$PPID/limits >> {out}")
        self.assertEqual(p.returncode, 0, p.stderr)
        with open(out, encoding="ascii") as f:
            mine, ours = f.read().splitlines()
        self.assertEqual(mine, "64")
        soft, hard = ours.split()[3:5]
        self.assertEqual(soft, hard)

    def test_hang_up(self):
        """A closed terminal ends the session as Ctrl-C does, unless nohup says otherwise."""
        with sp.Watch("--find", db=self.db) as watch:
            self.assertEqual(watch.stop(signal.SIGHUP), 0)
        self.assertNotIn("killed", sp.run("rooms", "-i", self.db).stderr)
        with sp.Watch("--find", db=self.db, prefix=("nohup",)) as watch:
            watch.p.send_signal(signal.SIGHUP)
            watch.p.send_signal(signal.SIGINT)
            self.assertEqual(watch.p.wait(20), 0)

    def test_recording_deleted_meanwhile(self):
        """SQLite goes on writing into a file that no name leads to any more: that is said."""
        for how in (lambda: os.unlink(self.db), lambda: os.rename(self.db, self.db + ".old")):
            with sp.Watch("--find", db=self.db) as watch:
                how()
                watch.wait_err("was deleted, moved or replaced", 10)
                watch.stop()


if __name__ == "__main__":
    unittest.main()
