"""The event log of a run: columns of numbers for what every request makes, rows for all else. Nothing is judged here.

What many requests have in common is written once and goes by number, so a request takes 40 bytes, 64 where it waited.
Checkers and measures read only this, a column at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from apportion.core.decision import Reason
from apportion.simulations.rows import Answered, Offered, Rare, Row, Waited

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Process = tuple[str, int]
"""An edge and its incarnation."""

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
        self._before = 0
        self._recent: list[int] = []
        self._packed: list[Numbers] = []
        self.add = self._recent.extend

    def __len__(self) -> int:
        return self._before + len(self._recent) // self.width

    def pack(self) -> None:
        """Take less room for what was added."""
        if self._recent:
            self._before = len(self)
            self._packed.append(np.array(self._recent, np.int64).reshape(-1, self.width))
            self._recent.clear()

    def columns(self) -> Numbers:
        """All lines, of shape (width, lines)."""
        self.pack()
        return np.concatenate([np.empty((0, self.width), np.int64), *self._packed]).T.copy()

    def extend(self, *columns: Numbers) -> None:
        """Add lines by their columns."""
        self.pack()
        self._packed.append(np.stack(columns, axis=1))
        self._before += len(columns[0])


class Came(NamedTuple):
    """What many requests have in common: `Offered` but for the time, the process by its number."""

    process: int
    domain: str
    rule: str
    key: tuple[str, ...]
    cost: int
    peek: bool
    first: bool
    alone: bool


class Said(NamedTuple):
    """What many answers have in common: `Answered` but for time and epoch, the process by its number."""

    process: int
    domain: str
    rule: str
    key: tuple[str, ...]
    cost: int
    decided: bool
    allowed: bool
    charged: bool
    at_edge: bool
    degraded: bool
    shadow: bool
    reason: str | None
    alone: bool


class Offers(NamedTuple):
    """Columns of `Offered`. `process` and `quota` are places in the log's lists of them."""

    at_ns: Numbers
    process: Numbers
    quota: Numbers
    cost: Numbers
    peek: Flags
    first: Flags
    alone: Flags

    def where(self, which: Flags | Numbers) -> Offers:
        """Some of them, by a flag for each or by their places."""
        return Offers._make(column[which] for column in self)

    def by(self, key: Numbers) -> Iterator[tuple[int, Offers]]:
        """Those of each value of `key`, in the order of values."""
        order, parts = _parted(key)
        ordered = self.where(order)
        for value, part in parts:
            yield value, Offers._make(column[part] for column in ordered)


class Answers(NamedTuple):
    """Columns of `Answered`; `epoch` may be NO_EPOCH, `reason` is the place in REASONS."""

    at_ns: Numbers
    epoch: Numbers
    process: Numbers
    quota: Numbers
    cost: Numbers
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
        order, parts = _parted(key)
        ordered = self.where(order)
        for value, part in parts:
            yield value, Answers._make(column[part] for column in ordered)


def _parted(key: Numbers) -> tuple[Numbers, list[tuple[int, slice]]]:
    """The order that puts equal values together, in the order of values, and where each of them is then."""
    order = np.argsort(key, kind="stable")
    values, starts = np.unique(key[order], return_index=True)
    ends = pairwise([*starts.tolist(), len(key)])
    return order, [(value, slice(*part)) for value, part in zip(values.tolist(), ends, strict=True)]


