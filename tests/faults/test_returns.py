"""Units that come back early: no label passes Q_k through them, and the order of their return is what holds it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from apportion.core.messages import Return
from apportion.edge.agent import Agent
from apportion.edge.holding import Holding
from apportion.edge.reporting import columns
from apportion.edge.returning import Returns
from apportion.edge.routine import Routine
from apportion.simulations.network import MS
from tests.faults.rules import application
from tests.faults.runs import broken, run, worst_share
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World

SEEDS = range(20)


class LateReturns(Returns):
    """Says what it gives back, and goes on as if it still had it."""

    def _give_up(self, epoch: int, rows: Sequence[tuple[Holding, int]], now_ns: int) -> list[Return]:
        given = [(holding, units) for holding, units in rows if units]
        if not given:
            return []
        self._number += 1
        return [Return(epoch, *columns(given), self._number, np.zeros(len(given), np.uint64))]


class LateAgent(Agent):
    """An edge that returns before it lowers its own right."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._returns = LateReturns(self._holdings)
        self._routine = Routine(self.clock, self._crossings, self._reports, self._returns, self._ruling)


def test_under_faults_units_come_back_and_no_promise_is_broken() -> None:
    """Crashes, cuts, delays and copies, at 1.5 times each limit: units come back in nearly every run."""
    worlds = {seed: run(seed, factor=1.5) for seed in SEEDS}
    assert {seed: found for seed, world in worlds.items() if (found := broken(world))} == {}
    assert sum(world.sums.returned > 0 for world in worlds.values()) >= 15


def pausing(options: Options) -> World:
    """One edge has 80 of 100 sliced, is asked for nothing in the first 0.35 s of an epoch, and then for 200/s, as the
    other is all the while.
    """
    world = World(7, options)
    world.start()
    every(world, 0, 80, "hundred", 0, until_s=12)
    world.run(12)
    start = 12 * SECOND
    for at in range(200):
        world.at(start + at * SECOND // 200, partial(world.edges[1].ask, (application("hundred"),)))
        if at >= 70:
            world.at(start + at * SECOND // 200, partial(world.edges[0].ask, (application("hundred"),)))
    world.run(2)
    return world


CALM = Options(edges=2, allocators=1, delay_ns=2 * MS)


def test_what_an_edge_gave_back_another_spends() -> None:
    """All 100 of the epoch are used but a few, though the edge that had 80 of them paused, and not one more."""
    world = pausing(CALM)
    assert broken(world) == {}
    assert world.sums.returned >= 75
    assert 85 <= world.sums.spent["hundred", ("k",)][world.region.authority.epoch - 2] <= 100


def test_returned_before_the_right_is_lowered_units_are_spent_twice() -> None:
    """The same with the order broken passes Q_k, and the oracles see it."""
    world = pausing(replace(CALM, make_agent=LateAgent))
    found = broken(world)
    assert set(found) >= {"S1", "S4"}
    assert worst_share(world) > 1.3
