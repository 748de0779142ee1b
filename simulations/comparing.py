"""One scenario under the four modes, and what the modes owe each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from apportion.core.errors import InputError
from apportion.core.limit import PeriodAnchor
from apportion.core.rule import Enforce
from apportion.simulations.checkers_quality import LIMIT_MIN, SLICE_MIN, plain
from apportion.simulations.run import Outcome
from apportion.simulations.scenario import Scenario

COMPARED = (Enforce.EDGE_REGION, Enforce.REGION, Enforce.LEASE, Enforce.EDGE)
"""The modes in the order of the comparison."""


def modes_of(scenario: Scenario) -> tuple[Enforce, ...]:
    """The modes that its limit can have: a quota of a period is counted by the region, or lent from a calendar."""
    quota = None if scenario.one is None else scenario.one.quota
    if quota is None:
        return COMPARED
    calendar = dict(quota).get("anchor", PeriodAnchor.CALENDAR.value) == PeriodAnchor.CALENDAR.value
    return (Enforce.REGION, Enforce.LEASE) if calendar else (Enforce.REGION,)


NEAR_REGION = 0.03
"""`edge+region` admits as much as `region` in the same world, but for this part of it: it guesses only who must ask."""


def in_each_mode(scenario: Scenario) -> list[Scenario]:
    """The scenario under the modes that it can have; its expectations are of its own mode. InputError where it writes
    rules.
    """
    if scenario.one is None:
        raise InputError(
            f"--compare enforce needs a scenario that writes `limit` and `enforce`; {scenario.name} does not"
        )
    own = scenario.one.enforce
    return [
        replace(
            scenario.under(scenario.one.under(mode.value)),
            expectations=scenario.expectations if mode.value == own else (),
        )
        for mode in modes_of(scenario)
    ]


def judged_together(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Runs of scenarios in several modes, each with what is wrong with it beside the others of the same scenario."""
    regions = {
        (each.scenario.name, each.seed): each.rules[0].utilisation for each in outcomes if _mode(each) is Enforce.REGION
    }
    return [
        replace(each, broken=(*each.broken, *_unlike(each, regions[each.scenario.name, each.seed])))
        if _mode(each) is Enforce.EDGE_REGION
        else each
        for each in outcomes
    ]


def _unlike(outcome: Outcome, region: float) -> Iterable[str]:
    """Judged where nothing fails, and limits are large enough to be judged at all."""
    scenario, (figures,) = outcome.scenario, outcome.rules
    if scenario.faults or not plain(scenario.network):
        return
    if figures.limit_per_second < max(LIMIT_MIN, SLICE_MIN * scenario.edges):
        return
    if abs(figures.utilisation - region) > NEAR_REGION * region:
        yield (
            f"{figures.rule}: edge+region admitted {figures.utilisation:.1%} of what fits, region {region:.1%}; "
            f"{NEAR_REGION:.0%} between them are allowed"
        )


def _mode(outcome: Outcome) -> Enforce:
    assert outcome.scenario.one is not None
    return Enforce(outcome.scenario.one.enforce)
