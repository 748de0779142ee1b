"""Rules that change under load, in the fault world: who decides by which version when; no label is exceeded."""

from __future__ import annotations

from functools import partial

import pytest

from apportion.core.limit import RateLimit
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.region import events as regional
from apportion.simulations.nodes import EdgeNode
from tests.faults.rules import TEXT
from tests.faults.world import SECOND, Options, World

HUNDRED = '{name: hundred, match: {h: "*"}, key: [h], limit: {rate: 100/s}, enforce: lease'


def change(world: World, version: int, limit: str, enforce: str = "lease") -> None:
    """Let the rule `hundred` have another limit from now on."""
    assert HUNDRED in TEXT
    text = TEXT.replace(HUNDRED, HUNDRED.replace("{rate: 100/s}", limit).replace("lease", enforce))
    text = "".join(line for line in text.splitlines(True) if "candidate_for: hundred" not in line)
    rules = Rules(version, (("rules.yaml", text),))
    world.recording.ruled(world.now_ns, world.region.authority.epoch, rules)
    world.region.feed(regional.RulesChanged(rules, parse_rules(rules.texts)))


def acknowledged(world: World) -> set[int]:
    """The versions that edges have acknowledged."""
    return {edge.rules_version for edge in world.region.authority.edges.values()}


def ask(node: EdgeNode) -> None:
    """One request for `hundred`, by the rules of the edge."""
    rule = next(each for each in node.agent._ruling.domains["api"].rules if each.name == "hundred")
    node.ask((Application(rule.for_key(("k",)), ("k",), 1),))


def loaded(seed: int, allocators: int = 1) -> World:
    """Three edges that offer 300 a second, and 3 seconds of it."""
    world = World(seed, Options(edges=3, allocators=max(allocators, 1)))
    if not allocators:
        world.allocators.clear()
    world.start()
    for number in range(300 * 12):
        at = 1_500_000_000 + number * SECOND // 300
        world.at(at, partial(_ask_if_ready, world.edges[number % 3]))
    world.run(4)
    return world


def _ask_if_ready(node: EdgeNode) -> None:
    if node.agent.ready:
        ask(node)


def time_until(world: World, version: int) -> float:
    """Seconds until every edge has acknowledged the version."""
    began = world.now_ns
    while acknowledged(world) != {version}:
        world.run(0.01)
        assert world.now_ns - began < 5 * SECOND, "it never came to it"
    return (world.now_ns - began) / SECOND


@pytest.mark.parametrize("tenth", range(0, 10, 3))
def test_every_edge_decides_by_the_new_version_within_two_seconds(tenth: int) -> None:
    """Up, down, to zero, to unlimited and back, at any instant of an epoch."""
    world = loaded(tenth)
    world.run(tenth / 10)
    for version, limit in enumerate(
        ("{rate: 200/s}", "{rate: 40/s}", "{rate: 0/s}", "{unlimited: true}", "{rate: 60/s}"), 2
    ):
        change(world, version, limit)
        assert time_until(world, version) < 1.7
        world.run(0.2)
    assert world.sums.failed == []


def test_without_a_leader_a_change_waits_for_nobody() -> None:
    """Every epoch is direct, so nothing is in other hands."""
    world = loaded(3, allocators=0)
    change(world, 2, "{rate: 40/s}")
    assert time_until(world, 2) < 0.5


@pytest.mark.parametrize("before, after", [(100, 40), (40, 100)])
@pytest.mark.parametrize("seed", range(3))
def test_no_label_is_exceeded_while_the_limit_changes(seed: int, before: int, after: int) -> None:
    """Each label is at most what the version of its plan gives, which turns once, from one to the other."""
    world = loaded(seed)
    change(world, 2, f"{{rate: {before}/s}}")
    world.run(3)
    epoch = world.region.authority.epoch
    change(world, 3, f"{{rate: {after}/s}}")
    world.run(3.3)
    spent = world.sums.spent["hundred", ("k",)]
    turned = next(start for start, limited in reversed(_segments(world)) if limited == after)
    assert epoch < turned <= epoch + 2
    assert all(spent[each] <= before for each in range(epoch, turned))
    assert all(spent[each] <= after for each in range(turned, turned + 2))
    assert spent[turned] >= 0.5 * after
    assert world.sums.failed == []


def _segments(world: World) -> list[tuple[int, int]]:
    known = next(each for each in world.region.authority.table if each.quota.rule == "hundred")
    found = world.region.authority.versions.segments(known.quota)
    return [(start, limited[1].units) for start, limited in found if limited and isinstance(limited[1], RateLimit)]


@pytest.mark.parametrize("seed", range(2))
def test_a_rule_goes_from_divided_to_undivided_and_back(seed: int) -> None:
    """Everybody turns in one epoch, so each label is spent in one way."""
    world = loaded(seed)
    change(world, 2, "{rate: 100/s}", "region")
    assert time_until(world, 2) < 1.7
    world.run(1.5)
    change(world, 3, "{rate: 100/s}")
    assert time_until(world, 3) < 1.7
    world.run(2)
    spent = world.sums.spent["hundred", ("k",)]
    # 25 is the burst: once of the bucket that begins full, whoever was served from slices before.
    assert max(spent.values()) <= 125
    assert sum(sorted(spent.values())[-4:]) <= 4 * 100 + 25
    assert world.sums.failed == []
