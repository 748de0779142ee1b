"""Lifetimes are housekeeping (design 4.2, C06): lost or extended they change no decision. With the protection switched
off they do, and a checker says so.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from apportion.core.counter import Count
from apportion.core.limit import PeriodLimit
from apportion.region.counters import PeriodCounters, PeriodNeed
from apportion.simulations.library import load
from apportion.simulations.run import Outcome, run
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.world import Options


class LifetimeDecides(PeriodCounters):
    """A period is over when its counter's lifetime is, whatever its start says."""

    def need(self, store_key: bytes, limit: PeriodLimit, cost: int, now_ns: int, wall_ns: int) -> PeriodNeed:
        record = self.get(self.key(store_key, limit, wall_ns))
        if record is not None and isinstance(record.counter, Count) and record.expires_ns is not None:
            record.counter.end_ns = record.expires_ns
        return super().need(store_key, limit, cost, now_ns, wall_ns)


class LostIsFresh(PeriodCounters):
    """A counter without a lifetime is taken for one that was never there."""

    def need(self, store_key: bytes, limit: PeriodLimit, cost: int, now_ns: int, wall_ns: int) -> PeriodNeed:
        record = self.get(self.key(store_key, limit, wall_ns))
        if record is not None and record.expires_ns is None:
            record.counter = self.fresh(limit, now_ns, wall_ns)
        return super().need(store_key, limit, cost, now_ns, wall_ns)


class NotCounted(PeriodCounters):
    """Mends a lifetime and says nothing of it."""

    def need(self, store_key: bytes, limit: PeriodLimit, cost: int, now_ns: int, wall_ns: int) -> PeriodNeed:
        before = self.lifetimes_missing
        found = super().need(store_key, limit, cost, now_ns, wall_ns)
        self.lifetimes_missing = before
        return found


CASES = [
    ("lifetime-extended", LifetimeDecides, "P2"),
    ("lifetime-lost", LostIsFresh, "P1"),
    ("lifetime-lost-first-use", LostIsFresh, "P1"),
    ("lifetime-lost", NotCounted, "P5"),
]


@pytest.mark.parametrize("name, counters, seen", CASES)
def test_without_the_protection_a_checker_fails(name: str, counters: type[PeriodCounters], seen: str) -> None:
    """And with the shipped counters nothing is wrong with the same world."""
    assert run(load(name), 1).broken == ()
    broken = run(load(name), 1, Options(make_periods=counters)).broken
    assert any(each.startswith(f"{seen}") for each in broken), broken[:3]


def decided(outcome: Outcome) -> list[tuple[int, bool]]:
    """When each answer was given, and which."""
    answers = outcome.recording.log.answers()
    return list(zip(answers.at_ns.tolist(), answers.allowed.tolist(), strict=True))


@pytest.mark.parametrize("name", ["lifetime-lost", "lifetime-lost-first-use", "lifetime-extended"])
def test_no_decision_changes(name: str) -> None:
    """The run is the same to the nanosecond as one in which lifetimes are whole."""
    whole = run(replace(load(name), faults=(), expectations=()), 1)
    assert decided(run(load(name), 1)) == decided(whole)
    assert [each.period.lifetimes_missing for each in whole.rules if each.period is not None] == [0] * len(whole.rules)


CLOCKS = """
edges: 3
seconds: 45
limit: {quota: 40/10s, anchor: ANCHOR}
enforce: region
store: {begins: 2026-10-25T00:59:35Z, wall_drift: 200}
demand: [{load: 150%, keys: 3}]
faults:
  - {at: 8s, wall_back: region, for: 4s}
  - {at: 21s, step_wall: region, for: 7s}
  - {at: 26s, kill: region, for: 300ms}
  - {at: 31s, kill: edge-1, for: 1s}
expect: {overshoot_period: "= 0"}
"""


@pytest.mark.parametrize("anchor", ["calendar", "first_use", "rolling"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clocks_that_step_and_a_region_that_is_killed(anchor: str, seed: int) -> None:
    """No period is over and nobody stays refused, whatever the wall clock does; what is charged outlives the region."""
    outcome = run(parse_scenario("clocks", CLOCKS.replace("ANCHOR", anchor)), seed)
    assert outcome.broken == ()
    assert outcome.rules[0].admitted > 300
