"""C52 live: a hog beside a small edge under 100/s. The small one is served, the hog has the rest."""

from functools import partial
from random import Random

import pytest

from apportion.simulations.network import MS
from tests.faults.rules import application
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World

WARM_S, END_S = 10, 40


def beside_a_hog(instants_ns: list[int], cost: int = 1, hog: int = 1_000, end_s: int = END_S) -> tuple[float, float]:
    """What part of its demand the small edge is admitted that asks at these instants, and units a second of the hog."""
    world = World(52, Options(edges=2, allocators=1, delay_ns=5 * MS))
    world.start()
    every(world, 0, hog, "hundred", 0, until_s=end_s)
    small = world.edges[1]
    for at in instants_ns:
        world.at(at, partial(small.ask, (application("hundred", cost),)))
    world.run(WARM_S)
    warm = [world.sums.given(edge.incarnation) for edge in world.edges]
    world.run(end_s + 0.5 - WARM_S)
    assert broken(world) == {}
    offered = sum(cost for at in instants_ns if at >= WARM_S * SECOND)
    hogged, served = (world.sums.given(edge.incarnation) - at for edge, at in zip(world.edges, warm, strict=True))
    return served / offered, hogged / (end_s - WARM_S)


def test_c52_the_small_edge_is_admitted_95_percent_of_even_demand() -> None:
    """5/s, one each 200 ms."""
    served, hog = beside_a_hog([at * 200 * MS + 37 * MS for at in range(5 * END_S)])
    assert served >= 0.95
    assert hog >= 85


def test_c52_with_the_hog_at_10_000_a_second() -> None:
    """As the case has it: what the hog offers makes no difference."""
    served, hog = beside_a_hog([at * 200 * MS + 37 * MS for at in range(5 * 16)], hog=10_000, end_s=16)
    assert served >= 0.95
    assert hog >= 85


@pytest.mark.parametrize("seed", range(3))
def test_c52_the_small_edge_is_admitted_90_percent_of_random_demand(seed: int) -> None:
    """5/s on average, Poisson: its slice has room for the spread, and goes back to nobody."""
    random, at, instants = Random(seed), 0.0, []
    while at < END_S:
        at += random.expovariate(5)
        instants.append(int(at * SECOND))
    served, hog = beside_a_hog(instants)
    assert served >= 0.9
    assert hog >= 80


def test_c52_a_small_edge_of_large_costs_is_served_from_its_own_slice() -> None:
    """20 units once a second: no pool beside a hog ever has so many, and the depth of its slice of 28 would be 7."""
    served, hog = beside_a_hog([at * SECOND + 600 * MS for at in range(END_S)], cost=20)
    assert served >= 0.95
    assert hog >= 60


@pytest.mark.parametrize("edges, cost, least", [(4, 20, 80), (8, 10, 90), (2, 25, 50)])
def test_c52_costs_above_slice_and_pool_part_are_admitted(edges: int, cost: int, least: int) -> None:
    """Each of the edges offers 50 units a second, so none of them, nor the pool, has a part that such a cost fits in;
    what no request at its edge can use comes back, and is enough. Without early return nothing at all was admitted.
    """
    world = World(53, Options(edges=edges, allocators=1, delay_ns=5 * MS))
    world.start()
    gap_ns = cost * SECOND // 50
    for edge in range(edges):
        for at in range(20 * SECOND // gap_ns):
            ask = partial(world.edges[edge].ask, (application("hundred", cost),))
            world.at(at * gap_ns + edge * gap_ns // edges, ask)
    world.run(20.5)
    assert broken(world) == {}
    assert world.admitted(10, 20) >= least * 10
