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
from apportion.simulations.in_force import InForce
from apportion.simulations.rule_log import RuleLog, Series

RECOVERED = 0.95
"""A rule is back after a change when it admits this part of what it may."""

ROUNDING = 1e-6
"""Units: what floats may be off by where a limit is no whole number."""

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
class RuleFigures:
    """One rule's figures; units of cost.

    `overshoot_label`: the worst `over` of any key (design 4.1). `overshoot_true_second`: the most beyond rate + burst
    in any second of virtual time, rounded up. `utilisation`: sum of admitted / sum of min(offered, limit) by second,
    and the 5th percentile of that ratio. `ticks_to_95_percent`: whole seconds after a change of demand or a fault until
    the ratio is back, the worst of all. `jain`: of what each edge was admitted beside its max-min share, mean of
    overloaded seconds. `churn`: units of the plan that moved between edges, a part of the quota each second.
    `stranded_share`: units that edges were given and neither spent nor gave back, a part of the limit each epoch.
    `refused_with_room`: cost refused at an edge though the second had room for it, a part of what was offered.
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


def figures_of(
    log: RuleLog, limits: InForce, warm_up: int, changes: Sequence[int], edges_max: int | None
) -> RuleFigures:
    """All figures of one rule. `changes`: seconds in which demand moved or something happened."""
    limit = log.rule.limit
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
        burst=limit.burst if isinstance(limit, RateLimit) else 0,
        bound=bound_of(log.rule, StoreKind.SQLITE, edges_max).units,
        offered=int(offered.sum()),
        admitted=int(admitted.sum()),
        degraded=log.degraded,
        overshoot_label=overshoot_by_label(log, limits),
        overshoot_true_second=overshoot_in_a_second(log, limits),
        utilisation=float(admitted[judged].sum() / asked) if asked else 1.0,
        utilisation_p5=float(np.percentile(ratio[judged], 5)) if seconds and len(ratio[judged]) else 1.0,
        ticks_to_95_percent=_recovery(ratio, changes, warm_up),
        jain=_jain(log, warm_up),
        churn=_churn(log, warm_up),
        crossings_per_second=float(crossings / seconds),
        crossing_share=float(crossings / max(offered[judged].sum(), 1)),
        stranded_share=_stranded(log, warm_up),
        refused_with_room=float(np.minimum(log.refused_at_edge, room)[judged].sum() / max(offered[judged].sum(), 1)),
        denied=dict(sorted(log.denied.items())),
    )


def overshoot_by_label(log: RuleLog, limits: InForce) -> int:
    """The worst `over` of any key's meter."""
    return max((units for _, units in overshoots(log, limits)), default=0)


def overshoots(log: RuleLog, limits: InForce) -> list[tuple[int, int]]:
    """Epochs that were over, each with the most that a key was, in order."""
    if not isinstance(log.rule.limit, RateLimit):
        return []
    worst: dict[int, int] = {}
    for key, labels in log.labels.items():
        meter = Meter(log.rule.limit, log.rule.divided)
        for epoch in sorted(labels):
            limit = limits.limit(log.rule.name, epoch, key)
            if limit is None:
                continue
            meter.become(limit)
            over = meter.record(epoch, labels[epoch])
            if over:
                worst[epoch] = max(worst.get(epoch, 0), over)
    return sorted(worst.items())


def overshoot_in_a_second(log: RuleLog, limits: InForce) -> int:
    """The most admitted in any second of virtual time beyond rate + burst, over all keys together."""
    limit = log.rule.limit
    if not len(log.times) or not isinstance(limit, RateLimit):
        return 0
    order = np.argsort(log.times, kind="stable")
    times, total = log.times[order], np.concatenate([[0], np.cumsum(log.costs[order])])
    first = np.searchsorted(times, times - EPOCH_NS, side="right")
    admitted = total[1:] - total[first]
    instants = times.tolist() if limits.changing else [int(times[0])]
    rates = np.array([limits.largest_within(log.rule.name, at - EPOCH_NS, at) for at in instants])
    over = admitted - rates * max(len(log.labels), 1)
    return ceil(max(0.0, float(over.max()) - ROUNDING))


def _recovery(ratio: Series, changes: Sequence[int], warm_up: int) -> int:
    """Seconds with less than RECOVERED from a change to the first with more; the worst of all changes."""
    worst = 0
    for change in changes:
        if change < warm_up:
            continue
        back = np.flatnonzero(ratio[change:] >= RECOVERED)
        worst = max(worst, int(back[0]) if len(back) else len(ratio) - change)
    return worst


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
