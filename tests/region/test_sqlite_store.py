"""What only the store on a file promises: what is on disk when, restarts, faults of the disk, one region a file."""

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from apportion.core.errors import StoreError
from apportion.core.limit import RateLimit
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import ROLLUP_EPOCHS_KEPT, RollupRow
from tests.contract.worlds import FAST, HOUR, MINUTE, SECOND, SLOW, WALL, World, admitted, ask, bucket, one

pytestmark = pytest.mark.asyncio

DAILY = RateLimit(10, 24 * HOUR, 10)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world whose stores share one file."""
    return World("sqlite", tmp_path)


def select(path: Path, query: str) -> list[tuple[object, ...]]:
    """What another process reads in the file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def connection_of(store: object) -> sqlite3.Connection:
    """The store's own connection, to break it."""
    assert isinstance(store, SqliteStore)
    connection = store._file._connection
    assert connection is not None
    return connection


class TestDurability:
    async def test_what_is_acknowledged_is_on_disk(self, world: World) -> None:
        """Bucket, roll-up and time, in one transaction, before the answer."""
        async with world.store() as store:
            world.clock.advance(5)
            await ask(store, one(b"k", SLOW, cost=3))
            row = (b"k", 10, MINUTE, 10, 180_000_000, WALL // 1000)
            assert select(world.path, "SELECT * FROM bucket") == [row]
            assert select(world.path, "SELECT * FROM rollup") == [(100, b"k", 3)]
            assert select(world.path, "SELECT last_ns FROM state") == [(WALL + 5,)]

    async def test_the_file_syncs_each_commit(self, world: World) -> None:
        """A write-ahead log with synchronous FULL: acknowledged means it survives a loss of power."""
        async with world.store() as store:
            assert connection_of(store).execute("PRAGMA synchronous").fetchone() == (2,)
            assert connection_of(store).execute("PRAGMA journal_mode").fetchone() == ("wal",)

    async def test_fast_buckets_never_wait_for_the_disk(self, world: World) -> None:
        """While the disk hangs a durable call waits, a call of memory buckets does not."""
        async with world.store() as store:
            assert isinstance(store, SqliteStore)
            released = threading.Event()
            hanging = asyncio.create_task(store._run(released.wait))
            await asyncio.sleep(0)
            durable = asyncio.create_task(admitted(store, one(b"slow", SLOW)))
            try:
                assert await asyncio.wait_for(admitted(store, one(b"fast", FAST, count=12)), 1) == [10]
                assert not durable.done()
            finally:
                released.set()
            assert await durable == [1]
            await hanging
            assert select(world.path, "SELECT store_key FROM bucket") == [(b"slow",)]

    async def test_calls_that_meet_are_committed_together(self, world: World) -> None:
        """Thirty calls, two commits: the first, and all that came while it was written."""
        async with world.store() as store:
            before = commits(store)
            await asyncio.gather(*(ask(store, one(b"%d" % key, SLOW)) for key in range(30)))
            assert commits(store) - before <= 2

    async def test_a_refusal_writes_nothing(self, world: World) -> None:
        """Denied and peeked calls of durable buckets need no commit."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=10))
            before = commits(store)
            assert await admitted(store, one(b"k", SLOW), one(b"k", SLOW, peek=True)) == [0, 0]
            assert commits(store) == before

    async def test_what_fast_buckets_admit_is_rolled_up_on_disk_by_itself(self, world: World) -> None:
        """Within a second, without another call."""
        clocks = (world.clock.monotonic_ns, world.clock.wall_ns)
        store = SqliteStore(world.path, *clocks, flush_seconds=0.01)
        await store.open()
        await ask(store, one(b"fast", FAST, count=4))
        await asyncio.to_thread(wait_for_row, world.path, (100, b"fast", 4))
        await store.close()


def wait_for_row(path: Path, row: tuple[object, ...]) -> None:
    """Until the roll-up in the file is this one row."""
    end = time.monotonic() + 10
    while select(path, "SELECT * FROM rollup") != [row]:
        assert time.monotonic() < end, "it was not rolled up within 10 s"
        time.sleep(0.01)


def delete(path: Path, suffix: str) -> None:
    """Delete one of the store's files under it."""
    Path(f"{path}{suffix}").unlink()


def commits(store: object) -> int:
    """How many transactions changed the file so far: each sets the recorded time."""
    assert isinstance(store, SqliteStore)
    return store._file.commits


class TestRestarts:
    async def test_a_slow_bucket_goes_on_where_it_was(self, world: World) -> None:
        """7 of 10 used; a minute later, of which the region was away, 10 have drained."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=7))
        async with world.store() as store:
            assert await admitted(store, one(b"k", SLOW, count=9)) == [3]
        world.clock.advance(30 * SECOND)
        async with world.store() as store:
            assert await admitted(store, one(b"k", SLOW, count=9)) == [5]

    async def test_a_new_file_starts_full(self, world: World) -> None:
        """Fast and slow buckets alike."""
        async with world.store() as store:
            assert await admitted(store, one(b"fast", FAST, cost=10), one(b"slow", SLOW, cost=10)) == [1, 1]

    async def test_in_an_existing_file_a_fast_bucket_starts_empty_and_fills(self, world: World) -> None:
        """Known before or not: what it may have admitted just before the restart is not admitted again."""
        async with world.store():
            pass
        async with world.store() as store:
            answer = await ask(store, one(b"new", FAST))
            assert (answer.admitted, bucket(answer).backlog) == (0, 10 * 1_000_000)
            world.clock.advance(300_000_000)
            assert await admitted(store, one(b"new", FAST, count=9), one(b"newer", FAST, count=9)) == [3, 3]
            world.clock.advance(700_000_000)
            assert await admitted(store, one(b"newest", FAST, count=11)) == [10]
            assert await admitted(store, one(b"slow", SLOW, count=11)) == [10]

    async def test_time_goes_on_although_the_wall_clock_fell_an_hour(self, world: World) -> None:
        """Buckets neither refill nor starve: the file's last time is the least."""
        async with world.store() as store:
            world.clock.advance(10 * SECOND)
            await ask(store, one(b"k", SLOW, cost=10))
            last = store.now_ns()
        world.clock.wall -= HOUR
        async with world.store() as store:
            assert store.now_ns() == last
            assert await admitted(store, one(b"k", SLOW)) == [0]
            world.clock.advance(6 * SECOND)
            assert store.now_ns() == last + 6 * SECOND
            assert await admitted(store, one(b"k", SLOW, count=2)) == [1]

    async def test_register_reports_rules_and_rollup_are_kept(self, world: World) -> None:
        """Run id included: a restart on the file is no loss of the store."""
        row = RollupRow(b"k", 100, 5)
        async with world.store() as store:
            old = await store.register()
            new = replace(old, generation=4, highest=77, last_ns=store.now_ns())
            assert await store.swap_register(old, new)
            assert await store.roll_up(7, 1, (row,))
            assert [await store.rules_version(digest) for digest in ("a", "b")] == [1, 2]
            await ask(store, one(b"fast", FAST, count=2))
        async with world.store() as store:
            assert await store.register() == new
            assert new.run_id == old.run_id != ""
            assert not await store.roll_up(7, 1, (row,))
            assert await store.roll_up(7, 2, (row,))
            assert [await store.rules_version(digest) for digest in ("b", "a")] == [2, 3]
            assert set(await store.rolled_up(0)) == {RollupRow(b"k", 100, 10), RollupRow(b"fast", 100, 2)}

    async def test_another_limit_after_the_restart_keeps_what_was_used(self, world: World) -> None:
        """8 of 10 a minute used: of 10 a day 2 are left."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=8))
        async with world.store() as store:
            assert await admitted(store, one(b"k", DAILY, count=9)) == [2]


class TestMemory:
    async def test_buckets_that_leave_memory_are_read_again(self, world: World) -> None:
        """Sixty live buckets in a table of ten: none forgets what it admitted."""
        keys = [b"%d" % key for key in range(60)]
        async with world.store(buckets_max=10) as store:
            for key in keys:
                assert await admitted(store, one(key, DAILY, cost=6)) == [1]
            assert len(store._buckets) <= 10
            for key in keys:
                assert await admitted(store, one(key, DAILY, count=9)) == [4]

    async def test_fast_buckets_count_as_empty_when_rules_change_after_eviction(self, world: World) -> None:
        """A slow quota that turned fast is not looked up on disk, so it must not be taken for full."""
        async with world.store(buckets_max=10) as store:
            for key in range(60):
                await ask(store, one(b"%d" % key, DAILY, cost=10))
            await store.rules_version("a" * 64)
            assert await admitted(store, one(b"0", FAST)) == [0]
            world.clock.advance(SECOND)
            assert await admitted(store, one(b"0", FAST, count=11)) == [10]


class TestSweeping:
    async def test_drained_rows_leave_the_file_and_live_ones_stay(self, world: World) -> None:
        """A bucket that drained equals none."""
        async with world.store() as store:
            await ask(store, *(one(b"%03d" % key, SLOW) for key in range(400)), one(b"live", DAILY, cost=10))
            for _ in range(4):
                world.clock.advance(MINUTE)
                await ask(store, one(b"writer", DAILY, cost=0), one(b"tick-%d" % store.now_ns(), SLOW))
            left = [key for (key,) in select(world.path, "SELECT store_key FROM bucket")]
            assert b"live" in left
            assert len(left) < 5
            assert await admitted(store, one(b"live", DAILY)) == [0]

    async def test_old_labels_and_reports_leave_the_file(self, world: World) -> None:
        """Labels after ROLLUP_EPOCHS_KEPT epochs, a source's numbers some time after an hour."""
        async with world.store() as store:
            await store.roll_up(7, 1, (RollupRow(b"k", 100, 5), RollupRow(b"k", 101, 5)))
            world.clock.advance(HOUR)
            await store.roll_up(8, 1, (RollupRow(b"k", 100 + ROLLUP_EPOCHS_KEPT, 5),))
            assert select(world.path, "SELECT source FROM report ORDER BY source") == [("7",), ("8",)]
            assert select(world.path, "SELECT epoch FROM rollup ORDER BY epoch") == [(101,), (700,)]
            world.clock.advance(HOUR + SECOND)
            await store.roll_up(9, 1, ())
            assert select(world.path, "SELECT source FROM report ORDER BY source") == [("8",), ("9",)]


class TestFaults:
    async def test_a_full_disk_fails_the_call_keeps_the_charge_and_mends(self, world: World) -> None:
        """What could not be written stays charged, is written with the next commit, once, and the rest goes on."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=1))
            connection = connection_of(store)
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")
            big = [one(b"%d" % key + b"x" * 900, SLOW, cost=2) for key in range(100)]
            with pytest.raises(StoreError, match="full"):
                await ask(store, *big, one(b"k", SLOW, cost=3))
            assert select(world.path, "SELECT sum(units) FROM rollup") == [(1,)]
            with pytest.raises(StoreError, match="full"):
                await ask(store, one(b"k", SLOW, cost=1))
            assert await admitted(store, one(b"fast", FAST)) == [1]
            connection.execute("PRAGMA max_page_count = 100000")
            assert await admitted(store, one(b"k", SLOW, count=9)) == [5]
            rows = {row.store_key: row.units for row in await store.rolled_up(0)}
            assert rows[b"k"] == 10
            assert rows[b"fast"] == 1
            assert sum(rows.values()) == 100 * 2 + 10 + 1
        async with world.store() as store:
            assert await admitted(store, one(b"k", SLOW), one(b"7" + b"x" * 900, SLOW, count=9)) == [0, 8]

    async def test_a_failed_swap_leaves_the_register(self, world: World) -> None:
        """And a report that failed can be sent again."""
        async with world.store() as store:
            old = await store.register()
            connection_of(store).execute("PRAGMA query_only = ON")
            with pytest.raises(StoreError, match="readonly"):
                await store.swap_register(old, replace(old, generation=1))
            with pytest.raises(StoreError, match="readonly"):
                await store.roll_up(7, 1, (RollupRow(b"k", 100, 5),))
            assert await store.register() == old
            connection_of(store).execute("PRAGMA query_only = OFF")
            assert await store.roll_up(7, 1, (RollupRow(b"k", 100, 5),))
            assert await store.swap_register(old, replace(old, generation=1))
            assert await store.rolled_up(0) == (RollupRow(b"k", 100, 5),)

    @pytest.mark.parametrize("suffix", ["", "-wal"])
    async def test_a_file_that_was_deleted_is_noticed(self, world: World, suffix: str) -> None:
        """SQLite would go on writing into nowhere; the call says which file is gone."""
        store = world.make()
        await store.open()
        await ask(store, one(b"k", SLOW))
        delete(world.path, suffix)
        with pytest.raises(StoreError, match=f"region.db{suffix} is gone"):
            await ask(store, one(b"k", SLOW))
        with pytest.raises(StoreError, match="could not be written"):
            await store.close()
        await store.close()

    async def test_a_file_that_was_replaced_is_noticed(self, world: World) -> None:
        """Restored from a copy under a living region, say."""
        store = world.make()
        await store.open()
        copy = world.path.with_name("copy")
        copy.write_bytes(world.path.read_bytes())
        copy.rename(world.path)
        with pytest.raises(StoreError, match="was replaced"):
            await ask(store, one(b"k", SLOW))
        with pytest.raises(StoreError, match="could not be written"):
            await store.close()

    async def test_the_owner_outlives_a_fault_of_ours(self, world: World) -> None:
        """An assertion reaches the caller that met it; the next call is served."""
        async with world.store() as store:
            with pytest.raises(AssertionError):
                await ask(store, one(b"k", SLOW, cost=-1), one(b"l", DAILY))
            assert await admitted(store, one(b"l", DAILY)) == [1]

    async def test_closing_writes_what_waits(self, world: World) -> None:
        """Calls in flight are answered, and what memory decided is rolled up."""
        store = world.make()
        await store.open()
        calls = [asyncio.create_task(admitted(store, one(b"%d" % key, SLOW))) for key in range(5)]
        await asyncio.sleep(0)
        await ask(store, one(b"fast", FAST))
        await store.close()
        assert await asyncio.gather(*calls) == [[1]] * 5
        assert select(world.path, "SELECT sum(units) FROM rollup") == [(6,)]

    async def test_a_cancelled_owner_leaves_nobody_waiting(self, world: World) -> None:
        """As when a loop ends: calls in flight and later ones hear of it, and the file is let go."""
        store = world.make()
        await store.open()
        assert isinstance(store, SqliteStore)
        assert store._owner is not None
        call = asyncio.create_task(ask(store, one(b"k", SLOW)))
        await asyncio.sleep(0)
        store._owner.cancel()
        with pytest.raises(StoreError):
            await call
        with pytest.raises(StoreError, match="closed"):
            await ask(store, one(b"k", SLOW))
        await store.close()
        async with world.store() as again:
            assert await admitted(again, one(b"k", SLOW)) == [1]
