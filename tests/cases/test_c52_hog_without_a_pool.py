"""C52 of cases.md, live, for `edge` with slack: one edge is offered twelve times the limit, another 5/s.

A bucket of the region has no places at edges, and serves who comes first.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from apportion.core.limit import RateLimit
from apportion.simulations.network import MS
from tests.faults.rules import application, rule
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World

WARM_S, END_S = 12, 22
"""Ten epochs after everything is attached, and ten more."""


def parts(name: str, hog: int, random: bool) -> tuple[float, float]:
    """What E2 had of its 5/s, and what both had of the limit, with E1 offered `hog` a second."""
    world = World(52, Options(edges=2, allocators=1, delay_ns=5 * MS))
    world.start()
    every(world, 0, hog, name, 0, until_s=END_S)
    source = Random(52)
    asked = [at / 5 for at in range(5 * END_S)]
    if random:
        asked = [source.uniform(0, END_S) for _ in asked]
    for at in asked:
        world.at(int(at * SECOND) + 1, partial(world.edges[1].ask, (application(name),)))
    world.run(WARM_S)
    before = {edge.incarnation: world.sums.given(edge.incarnation) for edge in world.edges}
    world.run(END_S - WARM_S + 0.3)
    one, two = (world.sums.given(edge.incarnation) - before[edge.incarnation] for edge in world.edges)
    assert broken(world) == {}
    limit = rule(name).limit
    assert isinstance(limit, RateLimit)
    offered = sum(WARM_S <= at < END_S for at in asked)
    return two / offered, (one + two) / ((END_S - WARM_S) * limit.units * SECOND / limit.period_ns)


@pytest.mark.parametrize("random, least", [(False, 0.95), (True, 0.9)], ids=["evenly", "at random"])
def test_the_small_edge_has_its_demand_and_the_hog_the_rest(random: bool, least: float) -> None:
    """95 % of 5/s that come evenly, 90 % of random ones; and at least 95 % of the limit is given out."""
    small, together = parts("spread", 2000, random)
    assert small >= least
    assert together >= 0.95
