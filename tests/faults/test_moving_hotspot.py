"""Demand that moves from edge to edge under a `lease` of 100/s: what fits is admitted all the same."""

from functools import partial
from random import Random

import pytest

from apportion.simulations.network import MS
from tests.faults.rules import application
from tests.faults.runs import broken
from tests.faults.world import SECOND, Options, World

WARM_S, END_S = 11, 48
EDGES = 6


def utilisation(dwell_s: int, factor: float) -> float:
    """Admitted of min(demand, limit), after the warm-up. 90 % of a Poisson demand is at one edge for `dwell_s`, then at
    the next; the rest is anywhere.
    """
    world = World(9, Options(edges=EDGES, allocators=2, delay_ns=10 * MS))
    world.start()
    random, at = Random(9), 0.0
    while (at := at + random.expovariate(100 * factor)) < END_S:
        edge = int(at // dwell_s) % EDGES if random.random() < 0.9 else random.randrange(EDGES)
        world.at(int(at * SECOND), partial(world.edges[edge].ask, (application("hundred"),)))
    world.run(END_S + 0.5)
    assert broken(world) == {}
    demand = [world.demand(second, second + 1) for second in range(WARM_S, END_S)]
    return world.admitted(WARM_S, END_S) / sum(min(each, 100) for each in demand)


@pytest.mark.parametrize("factor", [1.0, 2.5])
@pytest.mark.parametrize("dwell_s", [5, 9])
def test_a_moving_hotspot_is_served(dwell_s: int, factor: float) -> None:
    """At least 92 %. Without early return a dwell of 9 s gave 79 to 81 %: slices are what was asked for in each of 8
    seconds, so they are there just when it moves.
    """
    assert utilisation(dwell_s, factor) >= 0.92
