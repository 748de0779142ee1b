"""Four modes of one world: whose the expectations are, and how near `edge+region` is to `region`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apportion.core.errors import InputError
from apportion.simulations.comparing import in_each_mode, judged_together
from apportion.simulations.recording import Recording
from apportion.simulations.run import Outcome
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import parse_scenario
from tests.simulations.written import by_second, figures

TEXT = """
edges: 2
seconds: 10
limit: 100/s
enforce: lease
demand: [{shape: uniform, load: 100%}]
expect: {utilisation: ">= 98%"}
"""


def scenario(more: str = "") -> Scenario:
    """A scenario of 100/s at two edges."""
    return parse_scenario("calm.yaml", TEXT + more)


def together(of: Scenario, given: int) -> tuple[tuple[str, ...], ...]:
    """What is wrong with each run when of 100 `region` admits all, and `edge+region` so many."""
    runs = [
        Outcome(mode, 1, (figures(by_second([100], [units]), 1),), ("told before",), Recording(), 1)
        for mode, units in zip(in_each_mode(of), (given, 100, 90, 110), strict=True)
    ]
    return tuple(each.broken for each in judged_together(runs))


def test_expectations_are_of_the_scenarios_own_mode() -> None:
    """Here of `lease`; and each mode has its rule."""
    found = {str(each.one and each.one.enforce): each for each in in_each_mode(scenario())}
    assert {mode: len(each.expectations) for mode, each in found.items()} == {
        "edge+region": 0,
        "region": 0,
        "lease": 1,
        "edge": 0,
    }
    assert all(f"enforce: {mode}" in each.rules.texts[0][1] for mode, each in found.items())
    with pytest.raises(InputError, match="calm does not"):
        in_each_mode(replace(scenario(), one=None))


@pytest.mark.parametrize("given, held", [(98, True), (102, True), (96, False), (104, False)])
def test_edge_and_region_admit_as_much_as_the_region_alone(given: int, held: bool) -> None:
    """But for 3 of 100, less or more; no other mode owes it, and what was said of a run before stays."""
    said = f"search: edge+region admitted {given}.0% of what fits, region 100.0%; 3% between them are allowed"
    own = ("told before",) if held else ("told before", said)
    assert together(scenario(), given) == (own, *[("told before",)] * 3)


@pytest.mark.parametrize(
    "more", ["faults: [{at: 3s, kill: leader}]\n", "network: {latency: 80ms}\n", "network: {lost_answers: 1%}\n"]
)
def test_where_something_fails_or_is_far_they_may_differ(more: str) -> None:
    """Edges may go by their stages, or ask too late."""
    assert together(scenario(more), 50) == (("told before",),) * 4


def test_a_limit_that_is_not_worth_dividing_is_not_judged() -> None:
    """20 units for each edge are the least: 100/s at six."""
    assert together(replace(scenario(), edges=6), 50) == (("told before",),) * 4
