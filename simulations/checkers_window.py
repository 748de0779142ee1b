"""S5: no true second has more than the entitlement and what is printed beside it (design 4.1).

What the store decides is exact by the store's clock. What edges spend of slices and loans is judged by virtual time:
rate and burst, and in addition the label's own bound, e x Q, one borrowed chunk for each edge, what the depths of
slices have above the burst, and the burst where an epoch turns direct. All but rate and burst is read from the log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from apportion.core.bounds_edge import together_units
from apportion.core.budget import DEPTH_MIN
from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.rule import Rule
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Answers
from apportion.simulations.rows import Anchored
from apportion.simulations.sums import Label, Name, Sums, named, totals
from apportion.simulations.violation import Violation


def over_in_the_store(sums: Sums, limits: InForce) -> Iterable[Violation]:
    """S5 of what the store decides: one bucket for each undivided quota, exact in ticks, over all lives of a region."""
    buckets: dict[bytes, tuple[int, int, int]] = {}  # backlog in unit-ticks, when, ticks of a period
    judged = {label: _judged_in_store(label, limits) for label in sums.in_store}
    for row in sums.stores:
        limit = judged[row.quota, row.epoch]
        if not row.units or limit is None:
            continue
        backlog, before_ns, period = buckets.get(row.quota, (0, 0, limit.period_ticks))
        if period != limit.period_ticks:
            backlog = ceil_div(backlog * limit.period_ticks, period)
        passed = row.store_ns // limit.tick_ns - before_ns // limit.tick_ns
        backlog = max(0, backlog - limit.units * passed) + row.units * limit.period_ticks
        buckets[row.quota] = (backlog, row.store_ns, limit.period_ticks)
        over = ceil_div(backlog - limit.burst * limit.period_ticks, limit.period_ticks)
        if over > 0:
            yield Violation("S5", *named(row.quota), row.epoch, f"the store admitted {over} beyond rate and burst")


def _judged_in_store(label: Label, limits: InForce) -> RateLimit | None:
    """The limit of an undivided quota during an epoch; None: it has none, or is divided."""
    quota, epoch = label
    name, key = named(quota)
    divided = any(rule.divided for rule in limits.rules(name, epoch, key))
    return None if divided else limits.limit(name, epoch, key)


@dataclass(frozen=True, slots=True)
class Terms:
    """What may come on top of rate and burst in a true second; units of cost."""

    label: int
    clocks: int
    chunks: int
    depths: int
    direct: int
    degraded: int

    @property
    def units(self) -> int:
        """All of it."""
        return self.label + self.clocks + self.chunks + self.depths + self.direct + self.degraded

    def __str__(self) -> str:
        return (
            f"{self.label} by label, {self.clocks} by clocks, {self.chunks} of chunks, {self.depths} of depths, "
            f"{self.direct} of direct epochs, {self.degraded} degraded"
        )


def over_in_a_second(sums: Sums, limits: InForce) -> Iterable[Violation]:
    """S5 of what edges spend: of each quota that is divided or decided at the edges, its worst second."""
    quotas = list(sums.quotas)
    for number, mine in sums.charged.by(sums.charged.quota):
        quota, (name, key) = quotas[number], sums.names[number]
        rules = {epoch: limits.rules(name, epoch, key) for epoch in np.unique(mine.epoch).tolist()}
        if not all(_judged(rule) for found in rules.values() for rule in found):
            continue
        worst, at_ns = _worst_second(mine, {epoch: _entitled(found) for epoch, found in rules.items()})
        terms = terms_of(sums, (name, key), quota, mine, max((each for each in rules.values()), key=_entitled))
        if worst > terms.units:
            said = f"{worst} beyond rate and burst in the second before {at_ns} ns, printed are {terms.units}: {terms}"
            yield Violation("S5", name, key, None, said)


def _judged(rule: Rule) -> bool:
    return (rule.divided or rule.local) and isinstance(rule.limit, RateLimit) and rule.limit.units > 0


def _entitled(rules: Sequence[Rule]) -> float:
    found = [rule.limit for rule in rules if isinstance(rule.limit, RateLimit)]
    return max(limit.per_second for limit in found) + max(limit.burst for limit in found)


def _worst_second(spent: Answers, entitled: dict[int, float]) -> tuple[int, int]:
    """The most units beyond what is entitled in any second of virtual time, rounded down, and when it ended."""
    times, total = spent.at_ns, np.concatenate([[0], np.cumsum(spent.cost)])
    admitted = total[1:] - total[np.searchsorted(times, times - EPOCH_NS, side="right")]
    epochs = np.array(sorted(entitled))
    most = np.array([entitled[epoch] for epoch in epochs.tolist()])
    over = admitted - most[np.searchsorted(epochs, spent.epoch)]
    at = int(np.argmax(over))
    return int(max(over[at], 0)), int(times[at])


def terms_of(sums: Sums, name: Name, quota: bytes, spent: Answers, rules: Sequence[Rule]) -> Terms:
    """The terms of a quota of which so much was `spent`, by its largest rules in force and what the log says of clocks,
    chunks and slices.
    """
    rule = max(rules, key=lambda each: _entitled([each]))
    limit = rule.limit
    assert isinstance(limit, RateLimit)
    quota_units = ceil_div(limit.units * EPOCH_NS, limit.period_ns)
    seconds = errors_ns(sums.anchored, spent) / EPOCH_NS
    largest = min(sums.largest_cost(name), limit.burst)  # a larger one is impossible
    if rule.local:
        edges = _edges_in_two_labels(spent)
        together = together_units(rule, edges)
        slack = max(0, together - quota_units - (limit.burst if rule.at_each_edge is not None else 0))
        if rule.at_each_edge is not None:
            return Terms(slack, int(np.ceil(seconds * together)), int(spent.cost.max()), 0, 0, 0)
        # One edge is in one label at a time, so a share is spent once; what two plans give may be spent side by side.
        spread = _depths(sums, quota, limit, largest, rule.share(), edges)
        return Terms(slack, int(np.ceil(seconds * together_units(rule, 1))), 0, spread, 0, 0)
    direct = any(not max(sums.generations.get(epoch, {0})) for epoch in sums.spent[name])
    return Terms(
        label=0,
        clocks=int(np.ceil(seconds * quota_units)),
        chunks=_chunks(sums, quota, spent),
        depths=_depths(sums, quota, limit, largest),
        direct=limit.burst if direct else 0,
        degraded=_degraded(sums, quota),
    )


def errors_ns(anchored: Sequence[Anchored], spent: Answers) -> int:
    """How far edges spent labels from the region's epochs, early and late together, in ns of virtual time."""
    spent = spent.where(spent.at_edge & spent.alone)
    if not len(spent.epoch):
        return 0
    at_ns, epoch, start_ns, length_ns = np.array(sorted(anchored)).T
    last = np.maximum(np.searchsorted(at_ns, spent.at_ns, side="right") - 1, 0)
    early = start_ns[last] + (spent.epoch - epoch[last]) * length_ns[last] - spent.at_ns
    late = -early - length_ns[last]
    return max(0, int(early.max())) + max(0, int(late.max()))


