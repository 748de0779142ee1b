"""The embedded store: one SQLite file, one owner task that decides, one worker thread that touches the disk.

Buckets in memory are the truth. Calls that meet a durable bucket are gathered by the owner while the disk is busy,
decided together and answered after the one commit that wrote them; calls that meet none are answered at once. A commit
that fails leaves the charge in memory, which is the safe direction, and the next batch writes it again: rows hold
totals, and what is added (the roll-up) is put back first, so nothing is doubled.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from apportion.core.errors import StoreError
from apportion.core.limit import EPOCH_NS, PeriodLimit, RateLimit
from apportion.core.messages import Register
from apportion.region import sqlite_counters, sqlite_rows
from apportion.region.buckets import BUCKETS_MAX, Buckets
from apportion.region.sqlite_counters import CounterRow
from apportion.region.sqlite_file import SqliteFile, Work
from apportion.region.sqlite_rows import INTEGER_MAX, BucketRow
from apportion.region.store import Anchor, Charges, ChargesAnswer, ClosedPeriod, Counters, GivenBack, RollupRow

MEMORY_DRAIN_NS = 2 * EPOCH_NS
"""Buckets that drain within this live in memory only (design 4.2); after a restart they are full again within it."""

FLUSH_SECONDS = 0.5
"""What was decided in memory is rolled up on disk this often: twice in the second that is promised."""

SWEEP_EVERY_NS = EPOCH_NS
"""The file is swept a little this often, with a write."""

BATCH_GROUPS_MAX = 2048
"""Groups decided and committed together; more would hold the event loop longer than an edge's deadline allows."""

CLOSED = "the store is closed: nothing was done"

Result = TypeVar("Result")


@dataclass(slots=True)
class _Call:
    """A call that waits for the owner: groups to decide by `anchor`, or `work` for the transaction.

    `then` is told what `work` returned, once that is on disk. `flush`: the transaction must hold all that was decided.
    """

    result: asyncio.Future[Any]
    groups: tuple[Charges, ...] = ()
    anchor: Anchor | None = None
    work: Work | None = None
    then: Callable[[Any], None] | None = None
    flush: bool = False


