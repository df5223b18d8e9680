# SPDX-License-Identifier: Apache-2.0
"""Objects of every layout that CPython 3.10 to 3.13 has, held by local variables of Keeper.hold.

Says "ready", then on one line as JSON what each variable holds, and waits for a line. The values are told in the
form that test_py_values.py compares with: {"int": "5"}, {"str": "x"}, {"list": [...]}, {"dict": [[key, value]...]},
{"obj": TYPE, "attrs": {...}}, {"none": 1}; {"refused": 1} what must not be read (too many, too big);
{"either": VALUE} may be refused, but read as nothing else.
"""
import collections
import dataclasses
import enum
import json
import sys
import threading
import types
import weakref


class Plain:
    def __init__(self, room, rid):
        self.room = room
        self.rid = rid
        self.nothing = None
        self.big = 1 << 62


class Other(Plain):
    pass


class Order:
    pass


class Empty:
    pass


class Many:
    def __init__(self):
        self.first = 1


class Slots:
    __slots__ = ("room", "rid", "unset")


class SlotsBelow(Slots):
    __slots__ = ("more",)


class SlotsAndDict(Slots):
    pass


class SlotsWithDict:
    __slots__ = ("room", "__dict__", "__weakref__")


class PrivateSlots:
    __slots__ = ("__hidden", "shown")

    def __init__(self):
        self.__hidden = 7
        self.shown = 8


class Word(str):
    pass


class Number(int):
    pass


class Rows(list):
    pass


class Table(dict):
    pass


class Oops(Exception):
    pass


class Poll(enum.IntEnum):
    Failed = 0
    Bootstrapping = 1
    Success = 4


class Colour(enum.Enum):
    RED = 3


@dataclasses.dataclass
class Chunk:
    room: int
    index: list
    last: bool = False


@dataclasses.dataclass(frozen=True)
class Frozen:
    room: int


@dataclasses.dataclass
class SlotChunk:
    __slots__ = ("room", "rid")
    room: int
    rid: str


Pair = collections.namedtuple("Pair", "room rid")


class Expected:
    """What the reader should say. An instance's attributes are told to it by name: to look at __dict__ would
    change the layout that is to be read."""

    def __init__(self):
        self.names, self.kept, self.special = {}, [], {}

    def instance(self, obj, *names):
        self.names[id(obj)] = names
        self.kept.append(obj)
        return obj

    def refused(self, obj):
        self.special[id(obj)] = {"refused": 1}
        self.kept.append(obj)
        return obj

    def either(self, obj):
        self.kept.append(obj)
        self.special[id(obj)] = None
        value = self.tell(obj)
        self.special[id(obj)] = {"either": value}
        return obj

    def tell(self, v):
        if self.special.get(id(v)):
            return self.special[id(v)]
        if v is None:
            return {"none": 1}
        if isinstance(v, int):
            return {"int": str(int(v))}
        if isinstance(v, str):
            return {"str": str(v)}
        if isinstance(v, (list, tuple, collections.deque)):
            kind = next(t for t in (list, tuple, collections.deque) if isinstance(v, t))
            return {kind.__name__: [self.tell(x) for x in v]}
        if isinstance(v, dict):
            return {"dict": [[self.tell(k), self.tell(x)] for k, x in v.items()]}
        return {"obj": type(v).__name__,
                "attrs": {n: self.tell(getattr(v, n)) for n in self.names[id(v)]}}


