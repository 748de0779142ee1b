"""Edges that are not heard, and what each may still spend by `when_unavailable`: it is held back from all others.

An edge is known by its `--id`, whichever process bears it. It is silent from the first division that lacks its report
of the last finished epoch until it reports again, has left, or its stages have run out (design 4.1). What its stage is
cannot be known here, only between which it is: the most that any of those gives is held back. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from apportion.allocator.fill import Indexes, Integers
from apportion.core.allocator_messages import Governance, Plan
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Quota
from apportion.core.rule import Fallback, Rule, RuleSet
from apportion.core.stages import admits, fair_share, lasting_ns, stages_between

COLUMNS_KEPT = 5
"""Last slices remembered of each edge: which of them it had when it was cut off is not known, so the largest counts."""

REPORT_EPOCHS = 3
"""A plan of an epoch so far beyond the edge's latest report may not have reached it any more."""

HEARD_NS = 3 * EPOCH_NS // 2
"""An edge that reported had heard its region within this time, or it would have given up the stream."""

Flags = npt.NDArray[np.bool_]


@dataclass(slots=True)
class KnownEdge:
    """One edge. `reported`: epoch of its latest report; `gone`: epoch in which its stream ended, None while open."""

    incarnation: int
    reported: int
    replica: int
    gone: int | None = None
    columns: deque[tuple[Indexes, Integers]] = field(default_factory=lambda: deque(maxlen=COLUMNS_KEPT))


@dataclass(frozen=True, slots=True)
class Held:
    """What is held back in one epoch. `quotas` and `units`: of divided quotas; `slowed_*`: of all others.

    `spent[edge]`: by quota id, what that silent edge may spend, its slice included; `last[edge]`: its last slices.
    """

    quotas: Indexes
    units: Integers
    slowed_quotas: Indexes
    slowed_units: Integers
    spent: dict[int, Integers]
    last: dict[int, Integers]


