"""The store that keeps nothing: everything in this process, for tests, the simulator and trials. Never blocks."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from apportion.core.errors import StoreError
from apportion.core.messages import Register
from apportion.region.buckets import BUCKETS_MAX, Buckets
from apportion.region.reports import Reports
from apportion.region.store import Anchor, Charges, ChargesAnswer, ClosedPeriod, Counters, GivenBack, RollupRow


class MemoryStore:
    """A `Store` without a file. Its bound adds one burst of each bucket per restart, since it starts full.

    `wall_ns` is read at `open`; from there time is `monotonic_ns`, but for calendar periods. `run_id` is random unless
    given: another life of a store that keeps nothing is another store.
    """

    def __init__(
        self,
        monotonic_ns: Callable[[], int],
        wall_ns: Callable[[], int],
        *,
        run_id: str | None = None,
        buckets_max: int = BUCKETS_MAX,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self._run_id = run_id if run_id is not None else uuid4().hex
        self._buckets = Buckets(buckets_max=buckets_max)
        self._reports = Reports()
        self._register = Register(run_id=self._run_id)
        self._rules_digest: str | None = None
        self._rules_version = 0
        self._overrides = ""
        self._offset_ns = 0
        self._open = False

    async def open(self) -> None:
        """Start the store's clock at the wall clock."""
        assert not self._open, "a store is opened once"
        self._offset_ns = self._wall_ns() - self._monotonic_ns()
        self._open = True

    async def close(self) -> None:
        """Nothing is kept, so nothing is flushed."""
        self._open = False

    def now_ns(self) -> int:
        """Wall clock at `open` plus monotonic time since."""
        return self._monotonic_ns() + self._offset_ns

    def counters(self) -> Counters:
        return self._buckets.counters()

    async def consume(self, groups: tuple[Charges, ...], anchor: Anchor) -> tuple[ChargesAnswer, ...]:
        """Decide at once; nothing here waits, so no other call can come between."""
        self._check_open()
        return self._buckets.decide(groups, anchor, self.now_ns(), self._wall_ns())

    def tidy(self) -> None:
        self._buckets.tidy(self.now_ns(), self._wall_ns())

    async def register(self) -> Register:
        self._check_open()
        return self._register

    async def swap_register(self, old: Register, new: Register) -> bool:
        self._check_open()
        if self._register != old:
            return False
        self._register = new
        return True

    async def roll_up(
        self, source: int, number: int, rows: tuple[RollupRow, ...], given_back: tuple[GivenBack, ...] = ()
    ) -> bool:
        self._check_open()
        if not self._reports.add(source, number, self.now_ns()):
            return False
        self._buckets.decided.add(rows)
        for row in given_back:
            self._buckets.periods.give_back(row)
        return True

    async def rolled_up(self, first_epoch: int) -> tuple[RollupRow, ...]:
        self._check_open()
        return self._buckets.decided.rows(first_epoch)

    def take_closed(self) -> tuple[ClosedPeriod, ...]:
        return self._buckets.periods.take_closed()

    async def rules_version(self, digest: str) -> int:
        self._check_open()
        if digest != self._rules_digest:
            self._rules_digest = digest
            self._rules_version += 1
        return self._rules_version

    async def overrides(self) -> str:
        self._check_open()
        return self._overrides

    async def keep_overrides(self, text: str) -> None:
        self._check_open()
        self._overrides = text

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError("the store is closed: nothing was done")