def numbers(x):
    ints = {"zero": 0, "one": 1, "minus": -1, "small": 256, "true": True, "false": False, "none": None,
            "subclass": Number(1 << 40), "poll": Poll.Success, "poll0": Poll.Failed, "neg": -12345678901,
            "room": 7731092417731092417, "max63": (1 << 63) - 1, "min64": -(1 << 63),
            "ten18": 10 ** 18, "digits": 0x3fffffff << 30}
    for bits in (15, 29, 30, 31, 32, 59, 60, 61, 62):
        for at in (-1, 0, 1):
            ints[f"2^{bits}{at:+d}"] = (1 << bits) + at
            ints[f"-2^{bits}{at:+d}"] = -(1 << bits) + at
    for name, v in (("2^63", 1 << 63), ("2^63+1", (1 << 63) + 1), ("2^64-1", (1 << 64) - 1),
                    ("-2^63-1", -(1 << 63) - 1), ("-2^64+1", -(1 << 64) + 1)):
        ints[name] = x.either(v)
    for name, v in (("2^64", 1 << 64), ("2^90", 1 << 90), ("2^90+5", (1 << 90) + 5), ("-2^64", -(1 << 64)),
                    ("2^120", 1 << 120), ("2^4000", 1 << 4000)):
        ints[name] = x.refused(v)
    return ints


def texts(x):
    t = {"empty": "", "a": "a", "ascii": "bootstrap_room", "63": "r" * 63, "64": "r" * 64, "128": "s" * 128,
         "latin1": "d\u00e9j\u00e0 vu", "latin1-one": "\u00fc", "ucs2": "\u4f60\u597d, room",
         "ucs2-one": "\u20ac", "ucs4": "pin \U0001f4cc!", "quotes": "\"\\/\t\n\r\x01\x7f", "nul": x.either("a\0b"),
         "ascii-4000": "z" * 4000, "ascii-5000": "abcde" * 1000, "latin1-5000": "\u00e9" * 5000,
         "ucs2-5000": "\u4f60" * 5000, "ucs4-5000": "\U0001f4cc" * 5000,
         "subclass": x.either(Word("sub")), "subclass-wide": x.either(Word("\u4f60" * 5))}
    return t


def lists(x):
    grown = [1, 2, 3]
    for i in range(500):
        grown.append(i)
    del grown[10:400]
    rows = x.either(Rows([1, 2, 3]))
    return {"none": [], "one": [5], "65": list(range(65)), "1000": [i << 33 for i in range(1000)],
            "grown": grown, "emptied": [i for i in range(50) if i < 0], "mixed": [1, "a", None, (2,), [3]],
            "tuple0": (), "tuple1": (7,), "tuple65": tuple(range(65)), "tuple1000": tuple(map(str, range(1000))),
            "pair": Pair(9, "nine"), "subclass": rows, "same": [grown, grown]}


def deques():
    made = {str(n): collections.deque(range(n)) for n in (0, 1, 2, 31, 32, 63, 64, 65, 127, 128, 129, 1000)}
    d = made["rotated"] = collections.deque(range(100))
    d.rotate(41)
    d = made["rotated-back"] = collections.deque(range(130))
    d.rotate(-77)
    d = made["popleft"] = collections.deque(range(200))
    for _ in range(130):
        d.popleft()
    d = made["popleft-one-left"] = collections.deque(range(65))
    for _ in range(64):
        d.popleft()
    d = made["both-ends"] = collections.deque()
    for i in range(90):
        (d.append if i % 3 else d.appendleft)(i)
    made["emptied"] = collections.deque(range(64))
    made["emptied"].clear()
    d = made["drained"] = collections.deque(range(300))
    while d:
        d.pop()
    d = made["maxlen"] = collections.deque(maxlen=10)
    d.extend(range(137))
    made["maxlen0"] = collections.deque([1, 2], maxlen=0)
    made["strings"] = collections.deque(f"rid-{i}" for i in range(70))
    return made


