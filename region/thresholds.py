"""What the region knows of rules with a threshold at each edge (design 4.1): `edge` and `edge+region`. Pure.

A plan gives an `edge` quota with slack away as grants, as it does a lease; of an `edge+region` quota it only says where
the edges' thresholds are, and the store decides. What is decided at the edges alone is known here by their reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from apportion.core.bounds_edge import label_units_max
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Units
from apportion.core.rule import Enforce, Rule
from apportion.region.plans import HeldPlan
from apportion.region.quotas import KnownQuota


def is_grant(rule: Rule) -> bool:
    """Whether a slice of the rule's quotas is a right to spend, which counts as spent until it is reported."""
    return rule.enforce is not Enforce.EDGE_REGION


def rights(rule: Rule, issued: int) -> int:
    """The most that one edge may have spent of a label by itself, when `issued` units were given to it."""
    if not rule.local:
        return issued
    if rule.at_each_edge is not None:
        return label_units_max(rule)
    return max(issued, rule.share()) if rule.planned else 0


def for_leader(known: Sequence[KnownQuota], demand: Units, plans: Mapping[int, HeldPlan]) -> npt.NDArray[np.bool_]:
    """Which rows of a report's demand concern the leader.

    Nothing of rules that nobody divides and no silent edge may spend of; and of an `edge` quota with slack nothing
    while every edge stays within its share (design 4.1), so that a flood of small keys is not divided.
    """
    named = plans[max(plans)].named if plans else frozenset()
    rows = zip(known, demand.tolist(), strict=True)
    wanted = [
        found.for_leader and (not found.rule.local or found.id in named or cost > found.rule.share())
        for found, cost in rows
    ]
    return np.array(wanted, np.bool_)


class OverThreshold:
    """Units that edges refused above their thresholds without asking, by quota and label, for EPOCHS of them; of more
    than ROWS_MAX quotas and labels, about 100 bytes each, the oldest labels go first.
    """

    EPOCHS = 600
    ROWS_MAX = 1_000_000

    def __init__(self) -> None:
        self._units: dict[int, dict[bytes, int]] = {}
        self._rows = 0

    def add(self, epoch: int, store_key: bytes, units: int) -> None:
        """An edge refused so many units under the label."""
        quotas = self._units.setdefault(epoch, {})
        self._rows += store_key not in quotas
        quotas[store_key] = quotas.get(store_key, 0) + units
        while self._rows > self.ROWS_MAX:
            self.forget(min(self._units) + 1)

    def under(self, epoch: int) -> Mapping[bytes, int]:
        """Units refused under one label, by quota."""
        return self._units.get(epoch, {})

    def of(self, store_key: bytes) -> dict[int, int]:
        """Units refused of one quota, by label."""
        return {epoch: quotas[store_key] for epoch, quotas in self._units.items() if store_key in quotas}

    def forget(self, before: int) -> None:
        """Forget labels below `before`."""
        for epoch in [epoch for epoch in self._units if epoch < before]:
            self._rows -= len(self._units.pop(epoch))


def refused_with_room(limit: RateLimit, admitted: Mapping[int, int], refused: Mapping[int, int]) -> dict[int, int]:
    """Of the units `refused` at edges under each label, those that the quota's bucket could still have admitted when
    the label ended, by its own sum of what was `admitted`.

    An upper bound of what was lost by refusing too early: a refusal that only made room for another request is none.
    """
    period, quota = limit.period_ticks, limit.units * (EPOCH_NS // limit.tick_ns)
    capacity = limit.burst * period
    found: dict[int, int] = {}
    backlog, last = 0, None
    for epoch in sorted(admitted.keys() | refused.keys()):
        passed = 1 if last is None else epoch - last
        last = epoch
        backlog = max(0, min(backlog, capacity) - (passed - 1) * quota)
        backlog = max(0, backlog + admitted.get(epoch, 0) * period - quota)
        room = max(0, capacity - backlog) // period
        if units := min(refused.get(epoch, 0), room):
            found[epoch] = units
    return found
