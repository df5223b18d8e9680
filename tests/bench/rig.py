# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: the target, the tracers, places in ELF files, and the lines of figures.

A Failed is raised when a measurement could not be made; a figure that misses its reach is no failure.
"""
import os
import re
import select
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROBES = os.path.join(HERE, "bench.yaml")  # of our own target
NODE_PROBES = os.path.join(ROOT, "probes.yaml")
median = statistics.median


class Failed(Exception):
    pass


def figure(name, value, unit, reach=None):
    """One figure on stdout. A reach is a bound above or below: docs/performance.md says which."""
    text = f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
    print(f"bench {name} {text} {unit} reach {'-' if reach is None else reach}", flush=True)


class Lines:
    """Lines of a pipe, each waited for with a limit."""

    def __init__(self, pipe):
        self.fd = pipe.fileno()
        self.poll = select.poll()
        self.poll.register(self.fd, select.POLLIN)
        self.buf = b""

    def next(self, timeout):
        end = time.monotonic() + timeout
        while b"\n" not in self.buf:
            left = end - time.monotonic()
            if left <= 0 or not self.poll.poll(1000 * left):
                raise Failed(f"no line within {timeout:.0f} s; so far {self.buf[-200:]!r}")
            more = os.read(self.fd, 1 << 16)
            if not more:
                raise Failed(f"ended; last {self.buf[-200:]!r}")
            self.buf += more
        line, _, self.buf = self.buf.partition(b"\n")
        return line.decode(errors="replace")

    def until(self, word, timeout):
        end = time.monotonic() + timeout
        while True:
            line = self.next(max(0.0, end - time.monotonic()))
            if word in line:
                return line

    def rest(self):
        while more := os.read(self.fd, 1 << 16):
            self.buf += more
        return self.buf.decode(errors="replace")


class Process:
    """A child that ends with its `with` block; cpu: where it runs, None: anywhere."""

    def __init__(self, argv, cpu=None, env=None, **pipes):
        if cpu is not None:
            argv = ["taskset", "-c", str(cpu), *argv]
        self.p = subprocess.Popen([str(a) for a in argv], env=dict(os.environ, **(env or {})), **pipes)
        self.pid = self.p.pid

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        for pipe in (self.p.stdin, self.p.stdout, self.p.stderr):
            if pipe:
                pipe.close()

    def interrupt(self, timeout=60):
        """SIGINT, and the seconds until the process is gone."""
        start = time.monotonic()
        self.p.send_signal(signal.SIGINT)
        try:
            self.p.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.p.args}: not gone {timeout} s after SIGINT") from None
        return time.monotonic() - start

    def cpu_s(self):
        """CPU time of all its threads so far."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Target(Process):
    """tests/bench/target.c"""

    def __init__(self, build, cpu=0):
        super().__init__([os.path.join(build, "bench", "target")], cpu, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
        self.lines = Lines(self.p.stdout)
        self.lines.until("ready", 10)

    def say(self, text, timeout=120):
        self.p.stdin.write(text.encode() + b"\n")
        self.p.stdin.flush()
        answer = self.lines.next(timeout)
        if answer == "what?":
            raise Failed(f"the target does not know {text!r}")
        return answer

    def burst(self, function, calls, repeats, pause_ms=0):
        """The least ns a call took."""
        return float(self.say(f"burst {function} {calls} {repeats} {pause_ms}"))


class Watch(Process):
    """silentpin watch, attached on entry; its last words are in .told after stop()."""

    def __init__(self, build, *args, cpu=1, attached="recording to"):
        self.dir = tempfile.mkdtemp(prefix="silentpin-bench-")
        self.db = os.path.join(self.dir, "b.db")
        self.out = open(os.path.join(self.dir, "alerts"), "w+b")
        super().__init__([os.path.join(build, "silentpin"), "watch", "-v", "--alerts", "json", "-o",
                          self.db, *args], cpu, stdin=subprocess.DEVNULL, stdout=self.out,
                         stderr=subprocess.PIPE)
        self.lines = Lines(self.p.stderr)
        self.attached = attached
        self.told = ""

    def __enter__(self):
        try:
            if self.attached:
                self.lines.until(self.attached, 30)
        except Failed:
            self.__exit__()
            raise
        return self

    def settled(self):
        """Until it is recording: its loop comes next, and an interrupt is heeded at any time."""
        self.lines.until("recording to", 30)

    def stop(self):
        """Records, events and lost events that it counted."""
        seconds = self.interrupt()
        self.told = self.lines.rest()
        if self.p.returncode not in (0, 3):
            raise Failed(f"silentpin ended with {self.p.returncode}: {self.told}")
        got = re.findall(r"(\d+) records, (\d+) events.*?lost (\d+)", self.told, re.DOTALL)
        if not got:
            raise Failed(f"silentpin told no counts: {self.told}")
        records, events, lost = map(int, got[-1])
        return {"records": records, "events": events, "lost": lost, "seconds": seconds}

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.out.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Bpftrace(Process):
    """bpftrace with a program for one process; what it prints goes to .path."""

    def __init__(self, program, pid, cpu=1):
        self.dir = tempfile.mkdtemp(prefix="silentpin-bench-")
        self.path = os.path.join(self.dir, "out")
        self.file = open(self.path, "wb")
        # the largest buffer it takes easily: lost lines would make its hits look cheap
        super().__init__(["bpftrace", "-p", str(pid), "-e", program], cpu, stdin=subprocess.DEVNULL,
                         stdout=self.file, stderr=subprocess.STDOUT,
                         env={"BPFTRACE_PERF_RB_PAGES": "1024"})

    def output(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.file.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def wait_for(condition, timeout, what, every=0.001):
    end = time.monotonic() + timeout
    while not (got := condition()):
        if time.monotonic() > end:
            raise Failed(f"waited {timeout:.0f} s for {what}")
        time.sleep(every)
    return got


class Elf:
    """Where the dynamic symbols of a 64-bit little-endian ELF file are."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise Failed(f"{path}: not a 64-bit ELF file")
        phoff, shoff = struct.unpack_from("<QQ", self.data, 32)
        _, phnum, _, shnum = struct.unpack_from("<HHHH", self.data, 54)
        loads = (struct.unpack_from("<IIQQQQ", self.data, phoff + 56 * i) for i in range(phnum))
        self.loads = [(vaddr, offset, filesz) for kind, _, offset, vaddr, _, filesz in loads
                      if kind == 1]
        sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, shoff + 64 * i)
                    for i in range(shnum)]
        self.symbols = {}
        for section in sections:
            if section[1] == 11:  # SHT_DYNSYM
                self._read(section, sections[section[6]])

    def _read(self, table, names):
        for at in range(table[4], table[4] + table[5], 24):
            name, info, _, shndx, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            if info & 15 == 2 and shndx:  # a function, defined here
                start = names[4] + name
                text = self.data[start:self.data.index(b"\0", start)].decode()
                self.symbols[text] = (self.offset(value), size)

    def offset(self, vaddr):
        for start, offset, size in self.loads:
            if start <= vaddr < start + size:
                return vaddr - start + offset
        raise Failed(f"{self.path}: nothing at {vaddr:#x}")

    def find(self, head):
        """(offset in the file, size) of the function whose name begins so."""
        found = [place for name, place in self.symbols.items() if name.startswith(head)]
        if len(found) != 1:
            raise Failed(f"{self.path}: {len(found)} symbols {head}*")
        return found[0]