def dicts(x):
    made = {f"int{n}": {i * 7919: i for i in range(n)} for n in (0, 1, 5, 6, 10, 11, 85, 86, 170, 171, 1000)}
    made.update({f"str{n}": {f"key-{i}": i for i in range(n)} for n in (1, 5, 6, 86, 171, 1000)})
    made["mixed"] = {1: "a", "b": 2, None: 3, (4, 5): [6], "\u4f60": 7, -1: 8}
    made["str-then-int"] = {"a": 1, "b": 2}
    made["str-then-int"][3] = 4
    d = made["deleted"] = {i: str(i) for i in range(60)}
    for i in range(0, 60, 3):
        del d[i]
    d = made["deleted-str"] = {f"k{i}": i for i in range(40)}
    for i in range(40):
        if i not in (3, 20, 39):
            del d[f"k{i}"]
    d = made["deleted-again"] = {i: i for i in range(5)}
    del d[0]
    d[0] = "again"
    made["popitem"] = {i: i for i in range(20)}
    made["popitem"].popitem()
    made["cleared"] = {i: i for i in range(300)}
    made["cleared"].clear()
    made["cleared-refilled"] = {i: i for i in range(300)}
    made["cleared-refilled"].clear()
    made["cleared-refilled"]["x"] = 1
    made["emptied"] = {i: i for i in range(9)}
    for i in range(9):
        del made["emptied"][i]
    made["rooms"] = {(1 << 63) - 1 - i * 3: Poll.Success if i % 2 else 1 for i in range(200)}
    made["default"] = collections.defaultdict(list, {5: [1], 6: []})
    made["ordered"] = collections.OrderedDict((("z", 1), ("a", 2)))
    made["counter"] = collections.Counter("abca")
    made["subclass"] = x.either(Table({"k": 1}))
    made["copied"] = dict(made["deleted"])
    made["from-keys"] = dict.fromkeys(("a", "b"), 0)
    made["updated"] = {**made["str5"], "key-1": "new"}
    made["nested"] = {1: {2: {3: {4: "deep"}}}}
    return made


def instances(x):
    names = ("room", "rid", "nothing", "big")
    made = {"plain": x.instance(Plain(1, "a"), *names), "below": x.instance(Other(2, "b"), *names)}
    o = made["materialised"] = x.instance(Plain(3, "c"), *names)
    o.__dict__
    o = made["edited"] = x.instance(Plain(4, "d"), *names, "late")
    o.__dict__["late"] = [1]
    del o.__dict__["rid"]
    o.rid = "again"
    o = made["deleted"] = x.instance(Plain(5, "e"), "rid", "nothing", "big")
    del o.room
    o = made["deleted-set"] = x.instance(Plain(6, "f"), *names)
    del o.rid
    o.rid = "back"
    o = made["deleted-all"] = x.instance(Plain(7, "g"))
    for n in names:
        delattr(o, n)
    made["weak"] = x.instance(Plain(8, "h"), *names)
    x.kept.append(weakref.ref(made["weak"]))
    o = made["weak-edited"] = x.instance(Plain(9, "i"), *names, "extra")
    x.kept.append(weakref.ref(o))
    o.__dict__["extra"] = "e"
    o = made["replaced"] = x.instance(Plain(10, "j"), "quite", "other")
    o.__dict__ = {"quite": 1, "other": "dict"}
    o = made["replaced-shared"] = x.instance(Plain(11, "k"), *names)
    o.__dict__ = made["materialised"].__dict__
    o = made["grown"] = x.instance(Plain(12, "l"), *names, *(f"n{i}" for i in range(8)))
    for i in range(8):
        setattr(o, f"n{i}", i * i)
    for count in (29, 30, 31, 60):
        o = made[f"many{count}"] = x.instance(Many(), "first", *(f"a{i}" for i in range(count)))
        for i in range(count):
            setattr(o, f"a{i}", (1 << 62) + i)
    for text in ("abc", "cba", "bca", "ca", "b"):
        o = made[f"order-{text}"] = x.instance(Order(), *text)
        for n in text:
            setattr(o, n, n * 2)
    made["empty"] = x.instance(Empty())
    o = made["foreign-name"] = x.instance(Empty(), "after")
    setattr(o, "gr\u00f6\u00dfe", 1)
    setattr(o, "\u4f60", 2)
    o.after = 3
    made["dataclass"] = x.instance(Chunk(13, [1, 2], True), "room", "index", "last")
    made["frozen"] = x.instance(Frozen(14), "room")
    made["namespace"] = x.instance(types.SimpleNamespace(room=15, rid="ns"), "room", "rid")
    made["exception"] = x.instance(Oops("x"), "room")
    made["exception"].room = 16
    made["enum"] = x.instance(Colour.RED, "_value_", "_name_")
    made["full"] = x.instance(Order(), *(f"f{i}" for i in range(30)))
    for i in range(30):
        setattr(made["full"], f"f{i}", i)
    return made


