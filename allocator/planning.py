"""From rules, demand and who is attached to the plan of one epoch: pure, and without a loop over cells.

Which epochs may be planned at all is the leader's business; how a quota is cut is `division`'s.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from apportion.allocator.demand import Cells
from apportion.allocator.division import QUOTA_UNITS_MAX, Flags, divide, split_pool
from apportion.allocator.fill import Floats, Indexes, Integers, row_sums
from apportion.allocator.holding_back import pin, reserve, with_held
from apportion.allocator.silence import Held
from apportion.allocator.whole import Mode, divide_whole, for_all, pick
from apportion.core.allocator_messages import Column, Plan
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Quota, no_ids, no_units
from apportion.core.rule import Rule, RuleSet
from apportion.core.threshold import with_slack
from apportion.core.value import value


@value
class Worth:
    """What a quota is worth, and how it is divided. `slack` in hundredths of a percent, of what is given away."""

    limit: RateLimit
    mode: Mode = Mode.POOLED
    slack: int = 0

    def units(self, epoch: int) -> int:
        """What there is to give away of `epoch`."""
        return with_slack(self.limit.units_in_epoch(epoch), self.slack)


class Limits:
    """Which quotas are divided, and what each is worth in an epoch. Quotas are the leader's ids."""

    def __init__(self, rules: RuleSet) -> None:
        self._worths: dict[Worth, int] = {}  # each once: many rules, few limits
        self._of_rule: dict[tuple[str, str, str], int] = {}  # by domain, rule and plan
        self._by_key = {
            (rule.domain, rule.name): rule for d in rules.domains.values() for rule in d.rules if rule.by_key
        }
        self._of_quota: Indexes = np.full(0, -1, np.int64)
        for domain in rules.domains.values():
            for rule in (on_plan for each in domain.rules for on_plan in each.on_plans):
                worth = _worth(rule)
                if worth is not None:
                    self._of_rule[domain.name, rule.name, rule.plan] = self._worths.setdefault(worth, len(self._worths))

    def divides(self, quota: Quota) -> bool:
        """Whether `quota` is to be divided over edges."""
        return self._name(quota) in self._of_rule

    def set(self, identity: int, quota: Quota) -> None:
        """`identity` means `quota` from here on."""
        if identity >= len(self._of_quota):
            more = np.full(max(identity + 1 - len(self._of_quota), len(self._of_quota)), -1, np.int64)
            self._of_quota = np.concatenate([self._of_quota, more])
        self._of_quota[identity] = self._of_rule.get(self._name(quota), -1)

    def divided(self, quotas: Indexes) -> npt.NDArray[np.bool_]:
        """Which of `quotas`, all of them set, are to be divided."""
        divided: npt.NDArray[np.bool_] = self._of_quota[quotas] >= 0
        return divided

    def _name(self, quota: Quota) -> tuple[str, str, str]:
        """Which rule is meant, as it is on the plan of the quota's tenant."""
        by_key = self._by_key.get((quota.domain, quota.rule))
        rule = by_key.for_encoded_key(quota.key) if by_key is not None else None
        return quota.domain, quota.rule, rule.plan if rule is not None else ""

    def units(self, quotas: Indexes, epoch: int) -> Integers:
        """What there is of `quotas`, all of them set. What lowers a quota (design 8) is applied here, one day."""
        worth = np.array([worth.units(epoch) for worth in self._worths], np.int64)
        return worth[self._of_quota[quotas]]

    def modes(self, quotas: Indexes) -> Integers:
        """How each of `quotas` is divided."""
        modes = np.array([worth.mode for worth in self._worths], np.int64)
        return modes[self._of_quota[quotas]]


@value
class Attached:
    """Who can hold units: each edge's incarnation with that of the replica it is attached to, and the replicas'."""

    edges: dict[int, int]
    replicas: tuple[int, ...]


@value
class Planned:
    """A plan without names, the quotas it names, and how many of them were contended."""

    plan: Plan
    quotas: Indexes
    cells: int
    contended: int


@value
class Given:
    """What one edge is given of some quotas, and which of it is more than its base demand on purpose."""

    edge: int
    quotas: Indexes
    units: Integers
    kept: Flags


