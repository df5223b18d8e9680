# SPDX-License-Identifier: Apache-2.0
"""The scenarios: what can befall a room, each by name, and what must then be true of it.

A scenario is a function of a Run. It drives the node until nothing moves that it did not mean to
move, and returns an Expect. Its docstring says what makes the trouble: a natural race or failure
under the server's own semantics, or a hook. No scenario waits by the clock where it can ask /state.
"""
import cases_fine
import cases_held
import cases_mooncake
from runner import SCENARIOS, Expect, Run, check, run

__all__ = ["SCENARIOS", "Expect", "Run", "cases_fine", "cases_held", "cases_mooncake", "check", "run"]
