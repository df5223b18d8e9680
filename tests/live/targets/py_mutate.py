# SPDX-License-Identifier: Apache-2.0
"""Containers that threads change as fast as they can: local variables `rows` (list), `table` (dict), `line` (deque),
`plain`, `slots` (instances) and `queue` (list of requests) of Keeper.hold.

Whatever is ever put into a container carries its tag: an int is tag << 40 | sequence, a string says so in
words. All ints are of one size, so that the memory of one that is let go is soon another's, with another tag:
a reader that follows a pointer too late sees a value that was never in that container.

Says "ready", and the number of changes so far for each line that it is sent; ends with its input.
"""
import collections
import itertools
import random
import sys
import threading

TAGS = {"list": 1, "key": 2, "value": 3, "deque": 4, "attr": 5, "slot": 6, "room": 7}


class Plain:
    pass


class Slots:
    __slots__ = tuple(f"s{i}" for i in range(8))


class Req:
    """rid is the room in words: an instance in which they differ was never there."""

    def __init__(self, room):
        self.rid = f"rid-{room}"
        self.bootstrap_room = room
        self.status = None


def numbers(tag):
    return map((tag << 40).__add__, itertools.count())


def change_list(rows, new, rnd, count):
    for v in new:
        what = rnd.randrange(12)
        if what < 4:
            rows.append(v)
        elif what < 6:
            rows.insert(0, v)
        elif what < 8 and rows:
            rows[rnd.randrange(len(rows))] = v
        elif what < 10 and rows:
            rows.pop(0)
        elif what == 10:
            rows.sort(key=lambda x: x * 7919 % 1009)
        elif len(rows) > 100:
            del rows[5:]
        count[0] += 1


def change_dict(table, new, rnd, count):
    values = numbers(TAGS["value"])
    for k, v in zip(new, values):
        what = rnd.randrange(12)
        if what < 6:
            table[k] = v
        elif what < 8 and table:
            table[next(iter(table))] = v
        elif what < 11 and table:
            table.popitem() if what == 8 else table.pop(next(iter(table)))
        elif len(table) > 60:
            table.clear()
        count[0] += 1


def change_deque(line, new, rnd, count):
    for v in new:
        what = rnd.randrange(12)
        if what < 4:
            line.append(v)
        elif what < 7:
            line.appendleft(v)
        elif what < 9 and line:
            line.pop()
        elif what < 10 and line:
            line.popleft()
        elif what == 10:
            line.rotate(rnd.randrange(-70, 70))
        elif len(line) > 150:
            line.clear()
        count[0] += 1


def change_attrs(obj, new, rnd, count):
    for v in new:
        name = f"a{rnd.randrange(24)}"
        what = rnd.randrange(200)
        if what < 140:
            setattr(obj, name, v)
        elif what < 197:
            obj.__dict__.pop(name, None)
        elif what == 197:
            obj.__dict__ = {name: v}
        else:
            obj.__dict__.clear()
        count[0] += 1


def change_slots(obj, new, rnd, count):
    for v in new:
        name = f"s{rnd.randrange(8)}"
        if rnd.randrange(3) or not hasattr(obj, name):
            setattr(obj, name, v)
        else:
            delattr(obj, name)
        count[0] += 1


def change_requests(queue, new, rnd, count):
    """As a server does: a new list without those that are done takes the old one's place, in place."""
    for v in new:
        queue.append(Req(v))
        if len(queue) > 12:
            queue[:] = [r for r in queue if rnd.randrange(2)]
        elif queue and v % 3 == 0:
            queue.pop(0)
        count[0] += 1


class Keeper:
    def hold(self, seed):
        rows, table, line, plain, slots, queue = [], {}, collections.deque(), Plain(), Slots(), []
        work = ((rows, change_list, "list"), (table, change_dict, "key"), (line, change_deque, "deque"),
                (plain, change_attrs, "attr"), (slots, change_slots, "slot"), (queue, change_requests, "room"))
        counts = [[0] for _ in work]
        for i, (thing, change, tag) in enumerate(work):
            threading.Thread(target=change, daemon=True, args=(
                thing, numbers(TAGS[tag]), random.Random(seed + i), counts[i])).start()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(*(c[0] for c in counts), flush=True)


if __name__ == "__main__":
    sys.setswitchinterval(0.0002)
    Keeper().hold(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
