"""The figures of a run, rule by rule, from its event log alone.

Seconds are those of virtual time in which a decision was given; labels are the region's epochs. Quality (utilisation,
fairness, churn, crossings) leaves out the warm-up; overshoot leaves out nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

import numpy as np

from apportion.allocator.fill import water_fill
from apportion.core.bounds import StoreKind, bound_of
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.meter import Meter
from apportion.core.rule import Rule
from apportion.simulations.log import Numbers
from apportion.simulations.rule_log import RuleLog, Series

RECOVERED = 0.95
"""A rule is back after a change when it admits this part of what it may."""

HELD_S = 2
"""Seconds for which it does so on average: one that chance made better is no recovery, one made worse no relapse."""

MEASURES = (
    "overshoot_label",
    "overshoot_true_second",
    "utilisation",
    "utilisation_p5",
    "ticks_to_95_percent",
    "jain",
    "churn",
    "crossings_per_second",
    "crossing_share",
    "stranded_share",
    "refused_with_room",
)
"""What an expectation can be about: fields of RuleFigures."""


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """What only a quota of a period has. `periods`: those with charges, of all `subjects`; `resets`: those of them that
    followed another. `overshoot_period`: the most by which any period, or any window, was over its allowance.
    `stranded`: units charged and neither given to a caller nor given back. `created`, `reclaimed`: counters in the
    store, `..._in_a_second` the most of one second. `lifetimes_missing`: found missing, of all rules together.
    """

    anchor: str
    allowance: int
    subjects: int
    periods: int
    resets: int
    overshoot_period: int
    stranded: int
    created: int
    created_in_a_second: int
    reclaimed: int
    reclaimed_in_a_second: int
    lifetimes_missing: int


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """One rule's figures; units of cost. Limit, burst and bound are the largest that a key has.

    `overshoot_label`: the worst `over` of any key (design 4.1). `overshoot_true_second`: the most that a key had beyond
    rate + burst in any second of virtual time, rounded up. `utilisation`: sum of admitted / sum of min(offered, limit)
    by second, and the 5th percentile of that ratio. `ticks_to_95_percent`: whole seconds from a change of demand or a
    fault until the ratio is back at 95 % and stays, the worst of all; of a dip that begins more than a second after the
    change, from its beginning; 0 without one. `jain`: of what each edge was admitted beside its max-min share, mean of
    overloaded seconds. `churn`: units of the plan that moved between edges, a part of the quota each second.
    `crossing_share`: crossings to the region for each request. `stranded_share`: units that edges were given and
    neither spent nor gave back, a part of the limit each epoch. `refused_with_room`: cost refused at an edge though the
    second had room for it, a part of what was offered.

    Of a quota of a period `period` has figures of its own, `utilisation` is of all keys and periods, of min(offered,
    allowance), with no warm-up, `bound` is by period, `limit_per_second` as if it were spent evenly, and what else is
    by second or label says nothing (`measures_period.OF_RATES`).
    """

    rule: str
    enforce: str
    limit_per_second: float
    burst: int
    bound: int | None
    offered: int
    admitted: int
    degraded: int
    overshoot_label: int
    overshoot_true_second: int
    utilisation: float
    utilisation_p5: float
    ticks_to_95_percent: int
    jain: float
    churn: float
    crossings_per_second: float
    crossing_share: float
    stranded_share: float
    refused_with_room: float
    denied: dict[str, int] = field(default_factory=dict)
    period: PeriodFigures | None = None


def figures_of(log: RuleLog, warm_up: int, changes: Sequence[int], edges_max: int | None) -> RuleFigures:
    """All figures of one rule. `changes`: seconds in which demand moved or something happened."""
    on_plans = log.rule.on_plans
    offered, admitted = log.offered.sum(axis=1), log.admitted.sum(axis=1)
    log.settle()
    may = log.may
    ratio = np.divide(admitted, may, out=np.ones_like(may), where=may > 0)
    judged = slice(warm_up, log.seconds)
    asked = may[judged].sum()
    seconds = max(log.seconds - warm_up, 1)
    crossings = log.crossings[judged].sum()
    room = np.clip(may - admitted, 0, None)
    return RuleFigures(
        rule=log.rule.name,
        enforce=log.rule.enforce.value,
        limit_per_second=log.limit,
        burst=max(each.limit.burst if isinstance(each.limit, RateLimit) else 0 for each in on_plans),
        bound=_bound(on_plans, edges_max),
        offered=int(offered.sum()),
        admitted=int(admitted.sum()),
        degraded=log.degraded,
        overshoot_label=max((units for _, units in overshoots(log)), default=0),
        overshoot_true_second=overshoot_in_a_second(log),
        utilisation=float(admitted[judged].sum() / asked) if asked else 1.0,
        utilisation_p5=float(np.percentile(ratio[judged], 5)) if seconds and len(ratio[judged]) else 1.0,
        ticks_to_95_percent=_recovery(ratio, changes, warm_up),
        jain=_jain(log, warm_up),
        churn=_churn(log, warm_up),
        crossings_per_second=float(crossings / seconds),
        crossing_share=float(crossings / max(log.requests[judged].sum(), 1)),
        stranded_share=_stranded(log, warm_up),
        refused_with_room=float(np.minimum(log.refused_at_edge, room)[judged].sum() / max(offered[judged].sum(), 1)),
        denied=dict(sorted(log.denied.items())),
    )


def _bound(rules: Sequence[Rule], edges_max: int | None) -> int | None:
    """The largest bound of any of them; None: one has none."""
    found = [bound_of(rule, StoreKind.SQLITE, edges_max).units for rule in rules]
    return None if None in found else max(units or 0 for units in found)


def overshoots(log: RuleLog) -> list[tuple[int, int]]:
    """Epochs that were over, each with the most that a key was, in order."""
    worst: dict[int, int] = {}
    for key, labels in log.labels.items():
        meter: Meter | None = None
        for epoch in sorted(labels):
            meter, over = metered(log, meter, key, epoch, labels[epoch])
            if over:
                worst[epoch] = max(worst.get(epoch, 0), over)
    return sorted(worst.items())


def metered(
    log: RuleLog, meter: Meter | None, key: tuple[str, ...], epoch: int, units: int
) -> tuple[Meter | None, int]:
    """The meter of a key (None: it has none yet) after another label, and by how much that was over."""
    limit = log.in_force.limit(log.rule.name, epoch, key)
    if limit is None:
        return meter, 0
    meter = meter or Meter(limit, log.rule.for_key(key).divided)
    meter.become(limit)
    return meter, meter.record(epoch, units)


def overshoot_in_a_second(log: RuleLog) -> int:
    """The most that a key was admitted in any second of virtual time beyond its rate + burst."""
    if not len(log.times):
        return 0
    order = np.lexsort((log.times, log.who))
    who, times, total = log.who[order], log.times[order], np.concatenate([[0], np.cumsum(log.costs[order])])
    apart = times + who * (int(np.ptp(times)) + 2 * EPOCH_NS)  # no second has requests of two keys
    first = np.searchsorted(apart, apart - EPOCH_NS, side="right")
    admitted = total[1:] - total[first]
    over = admitted - _entitled(log, list(log.keys), who, times)
    return ceil(max(0.0, float(over.max())))


def _entitled(log: RuleLog, keys: Sequence[tuple[str, ...]], who: Numbers, times: Numbers) -> Series:
    """Rate + burst of the key of each row, the number `who`, in the second that ends then."""
    limits, name, end_ns = log.in_force, log.rule.name, int(times[-1])
    if not limits.changing:
        return np.array([limits.largest_within(name, 0, end_ns, key) for key in keys])[who]
    instants = zip(who.tolist(), times.tolist(), strict=True)
    return np.array([limits.largest_within(name, at - EPOCH_NS, at, keys[which]) for which, at in instants])


def _recovery(ratio: Series, changes: Sequence[int], warm_up: int) -> int:
    """The longest dip that follows a change, before the next one: seconds with less than RECOVERED until it is back."""
    judged = [change for change in changes if change >= warm_up]
    ends = [*judged[1:], len(ratio)]
    worst = 0
    for change, end in zip(judged, ends, strict=False):
        at = change
        while at < end:
            if ratio[at] < RECOVERED:
                begun = change if at <= change + 1 else at
                at = _back(ratio, at, ends)
                worst = max(worst, at - begun)
            at += 1
    return worst


def _back(ratio: Series, dip: int, ends: Sequence[int]) -> int:
    """The second after a dip from which RECOVERED is held, by the mean of HELD_S, or of fewer if demand moves again."""
    for at in range(dip + 1, len(ratio)):
        until = min(at + HELD_S, *(end for end in ends if end > at))
        if min(ratio[at], ratio[at:until].mean()) >= RECOVERED:
            return at
    return len(ratio)


def _jain(log: RuleLog, warm_up: int) -> float:
    """Mean over the overloaded seconds of (sum x)^2 / (n sum x^2), x = admitted / max-min share of what may be."""
    found = []
    series = zip(log.offered[warm_up:], log.admitted[warm_up:], log.may[warm_up:], strict=True)
    for offered, admitted, may in series:
        if offered.sum() <= may:
            continue
        shares = water_fill(np.array([0, len(offered)]), offered, np.array([may])).amounts
        parts = admitted[shares > 0] / shares[shares > 0]
        if parts.any():
            found.append(parts.sum() ** 2 / (len(parts) * (parts**2).sum()))
    return float(np.mean(found)) if found else 1.0


def _churn(log: RuleLog, warm_up: int) -> float:
    """Units that a plan gives to other edges than the plan before, halved, as a part of the limit; mean by second."""
    epochs = sorted(log.slices)[warm_up:]
    moved = []
    for before, after in pairwise(epochs):
        if after != before + 1:
            continue
        one, other = log.slices[before], log.slices[after]
        moved.append(sum(abs(one[at] - other[at]) for at in one.keys() | other.keys()) / 2)
    return float(np.mean(moved) / log.limit) if moved and np.isfinite(log.limit) else 0.0


def _stranded(log: RuleLog, warm_up: int) -> float:
    """Units that edges had and did not spend, as a part of the limit; mean by epoch. In underload that is no loss."""
    epochs = sorted(log.given)[warm_up:]
    unspent = [max(0, log.given[epoch] - log.spent_at_edges[epoch]) for epoch in epochs]
    return float(np.mean(unspent) / log.limit) if unspent and np.isfinite(log.limit) else 0.0
