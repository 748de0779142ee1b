"""From rules, demand and who is attached to the plan of one epoch: pure, and without a loop over cells.

Which epochs may be planned at all is the leader's business; how a quota is cut is `division`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apportion.allocator.demand import Cells
from apportion.allocator.division import QUOTA_UNITS_MAX, divide, split_pool
from apportion.allocator.fill import Floats, Indexes, Integers
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Column, Plan, Quota
from apportion.core.rule import Rule, RuleSet


class Limits:
    """Which quotas are divided, and what each is worth in an epoch. Quotas are the leader's ids."""

    def __init__(self, rules: RuleSet) -> None:
        self._limits: dict[RateLimit, int] = {}  # each once: many rules, few limits
        self._of_rule: dict[tuple[str, str, str], int] = {}  # by domain, rule and plan
        self._by_plan = {
            (rule.domain, rule.name): rule for d in rules.domains.values() for rule in d.rules if rule.by_plan
        }
        self._of_quota: Indexes = np.zeros(0, np.int64)
        for domain in rules.domains.values():
            for rule in (on_plan for each in domain.rules for on_plan in each.on_plans):
                limit = _divided_limit(rule)
                if limit is not None:
                    self._of_rule[domain.name, rule.name, rule.plan] = self._limits.setdefault(limit, len(self._limits))

    def divides(self, quota: Quota) -> bool:
        """Whether `quota` is to be divided over edges."""
        return self._name(quota) in self._of_rule

    def set(self, identity: int, quota: Quota) -> None:
        """`identity` means `quota` from here on, which must be one that is divided."""
        if identity >= len(self._of_quota):
            more = np.zeros(max(identity + 1 - len(self._of_quota), len(self._of_quota)), np.int64)
            self._of_quota = np.concatenate([self._of_quota, more])
        self._of_quota[identity] = self._of_rule[self._name(quota)]

    def _name(self, quota: Quota) -> tuple[str, str, str]:
        """Which rule is meant, as it is on the plan of the quota's tenant."""
        by_plan = self._by_plan.get((quota.domain, quota.rule))
        rule = by_plan.for_encoded_key(quota.key) if by_plan is not None else None
        return quota.domain, quota.rule, rule.plan if rule is not None else ""

    def units(self, quotas: Indexes, epoch: int) -> Integers:
        """Q_k of each of `quotas`, all of them set. What lowers a quota (design 8) is applied here, one day."""
        worth = np.array([limit.units_in_epoch(epoch) for limit in self._limits], np.int64)
        return worth[self._of_quota[quotas]]


@dataclass(frozen=True, slots=True)
class Attached:
    """Who can hold units: each edge's incarnation with that of the replica it is attached to, and the replicas'."""

    edges: dict[int, int]
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan without names, the quotas it names, and how many of them were contended."""

    plan: Plan
    quotas: Indexes
    cells: int
    contended: int


def make_plan(
    generation: int, epoch: int, rules_version: int, limits: Limits, cells: Cells, attached: Attached
) -> Planned:
    """Divide `epoch`: every quota that has cells, each edge's slices and each replica's part of the pools, complete."""
    units = limits.units(cells.quotas, epoch)
    division = divide(units, cells.starts, cells.base)
    parts = split_pool(division.pool, _demand_by_replica(units, cells, attached))
    columns = [
        Column(edge, quotas[given > 0].astype(np.uint32), given[given > 0].astype(np.uint64))
        for edge, quotas, given in _by_edge(cells, division.slices)
    ]
    columns = [column for column in columns if len(column.ids)]
    # A replica's column names every quota of the plan, also with 0 units: what a plan does not name is lent directly.
    named = cells.quotas.astype(np.uint32)
    columns += [
        Column(replica, named, part.astype(np.uint64))
        for replica, part in zip(attached.replicas, parts, strict=True)
        if len(named)
    ]
    plan = Plan(generation, epoch, rules_version, (), tuple(columns))
    contended = int(np.isfinite(division.level).sum())
    return Planned(plan, cells.quotas, len(cells.base), contended)


def _by_edge(cells: Cells, slices: Integers) -> list[tuple[int, Indexes, Integers]]:
    edges = zip(cells.edges, cells.edge_quotas, cells.places, strict=True)
    return [(edge, quotas, slices[places]) for edge, quotas, places in edges]


def _demand_by_replica(units: Integers, cells: Cells, attached: Attached) -> Floats:
    """The smoothed demand attached to each replica, by quota; no edge counts for more than the whole quota."""
    row_of = {replica: row for row, replica in enumerate(attached.replicas)}
    demand = np.zeros((len(row_of), len(cells.quotas)))
    if len(row_of) == 1:
        return demand
    quota_of = np.repeat(np.arange(len(cells.quotas)), np.diff(cells.starts))
    recent = np.minimum(cells.recent, units[quota_of])
    for edge, places in zip(cells.edges, cells.places, strict=True):
        demand[row_of[attached.edges[edge]], quota_of[places]] += recent[places]
    return demand


def _divided_limit(rule: Rule) -> RateLimit | None:
    """The rule's limit if its quotas are divided; one beyond what a plan can name is left to be lent directly."""
    if not rule.divided or not isinstance(rule.limit, RateLimit):
        return None
    largest = rule.limit.units * EPOCH_NS // rule.limit.period_ns + 1
    return rule.limit if largest <= QUOTA_UNITS_MAX else None
