"""Writes the digests of some runs; started by test_determinism as processes of their own."""

import sys

from apportion.simulations.library import load
from apportion.simulations.run import run
from tests.faults import runs


def main(names: list[str]) -> None:
    """Scenarios by name, and seeds of the fault world by number."""
    for name in names:
        if name.isdigit():
            sys.stdout.write(f"{name} {runs.run(int(name)).recording.log.digest()}\n")
        else:
            sys.stdout.write(f"{name} {run(load(name), 1).recording.log.digest()}\n")


main(sys.argv[1:])