class SqliteStore:
    """A `Store` on the file at `path`. `wall_ns` is read at `open`; from there time is `monotonic_ns`, but for calendar
    periods.
    """

    def __init__(
        self,
        path: Path,
        monotonic_ns: Callable[[], int],
        wall_ns: Callable[[], int],
        *,
        flush_seconds: float = FLUSH_SECONDS,
        buckets_max: int = BUCKETS_MAX,
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self._flush_seconds = flush_seconds
        self._file = SqliteFile(path)
        self._buckets = Buckets(MEMORY_DRAIN_NS, buckets_max)
        self._register = Register()
        self._offset_ns = 0
        self._sweep_ns = 0
        self._calls: deque[_Call] = deque()
        self._awake = asyncio.Event()
        self._flush_due = False
        self._flush_timer: asyncio.TimerHandle | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._owner: asyncio.Task[None] | None = None
        self._open = False

    # --- the store's protocol ---------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open or create the file; see `Store.open`."""
        assert self._thread is None, "a store is opened once"
        self._thread = ThreadPoolExecutor(1, "apportion-sqlite")
        try:
            await self._run(partial(self._file.open, self._wall_ns()))
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        self._offset_ns = self._file.last_ns - self._monotonic_ns()
        self._register = self._file.register
        if not self._file.created:
            self._buckets.empty_since_ns = self.now_ns()
        self._open = True
        self._owner = asyncio.create_task(self._own(), name="sqlite store")

    async def close(self) -> None:
        """Write what waits, then let go of the file and its lock, also when the writing failed (StoreError)."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._open = False
        self._flush_due = True
        self._awake.set()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        try:
            await asyncio.wait((owner,))
        finally:
            assert self._thread is not None
            closing = asyncio.get_running_loop().run_in_executor(self._thread, self._file.close)
            self._thread.shutdown(wait=False)
            await asyncio.shield(closing)
        if self._buckets.waiting or self._buckets.decided or self._buckets.decided_durable:
            raise StoreError(f"{self._file.path} was closed, but the last decisions could not be written to it")

    def now_ns(self) -> int:
        """The wall clock at `open`, or the last time the file knew if that was later, plus monotonic time since."""
        return self._monotonic_ns() + self._offset_ns

    def counters(self) -> Counters:
        return self._buckets.counters()

    async def consume(self, groups: tuple[Charges, ...], anchor: Anchor) -> tuple[ChargesAnswer, ...]:
        """Decide; at once where every bucket lives in memory, after a commit where one is durable."""
        self._check_open()
        is_durable = self._buckets.is_durable
        for group in groups:
            for member in group.members:
                if is_durable(member.store_key, member.limit):
                    answered: tuple[ChargesAnswer, ...] = await self._ask(groups=groups, anchor=anchor)
                    return answered
        answers = self._buckets.decide(groups, anchor, self.now_ns(), self._wall_ns())
        if self._flush_timer is None and (self._buckets.decided or self._buckets.waiting):
            self._arm_flush()
        return answers

    def tidy(self) -> None:
        """In memory; rows leave the file with its writes, and with one of its own where a closing is to be told."""
        self._buckets.tidy(self.now_ns(), self._wall_ns())
        if self._open and self._file.audited and self.now_ns() >= self._sweep_ns:
            self._flush()

    async def register(self) -> Register:
        self._check_open()
        return self._register

    async def swap_register(self, old: Register, new: Register) -> bool:
        def then(swapped: bool) -> None:
            if swapped:
                self._register = new

        return bool(await self._ask(work=partial(sqlite_rows.swap_register, old=old, new=new), then=then))

    async def roll_up(
        self, source: int, number: int, rows: tuple[RollupRow, ...], given_back: tuple[GivenBack, ...] = ()
    ) -> bool:
        assert all(0 <= row.epoch <= INTEGER_MAX and row.units >= 0 for row in rows)

        def then(new: bool) -> None:
            for row in given_back if new else ():
                self._buckets.periods.give_back(row)

        report = partial(sqlite_counters.add_report, source=source, number=number, rows=rows, given_back=given_back)
        work = partial(report, now_ns=self.now_ns())
        return bool(await self._ask(work=work, then=then))

    def take_closed(self) -> tuple[ClosedPeriod, ...]:
        return self._buckets.periods.take_closed()

    async def rolled_up(self, first_epoch: int) -> tuple[RollupRow, ...]:
        work = partial(sqlite_rows.rollup_rows, first_epoch=first_epoch)
        rows: list[RollupRow] = await self._ask(work=work, flush=True)
        return tuple(rows)

    async def rules_version(self, digest: str) -> int:
        def then(result: tuple[int, bool]) -> None:
            if result[1] and self._buckets.evicted_live:
                # A key whose slow bucket left memory may have a fast one now, which is not looked up on disk.
                self._buckets.empty_since_ns = self.now_ns()

        version, _ = await self._ask(work=partial(sqlite_rows.rules_version, digest=digest), then=then)
        return int(version)

    async def overrides(self) -> str:
        return str(await self._ask(work=sqlite_rows.overrides))

    async def keep_overrides(self, text: str) -> None:
        await self._ask(work=partial(sqlite_rows.keep_overrides, text=text))

    # --- the owner --------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if not self._open:
            raise StoreError(CLOSED)

    async def _ask(self, **what: Any) -> Any:
        """Hand a `_Call` to the owner. A caller that is cancelled leaves it behind; it is then done for nobody."""
        self._check_open()
        call = _Call(asyncio.get_running_loop().create_future(), **what)
        self._calls.append(call)
        self._awake.set()
        return await call.result

    async def _run(self, function: Callable[[], Result]) -> Result:
        """Run `function` in the worker thread, which does one thing after the other."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def _own(self) -> None:
        """The only task that reads or writes the file."""
        try:
            while self._open or self._calls or self._flush_due:
                if not self._calls and not self._flush_due:
                    self._awake.clear()
                    await self._awake.wait()
                    continue
                await self._serve(self._next_batch())
        finally:
            # Also when a loop that ends cancels its tasks: nobody may wait for an owner that is gone.
            self._open = False
            for call in self._calls:
                _fail(call, StoreError(CLOSED))

    def _next_batch(self) -> list[_Call]:
        batch, groups = [], 0
        while self._calls and groups < BATCH_GROUPS_MAX:
            call = self._calls.popleft()
            groups += max(len(call.groups), 1)
            batch.append(call)
        return batch

    async def _serve(self, batch: list[_Call]) -> None:
        """Load, decide, commit, answer. Whatever fails, every caller hears of it and the owner goes on."""
        try:
            answers = await self._answers(batch)
        except asyncio.CancelledError:
            for call in batch:
                _fail(call, StoreError("the store was stopped in the middle of a batch"))
            raise
        except Exception as error:  # noqa: BLE001  a fault of ours must not leave callers waiting for ever
            for call in batch:
                _fail(call, error)
            return
        for call, answer in zip(batch, answers, strict=True):
            if call.then is not None:
                call.then(answer)
            if not call.result.done():
                call.result.set_result(answer)

    async def _answers(self, batch: list[_Call]) -> list[object]:
        """The answer of each call, once all that they changed is on disk."""
        answers = await self._decide(batch)
        works = [(at, call.work) for at, call in enumerate(batch) if call.work is not None]
        flush = self._flush_due or any(call.flush for call in batch)
        if works or flush or self._buckets.waiting:
            done = await self._commit([work for _, work in works], flush)
            for (at, _), result in zip(works, done, strict=True):
                answers[at] = result
        return answers

    async def _decide(self, batch: list[_Call]) -> list[object]:
        """The decisions of each call, None for one without any."""
        # Read once for the batch: what is decided must be what was loaded.
        buckets, wall_ns = self._buckets, self._wall_ns()
        buckets.asked = {
            buckets.key(each, wall_ns) for call in batch for group in call.groups for each in group.members
        }
        try:
            await self._load(batch, wall_ns)
            decided: list[object] = [
                None if call.anchor is None else buckets.decide(call.groups, call.anchor, self.now_ns(), wall_ns)
                for call in batch
            ]
            return decided
        finally:
            buckets.asked = set()

    async def _load(self, batch: list[_Call], wall_ns: int) -> None:
        """Bring the durable buckets and period counters that the batch asks for into memory."""
        buckets = self._buckets
        rates: dict[bytes, RateLimit] = {}
        periods: dict[bytes, tuple[bytes, PeriodLimit]] = {}
        for call in batch:
            for group in call.groups:
                for member in group.members:
                    limit = member.limit
                    if isinstance(limit, PeriodLimit):
                        key = buckets.periods.key(member.store_key, limit, wall_ns)
                        if buckets.periods.get(key) is None:
                            periods[key] = member.store_key, limit
                    elif buckets.get(member.store_key) is None and buckets.is_durable(member.store_key, limit):
                        rates[member.store_key] = limit
        if not rates and not periods:
            return
        rows, counter_rows = await self._run(partial(self._file.read, partial(_load, rates=rates, periods=periods)))
        now_ns = self.now_ns()
        for row in rows:
            buckets.put(row[0], sqlite_rows.bucket_of(row, rates[row[0]], now_ns))
        for counter_row in counter_rows:
            store_key, limit = periods[counter_row[0]]
            fresh = buckets.periods.fresh(limit, now_ns, wall_ns)
            buckets.periods.put(counter_row[0], sqlite_counters.record_of(counter_row, store_key, limit, fresh))

    async def _commit(self, works: Sequence[Work], flush: bool) -> list[object]:
        """Write what was changed, what was rolled up with it, and the works, in one transaction. What the works return.

        `flush`: also what was rolled up of buckets that live in memory.
        """
        buckets, now_ns = self._buckets, self.now_ns()
        rows = [sqlite_rows.row_of(key, bucket) for key, bucket in buckets.take_changed().items()]
        counters = [sqlite_counters.row_of(*item) for item in buckets.periods.take_changed().items()]
        durable = buckets.decided_durable.take()
        memory: tuple[RollupRow, ...] = ()
        if flush:
            self._disarm_flush()
            memory = buckets.decided.take()
        works = [partial(self._file.put_counters, rows=counters), *works]  # first: some works change them further
        asked = len(works)
        if now_ns >= self._sweep_ns:
            self._sweep_ns = now_ns + SWEEP_EVERY_NS
            works.append(partial(self._file.sweep, now_ns=now_ns, wall_ns=self._wall_ns()))
        try:
            done = await self._run(partial(self._file.commit, now_ns, rows, (*durable, *memory), works))
        except BaseException:
            buckets.not_written()
            buckets.decided_durable.add(durable)
            buckets.decided.add(memory)
            if self._open:
                self._arm_flush()
            raise
        buckets.written()
        if len(done) > asked:
            swept: Any = done.pop()
            for key, closed in swept:
                buckets.periods.reclaimed(key, closed)
        return done[1:]

    def _arm_flush(self) -> None:
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(self._flush_seconds, self._flush)

    def _disarm_flush(self) -> None:
        self._flush_due = False
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None

    def _flush(self) -> None:
        self._flush_due = True
        self._awake.set()


def _fail(call: _Call, error: Exception) -> None:
    if not call.result.done():
        call.result.set_exception(error)


def _load(
    connection: sqlite3.Connection, rates: Collection[bytes], periods: Collection[bytes]
) -> tuple[list[BucketRow], list[CounterRow]]:
    return sqlite_rows.load_buckets(connection, list(rates)), sqlite_counters.load(connection, list(periods))
