# SPDX-License-Identifier: Apache-2.0
"""What the interpreter itself says of where its threads are, once they are all blocked."""
import sys
import time


def _places(threads):
    """Where each thread is; None: one of them runs. A thread that waits for the interpreter lock sleeps too, so
    only a place that stays the same while the lock is free is where a thread is blocked."""
    for t in threads:
        with open(f"/proc/self/task/{t.native_id}/stat", encoding="ascii", errors="replace") as f:
            if f.read().rpartition(")")[2].split()[0] != "S":
                return None
    frames = sys._current_frames()
    return [(id(frames[t.ident]), frames[t.ident].f_lasti) for t in threads]


def blocked_frames(threads):
    """{tid: [[file, line, name, qualified name], ...]}, innermost first."""
    before, same = None, 0
    while same < 5:
        now = _places(threads)
        same = same + 1 if now and now == before else 0
        before = now
        time.sleep(0.001)
    frames, told = sys._current_frames(), {}
    for t in threads:
        f, told[str(t.native_id)] = frames[t.ident], []
        while f:
            code = f.f_code
            told[str(t.native_id)].append([code.co_filename, f.f_lineno, code.co_name,
                                           getattr(code, "co_qualname", code.co_name)])
            f = f.f_back
    return told
