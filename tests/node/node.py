# SPDX-License-Identifier: Apache-2.0
"""Start a stand-in node and talk to it: class Node (a prefill and its decodes), for the tests.

    with Node() as node:
        decode = node.decode()
        room = node.room()
        decode.announce(room, tokens=96)
        post = node.post(room, tokens=96)
        post.wait()
        print(node.pid, node.state()["pinned"])

Everything a node starts ends with it: process groups, and the kernel kills the children of a test
that dies. Start a node from a thread that outlives it (the kernel's rule for that kill).
"""
import collections
import http.client
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time

from proc import HERE, node_build

SLOW = float(os.environ.get("SILENTPIN_TEST_SLOW", "1"))  # an emulated machine says so
DEADLINE_S = 60 * SLOW  # of every wait that is given none; a busy machine takes its time


class NodeError(Exception):
    pass


def wait_until(condition, what, timeout=DEADLINE_S, every=0.01):
    """Poll condition() until it is true; its value. NodeError after timeout seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise NodeError(f"{what}: not within {timeout} s")
        time.sleep(every)


def node_log():
    """Where the stderr of a node goes: the file SILENTPIN_NODE_LOG, appended to, or nowhere."""
    path = os.environ.get("SILENTPIN_NODE_LOG")
    return open(path, "ab") if path else subprocess.DEVNULL


class Lines:
    """JSON lines of a child's stdout, read by a thread so that the child never blocks on it."""

    def __init__(self, pipe):
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                if line.endswith(b"\n"):  # a killed child may leave half a line
                    self.lines.put(json.loads(line))
        self.lines.put(None)

    def next(self, timeout):
        """The next object, None after timeout seconds."""
        try:
            line = self.lines.get(timeout=timeout)
        except queue.Empty:
            return None
        if line is None:
            self.lines.put(None)
            raise NodeError("the process ended")
        return line


