# SPDX-License-Identifier: Apache-2.0
"""Small things about processes that several files need."""
import ctypes
import os
import signal

HERE = os.path.dirname(os.path.abspath(__file__))
PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29
_libc = ctypes.CDLL(None, use_errno=True)


def node_build():
    """Folder of libnixl.so and its binding: build/node, or where SILENTPIN_BUILD says build/ is."""
    return os.path.join(os.environ.get("SILENTPIN_BUILD")
                        or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"), "node")


def die_with_parent():
    """The kernel kills this process when its parent goes, however that goes."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def precise_sleep():
    """Short sleeps end when they should; the default slack of 50 us would halve the poll rate."""
    _libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def proc_state(pid):
    """State letter of a process (R S D T t Z), "" when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def alive(pid):
    return proc_state(pid) not in ("", "Z", "X")


def stopped(pid):
    return proc_state(pid) in ("T", "t")
