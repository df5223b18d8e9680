# SPDX-License-Identifier: Apache-2.0
"""What the tests and benchmarks of CUDA calls share: the watched program, and a probes file for it."""
import os
import queue
import re
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SHIPPED = os.path.join(ROOT, "probes.yaml")


def groups(path=SHIPPED):
    """The text of `groups:` of a probes file."""
    with open(path) as f:
        found = re.search(r"^groups:\n(?:(?:[ #].*)?\n)+", f.read(), re.MULTILINE)
    assert found, f"{path}: no groups"
    return found[0]


def probes_file(folder, profiles=os.path.join(HERE, "calls.yaml")):
    """A probes file of these profiles and the shipped groups."""
    with open(profiles) as f:
        text = f.read()
    path = os.path.join(folder, "calls.yaml")
    with open(path, "w") as f:
        f.write(text.replace("profiles:\n", f"{groups()}\nprofiles:\n", 1))
    return path


class App:
    """cuda_app.c: say("a", "cuMemcpyAsync 4096 1") -> ["0"]; tell() does not wait for the answer."""

    program = ("cuda", "cuda_app")

    def __init__(self, build, prefix=()):
        self.p = subprocess.Popen([*prefix, os.path.join(build, *self.program)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        self.pid = self.p.pid
        self.lines = {}
        if self.p.stdout.readline() != "ready\n":
            raise AssertionError(f"{self.program[-1]} did not start")
        threading.Thread(target=self._read, daemon=True).start()

    def _of(self, thread):
        return self.lines.setdefault(thread, queue.Queue())

    def _read(self):
        for line in self.p.stdout:
            thread, _, results = line.partition(":")
            self._of(thread).put(results.split())

    def tell(self, thread, steps):
        self._of(thread)
        self.p.stdin.write(f"{thread}: {steps}\n")
        self.p.stdin.flush()

    def answer(self, thread, timeout=20):
        try:
            results = self._of(thread).get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"thread {thread} has not answered (exit code {self.p.poll()})") from None
        if "what?" in results:
            raise AssertionError(f"thread {thread} was told what it does not know: {results}")
        return results

    def say(self, thread, steps, timeout=20):
        self.tell(thread, steps)
        return self.answer(thread, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        return False
