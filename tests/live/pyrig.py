# SPDX-License-Identifier: Apache-2.0
"""What the tests of reading Python share: targets under an interpreter, and what pydump says of their objects."""
import json
import os
import subprocess

import sp

PYDUMP = os.path.join(sp.BUILD, "live", "pydump")
TARGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "targets")
OBJECTS, MUTATE, SCHED, STACKS = (os.path.join(TARGETS, f"py_{name}.py")
                                  for name in ("objects", "mutate", "sched", "stacks"))


class Target:
    """A program of tests/live/targets under an interpreter; told: the lines after "ready"."""

    def __init__(self, py, script, *args, prefix=(), **kw):
        argv = [py if isinstance(py, str) else py.path, script, *map(str, args)]
        self.p = subprocess.Popen([*prefix, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **kw)
        self.pid = self.p.pid

    def line(self):
        return self.p.stdout.readline()

    def say(self, text=""):
        self.p.stdin.write(text + "\n")
        self.p.stdin.flush()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()


def pydump(pid, frame, local, *more, timeout=60):
    """(exit code, lines of JSON, stderr)"""
    p = subprocess.run([PYDUMP, str(pid), "--frame", frame, "--local", local, *map(str, more)],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                       timeout=timeout * sp.SLOW, check=False)
    return p.returncode, [json.loads(x) for x in p.stdout.decode().splitlines()], p.stderr.decode()


def normal(v):
    """pydump's words in those of py_objects.py."""
    if v is None:
        return {"none": 1}
    if isinstance(v, str):
        return {"str": v}
    if isinstance(v, list):
        return {"list": [normal(x) for x in v]}
    if "!int" in v:
        return {"int": v["!int"]}
    if "!dict" in v:
        return {"dict": [[normal(k), normal(x)] for k, x in v["!dict"]]}
    for kind in ("list", "tuple", "deque"):
        if f"!{kind}" in v:
            return {kind: [normal(x) for x in v[f"!{kind}"]]}
    if "!type" in v:
        return {"obj": v["!type"], "attrs": {n: normal(x) for n, x in v["attrs"].items()}}
    if "!error" in v:
        return {"refused": v["!error"]}
    return v


class Sched(Target):
    """py_sched.py (or another script that is one), ready: it has said its pid (of its own pid namespace)."""

    def __init__(self, py, *args, script=SCHED, **kw):
        super().__init__(py, script, *args, **kw)
        self.inner_pid = json.loads(self.line())["pid"]

    def ask(self, do, **more):
        self.say(json.dumps(dict(more, do=do)))
        return json.loads(self.line())


def py_json(pid, *more):
    """`silentpin py PID --json`, which must succeed and say nothing else."""
    p = sp.run("py", pid, "--json", *more)
    assert (p.returncode, p.stderr) == (0, ""), (p.returncode, p.stdout, p.stderr)
    return json.loads(p.stdout)


def same_queues(got, told):
    """Where `silentpin py --json` and what the target tells of itself differ; "" nowhere."""
    for name in ("queues", "status"):
        if got[name] != told[name]:
            return f"{name}: {json.dumps(got[name])[:600]} for {json.dumps(told[name])[:600]}"
    return "" if got["stable"] else "unstable"
