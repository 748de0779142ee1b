"""The event log of a run: columns of numbers for what every request makes, rows for all else. Nothing is judged here.

Names (a process, what is asked of a rule, a kind of answer) are written once and go by number. A request takes some 80
bytes, and is read with numpy. Checkers and measures read only this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from apportion.core.decision import Reason
from apportion.simulations.rows import Answered, Offered, Rare, Row, Waited

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Process = tuple[str, int]
"""An edge and its incarnation."""

Ask = tuple[str, str, tuple[str, ...], int]
"""What a request asks of a rule: domain, rule, key, cost."""

QuotaName = tuple[str, str, tuple[str, ...]]
"""Domain, rule, key."""

NO_EPOCH = -1
"""In a column, of an answer that charged nothing under any label."""

COST_MAX = 2**62
"""In a column: a larger cost is told as this; nobody can be admitted with either."""

REASONS = (None, *(reason.value for reason in Reason))
"""In a column a reason is its place here."""

Name = TypeVar("Name", bound=Hashable)


class Names(dict[Name, int]):
    """Numbers of names, from 0 in the order in which they are first asked for."""

    def __missing__(self, name: Name) -> int:
        number = self[name] = len(self)
        return number


class Table:
    """Lines of so many whole numbers each. `add` takes a line; 8 bytes a number once they are packed."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._recent: list[int] = []
        self._packed: list[Numbers] = []
        self.add = self._recent.extend

    def __len__(self) -> int:
        return sum(len(packed) for packed in self._packed) + len(self._recent) // self.width

    def pack(self) -> None:
        """Take less room for what was added."""
        if self._recent:
            self._packed.append(np.array(self._recent, np.int64).reshape(-1, self.width))
            self._recent.clear()

    def extend(self, *columns: Numbers) -> None:
        """Add lines by their columns."""
        self.pack()
        self._packed.append(np.stack(columns, axis=1))

    def columns(self) -> Numbers:
        """All lines, of shape (width, lines)."""
        self.pack()
        return np.concatenate([np.empty((0, self.width), np.int64), *self._packed]).T.copy()


class Offers(NamedTuple):
    """Columns of `Offered`. `process` and `quota` are numbers of the log's names."""

    at_ns: Numbers
    process: Numbers
    quota: Numbers
    cost: Numbers
    peek: Flags
    first: Flags
    alone: Flags

    def where(self, which: Flags) -> Offers:
        """Some of them."""
        return Offers._make(column[which] for column in self)


class Answers(NamedTuple):
    """Columns of `Answered`; `epoch` may be NO_EPOCH, `reason` is the place in REASONS."""

    at_ns: Numbers
    process: Numbers
    quota: Numbers
    cost: Numbers
    epoch: Numbers
    decided: Flags
    allowed: Flags
    charged: Flags
    at_edge: Flags
    degraded: Flags
    shadow: Flags
    alone: Flags
    reason: Numbers

    def where(self, which: Flags | Numbers) -> Answers:
        """Some of them, by a flag for each or by their places."""
        return Answers._make(column[which] for column in self)

    def by(self, key: Numbers) -> Iterator[tuple[int, Answers]]:
        """Those of each value of `key`, in the order of values."""
        order = np.argsort(key, kind="stable")
        values, starts = np.unique(key[order], return_index=True)
        ordered, ends = self.where(order), pairwise([*starts.tolist(), len(key)])
        for value, (start, end) in zip(values.tolist(), ends, strict=True):
            yield value, Answers._make(column[start:end] for column in ordered)


