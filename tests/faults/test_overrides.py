"""Overrides under load, in the fault world: on every edge in time, label by label, and ended without a trace."""

from __future__ import annotations

import pytest

from apportion.core.messages import Rules
from apportion.core.overrides import ALL_RULES, TEXT, Override, Rate, encode
from apportion.core.rules_file import parse_rules
from apportion.region import events as regional
from tests.faults import rules
from tests.faults.test_rule_changes import loaded, time_until
from tests.faults.world import SECOND, World

KEY = (("h", "k"),)


def lay(world: World, version: int, *laid: Override) -> None:
    """Let these, and no others, be laid over the rules from now on."""
    texts = (("rules.yaml", rules.TEXT), *([(TEXT, encode(laid))] if laid else []))
    world.region.feed(regional.RulesChanged(Rules(version, texts), parse_rules(texts)))


def at_most(units: int) -> Override:
    """So many a second for the key that is asked for."""
    return Override("api", "hundred", KEY, Rate(units, SECOND), False, 1, "why", "who")


@pytest.mark.parametrize("tenth", range(0, 10, 3))
def test_a_number_a_block_and_shadow_are_on_every_edge_within_two_seconds(tenth: int) -> None:
    """At any instant of an epoch, and so is their end."""
    world = loaded(tenth)
    world.run(tenth / 10)
    shadow = Override("", ALL_RULES, (), None, True, 1, "why", "who")
    for version, laid in enumerate(((at_most(40),), (at_most(0),), (at_most(0), shadow), (at_most(60),), ()), 2):
        lay(world, version, *laid)
        assert time_until(world, version) < 1.7
        world.run(0.2)
    assert world.sums.failed == []


@pytest.mark.parametrize("units", [40, 0])
@pytest.mark.parametrize("seed", range(3))
def test_no_label_is_above_the_number_while_it_is_laid_and_all_is_as_before_when_it_ends(seed: int, units: int) -> None:
    """From the first whole epoch on in which every edge has it, under three times the limit."""
    world = loaded(seed)
    lay(world, 2, at_most(units))
    time_until(world, 2)
    first = world.region.authority.epoch + 1
    world.run(3)
    spent = world.sums.spent["hundred", ("k",)]
    assert max(spent[label] for label in (first, first + 1)) <= units
    assert spent[first + 1] >= units / 2
    lay(world, 3)
    time_until(world, 3)
    world.run(2)
    assert world.sums.spent["hundred", ("k",)][world.region.authority.epoch - 1] > 70
    assert world.sums.failed == []
