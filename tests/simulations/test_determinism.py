"""F7: the same seed writes the same log, byte for byte, in whichever process."""

from __future__ import annotations

import os
import subprocess
import sys

from apportion.simulations.library import load
from apportion.simulations.run import run
from tests.checkout import ROOT

RUNS = ("edge-restart", "newcomer", "3", "10")
"""Scenarios, and seeds of the fault world; the last of them speaks through the codec."""


def digests(hash_seed: str) -> str:
    """What a fresh process prints of RUNS whose sets have another order."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulations.digests", *RUNS],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_two_processes_write_the_same_logs() -> None:
    """Whatever the order of their sets."""
    one, other = digests("1"), digests("2")
    assert one == other
    assert len(set(one.splitlines())) == len(RUNS)


def test_another_seed_is_another_run() -> None:
    """And the digest is of the log: what did not happen is not in it."""
    found = [run(load("newcomer"), seed).recording.log for seed in (1, 1, 2)]
    assert found[0].digest() == found[1].digest() != found[2].digest()
    found[1].rows.pop()
    assert found[0].digest() != found[1].digest()
