# SPDX-License-Identifier: Apache-2.0
"""`make dist`: the static program runs where there is nothing else. `make install`: it finds its probes file."""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "node"))
from node import Node  # noqa: E402

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3  # elf.h
CHROOT = shutil.which("chroot", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
# Runs $2... in the chroot $1 with /proc and /sys; the mounts end with it, whatever ends it.
ENTER = 'mount --bind /proc "$1/proc" && mount --bind /sys "$1/sys" && exec "$CHROOT" "$@"'
# The same as a container beside the target's does: a new /proc of the pid namespace, /sys read-only, and no
# capability but those that the README asks for (chroot needs its own).
CAPS = "-all,+bpf,+perfmon,+sys_ptrace,+sys_chroot"
SIDECAR = ('mount -t proc proc "$1/proc" && mount --bind -o ro /sys "$1/sys" && '
           f'exec setpriv --inh-caps {CAPS} --bounding-set {CAPS} "$CHROOT" "$@"')


def make(*args):
    """make with the build folder of these tests, not as a part of the make that may run them."""
    build = os.path.relpath(sp.BUILD, sp.ROOT) if sp.BUILD.startswith(sp.ROOT + "/") else sp.BUILD
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    p = subprocess.run(["make", "--no-print-directory", "-C", sp.ROOT, f"B={build}", *args], env=env, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300 * sp.PATIENCE, check=False)
    assert p.returncode == 0, p.stdout
    return p.stdout


def program_headers(path):
    """The types of a 64-bit ELF file's program headers."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:5] == b"\x7fELF\x02", "not a 64-bit ELF file"
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return {struct.unpack_from("<I", data, offset + i * size)[0] for i in range(count)}


def files_under(folder):
    return {os.path.relpath(os.path.join(d, f), folder) for d, _, names in os.walk(folder) for f in names}


class Dist(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp(prefix="silentpin-test-")
        cls.addClassCleanup(shutil.rmtree, cls.tmp)
        make("dist", f"DIST={cls.tmp}")
        cls.tarball = os.path.join(cls.tmp, os.listdir(cls.tmp)[0])

    def chroot(self, with_files=True):
        """A folder that holds what the tarball holds, or only the program and the probes file."""
        root = tempfile.mkdtemp(prefix="chroot-", dir=self.tmp)
        subprocess.run(["tar", "-xzf", self.tarball, "-C", root, "--strip-components=1"], check=True)
        if not with_files:
            for name in os.listdir(root):
                if name not in ("silentpin", "probes.yaml"):
                    path = os.path.join(root, name)
                    (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
        return root

    def inside(self, root, *args):
        return subprocess.run(["env", "-i", CHROOT, root, "/silentpin", *args], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False,
                              timeout=30 * sp.PATIENCE)

    def test_tarball(self):
        names = subprocess.run(["tar", "-tzf", self.tarball], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.split()
        version = sp.run("--version").stdout.split()[1]
        self.assertEqual({n.split("/")[0] for n in names}, {f"silentpin-{version}-linux-{os.uname().machine}"})
        self.assertEqual(os.path.basename(self.tarball), names[0].rstrip("/") + ".tar.gz")
        root = self.chroot()
        want = {"silentpin", "probes.yaml", "silentpin.1", "README.md", "LICENSE"}
        self.assertLessEqual(want, files_under(root))
        headers = program_headers(os.path.join(root, "silentpin"))
        self.assertIn(PT_LOAD, headers)
        self.assertFalse(headers & {PT_DYNAMIC, PT_INTERP}, "not a static program")
        with open(os.path.join(root, "silentpin"), "rb") as f:
            self.assertFalse(sp.ROOT.encode() in f.read(), "the folder of the build is in the program")

    def test_nothing_but_the_program(self):
        """No libraries, no /proc, no /etc, no /tmp."""
        root = self.chroot(with_files=False)
        self.assertEqual(self.inside(root, "--version").stdout, sp.run("--version").stdout)
        shown = self.inside(root, "check", "probes.yaml")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertEqual(shown.stdout, sp.run("check", "probes.yaml", cwd=sp.ROOT).stdout)
        self.assertIn("xfer_status", shown.stdout)
        refused = self.inside(root, "watch", "-p", "1")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertRegex(refused.stderr, r"\Asilentpin: .*: .*\n\Z")
        self.assertEqual(sorted(os.listdir(root)), ["probes.yaml", "silentpin"])

    def test_watch_from_a_bare_chroot(self):
        """With /proc and /sys it finds a pin; its recording is read there too."""
        root = self.chroot(with_files=False)
        for name in ("proc", "sys"):
            os.mkdir(os.path.join(root, name))
        with Node() as node:
            watch = sp.Watch("-p", node.pid, "--stuck-after", "inflight=3s", db="/pin.db",
                             env={"CHROOT": CHROOT}, prefix=["unshare", "-m", "sh", "-c", ENTER, "sh", root])
            watch.args[watch.args.index(sp.SILENTPIN)] = "/silentpin"
            with watch:
                decode = node.decode()
                room = node.room()
                node.hook(lose_aux=[room])
                decode.announce(room, 96)
                node.post(room, 96)
                node.wait_pinned(room)
                self.assertEqual(watch.wait_stuck(room)["cause"], "aux-missing")
                self.assertEqual(watch.stop(), 3)
        listed = self.inside(root, "rooms", "-i", "/pin.db", "--stuck")
        self.assertEqual((listed.returncode, str(room) in listed.stdout), (3, True), listed)
        self.assertIn("aux-missing", self.inside(root, "explain", str(room), "-i", "/pin.db").stdout)
        self.assertIn("STUCK", self.inside(root, "timeline", str(room), "-i", "/pin.db").stdout)
        self.assertEqual(self.inside(root, "replay", "/pin.db").returncode, 3)

    def test_sidecar(self):
        """The target's pid namespace, another root, three capabilities: a container beside the server's."""
        root = self.chroot(with_files=False)
        for name in ("proc", "sys"):
            os.mkdir(os.path.join(root, name))
        driver = os.path.join(sp.ROOT, "tests", "node", "scenario.py")
        pod = subprocess.Popen(["unshare", "-pf", "--kill-child", "--mount-proc", "/usr/bin/python3", driver,
                                "aux-missing", "--pause", "--hold"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            inner = sp.json.loads(pod.stdout.readline())["pid"]
            init = str(sp.children(pod.pid)[0])
            watch = sp.Watch("-p", inner, "--stuck-after", "inflight=3s", "--for", "60s", db="/pin.db",
                             env={"CHROOT": CHROOT}, prefix=["nsenter", "-t", init, "-p", "unshare", "-m",
                                                             "sh", "-c", SIDECAR, "sh", root])
            watch.args[watch.args.index(sp.SILENTPIN)] = "/silentpin"
            with watch:
                pod.stdin.write("go\n" * 2)  # from "ready", and from its last phase
                pod.stdin.flush()
                final = next(step for step in map(sp.json.loads, pod.stdout) if step["step"] == "final")
                (room,) = [e["room"] for e in final["pinned"]]
                alert = watch.wait_stuck(room)
                self.assertEqual((alert["cause"], alert["pid"]), ("aux-missing", inner))
                os.kill(sp.children(watch.p.pid)[0], signal.SIGINT)  # nsenter's child is silentpin
                self.assertEqual(watch.p.wait(20 * sp.PATIENCE), 3)
        finally:
            pod.kill()
            pod.communicate()


class Install(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="silentpin-test-")
        self.addCleanup(shutil.rmtree, self.tmp)

    def check(self, program):
        env = {k: v for k, v in os.environ.items() if k != "SILENTPIN_PROBES"}
        return subprocess.run([program, "check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              cwd="/", env=env, timeout=30 * sp.PATIENCE, check=False)

    def test_install(self):
        """Under any prefix, and moved elsewhere as a whole."""
        dest = os.path.join(self.tmp, "dest")
        make("install", f"DESTDIR={dest}", "PREFIX=/opt/silentpin")
        prefix = os.path.join(dest, "opt", "silentpin")
        self.assertEqual(files_under(dest), {os.path.join("opt/silentpin", f) for f in files_under(prefix)})
        want = {"bin/silentpin", "share/silentpin/probes.yaml", "share/man/man1/silentpin.1",
                "share/doc/silentpin/README.md", "share/doc/silentpin/LICENSE"}
        self.assertLessEqual(want, files_under(prefix))
        self.assertTrue(os.access(os.path.join(prefix, "bin/silentpin"), os.X_OK))
        shown = self.check(os.path.join(prefix, "bin/silentpin"))
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(os.path.join(prefix, "share/silentpin/probes.yaml"), shown.stdout + shown.stderr)

        moved = shutil.move(prefix, os.path.join(self.tmp, "moved"))
        self.assertEqual(self.check(os.path.join(moved, "bin/silentpin")).returncode, 0)
        os.unlink(os.path.join(moved, "share/silentpin/probes.yaml"))
        missing = self.check(os.path.join(moved, "bin/silentpin"))
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertRegex(missing.stderr, r"\Asilentpin: probes\.yaml: not found .*: .*\n\Z")


if __name__ == "__main__":
    unittest.main()
