"""The figures of a quota of a period, from the event log alone: by period where those of a rate are by second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.core.rule import RuleSet
from apportion.simulations.log import Answers, Log, Numbers, Offers
from apportion.simulations.measures import MEASURES, PeriodFigures, RuleFigures
from apportion.simulations.period_log import PeriodLog, Use

OF_RATES = (
    "burst",
    "overshoot_label",
    "overshoot_true_second",
    "utilisation_p5",
    "ticks_to_95_percent",
    "jain",
    "churn",
    "stranded_share",
    "refused_with_room",
)
"""Figures by second and label, which say nothing of a quota of a period."""

OF_PERIODS = (
    "overshoot_period",
    "resets",
    "stranded",
    "lifetimes_missing",
    "created",
    "created_in_a_second",
    "reclaimed",
    "reclaimed_in_a_second",
)
"""What an expectation of a quota of a period can be about beside the figures that it shares with rates."""


def measures_of(rules: RuleSet) -> tuple[str, ...]:
    """What can be expected of rules: of each kind of limit what it has."""
    period = [isinstance(each.limit, PeriodLimit) for rule in rules.rules for each in rule.on_plans]
    rates = () if all(period) else MEASURES
    return (*(rates or [name for name in MEASURES if name not in OF_RATES]), *(OF_PERIODS if any(period) else ()))


def value_of(figures: RuleFigures, measure: str) -> float | None:
    """A figure by its name; None: limits of that kind have no such figure."""
    if measure in OF_PERIODS:
        return None if figures.period is None else float(getattr(figures.period, measure))
    return None if figures.period is not None and measure in OF_RATES else float(getattr(figures, measure))


def with_periods(
    figures: Sequence[RuleFigures], rules: RuleSet, log: Log, periods: PeriodLog
) -> tuple[RuleFigures, ...]:
    """The figures of a run, those of quotas of a period by period."""
    found, limits = [], {rule.name: rule.limit for rule in rules.rules}
    offers, answers, quotas = log.offers(), log.answers(), log.quotas
    for each in figures:
        limit = limits[each.rule]
        if not isinstance(limit, PeriodLimit):
            found.append(each)
            continue
        numbers = [number for number, (_, rule, _) in enumerate(quotas) if rule == each.rule]
        came = offers.where(np.isin(offers.quota, numbers) & ~offers.peek)
        given = answers.where(np.isin(answers.quota, numbers) & answers.charged & ~answers.degraded)
        keys = {key: number for number, (_, rule, key) in enumerate(quotas) if rule == each.rule}
        uses = {keys[use.key]: use for use in periods.of_rule(each.rule)}
        found.append(
            replace(
                each,
                limit_per_second=limit.per_second,
                utilisation=_utilisation(uses, came, given, periods),
                period=_period(each.rule, limit, list(uses.values()), given, periods),
            )
        )
    return tuple(found)


def _period(rule: str, limit: PeriodLimit, uses: list[Use], given: Answers, periods: PeriodLog) -> PeriodFigures:
    made = [units for (name, _), units in periods.made.items() if name == rule]
    reclaimed = [units for (name, _), units in periods.reclaimed.items() if name == rule]
    return PeriodFigures(
        anchor=limit.anchor.value,
        allowance=limit.units,
        subjects=len(uses),
        periods=sum(len(use.spans) for use in uses),
        resets=sum(max(0, len(use.spans) - 1) for use in uses),
        overshoot_period=max((max(0, use.most() - use.limit.units) for use in uses), default=0),
        stranded=sum(use.net for use in uses) - int(given.cost.sum()),
        created=sum(made),
        created_in_a_second=max(made, default=0),
        reclaimed=sum(reclaimed),
        reclaimed_in_a_second=max(reclaimed, default=0),
        lifetimes_missing=periods.lifetimes.missing,
    )


def _utilisation(uses: dict[int, Use], offers: Offers, answers: Answers, periods: PeriodLog) -> float:
    """Admitted / what may be: the sum over keys and periods of min(offered, allowance)."""
    given = dict(answers.by(answers.quota))
    may = admitted = 0
    for number, came in offers.by(offers.quota):
        use = uses.get(number)
        if use is None:
            continue  # nothing of it came to the store
        ends = _ends(use, came.at_ns, periods)
        asked = _by_period(ends, _shown(use, came.at_ns, periods), came.cost)
        mine = given.get(number)
        got = _by_period(ends, _shown(use, mine.at_ns, periods), mine.cost) if mine is not None else asked * 0
        judged = slice(len(ends) if use.rolling else len(asked))
        fits = int(np.minimum(asked, use.limit.units)[judged].sum())
        may += fits
        admitted += min(fits, int(got[judged].sum()))  # some came before a boundary and were charged after it
    return admitted / may if may else 1.0


def _shown(use: Use, at_ns: Numbers, periods: PeriodLog) -> Numbers:
    """Instants by the clock that the quota's periods go by."""
    clocks = periods.clocks
    return clocks.wall_ns(at_ns) if use.limit.anchor is PeriodAnchor.CALENDAR else clocks.store_ns(at_ns)


def _ends(use: Use, came_ns: Numbers, periods: PeriodLog) -> Numbers:
    """When periods of the quota ended, sorted; of a rolling one its length again and again from the first request on,
    as far as requests came.
    """
    if use.rolling:
        shown, length_ns = _shown(use, came_ns, periods), use.limit.length_ns
        return np.arange(int(shown.min()) + length_ns, int(shown.max()) + 1, length_ns)
    if use.limit.anchor is PeriodAnchor.FIRST_USE:
        return np.array([span.end_ns for span in use.spans.values()], np.int64)
    shown = _shown(use, came_ns, periods)
    ends, at_s = [], int(shown.min()) // EPOCH_NS
    while at_s * EPOCH_NS <= int(shown.max()):
        at_s = use.limit.calendar.period(at_s).end_s
        ends.append(at_s * EPOCH_NS)
    return np.array(ends, np.int64)


def _by_period(ends: Numbers, shown_ns: Numbers, cost: Numbers) -> Numbers:
    """Sums by the period that each instant is in; the last is what came after all of them."""
    found: Numbers = np.bincount(
        np.searchsorted(ends, shown_ns, side="right"), cost.astype(np.float64), len(ends) + 1
    ).astype(np.int64)
    return found