class Silence:
    """What is known of every edge's life. Quotas are the leader's ids."""

    def __init__(self) -> None:
        self.edges: dict[str, KnownEdge] = {}
        self._by_incarnation: dict[int, KnownEdge] = {}
        self._rules: list[Rule] = []
        self._index: dict[tuple[str, str, str], int] = {}  # by domain, rule and plan
        self._by_name: dict[tuple[str, str], Rule] = {}
        self._rule_of: Indexes = np.full(0, -1, np.int64)

    # --- quotas

    def adopt(self, rules: RuleSet, named: Iterable[tuple[int, Quota]]) -> None:
        """Other rules hold; `named` are the quotas that have an id."""
        self._rules = [
            rule
            for whole in rules.rules
            for rule in whole.on_plans
            if admits(rule) and isinstance(rule.limit, RateLimit) and rule.limit.units and not rule.local
        ]
        self._index = {(rule.domain, rule.name, rule.plan): at for at, rule in enumerate(self._rules)}
        self._by_name = {(rule.domain, rule.name): rule for d in rules.domains.values() for rule in d.rules}
        self._rule_of[:] = -1
        for identity, quota in named:
            self.name(identity, quota)

    def counts(self, quota: Quota) -> bool:
        """Whether a silent edge may spend of it, so that the leader must know its name."""
        return self._rule_at(quota) >= 0

    def name(self, identity: int, quota: Quota) -> None:
        """`identity` means `quota` from here on."""
        if identity >= len(self._rule_of):
            more = np.full(max(identity + 1 - len(self._rule_of), len(self._rule_of)), -1, np.int64)
            self._rule_of = np.concatenate([self._rule_of, more])
        self._rule_of[identity] = self._rule_at(quota)

    def _rule_at(self, quota: Quota) -> int:
        """Which rule counts for the quota, by the plan of its tenant; -1: none of those that let edges spend."""
        whole = self._by_name.get((quota.domain, quota.rule))
        rule = whole.for_encoded_key(quota.key) if whole is not None else None
        return -1 if rule is None else self._index.get((rule.domain, rule.name, rule.plan), -1)

    # --- lives

    def govern(self, governance: Governance) -> None:
        """A replica says who is attached to it."""
        epoch, here = governance.tick.epoch, set()
        for holder in governance.holders:
            if holder.replica:
                continue
            here.add(holder.name)
            edge = self.edges.get(holder.name)
            if edge is None:
                edge = self.edges[holder.name] = KnownEdge(holder.incarnation, epoch - 1, governance.replica)
            edge.incarnation, edge.replica, edge.gone = holder.incarnation, governance.replica, None
            self._by_incarnation[holder.incarnation] = edge
        for name, edge in self.edges.items():
            if edge.replica == governance.replica and edge.gone is None and name not in here:
                edge.gone = epoch

    def lose(self, replica: int, epoch: int) -> None:
        """Nothing is heard of that replica any more, nor of its edges; those that it still has it will name again."""
        for edge in self.edges.values():
            if edge.replica == replica and edge.gone is None:
                edge.gone = epoch

    def remember(self, name: str, told: KnownEdge, quotas: Indexes, units: Integers) -> None:
        """A replica says what it knows of an edge; what is known here as well is kept where it is later."""
        edge = self.edges.setdefault(name, told)
        self._by_incarnation.setdefault(edge.incarnation, edge)
        if told.reported >= edge.reported:
            edge.reported = told.reported
            if told.gone is None or edge.gone is not None:
                edge.gone = told.gone
        known = quotas >= 0
        edge.columns.append((quotas[known], units[known]))

    def start_over(self) -> None:
        """Another store counts its own epochs: nobody's life can be told in them."""
        self.edges.clear()
        self._by_incarnation.clear()

    def leave(self, name: str, incarnation: int) -> None:
        """The edge stopped in good order and spends nothing more."""
        edge = self.edges.get(name)
        if edge is not None and edge.incarnation == incarnation:
            del self.edges[name]

    def report(self, incarnation: int, epoch: int) -> None:
        """An edge reported that epoch."""
        edge = self._by_incarnation.get(incarnation)
        if edge is not None and edge.incarnation == incarnation:
            edge.reported = max(edge.reported, epoch)

    def planned(self, plan: Plan) -> None:
        """A plan was made: its columns are the last slices of the edges that it may have reached."""
        if not self._rules:
            return
        columns = {column.holder: column for column in plan.columns}
        for edge in self.edges.values():
            if edge.reported < plan.epoch - REPORT_EPOCHS:
                continue
            column = columns.get(edge.incarnation)
            if column is None:
                edge.columns.append((np.zeros(0, np.int64), np.zeros(0, np.int64)))
            else:
                edge.columns.append((column.ids.astype(np.int64), column.units.astype(np.int64)))

    # --- what is held back

    def held(self, target: int, epoch: int) -> Held | None:
        """What is to be held back of `target`, divided in `epoch`; None: nothing."""
        if not self._rules:
            return None
        spent: dict[int, Integers] = {}
        last: dict[int, Integers] = {}
        for name, edge in list(self.edges.items()):
            if edge.reported >= epoch - 1:
                continue
            least_ns = 0 if edge.gone is None else max(target - edge.gone - 1, 0) * EPOCH_NS
            if least_ns > max(map(lasting_ns, self._rules)):
                del self.edges[name]
                continue
            most_ns = (target - edge.reported) * EPOCH_NS + HEARD_NS
            last[edge.incarnation] = self._last(edge)
            spent[edge.incarnation] = self._spent(last[edge.incarnation], least_ns, most_ns)
        if not spent:
            return None
        total: Integers = np.sum(list(spent.values()), axis=0)
        divided = self._flags([rule.divided for rule in self._rules])
        held, slowed = np.flatnonzero((total > 0) & divided), np.flatnonzero((total > 0) & ~divided)
        return Held(held, total[held], slowed, total[slowed], spent, last)

    def awake(self) -> Indexes:
        """Ids of the last slices that are still remembered of anybody: they must go on meaning the same. Who bore what
        incarnation is forgotten where nobody does any more.
        """
        self._by_incarnation = {edge.incarnation: edge for edge in self.edges.values()}
        columns = [quotas for edge in self.edges.values() for quotas, _ in edge.columns]
        return np.unique(np.concatenate(columns)) if columns else np.zeros(0, np.int64)

    def _last(self, edge: KnownEdge) -> Integers:
        last = np.zeros(len(self._rule_of), np.int64)
        for quotas, units in edge.columns:
            inside = quotas < len(last)
            last[quotas[inside]] = np.maximum(last[quotas[inside]], units[inside])
        return last

    def _spent(self, last: Integers, least_ns: int, most_ns: int) -> Integers:
        """By quota, the most that the stages between the two give to an edge with these last slices."""
        present = [stages_between(rule.when_unavailable, least_ns, most_ns) for rule in self._rules]
        fair = [
            fair_share(rule) if Fallback.FAIR_SHARE in found else 0
            for rule, found in zip(self._rules, present, strict=True)
        ]
        keeps = self._flags([Fallback.KEEP_SHARE in found for found in present])
        fair_units = np.array([*fair, 0], np.int64)[self._rule_of]
        result: Integers = np.maximum(np.where(keeps, last, 0), fair_units)
        return result

    def _flags(self, by_rule: list[bool]) -> Flags:
        flags: Flags = np.array([*by_rule, False], np.bool_)[self._rule_of]  # -1, no such rule, is the last
        return flags