class Log:
    """What has happened so far, in the order of virtual time.

    Lines of `offered` are (at_ns, process, ask, kind), of `answered` (at_ns, process, ask, epoch, kind), of `waited`
    (at_ns, came_ns, deadline_ns). Kinds are what many lines have in common: (peek, first, alone) of those that came,
    the flags of `Answers` and the reason's text of answers. `places`: how many answers came before each of the rows.
    """

    def __init__(self) -> None:
        self.processes: Names[Process] = Names()
        self.asks: Names[Ask] = Names()
        self.kinds_offered: Names[tuple[bool, bool, bool]] = Names()
        self.kinds_answered: Names[tuple[bool, bool, bool, bool, bool, bool, bool, str | None]] = Names()
        self.offered, self.answered, self.waited = Table(4), Table(5), Table(3)
        self.rows: list[Rare] = []
        self.places: list[int] = []

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Log:
        """The log of rows that were written by hand."""
        log = cls()
        for row in rows:
            log.add(row)
        return log

    def add(self, row: Row) -> None:
        """What happened next."""
        match row:
            case Offered():
                kind = self.kinds_offered[row.peek, row.first, row.alone]
                self.offered.add((row.at_ns, *self._numbers(row), kind))
            case Answered():
                epoch = NO_EPOCH if row.epoch is None else row.epoch
                said = row.decided, row.allowed, row.charged, row.at_edge, row.degraded, row.shadow, row.alone
                self.answered.add((row.at_ns, *self._numbers(row), epoch, self.kinds_answered[*said, row.reason]))
            case Waited():
                self.waited.add(row)
            case _:
                self.rows.append(row)
                self.places.append(len(self.answered))

    def _numbers(self, row: Offered | Answered) -> tuple[int, int]:
        """Of the process, and of what was asked."""
        process = self.processes[row.edge, row.incarnation]
        return process, self.asks[row.domain, row.rule, row.key, row.cost]

    def extend(self, other: Log, since: int) -> None:
        """Add what happened next, without what is of epochs before `since`."""
        processes, asks = _renumbered(self.processes, other.processes), _renumbered(self.asks, other.asks)
        at_ns, process, ask, kind = other.offered.columns()
        kinds = _renumbered(self.kinds_offered, other.kinds_offered)
        self.offered.extend(at_ns, processes[process], asks[ask], kinds[kind])
        at_ns, process, ask, epoch, kind = other.answered.columns()
        kinds, kept = _renumbered(self.kinds_answered, other.kinds_answered), (epoch >= since) | (epoch == NO_EPOCH)
        before = len(self.answered) + np.concatenate([[0], np.cumsum(kept)])
        columns = at_ns, processes[process], asks[ask], epoch, kinds[kind]
        self.answered.extend(*(column[kept] for column in columns))
        self.waited.extend(*other.waited.columns())
        for place, row in zip(other.places, other.rows, strict=True):
            if getattr(row, "epoch", since) >= since:
                self.rows.append(row)
                self.places.append(int(before[place]))

    def pack(self) -> None:
        """Take less room from now on: done once a second of a run."""
        for table in (self.offered, self.answered, self.waited):
            table.pack()

    def __len__(self) -> int:
        """How much has happened."""
        return len(self.offered) + len(self.answered) + len(self.waited) + len(self.rows)

    # --- read

    @property
    def quotas(self) -> list[QuotaName]:
        """The quotas that requests were of; columns have their numbers."""
        return list(dict.fromkeys(ask[:3] for ask in self.asks))

    def offers(self) -> Offers:
        """What came."""
        at_ns, process, ask, kind = self.offered.columns()
        return Offers(at_ns, process, *self._asked(ask), *_flags(list(self.kinds_offered), 3, kind))

    def answers(self) -> Answers:
        """What was answered."""
        at_ns, process, ask, epoch, kind = self.answered.columns()
        kinds = list(self.kinds_answered)
        reason = np.array([REASONS.index(each[-1]) for each in kinds], np.int64)[kind]
        flags = _flags([each[:-1] for each in kinds], 7, kind)
        quota, cost = self._asked(ask)
        return Answers._make((at_ns, process, quota, cost, epoch, *flags, reason))

    def _asked(self, ask: Numbers) -> tuple[Numbers, Numbers]:
        """Quota and cost."""
        quotas = Names[QuotaName]()
        quota = np.array([quotas[each[:3]] for each in self.asks], np.int64)
        cost = np.array([min(each[3], COST_MAX) for each in self.asks], np.int64)
        return quota[ask], cost[ask]

    def __iter__(self) -> Iterator[Row]:
        """All of it as rows; between two answers first rare rows, then what came and what had waited."""
        answered = list(self._answered_rows())
        times = [row.at_ns for row in answered]
        found: list[tuple[float, Row]] = list(zip(self.places, self.rows, strict=True))
        found += [(bisect_left(times, row.at_ns), row) for row in self._other_rows()]
        found += [(at + 0.5, row) for at, row in enumerate(answered)]
        found.sort(key=itemgetter(0))
        return iter([row for _, row in found])

    def _answered_rows(self) -> Iterator[Answered]:
        processes, asks, kinds = list(self.processes), list(self.asks), list(self.kinds_answered)
        for at_ns, process, ask, epoch, kind in self.answered.columns().T.tolist():
            decided, allowed, charged, *flags, alone, reason = kinds[kind]
            label = None if epoch == NO_EPOCH else epoch
            yield Answered._make(
                (at_ns, *processes[process], *asks[ask], decided, allowed, charged, label, *flags, reason, alone)
            )

    def _other_rows(self) -> Iterator[Offered | Waited]:
        processes, asks, kinds = list(self.processes), list(self.asks), list(self.kinds_offered)
        for at_ns, process, ask, kind in self.offered.columns().T.tolist():
            yield Offered(at_ns, *processes[process], *asks[ask], *kinds[kind])
        for line in self.waited.columns().T.tolist():
            yield Waited(*line)

    def digest(self) -> str:
        """BLAKE2b-256 of the whole log."""
        digest = blake2b(digest_size=32)
        for table in (self.offered, self.answered, self.waited):
            digest.update(table.columns().tobytes())
        for part in (self.processes, self.asks, self.kinds_offered, self.kinds_answered, self.rows, self.places):
            digest.update(repr(part).encode())
        return digest.hexdigest()


def _flags(kinds: Sequence[tuple[bool, ...]], width: int, kind: Numbers) -> list[Flags]:
    """A column for each flag of the kinds."""
    return [column[kind] for column in np.array(kinds, np.bool_).reshape(-1, width).T]


def _renumbered(ours: Names[Name], theirs: Names[Name]) -> Numbers:
    """Our number of each of their names."""
    return np.array([ours[name] for name in theirs], np.int64)
