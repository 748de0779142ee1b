"""The simulated world with the rules and the log of the fault tests."""

from __future__ import annotations

from apportion.simulations.recording import Recording
from apportion.simulations.sums import Sums
from apportion.simulations.world import SECOND, Options
from apportion.simulations.world import World as SimulatedWorld
from tests.faults.rules import RULES

__all__ = ["SECOND", "Options", "World"]

USUAL = Options()


class World(SimulatedWorld):
    """Region, allocators, edges, and a log of everything that happens."""

    def __init__(self, seed: int, options: Options = USUAL) -> None:
        self.recording = Recording()
        self._sums = Sums()
        self._read = 0
        super().__init__(seed, RULES, self.recording, options)

    @property
    def sums(self) -> Sums:
        """What the log adds up to so far."""
        rows = self.recording.rows
        for at in range(self._read, len(rows)):
            self._sums.add(rows[at])
        self._read = len(rows)
        return self._sums