def _chunks(sums: Sums, quota: bytes, spent: Answers) -> int:
    """The largest chunk of each edge: what one answer of the region gave to those that waited, and lent ahead."""
    edges = {
        incarnation: edge for edge, incarnation in (sums.processes[at] for at in np.unique(spent.process).tolist())
    }
    crossed = spent.where(~spent.at_edge)
    largest: dict[str, int] = defaultdict(int)
    for process, _, units in totals(crossed.cost, crossed.process, crossed.at_ns):
        edge, _ = sums.processes[process]
        largest[edge] = max(largest[edge], units)
    lent: dict[str, int] = defaultdict(int)
    for (incarnation, of), units in sums.largest_loans.items():
        if of == quota and incarnation in edges:
            edge = edges[incarnation]
            lent[edge] = max(lent[edge], units)
    return sum(largest.values()) + sum(lent.values())


def _depths(sums: Sums, quota: bytes, limit: RateLimit, largest: int, share: int = 0, sharing: int = 0) -> int:
    """Sum of the depths of all buckets of a label, the pool's too, above the burst; the worst of all labels. Each
    reaches the `largest` cost that was asked, if its part does.
    """
    slices: dict[int, list[int]] = defaultdict(list)
    for (_, of, epoch), units in sums.slices.items():
        if of == quota:
            slices[epoch].append(max(units, share))
    worst = sharing * _depth(share, limit, limit.units, largest)
    for epoch, parts in slices.items():
        whole = limit.units_in_epoch(epoch)
        pool = max(0, whole - sum(parts))
        parts = [*parts, pool, *([share] * max(0, sharing - len(parts)))]
        worst = max(worst, sum(_depth(part, limit, whole, largest) for part in parts))
    return max(0, worst - limit.burst)


def _depth(part: int, limit: RateLimit, whole: int, largest: int) -> int:
    return min(part, max(part * limit.burst // max(whole, 1), DEPTH_MIN, largest))


def _edges_in_two_labels(spent: Answers) -> int:
    """The most processes that spent of two labels in a row: a second can have both."""
    found: dict[int, set[int]] = defaultdict(set)
    for epoch, process, _ in totals(spent.cost, spent.epoch, spent.process):
        found[epoch].add(process)
    pairs = [len(found[epoch] | found.get(epoch + 1, set())) for epoch in list(found)]
    return max(pairs, default=0)


def _degraded(sums: Sums, quota: bytes) -> int:
    """The most degraded units of two labels in a row: they are not smoothed, and a second can have both."""
    found: Counter[int] = Counter()
    for (_, of, epoch), units in sums.degraded.items():
        if of == quota:
            found[epoch] += units
    labels = sorted(found)
    return max([*found.values(), *(found[one] + found[two] for one, two in pairwise(labels) if two == one + 1)] or [0])
