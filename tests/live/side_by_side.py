# SPDX-License-Identifier: Apache-2.0
"""Tests that mostly wait, a few at once: while one is waited for, the next ones of its class (in the order of
their names, as tests are run) have been started on threads of their own. One that is run alone stays alone."""
import concurrent.futures
import sys
import unittest


class Kept(unittest.TestResult):
    """What a test said, to be said again."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def addSuccess(self, test):
        self.calls.append(("addSuccess", ()))

    def addFailure(self, test, err):
        self.calls.append(("addFailure", (err,)))

    def addError(self, test, err):
        self.calls.append(("addError", (err,)))

    def addSkip(self, test, reason):
        self.calls.append(("addSkip", (reason,)))

    def addSubTest(self, test, subtest, err):
        self.calls.append(("addSubTest", (subtest, err)))


def wanted(test):
    """Was it picked on the command line (-k WORD, or MODULE.CLASS.NAME)? Without a choice all are."""
    words = [after for at, after in zip(sys.argv, sys.argv[1:]) if at == "-k"]
    names = [word for word in sys.argv[1:] if "." in word and word.startswith("test_")]
    return any(w in test for w in words) or any(test.startswith(n) for n in names) or not (words or names)


class SideBySide(unittest.TestCase):
    AT_ONCE = 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pool = concurrent.futures.ThreadPoolExecutor(cls.AT_ONCE)
        cls.addClassCleanup(cls.pool.shutdown, cancel_futures=True)
        cls.started = {}

    def kept(self):
        result = Kept()
        super().run(result)
        return result

    def run(self, result=None):
        if result is None or "pool" not in type(self).__dict__:
            return super().run(result)
        names = [n for n in unittest.defaultTestLoader.getTestCaseNames(type(self)) if wanted(type(self)(n).id())]
        at = names.index(self._testMethodName) if self._testMethodName in names else len(names)
        for name in names[at:at + self.AT_ONCE] or [self._testMethodName]:
            if name not in self.started:
                self.started[name] = self.pool.submit(type(self)(name).kept)
        result.startTest(self)
        try:
            for what, args in self.started[self._testMethodName].result().calls:
                getattr(result, what)(self, *args)
        finally:
            result.stopTest(self)
        return result
