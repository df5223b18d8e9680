# SPDX-License-Identifier: Apache-2.0
"""A process whose objects tests/unit/test_py_image.c reads: `record.py` starts it and records what is read.

Prints what a reader must find, ends that with the line "ready", and waits in known frames.
"""
import os
import sys
import threading
from collections import OrderedDict, defaultdict, deque
from enum import IntEnum

TEXT = 64  # bytes of the reader's buffer, one for the NUL


class Plain:
    def __init__(self, room):
        self.room = room
        self.rid = f"rid-{room}"


class Many:
    def __init__(self):
        for i in range(40):
            setattr(self, f"a{i}", i)


class Slots:
    __slots__ = ("x", "y", "unset")

    def __init__(self):
        self.x, self.y = 1, "two"


class Below(Slots):
    __slots__ = ("z",)

    def __init__(self):
        super().__init__()
        self.z = 3


class Mixed(Slots):
    def __init__(self):
        super().__init__()
        self.own = 4


class Weak:
    __slots__ = ("v", "__weakref__", "__dict__")

    def __init__(self):
        self.v = 5
        self.w = 6


class Status(IntEnum):
    FAILED = 0
    DONE = 4


class MyList(list):
    pass


class MyDeque(deque):
    pass


class MyStr(str):
    pass


class Error(Exception):
    def __init__(self):
        super().__init__("x")
        self.code = 7


def dicts():
    deleted = {i: str(i) for i in range(20)}
    for i in range(0, 20, 3):
        del deleted[i]
    strings = {f"k{i}": i for i in range(12)}
    del strings["k3"]
    mixed = {"a": 1, 2: "b", (3,): None}
    wide = {i: None for i in range(90)}  # an index of 16 bits
    for i in range(4, 90):
        del wide[i]
    return [("dict-empty", {}), ("dict-deleted", deleted), ("dict-strings", strings), ("dict-mixed", mixed),
            ("dict-wide", wide), ("dict-ordered", OrderedDict(b=1, a=2)),
            ("dict-default", defaultdict(list, {1: [2]})), ("dict-cleared", cleared())]


def cleared():
    d = {1: 2}
    d.clear()
    return d


def sequences():
    turned = deque(range(70))
    turned.rotate(37)
    popped = deque(range(70))
    for _ in range(66):
        popped.popleft()
    return [("list-0", []), ("list-1", [1]), ("tuple-0", ()), ("tuple-nested", (1, (2, [3, deque([4])]))),
            ("deque-0", deque()), ("deque-1", deque([1])), ("deque-64", deque(i % 7 for i in range(64))),
            ("deque-65", deque(i % 7 for i in range(65))), ("deque-130", deque(i % 7 for i in range(130))),
            ("deque-turned", turned), ("deque-popped", popped), ("deque-max", deque(range(9), maxlen=3)),
            ("list-subclass", MyList([1, 2])), ("deque-subclass", MyDeque([1, 2]))]


def scalars():
    ints = [0, 1, -1, 2**30 - 1, 2**30, -(2**30), 2**60 - 1, 2**60, 2**62, 2**63 - 1, 2**63, -(2**63), 2**64 - 1,
            2**64, -(2**63) - 1, 2**90, 4611686018427387903, True, False, Status.DONE]
    strings = ["", "a", "rid-7", "x" * 5000, "\xe9t\xe9", "\u20ac5", "a\U0001f600b", "\xe9" * 40, "\u20ac" * 30,
               "\U0001f600" * 20, MyStr("sub"), "nul\0nul", "\ud800"]
    return [("ints", ints), ("strings", strings), ("none", None)]


