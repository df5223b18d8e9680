# SPDX-License-Identifier: Apache-2.0
"""What the live tests share: running silentpin, waiting for conditions, reading its alerts."""
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SILENTPIN_BUILD", os.path.join(ROOT, "build"))
SILENTPIN = os.path.join(BUILD, "silentpin")
# An emulated machine is about twenty times slower: its runner says so, waits scale, nothing else.
SLOW = float(os.environ.get("SILENTPIN_TEST_SLOW", "1"))
# How many times longer than it says a wait may last before it counts as failed: other work on the machine is no
# fault of anybody's.
PATIENCE = 3 * SLOW


def wait_for(cond, timeout=20.0, what="condition", every=0.02):
    """Poll cond() until it is truthy and return that; fail after timeout seconds."""
    end = time.monotonic() + timeout * PATIENCE
    while True:
        got = cond()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError(f"timed out after {timeout * PATIENCE:.0f} s waiting for "
                                 f"{what() if callable(what) else what}")
        time.sleep(every)


def run(*args, timeout=30, cwd=None, env=None, **kw):
    """silentpin ARGS to its end: CompletedProcess with text output."""
    return subprocess.run([SILENTPIN, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=timeout * PATIENCE, cwd=cwd,
                          env=dict(os.environ, **(env or {})), text=True, **kw)


def events(db):
    """Those of a recording in their order, as dicts, with the names of probe and role, and the room of the life."""
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as c:
        c.row_factory = sqlite3.Row
        rows = c.execute("SELECT e.*, COALESCE(l.room, e.room) AS its_room, p.name AS probe_name, r.name AS role_name"
                         " FROM event e LEFT JOIN life l ON l.id = e.life JOIN role r ON r.id = e.role"
                         " LEFT JOIN probe p ON p.id = e.probe AND p.session = 1 ORDER BY e.ns, e.seq").fetchall()
    return [dict(row, room=row["its_room"]) for row in rows]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


class Watch:
    """A running `silentpin watch --alerts json`. Use as a context manager: it is attached on entry, and
    stopped with SIGINT on exit (rc then holds its exit code)."""

    def __init__(self, *args, db=None, env=None, attached=True, cwd=None, prefix=(),
                 stdin=subprocess.DEVNULL):
        self.dir = tempfile.TemporaryDirectory(prefix="silentpin-test-")
        self.db = db or os.path.join(self.dir.name, "t.db")
        self.args = [*prefix, SILENTPIN, "watch", "--alerts", "json", "-o", self.db, *map(str, args)]
        self.env = dict(os.environ, **(env or {}))
        self.wait_attached = attached
        self.cwd = cwd
        self.stdin = stdin
        self.alerts, self.bad_lines, self.err = [], [], []
        self.rc = None

    def __enter__(self):
        self.p = subprocess.Popen(self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  stdin=self.stdin, env=self.env, text=True, cwd=self.cwd)
        self.threads = [threading.Thread(target=self._read_alerts, daemon=True),
                        threading.Thread(target=self._read_err, daemon=True)]
        for t in self.threads:
            t.start()
        if self.wait_attached:
            self.wait_err("recording to", 20)
        return self

    @staticmethod
    def _lines(pipe):
        """The pipe's lines until its end, or until stop() has closed it: a command that silentpin started
        may hold the other end for longer."""
        try:
            yield from pipe
        except ValueError:
            return

    def _read_alerts(self):
        for line in self._lines(self.p.stdout):
            try:
                alert = json.loads(line)
            except ValueError:
                alert = None
            if isinstance(alert, dict) and "v" in alert:
                self.alerts.append(alert)
            else:
                self.bad_lines.append(line)

    def _read_err(self):
        for line in self._lines(self.p.stderr):
            self.err.append(line.rstrip("\n"))

    def wait_err(self, text, timeout=10):
        def seen():
            if any(text in line for line in list(self.err)):
                return True
            if self.p.poll() is not None:
                self.threads[1].join(5)
                if any(text in line for line in self.err):
                    return True
                raise AssertionError(f"silentpin ended with {self.p.returncode}: {self.err}")
            return False
        wait_for(seen, timeout, lambda: f"'{text}' on stderr; so far {self.err}")

    def of_type(self, kind):
        return [a for a in list(self.alerts) if a["type"] == kind]

    def stuck(self, room=None):
        return [a for a in self.of_type("stuck") if room is None or a["room"] == str(room)]

    def wait_alert(self, pred, timeout=20, what="alert"):
        return wait_for(lambda: next((a for a in list(self.alerts) if pred(a)), None), timeout,
                        lambda: f"{what}; alerts so far: {self.alerts}; stderr: {self.err[-5:]}")

    def wait_stuck(self, room, timeout=20):
        return self.wait_alert(lambda a: a["type"] == "stuck" and a["room"] == str(room), timeout,
                               f"stuck room {room}")

    def stop(self, sig=signal.SIGINT, timeout=20):
        if self.p.poll() is None:
            self.p.send_signal(sig)
        try:
            self.rc = self.p.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            raise AssertionError(f"silentpin did not stop on signal {sig}: {self.err[-5:]}") from None
        for t in self.threads:
            t.join(30 if self.stdin == subprocess.DEVNULL else 5)
        return self.rc

    def __exit__(self, *exc):
        try:
            if self.rc is None:
                self.stop()
        finally:
            if self.p.poll() is None:
                self.p.kill()
                self.p.wait()
            self.p.stdout.close()
            self.p.stderr.close()
            self.dir.cleanup()
        return False


def rooms(db, *args):
    """The rows of `silentpin rooms --json`."""
    p = run("rooms", "-i", db, "--json", *args)
    assert p.returncode in (0, 3), p.stderr
    return [json.loads(line) for line in p.stdout.splitlines()]