class Child:
    """A process of the node, in a group of its own."""

    def __init__(self, argv, log):
        self.proc = subprocess.Popen([sys.executable] + argv, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self.pid = self.proc.pid
        self.lines = Lines(self.proc.stdout)

    def end(self):
        if self.proc.poll() is None:
            for sig in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.killpg(self.pid, sig)
                except ProcessLookupError:
                    break
        self.proc.wait()
        self.proc.stdin.close()


class Decode(Child):
    """One decode process, with one or more ranks."""

    def __init__(self, node, log, ranks=1, first_rank=0, rate=0, rank_port=None, more=()):
        super().__init__([
            os.path.join(HERE, "decode.py"), "--rank-port", str(rank_port),
            "--ranks", str(ranks), "--first-rank", str(first_rank), "--rate", str(rate),
            "--num-pages", str(node.options.get("num_pages", 1024)),
            "--item-len", str(node.options.get("item_len", 16384)),
            "--build", node.build, "--transport", node.transport,
            "--workers", str(node.options.get("workers", 4)), *more], log)
        self.events = collections.deque()
        self.agents = self.expect("ready")["agents"]

    def expect(self, ev, timeout=DEADLINE_S, **fields):
        """The next event of that kind with those fields; others are kept for later."""
        end = time.monotonic() + timeout
        seen = 0
        while True:
            while seen < len(self.events):
                event = self.events[seen]
                if event["ev"] == ev and all(event.get(k) == v for k, v in fields.items()):
                    del self.events[seen]
                    return event
                seen += 1
            event = self.lines.next(max(0.0, end - time.monotonic()))
            if event is None:
                raise NodeError(f"decode {self.pid}: no {ev} {fields} within {timeout} s")
            if event["ev"] == "refused":
                raise NodeError(f"decode {self.pid}: {event}")
            self.events.append(event)

    def do(self, what, **fields):
        """Run a command and wait until decode has carried it out (a stopped decode never does)."""
        self.tell(what, **fields)
        self.expect("sent", do=what, room=str(fields.get("room")))

    def tell(self, what, **fields):
        self.proc.stdin.write(json.dumps(dict(fields, do=what)).encode() + b"\n")
        self.proc.stdin.flush()

    def announce(self, room, tokens, **more):
        self.do("announce", room=room, tokens=tokens, **more)

    def announce_part(self, rooms):
        """As one of two ranks, any number of rooms: they wait for the other rank for ever."""
        self.do("announce_part", rooms=rooms)

    def abort(self, room):
        self.do("abort", room=room)

    def done(self, room, timeout=DEADLINE_S):
        """Wait until every byte of the room has come; NodeError if it is not what was sent."""
        if not self.expect("done", timeout, room=str(room))["ok"]:
            raise NodeError(f"room {room}: wrong content")

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def cont(self):
        os.kill(self.pid, signal.SIGCONT)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.proc.wait()


class Post:
    """One POST /generate under way; its connection stays open until the server answers."""

    def __init__(self, port, body):
        self.status = self.answer = None
        self.error = None
        self.conn = http.client.HTTPConnection("127.0.0.1", port)
        self.body = json.dumps(body)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.conn.request("POST", "/generate", self.body, {"Content-Type": "application/json"})
        self.thread.start()

    def _run(self):
        try:
            response = self.conn.getresponse()
            self.answer = json.loads(response.read())
            self.status = response.status
        except (OSError, http.client.HTTPException, ValueError) as e:
            self.error = e

    def done(self):
        return not self.thread.is_alive()

    def wait(self, timeout=DEADLINE_S):
        """The HTTP status of the answer."""
        self.thread.join(timeout)
        if self.status is None:
            raise NodeError(f"no answer within {timeout} s ({self.error!r})")
        return self.status

    def hang_up(self):
        self.conn.sock.shutdown(2)


class Node:
    """A prefill node and its decodes. Options are the fields of messages.ServerArgs."""

    def __init__(self, build=None, log=None, seed=None, **options):
        self.build = os.path.abspath(build or node_build())
        self.options = dict(options, build=self.build)
        self.transport = options.get("transport", "nixl")
        self.log = log if log is not None else node_log()
        self.random = random.Random(seed)
        self.prefill = None
        self.port = self.front_pid = self.pid = None
        self.decodes = []
        self.posts = []

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()

    def start(self):
        argv = [os.path.join(HERE, "prefill.py")]
        for name, value in self.options.items():
            flag = "--" + name.replace("_", "-")
            argv += [flag] if value is True else [] if value is False else [flag, str(value)]
        self.prefill = Child(argv, self.log)
        try:
            ready = self.prefill.lines.next(DEADLINE_S)
        except NodeError:
            ready = None
        if not ready:
            self.stop()
            raise NodeError("the prefill did not start")
        self.port, self.front_pid = ready["port"], ready["pid"]
        self.pid = ready["schedulers"][0]["pid"]
        return self

    @classmethod
    def attach(cls, port, **options):
        """A node that somebody else started; stop() then ends only the decodes started here."""
        node = cls(**options)
        node.port = port
        state = node.state()
        node.pid, node.front_pid = state["pid"], state["front_pid"]
        node.options.update(state["options"])
        return node

    def run(self, name, **more):
        """Run a scenario by name: see scenarios.run()."""
        import scenarios

        return scenarios.run(self, name, **more)

    def stop(self):
        for child in [self.prefill] + self.decodes:
            if child:
                child.end()
        self.decodes, self.prefill = [], None

    # ---- HTTP ----------------------------------------------------------------------------------
    def http(self, method, path, body=None, timeout=DEADLINE_S):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            conn.request(method, path, None if body is None else json.dumps(body))
            response = conn.getresponse()
            data = response.read()
            if response.status != 200:
                raise NodeError(f"{method} {path}: {response.status} {data[:200]!r}")
            return data.decode() if path == "/metrics" else json.loads(data)
        finally:
            conn.close()

    def state(self, rank=0):
        return self.http("GET", f"/state?rank={rank}")

    def brief(self, rank=0):
        """Lengths of the queues and the counters: cheap with any number of rooms."""
        return self.http("GET", f"/state?rank={rank}&brief=1")

    def hook(self, rank=0, **hooks):
        return self.http("POST", "/hook", dict(hooks, rank=rank))

    def abort_request(self, rid):
        return self.http("POST", "/abort_request", {"rid": rid})

    def add_rank(self, fork=False):
        """A second scheduler, started by the front or (fork) forked by the first; {rank, pid}."""
        return self.hook(fork=True) if fork else self.http("POST", "/hook", {"spawn": True})

    # ---- requests ------------------------------------------------------------------------------
    def room(self, worker=None):
        """A room id nobody has used; `worker`: of that transfer worker."""
        workers = self.options.get("workers", 4)
        room = self.random.getrandbits(63)
        if worker is not None:
            room += worker - room % workers
            room = room if 0 <= room < 1 << 63 else worker
        return room

    def post(self, room, tokens=96, forward_ms=None, rid=None, host="127.0.0.1", rank=0,
             prompt=None):
        """POST /generate for one room, or for a list of rooms as one batch. Does not wait."""
        many = isinstance(room, list)
        prompt = prompt or "why is the room pinned? " * max(1, tokens // 6)
        custom = {"tokens": tokens}
        if forward_ms is not None:
            custom["forward_ms"] = forward_ms
        body = {"text": [prompt] * len(room) if many else prompt,
                "sampling_params": {"max_new_tokens": 16, "custom_params": custom}}
        if many:
            body["sampling_params"] = [body["sampling_params"]] * len(room)
        if rid is not None:
            body["rid"] = rid
        if rank:
            body["data_parallel_rank"] = rank
        count = len(room) if many else None
        body["bootstrap_host"] = [host] * count if many else host
        body["bootstrap_port"] = [self.port] * count if many else self.port
        body["bootstrap_room"] = room
        post = Post(self.port, body)
        self.posts.append(post)
        return post

    def decode(self, ranks=1, first_rank=0, rate=0, rank=0, more=(), worker=-1):
        """Start a decode process and wait until prefill knows its ranks. more: arguments of decode.py, such as
        --scheduler. worker: over Mooncake, which worker sends to it (over NIXL the room decides)."""
        more = (*more, "--on-worker", str(worker))
        port = self.http("GET", f"/route?rank={rank}")["rank_port"]
        decode = Decode(self, self.log, ranks, first_rank, rate, port, more)
        self.decodes.append(decode)
        wait_until(lambda: set(decode.agents) <= set(self.state(rank)["decodes"]),
                   "registration of the decode")
        if self.transport == "mooncake":  # its sessions do not say which process they are
            self.hook(rank, peers=[decode.agents, decode.pid])
        return decode

    # ---- the truth -----------------------------------------------------------------------------
    def wait(self, condition, what, timeout=DEADLINE_S, rank=0):
        """The first state for which condition(state) is true."""
        def look():
            state = self.state(rank)
            return state if condition(state) else None
        return wait_until(look, what, timeout)

    def wait_pinned(self, *rooms, timeout=DEADLINE_S):
        want = {str(r) for r in rooms}
        return self.wait(lambda s: want <= {p["room"] for p in s["pinned"]},
                         f"rooms {sorted(want)} pinned", timeout)

    def wait_quiet(self, timeout=DEADLINE_S):
        """Nothing moves any more: what is left is pinned or delayed."""
        def quiet(s):
            held = {(e["room"], e["life"]) for e in s["inflight"] + s["bootstrap"]}
            return (not s["waiting"] and len(s["inflight"]) == len(s["pinned"])
                    and len(s["bootstrap"]) == len(s["delayed"])
                    and all(life["released"] or (life["room"], life["life"]) in held
                            for life in s["lives"]))
        return self.wait(quiet, "a quiet node", timeout)

    def wait_life(self, room, life, timeout=DEADLINE_S, **fields):
        """Until a life has these values, e.g. outcome="done"; True stands for any."""
        def reached(state):
            for one in state["lives"]:
                if (one["room"], one["life"]) == (str(room), life):
                    return all(one[k] is not None if v is True else one[k] == v
                               for k, v in fields.items())
            return False
        return self.wait(reached, f"life {life} of room {room}: {fields}", timeout)
