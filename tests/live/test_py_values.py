# SPDX-License-Identifier: Apache-2.0
"""Objects of every layout, read out of a live interpreter and compared value by value, for each interpreter
found: tests/live/targets/py_objects.py holds them and tells what they are."""
import json
import unittest

import interpreters
from pyrig import OBJECTS, Target, normal, pydump

STR_MAX = 4096  # bytes: PY_STR_MAX of user/python/object.h


def setUpModule():
    interpreters.tell()


class Differences:
    """Where what was read is not what is there, as paths."""

    def __init__(self, want, got, path):
        self.found = []
        self.compare(want, got, path)

    def differ(self, path, want, got):
        self.found.append(f"{path}: is {json.dumps(want)[:200]}, read {json.dumps(got)[:200]}")

    def compare(self, want, got, path):
        kind, value = next(iter(want.items()))
        if kind == "either":
            if "refused" not in got:
                self.compare(value, got, path)
        elif kind == "refused":
            if "refused" not in got:
                self.differ(path, want, got)
        elif kind not in got:
            self.differ(path, want, got)
        elif kind in ("list", "tuple", "deque"):
            self.elements(value, got[kind], path)
        elif kind == "dict":
            self.elements([x for pair in value for x in pair], [x for pair in got[kind] for x in pair], path)
        elif kind == "obj":
            self.attributes(want, got, path)
        elif kind == "str":
            self.text(value, got[kind], path)
        elif got[kind] != value:
            self.differ(path, want, got)

    def elements(self, want, got, path):
        if len(want) != len(got):
            self.found.append(f"{path}: has {len(want)} elements, read {len(got)}")
        for i, (w, g) in enumerate(zip(want, got)):
            if w != g:
                self.compare(w, g, f"{path}[{i}]")

    def attributes(self, want, got, path):
        if got["obj"].rpartition(".")[2] != want["obj"]:  # a built-in type's name has its module
            self.differ(path, want["obj"], got["obj"])
        if set(got["attrs"]) != set(want["attrs"]):
            self.differ(path + " attributes", sorted(want["attrs"]), sorted(got["attrs"]))
        for name in set(got["attrs"]) & set(want["attrs"]):
            self.compare(want["attrs"][name], got["attrs"][name], f"{path}.{name}")

    def text(self, want, got, path):
        """A text longer than the reader takes is cut at a character's boundary; a NUL is shown as U+FFFD."""
        want = want.replace("\0", "\ufffd")
        cut = got != want and want.startswith(got) and STR_MAX - 4 <= len(got.encode()) + 1 <= STR_MAX
        if got != want and not cut:
            self.differ(path, want, got)


def names_in(v):
    """Every attribute that any instance has: each is asked of all of them."""
    if isinstance(v, dict):
        return set(v.get("attrs", ())).union(*map(names_in, v.values()))
    return set().union(*map(names_in, v)) if isinstance(v, list) else set()


@interpreters.for_each_interpreter
class Values(unittest.TestCase):
    def each_values(self, py):
        """Every local variable of a method's frame, cells and a generator's frame too."""
        with Target(py, OBJECTS) as target:
            self.assertEqual(target.line(), "ready\n")
            told = json.loads(target.line())
            self.assertGreaterEqual(len(told), 12)
            found, values = [], 0
            attrs = "--attrs", ",".join(sorted(names_in(told) | {"absent"}))
            for name, want in told.items():
                frame = "generate" if name == "of_generator" else "*Keeper.hold"
                rc, lines, err = pydump(target.pid, frame, name, *attrs)
                self.assertEqual((rc, len(lines), err), (0, 1, ""), name)
                # the big ones are equal text by text: no walk needed
                got = normal(lines[0])
                found += [] if got == want else Differences(want, got, name).found
                values += len(want.get("dict", ())) or 1
            self.assertEqual(found, [], f"{len(found)} of {values} differ")

    def each_absent(self, py):
        """A variable without a value, an unknown one and an unknown frame are errors with a reason."""
        with Target(py, OBJECTS) as target:
            self.assertEqual(target.line(), "ready\n")
            for frame, local in (("*Keeper.hold", "unbound"), ("*Keeper.hold", "nowhere"), ("no_frame", "x")):
                rc, lines, err = pydump(target.pid, frame, local)
                self.assertEqual((rc, lines), (1, []), (frame, local))
                self.assertEqual(len(err.splitlines()), 1, err)

    def each_frame_names(self, py):
        """A glob with a dot is for the qualified name where the version has one, else for its last part."""
        with Target(py, OBJECTS) as target:
            self.assertEqual(target.line(), "ready\n")
            for frame in ("hold", "Keeper.hold", "*.hold", "h?ld"):
                self.assertEqual(pydump(target.pid, frame, "v_slots")[0], 0, frame)
            wrong = pydump(target.pid, "Other.hold", "v_slots")[0]
            self.assertEqual(wrong, 1 if py.minor >= (3, 11) else 0)


if __name__ == "__main__":
    unittest.main()
