"""A scenario's rule in the other modes, as `--compare enforce` and `--enforce` have it."""

from dataclasses import replace

import pytest

from apportion.core.rule import Enforce
from apportion.simulations import library
from apportion.simulations.comparing import modes_of
from apportion.simulations.nodes import parsed
from apportion.simulations.scenario import OneRule


@pytest.mark.parametrize(
    "name, mode", [(name, mode) for name in library.names() for mode in modes_of(library.load(name))]
)
def test_every_scenario_can_be_in_every_mode_that_its_limit_can_have(name: str, mode: Enforce) -> None:
    """The rules are good ones, and the rule is in that mode."""
    scenario = library.load(name)
    assert scenario.one is not None
    rules = parsed(scenario.under(scenario.one.under(mode.value)).rules)
    assert [rule.enforce for domain in rules.domains.values() for rule in domain.rules] == [mode]


def test_fields_of_one_mode_are_left_out_of_others() -> None:
    """A threshold of each edge is `edge`'s alone; slack is also that of `edge+region`; what is in all stays."""
    one = OneRule("10/s", "edge", "20", more=(("slack", "10%"), ("wrong_costs", "noise")))
    assert one.under("edge") == one
    assert one.under("edge+region") == replace(one, enforce="edge+region", more=(("slack", "10%"),))
    assert one.under("lease") == replace(one, enforce="lease", more=())


def test_a_share_is_a_fair_one_where_there_are_no_slices() -> None:
    """For as long; where a fair one follows anyway, it is that alone."""
    one = OneRule("10/s", "lease", stages=("keep_share for 10s", "deny"))
    assert one.under("region").stages == ("fair_share for 10s", "deny")
    assert one.under("edge+region").stages == one.stages
    both = replace(one, stages=("keep_share for 10s", "fair_share for 5s", "allow for 1s", "deny"))
    assert both.under("region").stages == ("fair_share for 5s", "allow for 1s", "deny")
