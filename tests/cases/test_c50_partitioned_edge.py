"""C50 of cases.md, with keep_share: an edge that is cut off spends its last share and no more, inside the limit."""

from __future__ import annotations

from tests.faults.runs import meter
from tests.faults.test_cut_off import by_epoch, epoch_of
from tests.faults.test_liveness import every
from tests.faults.world import Options, World


def partitioned() -> tuple[World, int, int]:
    """`100/s`, two edges at about 50 each and full demand at both; one is cut off from 12 to 22 s, then healed."""
    world = World(50, Options(edges=2))
    world.start()
    for edge in range(2):
        every(world, edge, 110, "stay", edge * 3, until_s=27)
    world.run(12)
    cut = epoch_of(world)
    world.partition(world.edges[0], 10)
    world.run(10)
    healed = epoch_of(world)
    world.run(7.5)
    return world, cut, healed


def test_the_sum_stays_within_the_limit_each_second_of_the_partition() -> None:
    """From the third epoch on the other edge has what the first may not spend; before, the bound holds."""
    world, cut, healed = partitioned()
    assert max(by_epoch(world, "stay", cut + 3, healed - 1)) <= 100
    assert min(by_epoch(world, "stay", cut + 3, healed - 1)) >= 90
    assert meter(world, "stay").worst <= 100


def test_the_share_is_spent_by_the_edges_own_labels() -> None:
    """It never spends more of one label than its last slice, about half of the limit."""
    world, cut, healed = partitioned()
    shares = [
        units
        for (incarnation, _, epoch), units in world.sums.degraded.items()
        if incarnation == world.edges[0].incarnation and cut + 3 <= epoch < healed
    ]
    assert len(shares) >= 6
    assert min(shares) >= 30
    assert max(shares) <= 60


def test_after_healing_it_reports_what_it_admitted_once() -> None:
    """The rollup has every unit, of every label of the partition, and the demand of others is as before."""
    world, cut, healed = partitioned()
    counted: dict[int, int] = {}
    for (_, epoch), units in world.rollup().items():
        counted[epoch] = counted.get(epoch, 0) + units
    labels = range(cut, healed + 3)
    assert [counted.get(epoch, 0) for epoch in labels] == by_epoch(world, "stay", cut, healed + 2)
    assert max(by_epoch(world, "stay", healed + 2, healed + 4)) <= 100
    assert min(by_epoch(world, "stay", healed + 3, healed + 4)) >= 90
