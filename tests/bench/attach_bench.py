# SPDX-License-Identifier: Apache-2.0
"""Attach and detach time of silentpin against bpftrace, with the same functions: those of the shipped
profile in a live stand-in node, and sixty of our own target.

Attach: from the start of the process until the code of every probed function is patched. Detach: from SIGINT
until the process is gone and that code is as it was. Both are read off the target's memory, whatever the
tracer says.
"""
import os
import sys
import tempfile
import time

from rig import NODE_PROBES, ROOT, Bpftrace, Elf, Failed, Target, Watch, figure, median, wait_for

REPEATS, MANY, MANY_REPEATS = 7, 60, 3
# head of the symbol, what bpftrace does at the entry, what at the return ("" none)
NIXL = "_ZNK9nixlAgent"
NODE = {
    "libnixl": (
        (f"{NIXL}11makeXferReq", "@a[tid] = sarg0; @b[tid] = sarg1;",
         'printf("make %lx %s %d\\n", *(uint64 *)@a[tid], str(*(uint64 *)(@b[tid] + 24)), retval);'),
        (f"{NIXL}13createXferReq", "@a[tid] = arg5; @b[tid] = sarg0;",
         'printf("create %lx %s %d\\n", *(uint64 *)@a[tid], str(*(uint64 *)(@b[tid] + 24)), retval);'),
        (f"{NIXL}11postXferReq", "@a[tid] = arg1;", 'printf("post %lx %d\\n", @a[tid], retval);'),
        (f"{NIXL}13getXferStatus", "@c[tid] = arg1;",
         "if (@last[@c[tid]] != retval) "
         '{ printf("status %lx %d\\n", @c[tid], retval); @last[@c[tid]] = retval; }'),
        (f"{NIXL}14releaseXferReq", 'printf("release %lx\\n", arg1);', ""),
    ),
    "libzmq": (
        ("zmq_msg_recv", "@d[tid] = arg0;",
         'if ((int32)retval > 0) { printf("recv %lx %d\\n", @d[tid], retval); }'),
        ("zmq_msg_send", 'printf("send %lx %d\\n", arg0, arg2);', ""),
    ),
}


OURS = {"libbench": tuple((f"bench_many_{i:02}", f'printf("%d %lx\\n", {i}, arg0);', "")
                          for i in range(MANY))}
OURS_PROBE = """
      - name: many_{i:02}
        library: calls
        symbol: bench_many_{i:02}
        on: entry
        args: [{{name: a, fetch: "$arg1", type: x64}}]
        event: {{role: call}}"""
OURS_YAML = """version: 1
profiles:
  - name: many
    room: {type: u64}
    libraries: {calls: {file: libbench.so}}
    probes:""" + "".join(OURS_PROBE.format(i=i) for i in range(MANY)) + "\n"


class Text:
    """The code of the probed functions, as it is in the target's memory."""

    def __init__(self, pid, functions):
        self.mem = open(f"/proc/{pid}/mem", "rb", buffering=0)
        self.program = []
        self.places = []
        for library, probes in functions.items():
            path = self._map(pid, library)
            elf = Elf(path)
            for head, entry, back in probes:
                name = next(n for n in elf.symbols if n.startswith(head))
                self.places.append((self._address(elf.find(head)[0]), elf.find(head)[1]))
                self.program.append(f"uprobe:{path}:{name} {{ {entry} }}")
                if back:
                    self.program.append(f"uretprobe:{path}:{name} {{ {back} }}")
        self.clean = self.read()

    def _map(self, pid, library):
        self.maps, path = [], None
        with open(f"/proc/{pid}/maps") as f:
            for line in f:
                words = line.split(None, 5)
                name = words[5].strip() if len(words) == 6 else ""
                if os.path.basename(name).startswith(library) and "x" in words[1]:
                    start, end = (int(w, 16) for w in words[0].split("-"))
                    self.maps.append((start, end, int(words[2], 16)))
                    path = name
        if not path:
            raise Failed(f"the target has no {library}")
        return path

    def _address(self, offset):
        for start, end, at in self.maps:
            if at <= offset < at + end - start:
                return start + offset - at
        raise Failed(f"offset {offset:#x} is not mapped")

    def read(self):
        return [os.pread(self.mem.fileno(), size, at) for at, size in self.places]

    def patched(self):
        """Functions that are not as they were."""
        return sum(now != was for now, was in zip(self.read(), self.clean))

    def close(self):
        self.mem.close()


def timed(text, tracer):
    """Seconds to attach, to detach, and of these from the first function that is clean again."""
    start = time.monotonic()
    with tracer() as t:
        wait_for(lambda: text.patched() == len(text.places), 60, "the probes")
        attach = time.monotonic() - start
        t.settled()  # an interrupt during the attach is another thing
        start = time.monotonic()
        t.p.send_signal(2)
        wait_for(lambda: text.patched() < len(text.places), 60, "the first probe gone", 0.0005)
        first = time.monotonic() - start
        t.p.wait(60)
        wait_for(lambda: not text.patched(), 60, "the target's code as it was", 0.0005)
        detach = time.monotonic() - start
    return attach, detach, detach - first


def measure(build, pid, functions, args, repeats):
    """[(ours, theirs)] of timed(), by turns."""
    text = Text(pid, functions)
    try:
        return [(timed(text, lambda: Watch(build, "-p", pid, *args, attached=None, cpu=None)),
                 timed(text, lambda: Settled(" ".join(text.program), pid)))
                for _ in range(repeats)]
    finally:
        text.close()


def tell(pairs, more, reach):
    for i, what in enumerate(("attach", "detach")):
        ours, theirs = ([p[k][i] for p in pairs] for k in (0, 1))
        figure(f"{what}{more}-silentpin", 1000 * median(ours), "ms")
        figure(f"{what}{more}-bpftrace", 1000 * median(theirs), "ms")
        figure(f"{what}{more}-faster", median(t / o for o, t in zip(ours, theirs)), "times", reach)


class Settled(Bpftrace):
    """It says when it listens: an interrupt before is lost."""

    def __init__(self, program, pid):
        super().__init__(program + ' interval:ms:20 /!@told/ { @told = 1; printf("listening\\n"); }',
                         pid, cpu=None)

    def settled(self):
        wait_for(lambda: "listening" in self.output(), 60, "bpftrace to listen", 0.01)


def run(build):
    sys.path.insert(0, os.path.join(ROOT, "tests", "node"))
    from node import Node

    with open(os.devnull, "w") as log, Node(log=log) as node:
        node.decode()  # maps libnixl.so
        pairs = measure(build, node.pid, NODE, ("--probes", NODE_PROBES), REPEATS)
    tell(pairs, "", 5)
    figure("detach-share", median(ours[2] / ours[1] for ours, _ in pairs), "ratio")
    with Target(build) as target, tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(OURS_YAML)
        f.flush()
        pairs = measure(build, target.pid, OURS, ("--probes", f.name), MANY_REPEATS)
    tell(pairs, f"-{MANY}-probes", None)
