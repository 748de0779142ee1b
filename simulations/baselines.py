"""What others do about a global limit, under the same traffic: an even part each, counting locally and reconciling
later, one central bucket. They show what the four modes are worth; they use the bucket of the product and no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum

import numpy as np

from apportion.core.bucket import Bucket
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.simulations.baselines_period import central_rows
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.measures import RuleFigures, figures_of, overshoots
from apportion.simulations.measures_period import with_periods
from apportion.simulations.nodes import parsed
from apportion.simulations.period_log import PeriodLog
from apportion.simulations.rows import Answered, Crossed, Offered, Row
from apportion.simulations.rule_log import logs_of
from apportion.simulations.run import changes_of
from apportion.simulations.scenario import Scenario
from apportion.simulations.series import Over, RunSeries, rule_series
from apportion.simulations.traffic import arrivals, streams_of
from apportion.simulations.world import Arrival

RECONCILED_NS = EPOCH_NS
"""How often edges that count locally learn of each other."""


class Baseline(Enum):
    """By the name that the table shows as `enforce`."""

    EVEN = "Q/N each"
    LATER = "local, reconciled"
    CENTRAL = "central bucket"


CENTRAL_COUNTER = "central counter"
"""The name of the one baseline of a quota of a period."""


def baselines_of(scenario: Scenario) -> tuple[Baseline, ...]:
    """What a scenario is compared with: a quota of a period with one central counter and nothing else."""
    of_period = scenario.one is not None and scenario.one.quota is not None
    return (Baseline.CENTRAL,) if of_period else tuple(Baseline)


FORGOTTEN_EVERY_NS = 10 * EPOCH_NS
"""How often keys are forgotten that nobody has asked for until all of their buckets had drained."""


def baseline_series(scenario: Scenario, seed: int, baseline: Baseline) -> RunSeries:
    """The scenario's one rule under a baseline; faults and the network are left out, which favours it."""
    assert scenario.one is not None
    rules = parsed(scenario.rules)
    traffic = arrivals(streams_of(scenario.flows, rules), scenario.edges, scenario.seconds, seed)
    names = [f"edge-{at}" for at in range(scenario.edges)]
    of_period = scenario.one.quota is not None
    rows = central_rows(traffic, names, scenario.store.begins_ns) if of_period else rows_of(traffic, names, baseline)
    log = Log.of(rows)
    limits = InForce(rules, log.rows)
    (of_rule,) = logs_of(log, rules, limits, names, scenario.seconds, 0).values()
    figures = named(figures_of(of_rule, scenario.warm_up, changes_of(scenario), rules.edges_max), baseline)
    if of_period:
        (figures,) = with_periods((figures,), rules, log, PeriodLog(log, limits))
        figures = replace(figures, enforce=CENTRAL_COUNTER)
    over = [Over(epoch + 0.5, units) for epoch, units in overshoots(of_rule)]
    series = rule_series(figures, of_rule, len(of_rule.labels), np.zeros(of_rule.admitted.shape), over)
    return RunSeries(f"{scenario.name}, seed {seed}", scenario.name, scenario.seconds, (), (series,))


def named(figures: RuleFigures, baseline: Baseline) -> RuleFigures:
    """The figures under the baseline's name, with its bound: who counts locally has none."""
    return replace(figures, enforce=baseline.value, bound=0 if baseline is not Baseline.LATER else None)


def rows_of(traffic: Iterable[Arrival], names: list[str], baseline: Baseline) -> Iterator[Row]:
    """The log of requests for one rule, in the order of time, at edges of these names."""
    deciders: dict[tuple[str, ...], _Decider] = {}
    forgotten_ns = 0
    for at_ns, edge, applications in traffic:
        if at_ns >= forgotten_ns + FORGOTTEN_EVERY_NS:
            deciders = {key: each for key, each in deciders.items() if at_ns < each.used_ns + each.drain_ns}
            forgotten_ns = at_ns
        (asked,) = applications
        limit = asked.rule.limit
        assert isinstance(limit, RateLimit)
        if asked.key not in deciders:
            deciders[asked.key] = _KINDS[baseline](limit, len(names))
        yield Offered(
            at_ns, names[edge], edge, asked.rule.domain, asked.rule.name, asked.key, asked.cost,
            peek=False, first=True, alone=True,
        )  # fmt: skip
        if baseline is Baseline.CENTRAL:
            yield Crossed(at_ns, names[edge], (asked.rule.name,))
        deciders[asked.key].used_ns = at_ns
        allowed = deciders[asked.key].decide(edge, asked.cost, at_ns)
        yield Answered(
            at_ns, names[edge], edge, asked.rule.domain, asked.rule.name, asked.key,
            asked.cost, allowed, allowed, allowed,
            at_ns // EPOCH_NS if allowed else None, baseline is not Baseline.CENTRAL, False, False,
            None if allowed else "over_limit", True,
        )  # fmt: skip


class _Decider(ABC):
    """One key. `drain_ns` after it was used, it is as if it never had been."""

    used_ns: int
    drain_ns: int

    @abstractmethod
    def decide(self, edge: int, cost: int, now_ns: int) -> bool:
        """Whether the request is admitted, and charged."""


class _Even(_Decider):
    """Each edge has a bucket of an even part."""

    def __init__(self, limit: RateLimit, edges: int) -> None:
        part = RateLimit(limit.units, limit.period_ns * edges, max(1, limit.burst // edges))
        self.drain_ns = part.drain_ns
        self._buckets = [Bucket(part, 0) for _ in range(edges)]

    def decide(self, edge: int, cost: int, now_ns: int) -> bool:
        return _charged(self._buckets[edge], cost, now_ns)


class _Later(_Decider):
    """Each edge has a bucket of the whole limit, and once a second all learn what all have charged."""

    def __init__(self, limit: RateLimit, edges: int) -> None:
        self._limit = limit
        self.drain_ns = limit.drain_ns + RECONCILED_NS
        self._buckets = [Bucket(limit, 0) for _ in range(edges)]
        self._all = Bucket(limit, 0)
        self._at_ns = 0

    def decide(self, edge: int, cost: int, now_ns: int) -> bool:
        if now_ns >= self._at_ns + RECONCILED_NS:
            self._reconcile(self._at_ns + RECONCILED_NS)
            self._reconcile(now_ns // RECONCILED_NS * RECONCILED_NS)  # nobody asked between the two
        allowed = _charged(self._buckets[edge], cost, now_ns)
        if allowed:
            self._all.drain(now_ns)
            self._all.charge(cost)
        return allowed

    def _reconcile(self, at_ns: int) -> None:
        self._at_ns = at_ns
        self._all.backlog = min(self._all.drain(self._at_ns), self._all.capacity)
        self._buckets = [Bucket(self._limit, self._at_ns, self._all.backlog) for _ in self._buckets]


class _Central(_Decider):
    """One bucket, asked for every request."""

    def __init__(self, limit: RateLimit, edges: int) -> None:
        self.drain_ns = limit.drain_ns
        self._bucket = Bucket(limit, 0)

    def decide(self, edge: int, cost: int, now_ns: int) -> bool:
        return _charged(self._bucket, cost, now_ns)


_KINDS: dict[Baseline, Callable[[RateLimit, int], _Decider]] = {
    Baseline.EVEN: _Even,
    Baseline.LATER: _Later,
    Baseline.CENTRAL: _Central,
}


def _charged(bucket: Bucket, cost: int, now_ns: int) -> bool:
    if not bucket.admits(cost, now_ns):
        return False
    bucket.charge(cost)
    return True
