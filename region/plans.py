"""The plans a replica holds: who got what of which epoch, what of it is this replica's own, and what came back as used.

A plan is complete for its epoch and arrives at most once (design 5.4); a second copy changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from apportion.core.allocator_messages import Plan
from apportion.core.messages import Ids, Units, no_ids, no_units
from apportion.region.quotas import QuotaTable
from apportion.region.store import ROLLUP_EPOCHS_KEPT
from apportion.region.versions import Lookup

EPOCHS_KEPT = 8
"""Epochs of plans kept for reading back and for judging late reports."""

UNREPORTED_KEPT = ROLLUP_EPOCHS_KEPT
"""Epochs for which it is known what holders never reported: the sums beside which it is shown are kept as long."""


@dataclass(slots=True)
class HeldPlan:
    """The plan of one epoch in this region's ids. `columns` by holder incarnation; `parts` this replica's own units
    by id; `slowed` by how many units the bucket of an undivided quota fills less, `held` how many of a divided one
    nobody gets. `rules_version` is the version of the rules that it was divided by. `kept` by holder: ids of which an
    edge returns nothing early.
    """

    epoch: int
    generation: int
    rules_version: int
    columns: dict[int, tuple[Ids, Units]]
    parts: dict[int, int]
    named: frozenset[int]
    slowed: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    kept: dict[int, Ids] = field(default_factory=dict)

    def column(self, holder: int) -> tuple[Ids, Units]:
        """What `holder` was given; empty columns when nothing."""
        return self.columns.get(holder, (no_ids(), no_units()))


@dataclass(slots=True)
class Ledger:
    """What was issued under each label, by holder and quota id: slices, borrowed units, less what was returned."""

    issued: dict[int, dict[int, dict[int, int]]] = field(default_factory=dict)
    reported: dict[int, set[int]] = field(default_factory=dict)

    def issue(self, epoch: int, holder: int, quota: int, units: int) -> None:
        """Add units (negative: given back) that `holder` may spend of `quota` under `epoch`."""
        column = self.issued.setdefault(epoch, {}).setdefault(holder, {})
        column[quota] = column.get(quota, 0) + units

    def issued_to(self, epoch: int, holder: int, quota: int) -> int:
        """Units that `holder` may have spent of `quota` under `epoch`."""
        return self.issued.get(epoch, {}).get(holder, {}).get(quota, 0)

    def report(self, epoch: int, holder: int) -> None:
        """Note that `holder` reported `epoch`."""
        self.reported.setdefault(epoch, set()).add(holder)

    def unreported(self, epoch: int, quota: int) -> int:
        """Units issued under `epoch` to holders that have not reported it: counted as spent, shown apart (design
        5.8).
        """
        done = self.reported.get(epoch, set())
        holders = self.issued.get(epoch, {}).items()
        return sum(column.get(quota, 0) for holder, column in holders if holder not in done)

    def forget(self, before: int) -> None:
        """Forget epochs below `before`, but what was issued to holders that have not reported: the sum lacks it, and
        a killed edge never tells.
        """
        for epoch in [epoch for epoch in self.issued if epoch < before]:
            done = self.reported.get(epoch, set())
            silent = {holder: column for holder, column in self.issued[epoch].items() if holder not in done}
            if silent and epoch >= before - UNREPORTED_KEPT:
                self.issued[epoch] = silent
            else:
                del self.issued[epoch]
        for epoch in [epoch for epoch in self.reported if epoch < before]:
            del self.reported[epoch]

    def forget_quotas(self, quotas: Iterable[int]) -> None:
        """Forget ids that are free again."""
        for quota in quotas:
            for columns in self.issued.values():
                for column in columns.values():
                    column.pop(quota, None)


def hold_plan(
    plan: Plan, replica: int, to_local: Callable[[Ids], Ids], table: QuotaTable, rules: Lookup
) -> HeldPlan | str:
    """Translate `plan` to local ids (`to_local` of the leader's) and check that each quota sums to its Q_k, or to that
    with slack, by `rules`, those of the version that it names; a text on failure.
    """
    columns = {column.holder: (to_local(column.ids), column.units) for column in plan.columns}
    held_ids = to_local(plan.held_ids)
    ids = np.concatenate([no_ids(), held_ids, *(ids for ids, _ in columns.values())])
    units = np.concatenate([no_units(), plan.held, *(units for _, units in columns.values())])
    named, row = np.unique(ids, return_inverse=True)
    sums = np.zeros(len(named), np.uint64)
    np.add.at(sums, row, units)
    for identity, total in zip(named.tolist(), sums.tolist(), strict=True):
        known = table.by_id(identity)
        limited = rules.find(known.quota) if known is not None else None
        if known is None or limited is None or not limited[0].planned:
            return f"quota {identity} is not divided by the rules in force"
        due = limited[0].planned_units(plan.epoch)
        if total != due:
            return f"{known.quota.rule}: {total} units planned, {due} are to be"
    own_ids, own_units = columns.pop(replica, (no_ids(), no_units()))
    parts = dict(zip(own_ids.tolist(), own_units.tolist(), strict=True))
    slowed = dict(zip(to_local(plan.slowed_ids).tolist(), plan.slowed.tolist(), strict=True))
    named_ids = frozenset(named.tolist())
    held = dict(zip(held_ids.tolist(), plan.held.tolist(), strict=True))
    kept = {column.holder: to_local(column.kept) for column in plan.columns if len(column.kept)}
    return HeldPlan(plan.epoch, plan.generation, plan.rules_version, columns, parts, named_ids, slowed, held, kept)
