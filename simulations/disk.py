"""A region's store as on SQLite, without asyncio or a file: what a disk keeps outlives a region, the rest does not.

Decides with the product's own `Buckets`; nothing here decides anything itself.
"""

from __future__ import annotations

from copy import copy

from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Register
from apportion.region.buckets import Buckets, StoredBucket
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
        """Add a report's rows once."""
        if not self.disk.reports.add(command.source, command.number, now_ns):
            return False
        self.disk.rollup.add(command.rows)
        return True