def instances():
    shown = Plain(2)
    shown.__dict__  # makes it a dict
    edited = Plain(3)
    edited.__dict__["late"] = 1
    del edited.__dict__["rid"]
    edited.rid = "again"
    gone = Plain(4)
    del gone.rid
    other = Plain.__new__(Plain)
    other.rid, other.room = "first", 5
    late = Plain(6)
    late.extra = 1
    p = ("room", "rid", "late", "extra")
    return [("plain", Plain(1), p), ("shown", shown, p), ("edited", edited, p), ("gone", gone, p),
            ("other", other, p), ("late", late, p), ("empty", Plain.__new__(Plain), p),
            ("many", Many(), ("a0", "a29", "a30", "a39", "a40")), ("slots", Slots(), ("x", "y", "unset", "z")),
            ("below", Below(), ("x", "z", "own")), ("mixed", Mixed(), ("x", "own", "unset")),
            ("weak", Weak(), ("v", "w")), ("error", Error(), ("code", "args"))]


def ended(c, used):
    """Characters are taken while they fit into the buffer with their NUL."""
    return used + len(c.encode()) >= TEXT


def text_of(s):
    out, used = "", 0
    for c in s:
        c = "\ufffd" if c == "\0" or 0xd800 <= ord(c) < 0xe000 else c
        if ended(c, used):
            break
        out, used = out + c, used + len(c.encode())
    return f'"{out}"/{len(s)}'


def show(v, names=()):
    if v is None:
        return "None"
    if isinstance(v, int):
        return str(int(v)) if -(2**63) <= v < 2**64 else "range"
    if isinstance(v, str):
        return text_of(v)
    if isinstance(v, dict):
        return "{" + ", ".join(f"{show(k)}: {show(x)}" for k, x in v.items()) + "}"
    for kind, a, b in ((list, "[", "]"), (tuple, "(", ")"), (deque, "<", ">")):
        if isinstance(v, kind):
            return a + ", ".join(show(x) for x in v) + b
    got = " ".join(f"{n}={show(getattr(v, n)) if has(v, n) else '-'}" for n in names)
    return f"{type(v).__name__}({got})"


def has(v, name):
    return name != "args" and hasattr(v, name)


class Worker:
    def serve(self, queue, free):
        room = len(queue)
        keep = lambda: (self, room, free)  # makes cells of them

        def inner():
            free, gate.release(), stop.acquire()
            return keep
        inner()


def frames_of(ident):
    """file:line name, innermost first, as traceback would say."""
    f, out = sys._current_frames()[ident], []
    while f:
        c = f.f_code
        out.append(f"{'/'.join(c.co_filename.split('/')[-2:])}:{f.f_lineno} {c.co_name}")
        f = f.f_back
    return out


def report(cases):
    for case in cases:
        print(case[0], show(case[1], case[2] if len(case) > 2 else ()))
    for t in [threading.main_thread()] + workers:
        print("thread", t.native_id, t.name)
        for line in frames_of(t.ident):
            print("  at", line)
    print('local serve self=Worker() queue=[1, 2, 3] room=3 free="free"/4 none=-')
    print('local inner self=- queue=- room=- free="free"/4 none=-')
    print("ready", flush=True)


class Reporter(threading.Thread):
    def __init__(self, cases):
        super().__init__(name="reporter", daemon=True)
        self.cases = cases

    def run(self):
        go.acquire()
        report(self.cases)
        stop.acquire()


def hold(cases):
    gate.acquire()
    gate.acquire()  # both workers are where they stay
    yield go.release(), os.read(0, 1)


def through_c(cases):
    """sorted() calls a Python function from C: an entry frame of the interpreter lies between."""
    return sorted([cases], key=lambda case: [x for x in hold(case)])


gate, stop, go = threading.Semaphore(0), threading.Semaphore(0), threading.Lock()
workers = [threading.Thread(target=Worker().serve, args=([1, 2, 3], "free"), name=n, daemon=True)
           for n in ("worker-one", "w\xf6rker-two")]


def main():
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    cases = scalars() + sequences() + dicts() + instances()
    for w in workers:
        w.start()
    go.acquire()
    Reporter(cases).start()
    through_c(cases)


main()
