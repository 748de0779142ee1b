"""C19f of cases.md at each mode, through all cores: a rule that was unlimited gets a limit while it is asked 200/s."""

from __future__ import annotations

from functools import partial

import pytest

from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.region import events as regional
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from tests.faults.rules import load
from tests.faults.world import SECOND, Options, World

CHANGE_S, END_S = 6, 14


def rules_of(version: int, limit: str, fields: str) -> Rules:
    """One rule."""
    text = "version: 1\ndomain: api\nedges_max: 4\nrules:\n"
    return Rules(version, (("r", f"{text}  - {{name: exact, match: {{a: x}}, key: [a], limit: {limit}, {fields}}}\n"),))


def before(rules: Rules, _: Rules, __: RuleSet, *rest: object) -> Authority:
    """A region with these rules."""
    return Authority(rules, load(rules), *rest)  # type: ignore[arg-type]


def ask(world: World) -> None:
    """One request, by the rules of the edge."""
    edge = world.edges[0]
    if edge.agent.ready:
        edge.ask((Application(edge.agent._ruling.domains["api"].rules[0], ("x",), 1),))


@pytest.mark.parametrize(
    "fields, limit, rate, burst",
    [
        ("enforce: region, when_unavailable: [deny]", "{rate: 10/s, burst: 10}", 10, 10),
        ("enforce: edge+region, when_unavailable: [deny]", "{rate: 10/s, burst: 10}", 10, 10),
        ("enforce: lease, when_unavailable: [deny]", "{rate: 10/s, burst: 10}", 10, 10),
        ("enforce: lease, when_unavailable: [deny]", "{rate: 40/s, burst: 10}", 40, 0),
        ("enforce: edge, at_each_edge: 10/s, wrong_costs: noise", "{rate: 40/s, burst: 10}", 10, 10),
    ],
    ids=["region", "edge+region", "lease", "divided lease", "edge"],
)
def test_it_neither_floods_nor_freezes(fields: str, limit: str, rate: int, burst: int) -> None:
    """All pass before; once the limit is in force, two labels later at most, so many as it entitles to, at once.

    Of a divided quota a quarter less in the one label in which plans begin, for pools fill from nothing.
    """
    unlimited = rules_of(1, "{unlimited: true}", fields)
    world = World(19, Options(edges=1, allocators=1, delay_ns=5 * MS, make_authority=partial(before, unlimited)))
    world.start()
    for at in range(200 * END_S):
        world.at(at * SECOND // 200, partial(ask, world))
    world.run(CHANGE_S)
    assert not world.sums.spent
    assert len(world.region.authority.table) == 0
    changed = rules_of(2, limit, fields)
    world.region.feed(regional.RulesChanged(changed, load(changed)))
    first = world.region.authority.epoch
    world.run(END_S - CHANGE_S)
    labels = world.sums.spent["exact", ("x",)]
    assert first <= min(labels) <= first + 2
    whole = range(min(labels) + 1, first + END_S - CHANGE_S - 1)
    for last in whole:
        admitted = sum(labels[label] for label in range(min(labels), last + 1))
        assert admitted <= rate * (last + 1 - min(labels)) + burst
    poorest, *others = sorted(labels[label] for label in whole)
    assert poorest >= 0.7 * rate
    assert min(others) >= 0.9 * rate
