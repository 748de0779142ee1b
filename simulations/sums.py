"""What the rows of an event log add up to, for checkers: by quota, label, incarnation. Nothing is judged here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from apportion.core.key import decode_key, encode_key, encode_quota
from apportion.simulations.recording import (
    Anchored,
    Answered,
    Counted,
    Crossed,
    Failed,
    Issued,
    Offered,
    Open,
    Returned,
    Row,
    Sliced,
    Stored,
    Waited,
)

Name = tuple[str, tuple[str, ...]]
"""A rule and a key's values."""

Label = tuple[bytes, int]
"""A quota, as the store files it, and an epoch."""

Right = tuple[int, bytes, int]
"""An incarnation, a quota as the store files it, and an epoch."""


class Sums:
    """Sums of the rows read so far; units of cost.

    `spent[rule, key][epoch]`: charged by decisions that were given. Of that, by who spent it: `spent_here` from what an
    edge held, `degraded` by a stage. `issued`: what an edge was given, less what it returned (`returned`: of all);
    `slices` what plans gave of it, `largest_loans` the most that was lent ahead at once. `in_store`, `reported`,
    `counted`: what the store decided, was told first, and has counted at the end (None: the run has not ended).
    `crossings` by edge and second. `demand` and `admitted`: (when, rule, cost) of requests for one rule.
    """

    def __init__(self, rows: Iterable[Row] = ()) -> None:
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
        self.demand: list[tuple[int, str, int]] = []
        self.admitted: list[tuple[int, str, int]] = []
        self.answers: list[Answered] = []
        self.stores: list[Stored] = []
        self.waited: list[Waited] = []
        self.open: list[Open] = []
        self.failed: list[Failed] = []
        self.anchored: list[Anchored] = []
        self._keys: dict[tuple[str, str, tuple[str, ...]], bytes] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take the next row."""
        match row:
            case Answered():
                self._answered(row)
            case Offered(at_ns, _, (rule,), _, (cost,), False):
                self.demand.append((at_ns, rule, cost))
            case Waited():
                self.waited.append(row)
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
                self._rarely(row)

    def _rarely(self, row: Row) -> None:
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

    def _answered(self, row: Answered) -> None:
        self.answers.append(row)
        if row.epoch is None:
            return
        self.spent[row.rule, row.key][row.epoch] += row.cost
        quota = self.store_key(row)
        if row.degraded:
            self.degraded[row.incarnation, quota, row.epoch] += row.cost
        elif row.at_edge:
            self.spent_here[row.incarnation, quota, row.epoch] += row.cost
        if row.alone:
            self.admitted.append((row.at_ns, row.rule, row.cost))

    def store_key(self, row: Answered) -> bytes:
        """What a store files the row's quota under."""
        name = row.domain, row.rule, row.key
        found = self._keys.get(name)
        if found is None:
            found = self._keys[name] = encode_quota(row.domain, row.rule, encode_key(row.key))
        return found

    def given(self, incarnation: int) -> int:
        """Units that one process gave to callers."""
        return sum(row.cost for row in self.answers if row.incarnation == incarnation and row.epoch is not None)

    def quotas(self) -> dict[bytes, Name]:
        """The quotas that were asked for, by what a store files them under."""
        return {quota: (rule, key) for (_, rule, key), quota in self._keys.items()}


def named(quota: bytes) -> Name:
    """The rule and key of what a store files a quota under; a value too long for a key is its digest there."""
    values = decode_key(quota)
    assert values is not None
    _, rule, *key = (value or "(digest)" for value in values)
    return rule, tuple(key)
