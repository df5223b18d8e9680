#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo`: a live prefill node with a silent pin, found, explained and dumped by silentpin.

Starts the stand-in node, attaches silentpin to its scheduler as to any process, sends healthy requests, and
then two that go wrong: the write of one room's auxiliary data is lost, and a decode process is stopped in
the middle of a transfer. Everything it starts ends with it. usage: demo.py [BUILD]
"""
import json
import os
import subprocess
import sys
import tempfile
import threading

from node import Node, NodeError, wait_until

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
SILENTPIN = os.path.join(BUILD, "silentpin")
BOLD, RESET = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")


def say(text):
    print(f"\n{BOLD}# {text}{RESET}", flush=True)


def show(*args, cwd):
    """Run silentpin as a person would, and show the command."""
    print(f"{BOLD}$ silentpin {' '.join(args)}{RESET}", flush=True)
    return subprocess.run([SILENTPIN, *args], cwd=cwd, check=False).returncode


def recorded_stuck(cwd):
    """Rooms that the recording has as stuck: it may be a moment behind the alerts."""
    out = subprocess.run([SILENTPIN, "rooms", "--stuck", "--json"], cwd=cwd, check=False, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return {json.loads(line)["room"] for line in out.splitlines()}


class Watch:
    """silentpin watch in the background; its lines are shown, and remembered."""

    def __init__(self, cwd, *args):
        print(f"{BOLD}$ silentpin watch {' '.join(args)} &{RESET}", flush=True)
        self.proc = subprocess.Popen([SILENTPIN, "watch", *args], cwd=cwd, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.proc.stdout:
            self.lines.append(line)
            print(f"  {line}", end="", flush=True)

    def wait(self, *words, timeout=30):
        def seen():
            if self.proc.poll() is not None and not self.thread.is_alive():
                raise NodeError(f"silentpin ended with exit code {self.proc.returncode}")
            return any(all(w in line for w in words) for line in list(self.lines))
        wait_until(seen, f"{words} from silentpin", timeout)

    def stop(self):
        self.proc.terminate()
        code = self.proc.wait()
        self.thread.join(5)
        return code


def healthy(node, decode, count):
    posts = []
    for _ in range(count):
        room = node.room()
        decode.announce(room, 96)
        posts.append(node.post(room, 96))
    for post in posts:
        post.wait()


def run(node, folder):
    say("A prefill node is serving. A router has retried a request under the same room: one of the two is pinned.")
    say("The server has logged nothing about it; a gauge stays at 1, and would for ever.")
    pinned = node.run("posted-twice")[0].pinned[0][0]
    say("What does the server itself hold? Read out of its memory, without stopping it:")
    show("py", str(node.pid), cwd=folder)
    say("Nobody restarts it, nobody changes it: attach to its scheduler.")
    watch = Watch(folder, "-p", str(node.pid), "--stuck-after", "inflight=3s")
    watch.wait("recording to")
    say("24 healthy requests go through: no alert. Then a request's decode is stopped in mid-transfer (SIGSTOP).")
    decode = node.decode()
    healthy(node, decode, 24)
    stalled, slow = node.room(), node.decode(rate=400_000)
    slow.announce(stalled, 192)
    node.post(stalled, 192)
    node.wait(lambda s: any(w["room"] == str(stalled) and w["ops"] for w in s["workers"]), "a write")
    slow.stop()
    say("After the deadline (30 s by default, 3 s here):")
    for room in (pinned, stalled):
        watch.wait("STUCK", str(room))
    wait_until(lambda: recorded_stuck(folder) == {str(pinned), str(stalled)}, "both rooms in the recording")
    say("Which rooms are stuck?")
    show("rooms", "--stuck", cwd=folder)
    say("What happened to the stopped one?")
    show("timeline", str(stalled), cwd=folder)
    say("Why does silentpin say so, and where are the server's threads?")
    show("explain", str(stalled), cwd=folder)
    say("And the one that was pinned before silentpin came?")
    show("explain", str(pinned), cwd=folder)
    say("The stopped decode goes on: its room recovers, the other one stays pinned.")
    slow.cont()
    slow.do("rate", bytes=0)
    watch.wait("RECOVERED", str(stalled))
    say(f"silentpin is stopped; the node never noticed (its own truth: pinned "
        f"{[p['room'] for p in node.state()['pinned']]}).")
    code = watch.stop()
    print(f"exit code {code}: a room is stuck", flush=True)
    return 0 if code == 3 else 1


def main():
    if os.geteuid() != 0:
        print("demo: tracing needs root: sudo make demo", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="silentpin-demo-") as folder, tempfile.TemporaryFile("w+") as log:
        try:
            with Node(build=os.path.join(BUILD, "node"), log=log) as node:
                return run(node, folder)
        except NodeError as e:
            log.seek(0)
            last = log.read().strip().splitlines()[-1:] or ["it says nothing"]
            print(f"demo: {e}: the node's log ends with: {last[0]}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
