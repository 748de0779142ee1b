"""A region's store as on SQLite, without asyncio or a file: what a disk keeps outlives a region, the rest does not.

Decides with the product's own `Buckets`; nothing here decides anything itself.
"""

from __future__ import annotations

from copy import copy, deepcopy

from apportion.core.key import encode_period
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Register
from apportion.region.buckets import Buckets, StoredBucket
from apportion.region.counters import StoredCounter
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


class DiskStore:
    """One life of the store over `disk`: buckets that drain fast and label counters die with it."""

    def __init__(self, disk: Disk, now_ns: int) -> None:
        self.disk = disk
        self._buckets = Buckets(MEMORY_DRAIN_NS)
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

    def consume(self, command: Consume, now_ns: int) -> tuple[ChargesAnswer, ...]:
        """Decide, and write what must be on disk before it is answered."""
        answers = self._buckets.decide(command.groups, command.anchor, now_ns)
        for key, bucket in self._buckets.take_changed().items():
            self.disk.buckets[key] = copy(bucket)
        for key, record in self._buckets.periods.take_changed().items():
            self.disk.periods[key] = _kept(record)
        self._buckets.written()
        self.disk.rollup.add(self._buckets.decided.take())
        self.disk.rollup.add(self._buckets.decided_durable.take())
        return answers

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


def _kept(record: StoredCounter) -> StoredCounter:
    return StoredCounter(record.store_key, record.limit, deepcopy(record.counter), record.expires_ns)
