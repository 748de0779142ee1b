"""Edges that are cut off and spend on by their stages: what the bound says, and what holding it back is worth.

The printed bound is the oracle, in every epoch; and from the third epoch of a silence on, if a leader divides, nothing
is over at all. With the hold-back switched off the same runs exceed.
"""

from __future__ import annotations

from typing import Any

import pytest

from apportion.allocator.leader import Leader
from apportion.core.bounds import StoreKind, bound_of
from apportion.core.rules_file import parse_rules
from tests.faults.rules import rule
from tests.faults.runs import broken, meter
from tests.faults.test_liveness import every
from tests.faults.world import Options, World

KEY = ("k",)


class ForgetfulLeader(Leader):
    """Holds nothing back."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._silence.held = lambda target, epoch: None  # type: ignore[method-assign]


def forgetful(name: str, incarnation: int) -> Leader:
    """An allocator to which a silent edge is none."""
    return ForgetfulLeader(name, incarnation, parse_rules)


def epoch_of(world: World) -> int:
    """The region's epoch now."""
    return world.region.authority.epoch


def by_epoch(world: World, name: str, first: int, last: int) -> list[int]:
    """Units admitted under each label."""
    labels = world.sums.spent[name, KEY]
    return [labels.get(epoch, 0) for epoch in range(first, last + 1)]


def wandering(options: Options) -> tuple[World, list[int]]:
    """All demand at one edge until it has nearly everything and is cut off; then at the next, and so on."""
    world = World(11, options)
    world.start()
    cuts = []
    for edge in range(3):
        every_from(world, edge, 130, "stay", 36 - 11 * edge)
        world.run(11)
        cuts.append(epoch_of(world))
        world.partition(world.edges[edge], 60)
    world.run(3)
    return world, cuts


def every_from(world: World, edge: int, rate: int, name: str, seconds: float) -> None:
    """Ask evenly at an edge from now on."""
    start = world.now_ns
    every(world, edge, rate, name, start // 1_000_000, until_s=seconds)


def test_edges_cut_off_one_after_the_other_keep_their_shares_within_the_bound() -> None:
    """Each had nearly all of the limit. What the first may still spend is nobody else's, so the second never has it."""
    world, cuts = wandering(Options(edges=3, allocators=2))
    bound = bound_of(rule("stay"), StoreKind.SQLITE).units
    assert bound == 100
    assert meter(world, "stay").worst <= bound
    assert max(by_epoch(world, "stay", cuts[0] + 3, epoch_of(world) - 1)) <= 100
    assert min(by_epoch(world, "stay", cuts[0] + 3, cuts[0] + 9)) >= 90


def test_without_the_hold_back_they_exceed_it() -> None:
    """Each of three keeps nearly all of the limit."""
    world, _ = wandering(Options(edges=3, allocators=2, make_leader=forgetful))
    assert meter(world, "stay").worst > 150
    assert "S1" in broken(world)


@pytest.mark.parametrize("name,stages_s", [("keep", 2), ("fair", 2)])
def test_a_share_is_given_to_others_once_the_stages_have_run_out(name: str, stages_s: int) -> None:
    """Two of three edges cut off: within the bound at once, exact from the third epoch, all of it some time after."""
    world = World(3, Options(edges=3))
    world.start()
    for edge in range(3):
        every(world, edge, 60, name, edge * 5, until_s=24)
    world.run(12)
    cut = epoch_of(world)
    for edge in (0, 1):
        world.partition(world.edges[edge], 60)
    world.run(12)
    limit = rule(name).limit.units  # type: ignore[union-attr]
    assert meter(world, name).worst <= (bound_of(rule(name)).units or 0)
    assert max(by_epoch(world, name, cut + 3, cut + 11)) <= limit
    assert by_epoch(world, name, cut + 3 + stages_s + 5, cut + 11)[-1] >= 0.6 * 60


@pytest.mark.parametrize("held", [True, False])
def test_an_undivided_quota_fills_slower_by_what_silent_edges_may_spend(held: bool) -> None:
    """The region's bucket and all that is spent at edges cut off are together within the entitlement, or are not."""
    options = Options(edges=3) if held else Options(edges=3, make_leader=forgetful)
    world = World(4, options)
    world.start()
    for edge in range(3):
        every(world, edge, 80, "part", edge * 5, until_s=20)
    world.run(9)
    for edge in (0, 1):
        world.partition(world.edges[edge], 60)
    cut = epoch_of(world)
    world.run(7)
    assert meter(world, "part").worst <= (bound_of(rule("part"), StoreKind.SQLITE).units or 0)
    spent = sum(by_epoch(world, "part", cut + 2, cut + 3))
    assert (spent <= 2 * 48 + 12) is held


def test_a_new_leader_is_told_what_silent_edges_may_spend() -> None:
    """The allocator dies while an edge is cut off; the next one knows it only from the region."""
    world = World(6, Options(edges=3, allocators=1))
    world.start()
    for edge in range(3):
        every(world, edge, 60, "stay", edge * 5, until_s=26)
    world.run(12)
    world.partition(world.edges[0], 60)
    world.run(3)
    world.restart(world.allocators[0], 0.2)
    world.run(4)
    first = epoch_of(world)
    world.run(6)
    assert max(by_epoch(world, "stay", first, epoch_of(world) - 1)) <= 100
    assert meter(world, "stay").worst <= 100


def test_an_edge_that_leaves_in_good_order_is_not_held_for() -> None:
    """SIGTERM: what it had is the others' at the next division."""
    world = World(7, Options(edges=3))
    world.start()
    for edge in range(3):
        every(world, edge, 60, "stay", edge * 5, until_s=20)
    world.run(12)
    node = world.edges[0]
    node.perform(node.agent.leave(node.now_ns))
    world.run(0.3)
    node.crash()
    left = epoch_of(world)
    world.run(5)
    assert min(by_epoch(world, "stay", left + 2, left + 4)) >= 95