def make_plan(
    generation: int,
    epoch: int,
    rules_version: int,
    limits: Limits,
    cells: Cells,
    attached: Attached,
    live: tuple[int, ...] = (),
    held: Held | None = None,
) -> Planned:
    """Divide `epoch`: every quota that has cells, each edge's slices and each replica's part of the pools, complete.

    `live`: the edges that take part, whether they have cells or not. `held`: what silent edges may still spend.
    """
    modes = limits.modes(cells.quotas)
    pooled = cells if not modes.any() else pick(cells, modes == Mode.POOLED)
    if held is not None:
        pooled = with_held(pooled, held)
    units = limits.units(pooled.quotas, epoch)
    reserved = reserve(pooled, units, held) if held is not None else np.zeros(len(units), np.int64)
    # A unit more than the most that came: a level that fills at just the rate of the demand is late for some of it.
    want = np.where(pooled.most > 0, pooled.most + 1.0, 0.0)
    division = divide(units - reserved, pooled.starts, pooled.base, want)
    parts = split_pool(division.pool, _demand_by_replica(units, pooled, attached))
    slices, left = pin(pooled, division.slices, reserved, held) if held is not None else (division.slices, reserved)
    given = _by_edge(pooled, slices, division.kept)
    contended = int(np.isfinite(division.level).sum())
    for mode in (Mode.WHOLE, Mode.FLOORED):
        if (modes == mode).any():
            whole, short = _whole(mode, epoch, limits, pick(cells, modes == mode), live)
            given += whole
            contended += short
    columns = _edge_columns(given)
    # A replica's column names every pooled quota, also with 0 units: what a plan does not name is lent directly.
    named = pooled.quotas.astype(np.uint32)
    columns += [
        Column(replica, named, part.astype(np.uint64))
        for replica, part in zip(attached.replicas, parts, strict=True)
        if len(named)
    ]
    back = (named[left > 0], left[left > 0].astype(np.uint64))
    slowed = (no_ids(), no_units())
    if held is not None:
        slowed = (held.slowed_quotas.astype(np.uint32), held.slowed_units.astype(np.uint64))
    plan = Plan(generation, epoch, rules_version, (), tuple(columns), *back, *slowed)
    quotas = np.union1d(cells.quotas, np.concatenate([named, slowed[0]]).astype(np.int64)) if held else cells.quotas
    return Planned(plan, quotas, len(cells.base), contended)


def _whole(mode: Mode, epoch: int, limits: Limits, cells: Cells, live: tuple[int, ...]) -> tuple[list[Given], int]:
    """The slices of quotas without a pool, by edge, and how many of the quotas are contended."""
    if mode is Mode.FLOORED:
        cells = for_all(cells, live)
    units = limits.units(cells.quotas, epoch)
    slices = divide_whole(units, cells.starts, cells.base, cells.want, floored=mode is Mode.FLOORED)
    return _by_edge(cells, slices, np.zeros(len(slices), np.bool_)), int(
        (row_sums(cells.starts, cells.want) > units).sum()
    )


def _edge_columns(given: list[Given]) -> list[Column]:
    """One column for each edge that was given anything."""
    by_edge: dict[int, list[Given]] = {}
    for each in given:
        by_edge.setdefault(each.edge, []).append(each)
    columns = []
    for edge, parts in by_edge.items():
        units = np.concatenate([part.units for part in parts])
        ids = np.concatenate([part.quotas for part in parts])
        kept = np.concatenate([part.kept for part in parts])
        some = units > 0
        if some.any():
            own = ids[some].astype(np.uint32)
            columns.append(Column(edge, own, units[some].astype(np.uint64), own[kept[some]]))
    return columns


def _by_edge(cells: Cells, slices: Integers, kept: Flags) -> list[Given]:
    edges = zip(cells.edges, cells.edge_quotas, cells.places, strict=True)
    return [Given(edge, quotas, slices[places], kept[places]) for edge, quotas, places in edges]


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


def _worth(rule: Rule) -> Worth | None:
    """What the rule's quotas are worth if they are divided; one beyond what a plan can name is left alone."""
    if not rule.planned or not isinstance(rule.limit, RateLimit):
        return None
    worth = Worth(rule.limit)
    if rule.local:
        worth = Worth(rule.limit, Mode.FLOORED, rule.slack or 0)
    elif not rule.divided:
        worth = Worth(rule.limit, Mode.WHOLE)
    largest = with_slack(rule.limit.units * EPOCH_NS // rule.limit.period_ns + 1, worth.slack)
    return worth if largest <= QUOTA_UNITS_MAX else None
