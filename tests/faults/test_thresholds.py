"""Rules with a threshold at each edge, in the fault world: what they admit with the region, and without it."""

from __future__ import annotations

from functools import partial

from apportion.core.decision import Scope
from apportion.simulations.network import MS
from tests.faults.rules import application
from tests.faults.runs import broken
from tests.faults.world import SECOND, Options, World

QUICK = Options(edges=3, delay_ns=2 * MS)


def every(world: World, edge: int, rate: int, name: str, from_s: float, until_s: float) -> None:
    """Ask `rate` times a second at an edge, evenly, one unit each."""
    for at in range(int((until_s - from_s) * rate)):
        when = world.now_ns + int(from_s * SECOND) + at * SECOND // rate + edge * 3 * MS
        world.at(when, partial(world.edges[edge].ask, (application(name),)))


def test_at_each_edge_needs_nobody() -> None:
    """20/s at each of three edges, before and after the region has gone; nothing crosses, nothing is degraded."""
    world = World(3, QUICK)
    world.start()
    for edge in range(3):
        every(world, edge, 50, "each", 2, 12)
    world.run(7)
    world.region.crash()
    world.run(5.5)
    assert world.admitted(4, 6, "each") == 3 * 2 * 20
    assert world.admitted(9, 11, "each") == 3 * 2 * 20
    assert not world.sums.crossings
    assert not any(edge.waiting for edge in world.edges)


def test_slack_follows_demand_and_falls_back_to_shares() -> None:
    """160/s with 10 %: the busy edge has what others leave of 176; without plans each edge has its share of 22."""
    world = World(4, QUICK)
    world.start()
    every(world, 0, 400, "spread", 2, 16)
    every(world, 1, 10, "spread", 2, 16)
    world.run(10)
    world.region.crash()
    world.run(7)
    calm = world.admitted(6, 9, "spread")
    assert 3 * 165 <= calm <= 3 * 176
    assert world.admitted(13, 16, "spread") <= 3 * (22 + 10) + 22
    assert world.admitted(13, 16, "spread") >= 3 * (22 + 10) - 22
    assert not world.sums.crossings
    assert "S1" not in broken(world)


def test_a_key_that_stays_below_its_share_everywhere_is_never_divided() -> None:
    """20/s at each of three edges, whose share is 22: no plan names it, and all of it passes."""
    world = World(5, QUICK)
    world.start()
    for edge in range(3):
        every(world, edge, 20, "spread", 2, 8)
    world.run(8.5)
    assert world.admitted(3, 8, "spread") == 3 * 5 * 20
    assert not any(plan.named for plan in world.region.authority.lending.plans.values())


def test_edge_region_admits_what_the_limit_allows_and_sheds_the_rest_at_the_edge() -> None:
    """Offered ten times the limit at one edge: the region's bucket is full, and most of it never gets there."""
    world = World(6, QUICK)
    world.start()
    every(world, 0, 800, "both", 2, 10)
    world.run(10.5)
    assert 5 * 80 - 8 <= world.admitted(4, 9, "both") <= 5 * 80 + 8
    assert max(count for (_, second), count in world.sums.crossings.items() if 4 <= second < 9) <= 110  # of 800
    assert not broken(world)


def test_what_a_threshold_refused_is_told_to_the_region() -> None:
    """A new hotspot finds its former threshold: what it refuses above that is demand, and counted by label."""
    world = World(7, QUICK)
    world.start()
    every(world, 0, 90, "both", 2, 8)
    every(world, 1, 20, "both", 2, 8)
    every(world, 0, 5, "both", 8, 11)
    every(world, 1, 200, "both", 8, 11)
    world.run(11.5)
    known = next(each for each in world.region.authority.table if each.quota.rule == "both")
    refused = world.region.authority.over_threshold.of(known.store_key)
    assert refused, "the new hotspot was offered ten times its former demand"
    labels = world.sums.spent["both", ("k",)]
    assert all(labels[label] + units <= 205 * 1.2 for label, units in refused.items())
    assert not broken(world)


def test_the_number_of_an_edge_rule_is_the_edge_s() -> None:
    """Whose number `remaining` is."""
    world = World(8, QUICK)
    world.start()
    world.run(2)
    decision = world.edges[0].agent.ask((application("each"),), world.edges[0].now_ns)
    assert decision.allowed and decision.verdicts[0].scope is Scope.EDGE  # type: ignore[union-attr]
    assert decision.verdicts[0].remaining == 19  # type: ignore[union-attr]


def test_demand_that_moves_below_the_limit_is_refused_nowhere() -> None:
    """70/s of 80/s, another edge each 3 s: its slice is elsewhere, but the region has room and says so."""
    world = World(9, QUICK)
    world.start()
    for turn in range(4):
        every(world, turn % 3, 70, "both", 2 + 3 * turn, 5 + 3 * turn)
    world.run(14.5)
    assert world.admitted(2, 14, "both") == 4 * 3 * 70
    assert not broken(world)
