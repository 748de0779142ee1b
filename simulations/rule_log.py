"""What an event log says of each rule, by second, edge and label: what figures and pictures are made from."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from apportion.core.limit import EPOCH_NS
from apportion.core.rule import Rule, RuleSet
from apportion.simulations.in_force import InForce, per_second
from apportion.simulations.log import REASONS, Answers, Log, Names, Numbers, Offers
from apportion.simulations.rows import Crossed, Issued, Returned
from apportion.simulations.sums import totals

Series = npt.NDArray[np.float64]

OVER_LIMIT = REASONS.index("over_limit")


@dataclass(slots=True)
class RuleLog:
    """What the log says of one rule, by second of virtual time (`seconds` of them, from `begun_ns`), edge and label.

    `limits`: the limit of a key that has none of its own; `may`: the sum of min(asked, limit) over keys, each by its
    own, of what has been settled. `times`, `costs`, `who`: of all that was charged, when, how much and to which of the
    `keys`.
    """

    rule: Rule
    in_force: InForce
    begun_ns: int
    seconds: int
    edges: tuple[str, ...]
    limits: Series
    requests: Series = field(init=False)
    offered: Series = field(init=False)
    admitted: Series = field(init=False)
    refused_at_edge: Series = field(init=False)
    asked: Counter[tuple[int, tuple[str, ...]]] = field(default_factory=Counter)
    may: Series = field(init=False)
    times: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    costs: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    who: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    keys: Names[tuple[str, ...]] = field(default_factory=Names)
    labels: dict[tuple[str, ...], Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    denied: Counter[str] = field(default_factory=Counter)
    degraded: int = 0
    crossings: Series = field(init=False)
    slices: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    given: Counter[int] = field(default_factory=Counter)
    spent_at_edges: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        shape = (self.seconds, len(self.edges))
        self.offered, self.admitted = np.zeros(shape), np.zeros(shape)
        self.refused_at_edge, self.crossings = np.zeros(self.seconds), np.zeros(self.seconds)
        self.may, self.requests = np.zeros(self.seconds), np.zeros(self.seconds)

    @property
    def limit(self) -> float:
        """Units a second of one key, the largest that one has."""
        return max(map(per_second, self.rule.on_plans))

    def settle(self) -> None:
        """What was asked of each key in each second becomes what may be admitted: the sum of min(asked, limit)."""
        for (at, key), cost in self.asked.items():
            at_ns = self.begun_ns + at * EPOCH_NS
            self.may[at] += min(cost, self.in_force.per_second(self.rule.name, at_ns, key))
        self.asked.clear()

    def forget_charges(self, first: int) -> None:
        """Forget so many that were charged first, and the keys of which none is left."""
        self.times, self.costs = self.times[first:], self.costs[first:]
        keys = list(self.keys)
        left, self.who = np.unique(self.who[first:], return_inverse=True)
        self.keys = Names((keys[number], at) for at, number in enumerate(left.tolist()))


def logs_of(
    log: Log, rules: RuleSet, limits: InForce, edges: Sequence[str], seconds: int, begun_ns: int
) -> dict[str, RuleLog]:
    """Sort the log by rule. What came or was answered after the last second is left out of series, not of labels."""
    instants = [begun_ns + at * EPOCH_NS for at in range(seconds)]
    logs = {}
    for rule in rules.rules:
        general = np.array([limits.per_second(rule.name, at) for at in instants])
        logs[rule.name] = RuleLog(rule, limits, begun_ns, seconds, tuple(edges), general)
    sort_log(logs, log)
    return logs


def sort_log(logs: Mapping[str, RuleLog], log: Log) -> None:
    """Add what a log says to the logs of its rules."""
    some = next(iter(logs.values()))
    edges, begun_ns = {name: at for at, name in enumerate(some.edges)}, some.begun_ns
    places = np.array([edges.get(edge, -1) for edge, _ in log.processes], np.int64)
    offers, answers, quotas = log.offers(), log.answers(), log.quotas
    keys = [key for _, _, key in quotas]
    for name, rule_log in logs.items():
        numbers = [number for number, (_, rule, _) in enumerate(quotas) if rule == name]
        _offered(rule_log, offers.where(np.isin(offers.quota, numbers) & ~offers.peek), keys, places)
        _answered(rule_log, answers.where(np.isin(answers.quota, numbers)), keys, places)
    for row in log.rows:
        if isinstance(row, Crossed):
            if (row.at_ns - begun_ns) // EPOCH_NS < some.seconds:
                for name in row.rules:
                    logs[name].crossings[(row.at_ns - begun_ns) // EPOCH_NS] += 1
        elif isinstance(row, Issued):
            logs[row.rule].given[row.epoch] += row.units
            if not row.lent:
                logs[row.rule].slices[row.epoch][row.incarnation] += row.units
        elif isinstance(row, Returned):
            logs[row.rule].given[row.epoch] -= row.units


def _offered(log: RuleLog, offers: Offers, keys: Sequence[tuple[str, ...]], places: Numbers) -> None:
    offers = offers.where(offers.at_ns < log.begun_ns + log.seconds * EPOCH_NS)
    at = (offers.at_ns - log.begun_ns) // EPOCH_NS
    np.add.at(log.requests, at, 1)
    for second, process, quota, cost in totals(offers.cost, at, offers.process, offers.quota):
        log.offered[second, places[process]] += cost
        log.asked[second, keys[quota]] += cost


def _answered(log: RuleLog, answers: Answers, keys: Sequence[tuple[str, ...]], places: Numbers) -> None:
    spent, refused = answers.where(answers.charged), answers.where(~answers.charged & (answers.reason > 0))
    for quota, epoch, at_edge, degraded, cost in totals(
        spent.cost, spent.quota, spent.epoch, spent.at_edge, spent.degraded
    ):
        log.labels[keys[quota]][epoch] += cost
        log.degraded += cost if degraded else 0
        log.spent_at_edges[epoch] += cost if at_edge and not degraded else 0
    quotas, number = np.unique(spent.quota, return_inverse=True)
    who = np.array([log.keys[keys[quota]] for quota in quotas.tolist()], np.int64)
    log.times, log.costs = np.append(log.times, spent.at_ns), np.append(log.costs, spent.cost)
    log.who = np.append(log.who, who[number])
    for reason, cost in totals(refused.cost, refused.reason):
        log.denied[REASONS[reason] or ""] += cost
    end_ns = log.begun_ns + log.seconds * EPOCH_NS
    spent = spent.where(spent.at_ns < end_ns)
    for at, process, cost in totals(spent.cost, (spent.at_ns - log.begun_ns) // EPOCH_NS, spent.process):
        log.admitted[at, places[process]] += cost
    refused = refused.where(refused.at_edge & (refused.reason == OVER_LIMIT) & (refused.at_ns < end_ns))
    for at, cost in totals(refused.cost, (refused.at_ns - log.begun_ns) // EPOCH_NS):
        log.refused_at_edge[at] += cost
