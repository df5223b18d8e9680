#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Records the images that tests/unit/test_py_snapshot.c reads, with the interpreters of pyenv.

usage: tests/unit/data/record_server.py build/unit/test_py_snapshot [VERSION...]
py-server-3.N.bin is the memory that a snapshot of py_server.py touches, py-server-3.N.txt what the target itself says.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = ["3.10.13", "3.11.7", "3.12.1", "3.13.0"]


def record(recorder, version):
    root = subprocess.check_output(["pyenv", "root"], text=True).strip()
    python = os.path.join(root, "versions", version, "bin", "python3")
    minor = version.split(".")[1]
    # From a copy: the image holds the path of the program.
    folder = os.path.join(tempfile.mkdtemp(), "data")
    os.mkdir(folder)
    target = shutil.copy(os.path.join(HERE, "py_server.py"), folder)
    p = subprocess.Popen([python, "-I", "-S", target], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         encoding="utf-8", cwd="/", env={})
    lines = []
    while not lines or lines[-1] != "ready\n":
        lines.append(p.stdout.readline())
        if not lines[-1]:
            sys.exit(f"{python}: the target has ended")
    out = os.path.join(HERE, f"py-server-3.{minor}.")
    try:
        subprocess.run([recorder, "--record", str(p.pid), out + "bin"], check=True)
    finally:
        p.stdin.close()
        p.wait()
        shutil.rmtree(os.path.dirname(folder))
    with open(out + "txt", "w", encoding="utf-8") as f:
        f.writelines(lines[:-1])
    print(f"{python}: {os.path.getsize(out + 'bin')} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for v in sys.argv[2:] or VERSIONS:
        record(sys.argv[1], v)
