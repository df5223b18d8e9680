# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written, standard descriptors that are closed, words with odd bytes."""
import os
import signal
import subprocess
import tempfile
import unittest

import sp

# --find sees every process of the machine
ALONE = True


def shell(script, **kw):
    """A shell line with $SP; (exit code, stdout, stderr)."""
    p = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, env=dict(os.environ, SP=sp.SILENTPIN),
                       timeout=30 * sp.PATIENCE, check=False, **kw)
    return p.returncode, p.stdout, p.stderr


class Output(unittest.TestCase):
    VERBS = ("check", "doctor", "--help", "--version", "rooms --help")

    def test_full_or_closed_stdout_is_a_failure(self):
        for verb in self.VERBS:
            for to in (">/dev/full", ">&-"):
                with self.subTest(verb=verb, to=to):
                    rc, _, err = shell(f"$SP {verb} {to}")
                    self.assertEqual(rc, 1)
                    self.assertIn(b"silentpin: stdout: cannot be written: ", err)

    def test_reader_that_went_away_is_silent(self):
        for verb in self.VERBS:
            with self.subTest(verb=verb):
                # the reader has ended before the first byte is written
                rc, _, err = shell(f"exec 3> >(exec 0<&-); wait $!; $SP {verb} >&3")
                self.assertEqual((rc, err), (1, b""))

    def test_closed_descriptors_are_not_taken_by_our_files(self):
        """With stdin, stdout and stderr closed, what is opened gets their numbers: nothing of what is
        said may end up in a file."""
        with tempfile.TemporaryDirectory(prefix="silentpin-test-") as d:
            db = os.path.join(d, "t.db")
            p = subprocess.Popen(["sh", "-c", f"exec {sp.SILENTPIN} watch --find -o {db} <&- >&- 2>&-"])
            try:
                sp.wait_for(lambda: os.path.exists(db) or p.poll() is not None, 20, "the recording")
                for fd in range(3):
                    self.assertEqual(os.readlink(f"/proc/{p.pid}/fd/{fd}"), "/dev/null")
                p.send_signal(signal.SIGINT)
                self.assertEqual(p.wait(10), 0)
            finally:
                p.kill()
                p.wait()
            self.assertEqual(sp.run("rooms", "-i", db).returncode, 0)

    def test_one_line_whatever_the_words(self):
        for word in (b"a\nb", b"\x1b[31mred\x1b[0m", b"\xff\xfe", b"\r\t\x07", b"x" * 5000):
            for args in ([b"timeline", b"-i", word, b"1"], [b"check", word], [b"rooms", word],
                         [b"watch", b"-p", word], [b"watch", b"--", word], [word]):
                with self.subTest(args=args):
                    p = subprocess.run([sp.SILENTPIN.encode(), *args], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=30,
                                       check=False)
                    self.assertEqual(p.returncode, 2, p.stderr)
                    self.assertEqual(p.stderr.count(b"\n"), 1, p.stderr)
                    self.assertFalse(any(c < 32 and c != 10 for c in p.stderr), p.stderr)


if __name__ == "__main__":
    unittest.main()
