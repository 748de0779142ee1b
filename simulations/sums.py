"""What an event log adds up to, for checkers: by quota, label, incarnation. Nothing is judged here."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from apportion.core.key import decode_key, encode_key, encode_quota
from apportion.simulations.log import NO_EPOCH, Flags, Log, Numbers
from apportion.simulations.rows import Anchored, Counted, Crossed, Failed, Issued, Open, Rare, Returned, Sliced, Stored

Name = tuple[str, tuple[str, ...]]
"""A rule and a key's values."""

Label = tuple[bytes, int]
"""A quota, as the store files it, and an epoch."""

Right = tuple[int, bytes, int]
"""An incarnation, a quota as the store files it, and an epoch."""


class Sums:
    """Sums of a log; units of cost. Quotas are named as the store files them.

    `spent[rule, key][epoch]`: charged by decisions that were given. Of that, by who spent it: `spent_here` from what an
    edge held, `degraded` by a stage. `issued`: what an edge was given, less what it returned (`returned`: of all);
    `slices` what plans gave of it, `largest_loans` the most that was lent ahead at once. `in_store`, `reported`,
    `counted`: what the store decided, was told first, and has counted at the end (None: the run has not ended).
    `crossings` by edge and second. Columns of the log are `answers`, of them `charged` (units under a label), and
    `waited`; their processes and quotas are places in `processes` and `names`.
    """

    def __init__(self, log: Log) -> None:
        self.spent: dict[Name, Counter[int]] = defaultdict(Counter)
        self.spent_here: Counter[Right] = Counter()
        self.degraded: Counter[Right] = Counter()
        self.issued: Counter[Right] = Counter()
        self.slices: Counter[Right] = Counter()
        self.largest_loans: Counter[tuple[int, bytes]] = Counter()
        self.returned = 0
        self.generations: dict[int, set[int]] = defaultdict(set)
        self.in_store: Counter[Label] = Counter()
        self.reported: Counter[Label] = Counter()
        self.counted: dict[Label, int] | None = None
        self.crossings: Counter[tuple[str, int]] = Counter()
        self.stores: list[Stored] = []
        self.open: list[Open] = []
        self.failed: list[Failed] = []
        self.anchored: list[Anchored] = []
        self.answers, self.waited = log.answers(), log.waited.columns()
        self.charged = self.answers.where(self.answers.epoch != NO_EPOCH)
        self.processes = list(log.processes)
        self.names: list[Name] = [(rule, key) for _, rule, key in log.quotas]
        self.quotas = {encode_quota(of, rule, encode_key(key)): (rule, key) for of, rule, key in log.quotas}
        self._add_spent()
        for row in log.rows:
            self._add(row)

    def _add_spent(self) -> None:
        spent, quotas = self.charged, list(self.quotas)
        for process, number, epoch, at_edge, degraded, units in totals(
            spent.cost, spent.process, spent.quota, spent.epoch, spent.at_edge, spent.degraded
        ):
            quota, (_, incarnation) = quotas[number], self.processes[process]
            self.spent[self.quotas[quota]][epoch] += units
            if degraded:
                self.degraded[incarnation, quota, epoch] += units
            elif at_edge:
                self.spent_here[incarnation, quota, epoch] += units

    def _add(self, row: Rare) -> None:
        match row:
            case Crossed(at_ns, edge):
                self.crossings[edge, at_ns // 1_000_000_000] += 1
            case Issued(incarnation, _, quota, epoch, units, lent):
                self.issued[incarnation, quota, epoch] += units
                if not lent:
                    self.slices[incarnation, quota, epoch] += units
                else:
                    self.largest_loans[incarnation, quota] = max(self.largest_loans[incarnation, quota], units)
            case Returned(incarnation, _, quota, epoch, units):
                self.issued[incarnation, quota, epoch] -= units
                self.returned += units
            case Sliced():
                self.generations[row.epoch].add(row.generation)
            case Stored(_, quota, epoch, units, reported):
                (self.reported if reported else self.in_store)[quota, epoch] += units
                if not reported:
                    self.stores.append(row)
            case _:
                self._add_rare(row)

    def _add_rare(self, row: Rare) -> None:
        match row:
            case Counted(quota, epoch, units):
                self.counted = self.counted or {}
                self.counted[quota, epoch] = units
            case Open():
                self.open.append(row)
            case Failed():
                self.failed.append(row)
            case Anchored():
                self.anchored.append(row)

    def largest_cost(self, name: Name) -> int:
        """The largest cost that was asked of a quota, whether or not it was admitted."""
        quotas = [number for number, each in enumerate(self.names) if each == name]
        return int(self.answers.cost[np.isin(self.answers.quota, quotas)].max(initial=0))

    def given(self, incarnation: int) -> int:
        """Units that one process gave to callers."""
        mine = [number for number, (_, each) in enumerate(self.processes) if each == incarnation]
        return int(self.charged.cost[np.isin(self.charged.process, mine)].sum())


def totals(units: Numbers, *keys: Numbers | Flags) -> list[tuple[int, ...]]:
    """Sums of `units` by the values of `keys`: (value of each key, sum), in the order of values."""
    if not len(units):
        return []
    code, spans = np.zeros(len(units), np.int64), []
    for key in keys:
        low, high = int(key.min()), int(key.max())
        code = code * (high - low + 1) + (key - low)
        spans.append((low, high - low + 1))
    codes, group = np.unique(code, return_inverse=True)
    columns = [np.bincount(group, units).astype(np.int64)]
    for low, span in reversed(spans):
        codes, value = np.divmod(codes, span)
        columns.append(value + low)
    return list(zip(*(column.tolist() for column in reversed(columns)), strict=True))


def named(quota: bytes) -> Name:
    """The rule and key of what a store files a quota under; a value too long for a key is its digest there."""
    values = decode_key(quota)
    assert values is not None
    _, rule, *key = (value or "(digest)" for value in values)
    return rule, tuple(key)