class Log:
    """What has happened so far, in the order of virtual time.

    Lines of `offered` are (at_ns, number in `came`), of `answered` (at_ns, epoch, number in `said`), of `waited`
    (at_ns, came_ns, deadline_ns). `places`: how many answers came before each of the rows.
    """

    def __init__(self) -> None:
        self.processes: Names[Process] = Names()
        self.came: Names[tuple[Any, ...]] = Names()
        self.said: Names[tuple[Any, ...]] = Names()
        self.offered, self.answered, self.waited = Table(2), Table(3), Table(3)
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
            case Offered(at_ns, edge, incarnation):
                self.offered.add((at_ns, self.came[self.processes[edge, incarnation], *row[3:]]))
            case Answered(at_ns, edge, incarnation):
                epoch = NO_EPOCH if row.epoch is None else row.epoch
                said = row[3:10] + row[11:]
                self.answered.add((at_ns, epoch, self.said[self.processes[edge, incarnation], *said]))
            case Waited():
                self.waited.add(row)
            case _:
                self.rows.append(row)
                self.places.append(len(self.answered))

    def extend(self, other: Log, since: int) -> None:
        """Add what happened next, without what is of epochs before `since`."""
        processes = list(other.processes)
        at_ns, came = other.offered.columns()
        self.offered.extend(at_ns, self._numbers(self.came, other.came, processes)[came])
        at_ns, epoch, said = other.answered.columns()
        said, kept = self._numbers(self.said, other.said, processes)[said], (epoch >= since) | (epoch == NO_EPOCH)
        before = len(self.answered) + np.concatenate([[0], np.cumsum(kept)])
        self.answered.extend(at_ns[kept], epoch[kept], said[kept])
        self.waited.extend(*other.waited.columns())
        for place, row in zip(other.places, other.rows, strict=True):
            if getattr(row, "epoch", since) >= since:
                self.rows.append(row)
                self.places.append(int(before[place]))

    def _numbers(
        self, ours: Names[tuple[Any, ...]], theirs: Names[tuple[Any, ...]], processes: Sequence[Process]
    ) -> Numbers:
        """Our number of each of their names, which begin with a number of `processes`."""
        return np.array([ours[self.processes[processes[name[0]]], *name[1:]] for name in theirs], np.int64)

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
        """The quotas that requests were of; columns have their places here."""
        return list(dict.fromkeys(name[1:4] for names in (self.came, self.said) for name in names))

    def offers(self) -> Offers:
        """What came."""
        at_ns, number = self.offered.columns()
        names = [Came(*name) for name in self.came]
        flags = np.array([name[5:] for name in names], np.bool_).reshape(-1, 3).T[:, number]
        return Offers._make((at_ns, *self._asked(names, number), *flags))

    def answers(self) -> Answers:
        """What was answered."""
        at_ns, epoch, number = self.answered.columns()
        names = [Said(*name) for name in self.said]
        flags = np.array([(*name[5:11], name.alone) for name in names], np.bool_).reshape(-1, 7).T[:, number]
        reason = np.array([REASONS.index(name.reason) for name in names], np.int64)[number]
        return Answers._make((at_ns, epoch, *self._asked(names, number), *flags, reason))

    def _asked(self, names: Sequence[Came | Said], number: Numbers) -> Numbers:
        """Columns of process, quota and cost."""
        quotas = {quota: at for at, quota in enumerate(self.quotas)}
        asked = [(name.process, quotas[name[1:4]], min(name.cost, COST_MAX)) for name in names]
        return np.array(asked, np.int64).reshape(-1, 3).T[:, number]

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
        processes, names = list(self.processes), list(self.said)
        for at_ns, epoch, number in self.answered.columns().T.tolist():
            process, *said = names[number]
            label = None if epoch == NO_EPOCH else epoch
            yield Answered._make((at_ns, *processes[process], *said[:7], label, *said[7:]))

    def _other_rows(self) -> Iterator[Offered | Waited]:
        processes, names = list(self.processes), list(self.came)
        for at_ns, number in self.offered.columns().T.tolist():
            process, *came = names[number]
            yield Offered._make((at_ns, *processes[process], *came))
        for line in self.waited.columns().T.tolist():
            yield Waited._make(line)

    def digest(self) -> str:
        """BLAKE2b-256 of the whole log."""
        digest = blake2b(digest_size=32)
        for table in (self.offered, self.answered, self.waited):
            digest.update(table.columns().tobytes())
        for part in (self.processes, self.came, self.said, self.rows, self.places):
            digest.update(repr(part).encode())
        return digest.hexdigest()
