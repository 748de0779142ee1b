"""The simulated world with the rules and the referee of the fault tests."""

from __future__ import annotations

from apportion.simulations.world import SECOND, Options
from apportion.simulations.world import World as SimulatedWorld
from tests.faults.referee import Referee
from tests.faults.rules import RULES

__all__ = ["SECOND", "Options", "World"]

USUAL = Options()


class World(SimulatedWorld):
    """Region, allocators, edges, and a referee who writes everything down."""

    def __init__(self, seed: int, options: Options = USUAL) -> None:
        self.referee = Referee()
        super().__init__(seed, RULES, self.referee, options)
