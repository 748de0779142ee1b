"""A region's store as on SQLite, without asyncio or a file: what a disk keeps outlives a region, the rest does not.

Decides with the product's own `Buckets`; nothing here decides anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from apportion.core.counter import GRACE_MAX_NS, Ring
from apportion.core.key import encode_period
from apportion.core.limit import EPOCH_NS, PeriodLimit
from apportion.core.messages import Register
from apportion.region.buckets import Buckets, StoredBucket
from apportion.region.counters import PeriodCounters, StoredCounter
from apportion.region.events import Consume, RollUp, SwapRegister
from apportion.region.register import created
from apportion.region.reports import Reports
from apportion.region.rollup import Rollup
from apportion.region.store import ChargesAnswer

MEMORY_DRAIN_NS = 2 * EPOCH_NS


class Disk:
    """What survives a region: the register, the rollup, the numbers of reports, and buckets that drain slowly."""

    def __init__(self) -> None:
        self.register: Register | None = None
        self.rollup = Rollup()
        self.reports = Reports()
        self.buckets: dict[bytes, StoredBucket] = {}
        self.periods: dict[bytes, StoredCounter] = {}
        self.lifetimes_missing = 0


class Lifetimes:
    """What a fault does to the lifetimes of counters that are asked for: before each look at one it takes the lifetime
    away (`stripped` counts that), or at each it makes it longer.
    """

    def __init__(self) -> None:
        self.strips = False
        self.extends = False
        self.stripped = 0

    @property
    def wrong(self) -> bool:
        """Whether anything is wrong with them now."""
        return self.strips or self.extends

    def spoil(self, records: Sequence[StoredCounter]) -> None:
        """Do so to counters of which one is decided now."""
        for record in records:
            if self.strips:
                record.expires_ns = None
                self.stripped += 1
            elif self.extends and record.expires_ns is not None:
                record.expires_ns += record.limit.length_ns


class DiskStore:
    """One life of the store over `disk`: buckets that drain fast and label counters die with it."""

    def __init__(
        self, disk: Disk, now_ns: int, make_periods: Callable[[bool], PeriodCounters] = PeriodCounters
    ) -> None:
        self.disk = disk
        self.made: list[bytes] = []
        self.reclaimed: list[bytes] = []
        self._buckets = Buckets(MEMORY_DRAIN_NS)
        self._buckets.periods = make_periods(True)
        if disk.register is None:
            disk.register = created(now_ns, "disk")
        else:
            self._buckets.empty_since_ns = now_ns
        for key, bucket in disk.buckets.items():
            self._buckets.put(key, copy(bucket))
        for key, record in disk.periods.items():
            self._buckets.periods.put(key, _kept(record))

    @property
    def register(self) -> Register:
        """The register as it is now."""
        assert self.disk.register is not None
        return self.disk.register

    def consume(self, command: Consume, now_ns: int, wall_ns: int | None = None) -> tuple[ChargesAnswer, ...]:
        """Decide, and write what must be on disk before it is answered."""
        answers = self._buckets.decide(command.groups, command.anchor, now_ns, wall_ns)
        for key, bucket in self._buckets.take_changed().items():
            self.disk.buckets[key] = copy(bucket)
        for key, record in self._buckets.periods.take_changed().items():
            if key not in self.disk.periods:
                self.made.append(record.store_key)
            self.disk.periods[key] = _kept(record)
        self._buckets.written()
        self.disk.rollup.add(self._buckets.decided.take())
        self.disk.rollup.add(self._buckets.decided_durable.take())
        return answers

    def asked(self, command: Consume, wall_ns: int) -> list[StoredCounter]:
        """The counters of periods that are there for what is asked."""
        periods, found = self._buckets.periods, {}
        for group in command.groups:
            for member in group.members:
                if isinstance(member.limit, PeriodLimit):
                    key = periods.key(member.store_key, member.limit, wall_ns)
                    found[key] = periods.get(key)
        return [record for record in found.values() if record is not None]

    def tidy(self, now_ns: int, wall_ns: int) -> None:
        """Reclaim counters of periods, in memory and on disk; done each half second."""
        self._buckets.tidy(now_ns, wall_ns)
        periods = self.disk.periods
        for key in [key for key, record in periods.items() if _is_over(record, now_ns, wall_ns)]:
            self.reclaimed.append(periods.pop(key).store_key)
        self.count_missing()

    def count_missing(self) -> None:
        """Add what was found missing since the last time to what the disk remembers of it."""
        periods = self._buckets.periods
        self.disk.lifetimes_missing += periods.lifetimes_missing
        periods.lifetimes_missing = 0

    def swap(self, command: SwapRegister) -> bool:
        """Compare and set the register."""
        if self.register != command.old:
            return False
        self.disk.register = command.new
        return True

    def roll_up(self, command: RollUp, now_ns: int) -> bool:
        """Add a report's rows, and take back what it gives back, once."""
        if not self.disk.reports.add(command.source, command.number, now_ns):
            return False
        self.disk.rollup.add(command.rows)
        for row in command.given_back:
            self._buckets.periods.give_back(row)
            key = encode_period(row.store_key, row.period)
            record = self._buckets.periods.get(key)
            if record is not None:
                self.disk.periods[key] = _kept(record)
        return True


def _is_over(record: StoredCounter, now_ns: int, wall_ns: int) -> bool:
    """Whether both the lifetime and what it was for have passed."""
    over_ns = record.counter.over_ns
    expires_ns = over_ns + GRACE_MAX_NS if record.expires_ns is None else record.expires_ns
    return expires_ns <= now_ns and over_ns <= record.clock_ns(now_ns, wall_ns)


def _kept(record: StoredCounter) -> StoredCounter:
    counter = copy(record.counter)
    if isinstance(counter, Ring):
        counter.parts = counter.parts.copy()
    return StoredCounter(record.store_key, record.limit, counter, record.expires_ns)
