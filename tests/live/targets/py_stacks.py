# SPDX-License-Identifier: Apache-2.0
"""Threads that are blocked in functions of every shape: long ones, nested ones, generators, coroutines, code without a
file; for the rest it is py_sched.py, which tells where the interpreter thinks that each is.

The lines that matter are written over several ones, after long gaps and behind loops, because that is what a
table of line numbers can get wrong.
"""
import asyncio
import contextlib
import functools
import threading

import py_sched

NEVER = threading.Event()


def block():
    NEVER.wait()


def several_lines():
    return (len("a"),
            [
                1,
                block(),
                2,
            ],
            3)


def in_arguments():
    dict(
        a=1,
        b=max(
            1,
            2),
        c=block(
        ),
    )


def after_loop():
    for i in range(3):
        for k in range(2):
            if i == 2:
                if k == 1:
                    block()
        i += 1


def backwards():
    n = 0
    while True:
        if n > 3:
            break
        n += 1
    while n:
        block() if n == 2 else None
        n -= 1


def in_try():
    try:
        raise ValueError
    except ValueError:
        try:
            pass
        finally:
            with contextlib.suppress(KeyError):
                block()
    else:
        pass


def in_lambda():
    return (lambda:
            (1,
             block()))()


def in_comprehension():
    return [x
            for x in (1, 2)
            if block()]


def in_generator():
    def count():
        yield 1
        block()
        yield 2

    return sum(
        x for x in count())


def in_coroutine():
    async def inner():
        await asyncio.sleep(0)
        block()

    async def outer():
        await inner()

    asyncio.run(outer())


def delegating():
    def low():
        yield 1
        block()

    def high():
        yield from low()

    return list(high())


def decorated():
    @functools.wraps(block)
    @functools.lru_cache(
        maxsize=None)
    def inner(
            a,
            b=2):

        # nothing here

        return block()

    inner(1)


def in_class_body():
    class Inside:
        x = 1
        y = block()

    return Inside


def from_text():
    exec(compile("\n" * 300 + "def f():\n" + "\n" * 200 + "    block()\n" + "f()\n", "<made of text>", "exec"),
         {"block": block})


def named_non_ascii():
    exec(compile("def größe():\n  block()\ngröße()", "/tmp/größe.py", "exec"), {"block": block})


def one_line(): x = 1; y = 2; block(); return x + y


def recursive(depth=30):
    if depth:
        return recursive(
            depth - 1)
    return block()


def sorted_by_key():
    sorted([2, 1],
           key=lambda x:
           block())


class Methods:
    def __init__(self):
        self.value = 1

    def __call__(self):
        return self.prop

    @property
    def prop(self):
        return self.of_class()

    @classmethod
    def of_class(cls):
        return cls.static()

    @staticmethod
    def static():
        block()


def long_gap():
    """A gap of more lines, and a line of more code, than one byte says."""
    text = "def long():\n    x = 0\n" + "\n" * 700 + "    x = [" + "x + 1, " * 400 + "]\n" + "    block()\n" + "long()"
    exec(compile(text, "/nowhere/long.py", "exec"), {"block": block})


def main():
    shapes = (several_lines, in_arguments, after_loop, backwards, in_try, in_lambda, in_comprehension, in_generator,
              in_coroutine, delegating, decorated, in_class_body, from_text, named_non_ascii, one_line, recursive,
              sorted_by_key, Methods(), long_gap, functools.partial(recursive, 700))
    for f in shapes:
        threading.Thread(target=f, daemon=True).start()
    py_sched.main()


if __name__ == "__main__":
    main()
