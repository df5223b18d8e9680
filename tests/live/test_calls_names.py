# SPDX-License-Identifier: Apache-2.0
"""Which functions of libcuda each probe of the group cuda takes, against what the library exports: the kept list,
the stub of a CUDA toolkit where the machine has one, and the stand-in."""
import fnmatch
import glob
import os
import re
import subprocess
import sys
import unittest

import sp

sys.path.insert(0, os.path.join(sp.ROOT, "tests", "cuda"))
import cuda_rig  # noqa: E402


def both(*names):
    return {f"{name}{tail}" for name in names for tail in ("", "_ptsz")}


# probe -> the names that have the arguments which it reads
TAKES = {
    "cuMemcpyAsync": both("cuMemcpyAsync"),
    "cuMemcpyHtoDAsync": both("cuMemcpyHtoDAsync_v2"),
    "cuMemcpyDtoHAsync": both("cuMemcpyDtoHAsync_v2"),
    "cuMemcpyDtoDAsync": both("cuMemcpyDtoDAsync_v2"),
    "cuMemcpyHtoAAsync": both("cuMemcpyHtoAAsync_v2"),
    "cuMemcpyAtoHAsync": both("cuMemcpyAtoHAsync_v2"),
    "cuMemcpyPeerAsync": both("cuMemcpyPeerAsync"),
    "cuMemcpy2DAsync": both("cuMemcpy2DAsync_v2"),
    "cuMemcpy3DAsync": both("cuMemcpy3DAsync_v2"),
    "cuMemcpy3DPeerAsync": both("cuMemcpy3DPeerAsync"),
    "cuMemcpyBatchAsync_v2": both("cuMemcpyBatchAsync_v2"),
    "cuMemcpyBatchAsync": {"cuMemcpyBatchAsync"},
    "cuMemcpyBatchAsync_ptsz": {"cuMemcpyBatchAsync_ptsz"},
    "cuMemcpy3DBatchAsync_v2": both("cuMemcpy3DBatchAsync_v2"),
    "cuMemcpy3DBatchAsync": {"cuMemcpy3DBatchAsync"},
    "cuMemcpy3DBatchAsync_ptsz": {"cuMemcpy3DBatchAsync_ptsz"},
    "cuMemcpyWithAttributesAsync": both("cuMemcpyWithAttributesAsync"),
    "cuMemcpy3DWithAttributesAsync": both("cuMemcpy3DWithAttributesAsync"),
    "cuStreamSynchronize": both("cuStreamSynchronize"),
    "cuCtxSynchronize": {"cuCtxSynchronize", "cuCtxSynchronize_v2"},
    "cuEventSynchronize": {"cuEventSynchronize"},
    "cuEventRecord": both("cuEventRecord", "cuEventRecordWithFlags"),
    "cuStreamWaitEvent": both("cuStreamWaitEvent"),
    "cuEventQuery": {"cuEventQuery"},
    "cuLaunchKernel": {"cuLaunchKernel"},
    "cuLaunchKernel_ptsz": {"cuLaunchKernel_ptsz"},
    "cuLaunchKernelEx": both("cuLaunchKernelEx"),
}
ALL = set.union(*TAKES.values())
# Newer than the kept list: by the public declarations of 13.2.
LATER = both("cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync")
# What the stand-in has besides: a program cannot do without.
NEEDED = {"cuInit", "cuDriverGetVersion", "cuDeviceGet", "cuDeviceGetCount", "cuCtxCreate_v2", "cuCtxDestroy_v2",
          "cuMemAlloc_v2", "cuMemFree_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuStreamCreate", "cuStreamDestroy_v2",
          "cuEventCreate", "cuEventDestroy_v2"}
# Libraries of the toolkit and of the driver.
PLACES = ("/usr/local/cuda*/lib*/stubs/libcuda.so", "/usr/local/cuda*/targets/*/lib/stubs/libcuda.so",
          "/usr/lib/*/libcuda.so*", "/usr/lib/*/stubs/libcuda.so")


def kept():
    with open(os.path.join(sp.ROOT, "tests", "cuda", "names.txt")) as f:
        return {line.strip() for line in f if not line.startswith("#")} | LATER


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[2].partition("@")[0] for line in out.splitlines() if line.split()[1] in "TtWi"}


def globs():
    """probe -> symbol, of the group cuda."""
    group = re.search(r"^  - name: cuda\n(.*?)(?=^  - name:|\Z)", cuda_rig.groups(), re.MULTILINE | re.DOTALL)[1]
    return dict(re.findall(r'- name: (\S+)\n +library: cuda\n +symbol: "?([^"\s]+)"?', group))


class Names(unittest.TestCase):
    def test_each_glob_takes_what_is_meant(self):
        self.assertEqual(set(globs()), set(TAKES))
        for probe, pattern in globs().items():
            with self.subTest(probe=probe):
                self.assertEqual({n for n in kept() if fnmatch.fnmatchcase(n, pattern)}, TAKES[probe])

    def test_libraries_of_this_machine(self):
        """An older or newer one may lack names; none that another probe reads may be taken instead."""
        libraries = {os.path.realpath(path) for place in PLACES for path in glob.glob(place)}
        for path in libraries:
            for probe, pattern in globs().items():
                with self.subTest(library=path, probe=probe):
                    taken = {n for n in exported(path) if fnmatch.fnmatchcase(n, pattern)}
                    self.assertEqual(taken - TAKES[probe], set())

    def test_the_stand_in_has_these_names(self):
        names = {n for n in exported(os.path.join(sp.BUILD, "cuda", "libcuda.so.1")) if n.startswith("cu")}
        self.assertEqual(names, ALL | NEEDED)
        self.assertEqual(names - kept(), set())


if __name__ == "__main__":
    unittest.main()
