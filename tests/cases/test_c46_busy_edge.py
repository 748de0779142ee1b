"""C46 through all cores: nine idle edges leave the busy one its demand, and a second is served at its first call."""

from functools import partial

import pytest

from apportion.core.messages import Rules
from apportion.core.rule import RuleSet
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from tests.faults.rules import application, load
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World

RULES = """
version: 1
domain: api
edges_max: 16
rules:
  - {name: hundred, match: {h: "*"}, key: [h], limit: {rate: 100/s}, enforce: lease, when_unavailable: [deny]}
"""
"""The rule of the fault world by itself, for more edges than its other rules allow."""


def authority(_: Rules, __: RuleSet, *rest: object) -> Authority:
    """A region with these rules."""
    rules = Rules(1, (("rules.yaml", RULES),))
    return Authority(rules, load(rules), *rest)  # type: ignore[arg-type]


def world() -> World:
    """Ten edges under 100/s."""
    made = World(46, Options(edges=10, allocators=1, delay_ns=5 * MS, make_authority=authority))
    made.start()
    return made


def test_c46_the_busy_edge_has_85_of_its_90_a_second_from_the_third_tick() -> None:
    """E1 offers 90/s, nine offer nothing; at 10 s E2 starts 10/s, is admitted at once and has 10/s within two ticks."""
    run = world()
    every(run, 0, 90, "hundred", 0, until_s=15)
    run.run(10)
    assert run.admitted(3, 10) >= 85 * 7
    for at in range(50):
        run.at(10 * SECOND + at * 100 * MS + 1, partial(run.edges[1].ask, (application("hundred"),)))
    run.run(0.1)
    assert run.sums.given(run.edges[1].incarnation) == 1, "the first call of E2 is answered OK"
    run.run(4.9)
    assert run.admitted(12, 15) >= 95 * 3
    run.run(0.5)
    assert broken(run) == {}


@pytest.mark.parametrize("offset_s", [0, 1])
def test_c46_alternating_demand_is_admitted(offset_s: int) -> None:
    """One second on, one second off: at least 90 % of what fits."""
    run = world()
    for second in range(2 + offset_s, 14, 2):
        for at in range(90):
            run.at(second * SECOND + at * SECOND // 90, partial(run.edges[0].ask, (application("hundred"),)))
    run.run(14.5)
    offered = run.demand(4, 14.5)
    assert run.admitted(4, 14.5) >= 0.9 * offered
    assert broken(run) == {}
