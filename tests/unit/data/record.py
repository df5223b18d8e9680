#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Records the images that unit tests read, with the interpreters of pyenv: the memory that the test program touched
in a target (.bin), and what the target itself says (.txt).

usage: tests/unit/data/record.py build/unit/test_py_image [VERSION...]       py_target.py, py-3.N.*
       tests/unit/data/record.py build/unit/test_py_snapshot [VERSION...]    py_server.py, py-server-3.N.*
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = ["3.10.13", "3.11.7", "3.12.1", "3.13.0"]
# test program -> (target, beginning of the files' names)
IMAGES = {"test_py_image": ("py_target.py", "py-3."), "test_py_snapshot": ("py_server.py", "py-server-3.")}


def record(recorder, version):
    source, prefix = IMAGES[os.path.basename(recorder)]
    root = subprocess.check_output(["pyenv", "root"], text=True).strip()
    python = os.path.join(root, "versions", version, "bin", "python3")
    minor = version.split(".")[1]
    # From a copy: the image holds the path of the program.
    folder = os.path.join(tempfile.mkdtemp(), "data")
    os.mkdir(folder)
    target = shutil.copy(os.path.join(HERE, source), folder)
    p = subprocess.Popen([python, "-I", "-S", target], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         encoding="utf-8", cwd="/", env={})
    lines = []
    while not lines or lines[-1] != "ready\n":
        lines.append(p.stdout.readline())
        if not lines[-1]:
            sys.exit(f"{python}: the target has ended")
    out = os.path.join(HERE, f"{prefix}{minor}.")
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
    if len(sys.argv) < 2 or os.path.basename(sys.argv[1]) not in IMAGES:
        sys.exit(__doc__)
    for v in sys.argv[2:] or VERSIONS:
        record(sys.argv[1], v)
