# SPDX-License-Identifier: Apache-2.0
"""What the tests and benchmarks of verbs share: the watched program, and a probes file for it."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cuda"))
import cuda_rig  # noqa: E402


def probes_file(folder):
    """The stand-in's profile with the shipped groups."""
    return cuda_rig.probes_file(folder, os.path.join(HERE, "verbs.yaml"))


def provider(build, name):
    """standin: the file tells where its functions are; hidden: only a pointer does."""
    return os.path.join(build, "verbs", f"lib{name}-rdmav0.so")


class App(cuda_rig.App):
    """verbs_app.c."""

    program = ("verbs", "verbs_app")
