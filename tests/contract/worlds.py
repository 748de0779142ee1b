"""A store with clocks that a test turns by hand, and short ways to write what is asked of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from apportion.core.limit import EPOCH_NS, Finite, PeriodAnchor, PeriodLimit, RateLimit
from apportion.core.periods import Unit
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor, Charge, Charged, ChargedPeriod, Charges, ChargesAnswer

SECOND = EPOCH_NS
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

WALL = 1_800_000_000 * SECOND
"""The wall clock of every test at its start."""

ANCHOR = Anchor(epoch=100, at_ns=WALL)
"""Epoch 100 starts when the test does."""

FAST = RateLimit(10, SECOND, 10)
"""Drains in a second: `sqlite:` keeps its buckets in memory."""

SLOW = RateLimit(10, MINUTE, 10)
"""Drains in a minute, 6 s a unit: `sqlite:` keeps its buckets on disk."""


class ManualClock:
    """A monotonic and a wall clock that only a test moves."""

    def __init__(self) -> None:
        self.monotonic = 7 * SECOND
        self.wall = WALL

    def monotonic_ns(self) -> int:
        return self.monotonic

    def wall_ns(self) -> int:
        return self.wall

    def advance(self, duration_ns: int) -> None:
        """Let time pass, on both clocks."""
        self.monotonic += duration_ns
        self.wall += duration_ns


class World:
    """Makes stores of one kind: "memory" or "sqlite", the latter always on the same file."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.path = directory / "region.db"
        self.clock = ManualClock()

    def make(self, buckets_max: int = 1000) -> MemoryStore | SqliteStore:
        """A store that is still to be opened."""
        clocks = (self.clock.monotonic_ns, self.clock.wall_ns)
        if self.kind == "memory":
            return MemoryStore(*clocks, buckets_max=buckets_max)
        return SqliteStore(self.path, *clocks, buckets_max=buckets_max)

    @asynccontextmanager
    async def store(self, buckets_max: int = 1000) -> AsyncIterator[MemoryStore | SqliteStore]:
        """An open store, closed in the end."""
        store = self.make(buckets_max)
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def group(*members: Charge, count: int = 1, peek: bool = False) -> Charges:
    """Alike requests for these members."""
    return Charges(count, members, peek)


def one(key: bytes, limit: Finite, cost: int = 1, count: int = 1, peek: bool = False) -> Charges:
    """Alike requests for one member."""
    return Charges(count, (Charge(key, limit, cost),), peek)


def direct(key: bytes, limit: RateLimit, epoch: int, cost: int = 1, count: int = 1) -> Charges:
    """Alike requests for one divided quota that is lent directly in `epoch`."""
    return Charges(count, (Charge(key, limit, cost, epoch),))


async def ask(store: MemoryStore | SqliteStore, *groups: Charges) -> ChargesAnswer:
    """Consume groups by the test's anchor; the answer of the last one."""
    return (await store.consume(groups, ANCHOR))[-1]


def bucket(answer: ChargesAnswer, at: int = 0) -> Charged:
    """The state of a member that has a rate."""
    state = answer.members[at]
    assert isinstance(state, Charged)
    return state


async def admitted(store: MemoryStore | SqliteStore, *groups: Charges) -> list[int]:
    """Consume groups by the test's anchor; how many requests of each were admitted."""
    return [answer.admitted for answer in await store.consume(groups, ANCHOR)]


def quota(units: int, anchor: PeriodAnchor, unit: Unit = Unit.MINUTE, multiple: int = 1, **more: Any) -> PeriodLimit:
    """So many units a minute, unless another period is given."""
    return PeriodLimit(units, multiple, unit, anchor, **more)


def period(answer: ChargesAnswer, at: int = 0) -> ChargedPeriod:
    """The state of a member that has a quota of a period."""
    state = answer.members[at]
    assert isinstance(state, ChargedPeriod)
    return state