def slotted(x):
    made = {}
    o = made["slots"] = x.instance(Slots(), "room", "rid")
    o.room, o.rid = 1 << 50, "slot"
    o = made["below"] = x.instance(SlotsBelow(), "room", "rid", "more")
    o.room, o.rid, o.more = 2, "b", (3,)
    o = made["and-dict"] = x.instance(SlotsAndDict(), "room", "unset", "attr")
    o.room, o.unset, o.attr = 4, 5, "in the dict"
    o = made["with-dict"] = x.instance(SlotsWithDict(), "room", "attr")
    o.room, o.attr = 6, 7
    x.kept.append(weakref.ref(o))
    made["none-set"] = x.instance(Slots())
    o = made["deleted"] = x.instance(Slots(), "rid")
    o.room, o.rid = 8, "kept"
    del o.room
    made["private"] = x.instance(PrivateSlots(), "_PrivateSlots__hidden", "shown")
    made["dataclass"] = x.instance(SlotChunk(9, "nine"), "room", "rid")
    return made


def nested(x):
    leaf = x.instance(Plain((1 << 63) - 1, "leaf"), "room", "rid", "nothing", "big")
    top = x.instance(Order(), "rows", "table")
    top.rows = [collections.deque([{"k": (leaf,)}])]
    top.table = {77: [leaf, {}]}
    return {"top": top, "again": [[[[["five"]]]]]}


def big(x):
    """Around the caps: 65,536 elements are read, one more is refused."""
    return {"list10000": [(1 << 62) + i for i in range(10000)], "list65536": [i % 100 for i in range(65536)],
            "list65537": x.refused([0] * 65537), "tuple10000": tuple(range(10000)),
            "deque10000": collections.deque(range(10000)),
            "deque65537": x.refused(collections.deque([1] * 65537))}


def big_dicts(x):
    """Indices of four bytes: more than 21,845 entries make 65,536 places."""
    return {"int": {i * 3: i for i in range(22000)}, "str": {f"k{i}": i for i in range(22000)},
            "65537": x.refused(dict.fromkeys(range(65537), 1))}


def generate(x, told, done):
    """A frame of a generator, entered from C."""
    of_generator = {"room": (1 << 61) + 1}
    told["of_generator"] = x.tell(of_generator)
    done.set()
    threading.Event().wait()
    yield of_generator


class Keeper:
    def hold(self, x, told):
        v_numbers, v_texts, v_lists, v_deques = numbers(x), texts(x), lists(x), deques()
        v_dicts, v_instances, v_slots, v_nested = dicts(x), instances(x), slotted(x), nested(x)
        v_big, v_big_dicts = big(x), big_dicts(x)
        captured, unbound = [1, "captured", (1 << 63) - 1], 1
        captured_argument = told

        def look():
            return captured, captured_argument

        del unbound
        for name, value in sorted(locals().items()):
            if name.startswith(("v_", "captured")) and value is not told:
                told[name] = x.tell(value)
        captured_argument = "now a string"
        told["captured_argument"] = x.tell(captured_argument)
        print("ready", flush=True)
        print(json.dumps(told), flush=True)
        sys.stdin.readline()
        return look


def main():
    x, told, done = Expected(), {}, threading.Event()
    threading.Thread(target=lambda: list(generate(x, told, done)), daemon=True).start()
    done.wait()
    Keeper().hold(x, told)


if __name__ == "__main__":
    main()
