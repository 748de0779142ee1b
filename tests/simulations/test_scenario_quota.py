"""Scenarios of quotas of a period: how they are written, who asks, and what comes of them."""

from __future__ import annotations

from collections import Counter

import pytest

from apportion.core.errors import RulesError
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.rule import Enforce
from apportion.simulations.baselines import Baseline, baseline_series, baselines_of
from apportion.simulations.comparing import modes_of
from apportion.simulations.nodes import parsed
from apportion.simulations.run import run
from apportion.simulations.scenario import NOON_NS, Fault, FaultKind, Scenario, StoreClocks
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.traffic import arrivals, streams_of
from apportion.simulations.world import SECOND

SHORT = """edges: 2
seconds: 24
limit: {quota: 60/10s, anchor: calendar, time_zone: Europe/Berlin}
enforce: region
store: {begins: 2026-10-25T00:59:55Z, wall_drift: 50, reclaim: together}
demand: [{load: 150%, keys: 4, retries: 2, retry_after: told}]
faults: [{at: 3s, wall_back: region, for: 2s}, {at: 9s, limit: 90/10s}]
expect: {overshoot_period: "= 0", resets: ">= 4"}
"""


def scenario(text: str = SHORT) -> Scenario:
    """The scenario of a text."""
    return parse_scenario("mine.yaml", text)


def test_a_quota_is_written_as_in_a_rules_file() -> None:
    """With the clocks of its store, its subjects and its faults."""
    read = scenario()
    (rule,) = parsed(read.rules).rules
    assert isinstance(rule.limit, PeriodLimit)
    assert (rule.limit.units, rule.limit.anchor, rule.limit.zone) == (60, PeriodAnchor.CALENDAR, "Europe/Berlin")
    assert read.store == StoreClocks(1_792_889_995 * SECOND, 50, spread_reclaim=False)
    assert (read.flows[0].keys, read.flows[0].retry_after_ns) == (4, None)
    assert read.faults[0] == Fault(3 * SECOND, FaultKind.WALL_BACK, "region", 2 * SECOND)
    assert scenario(SHORT.replace("store:", "about:").split("about:")[0] + SHORT.split("together}\n")[1]).store == (
        StoreClocks(NOON_NS, 0, spread_reclaim=True)
    )


@pytest.mark.parametrize(
    "before, after, told",
    [
        ("quota: 60/10s, ", "", "mine.yaml:3: limit: `quota` is missing; write `limit: {quota: 100/min"),
        ("60/10s", "60", "mine.yaml:3: limit.quota: found `60`"),
        ("anchor: calendar", "anchor: calender", "unknown: `calender`; did you mean `calendar`?"),
        ("anchor: calendar", "ancor: calendar", "limit.ancor: unknown: `ancor`; did you mean `anchor`?"),
        ("enforce: region", "enforce: region\nburst: 5", "burst: contradicts `quota`"),
        ("enforce: region", "enforce: edge", "is counted exactly"),
        ("2026-10-25T00:59:55Z", "noon", "store.begins: found `noon`; an instant with its zone is meant"),
        ("2026-10-25T00:59:55Z", "2026-10-25", "store.begins: found `2026-10-25`; an instant with its zone"),
        ("reclaim: together", "reclaim: all", "store.reclaim: found `all`"),
        ("wall_back: region", "wall_back: edge-1", "faults[0].wall_back: found `edge-1`; it is of the store"),
        ("limit: 90/10s", "limit: 90", "faults[1].limit: found `90`"),
        ("told}", "tld}", "demand[0].retry_after: found `tld`"),
        ("resets:", "jain:", "expect.jain: unknown: `jain`"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_right(before: str, after: str, told: str) -> None:
    """The first problem names the field; what only rates have cannot be expected of a quota."""
    assert before in SHORT
    with pytest.raises(RulesError) as error:
        scenario(SHORT.replace(before, after))
    assert any(told in str(problem) for problem in error.value.problems), error.value.problems


def test_requests_are_of_all_subjects_alike() -> None:
    """The load is of all their allowances together: 4 x 60 in 10 s, one and a half times."""
    read = scenario()
    asked = arrivals(streams_of(read.flows, parsed(read.rules)), 2, 100, 1)
    keys = Counter(applications[0].key for _, _, applications in asked)
    assert set(keys) == {(f"k-{number}",) for number in range(4)}
    assert all(abs(count - 900) < 120 for count in keys.values()), keys


def test_figures_are_by_period() -> None:
    """Each of the four subjects has three periods or four, as the clock goes back over a boundary; none is over."""
    outcome = run(scenario(), 1)
    assert outcome.broken == ()
    (figures,) = outcome.rules
    period = figures.period
    assert period is not None
    assert (period.anchor, period.allowance, period.subjects, period.overshoot_period) == ("calendar", 60, 4, 0)
    assert period.resets == period.periods - 4 >= 8
    assert (period.created, period.stranded, period.lifetimes_missing) == (period.periods, 0, 0)
    assert figures.limit_per_second == 6.0
    assert 0.9 <= figures.utilisation <= 1.0


def test_what_a_quota_is_compared_with() -> None:
    """The modes that it can have, and one central counter, which admits all that fits."""
    rolling = scenario(SHORT.replace("calendar, time_zone: Europe/Berlin", "rolling"))
    assert modes_of(scenario()) == (Enforce.REGION, Enforce.LEASE)
    assert modes_of(rolling) == (Enforce.REGION,)
    assert baselines_of(scenario()) == (Baseline.CENTRAL,)
    figures = baseline_series(scenario(), 1, Baseline.CENTRAL).rules[0].figures
    assert (figures.enforce, figures.utilisation, figures.crossing_share) == ("central counter", 1.0, 1.0)
    assert figures.period is not None
    assert (figures.period.overshoot_period, figures.period.stranded) == (0, 0)


LEASED = """edges: 4
seconds: 50
limit: {quota: 400/10s, anchor: calendar}
enforce: lease
demand: [{load: 150%, until: 36s}, {load: 80%, key: other, until: 36s}]
faults: [{at: 14s, kill: edge-1, for: 3s}, {at: 22s, partition: edge-2, for: 4s}, {at: 27s, kill: region, for: 500ms}]
network: {repeat: 10%, lost_answers: 1%}
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chunks_are_charged_once_and_given_back_once(seed: int) -> None:
    """What was charged and neither admitted nor given back was in the hands of who was cut off or killed."""
    outcome = run(scenario(LEASED), seed)
    assert outcome.broken == ()
    (figures,) = outcome.rules
    assert figures.period is not None
    assert 0 <= figures.period.stranded < 0.1 * figures.admitted
    assert figures.utilisation > 0.9
    assert figures.crossing_share < 0.5
