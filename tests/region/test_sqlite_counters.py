"""Period counters in the file: a row each, read after a restart, damaged ones used up, older files given a table."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from apportion.core.errors import StoreError
from apportion.core.limit import PeriodAnchor
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import GivenBack
from tests.contract.worlds import FAST, HOUR, MINUTE, SECOND, SLOW, WALL, World, admitted, ask, one, period, quota

pytestmark = pytest.mark.asyncio

NAME = "2027-01-15T08Z/min"
"""The calendar period at WALL of a quota of a minute."""

EACH = pytest.mark.parametrize("anchor", list(PeriodAnchor))


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A world whose stores share one file."""
    return World("sqlite", tmp_path)


def change(world: World, statement: str) -> None:
    """What somebody does to the file while no region has it."""
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute(statement)


def rows(world: World, columns: str) -> list[tuple[object, ...]]:
    """What another process reads of the counters."""
    with closing(sqlite3.connect(world.path)) as connection:
        return connection.execute(f"SELECT {columns} FROM counter ORDER BY key").fetchall()


@EACH
async def test_an_answer_is_on_disk_before_it_is_given(world: World, anchor: PeriodAnchor) -> None:
    """A second's quota too: any length is durable. The row has the quota's key, and totals."""
    async with world.store() as store:
        for _ in range(2):
            await ask(store, one(b"quota", quota(10, anchor), 3))
        assert rows(world, "substr(key, 1, quota_bytes), anchor, used") == [(b"quota", anchor.value, 6)]
        await ask(store, one(b"quota", quota(10, anchor), 9), one(b"quota", quota(10, anchor), 4, peek=True))
        assert rows(world, "used") == [(6,)]


@EACH
async def test_a_counter_goes_on_where_it_was(world: World, anchor: PeriodAnchor) -> None:
    """Over a restart, half a minute later, with the same end."""
    limit = quota(10, anchor)
    async with world.store() as store:
        await ask(store, one(b"k", limit, 4))
        before = period(await ask(store, one(b"k", limit, 3)))
    world.clock.advance(30 * SECOND)
    async with world.store() as store:
        after = period(await ask(store, one(b"k", limit, count=9)))
        assert (after.used, after.reset_ns) == (10, before.reset_ns - (30 * SECOND if anchor.value != "rolling" else 0))
        assert await admitted(store, one(b"k", limit)) == [0]


@EACH
@pytest.mark.parametrize(
    "damage",
    ["used = 'few'", "used = -1", "used = NULL", "start_ns = 'now'", "start_ns = -5", f"start_ns = {WALL + HOUR}"],
)
async def test_a_damaged_row_counts_as_used_up(world: World, anchor: PeriodAnchor, damage: str) -> None:
    """Until the period of now ends, never as a fresh allowance; giving back does not mend it."""
    limit = quota(10, anchor)
    async with world.store() as store:
        await ask(store, one(b"k", limit))
    change(world, "PRAGMA writable_schema = ON")
    with closing(sqlite3.connect(world.path)) as connection, connection:
        connection.execute("CREATE TABLE loose AS SELECT * FROM counter")
        connection.execute("DROP TABLE counter")
        connection.execute("ALTER TABLE loose RENAME TO counter")
        connection.execute(f"UPDATE counter SET {damage}")
        connection.execute("CREATE UNIQUE INDEX counter_key ON counter (key)")
    async with world.store() as store:
        answer = period(await ask(store, one(b"k", limit)))
        assert (answer.fits, answer.used) == (False, 10)
        world.clock.advance(MINUTE + SECOND)
        assert await admitted(store, one(b"k", limit, count=11)) == [10]


@pytest.mark.parametrize("damage", ["start_ns = 0", "over_ns = 1", f"over_ns = {2**63 - 1}"])
async def test_a_first_use_whose_length_was_changed_counts_as_used_up(world: World, damage: str) -> None:
    """Both ends are in the row, and one of them alone is no period of a minute. For a minute, not for ever."""
    limit = quota(10, PeriodAnchor.FIRST_USE)
    async with world.store() as store:
        await ask(store, one(b"k", limit))
    change(world, f"UPDATE counter SET {damage}")
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit)) == [0]
    world.clock.advance(MINUTE)
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit)) == [1]


@pytest.mark.parametrize(
    "damage", ["quota_bytes = 'x'", "quota_bytes = 0", "quota_bytes = 99", "start_ns = 'now'", "used = 1.5"]
)
async def test_a_damaged_row_that_is_to_be_told_of_leaves_untold_and_holds_nobody_up(world: World, damage: str) -> None:
    """Its audit event could say nothing true."""
    limit = quota(10, PeriodAnchor.CALENDAR, audit_periods=True)
    async with world.store() as store:
        await ask(store, one(b"k", limit), one(b"other", limit, 2))
    change(world, f"UPDATE counter SET {damage} WHERE used = 1")
    async with world.store() as store:
        assert await admitted(store, one(b"other", limit)) == [1]
        world.clock.advance(3 * MINUTE)
        for _ in range(3):  # each sweeps a part
            assert await admitted(store, one(b"next", limit)) == [1]
            world.clock.advance(SECOND)
        assert [(each.store_key, each.used) for each in store.take_closed()] == [(b"other", 3)]


async def test_a_counter_is_of_the_quota_that_asks(world: World) -> None:
    """Its key has been found, whatever the row says of that."""
    limit = quota(10, PeriodAnchor.CALENDAR)
    async with world.store() as store:
        await ask(store, one(b"k", limit))
    change(world, "UPDATE counter SET quota_bytes = 'x'")
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit, count=10)) == [9]
        assert rows(world, "substr(key, 1, quota_bytes), used") == [(b"k", 10)]


@pytest.mark.parametrize(
    "parts",
    ["'[]'", "'[[3600000000, 2]]'", "'{}'", "'x'", "NULL", "'[[3600000000, true]]'", "'[[3600000001, 1]]'", "'[1]'"],
)
async def test_damaged_parts_count_as_used_up(world: World, parts: str) -> None:
    """Parts that do not sum up to what was used, or are none."""
    limit = quota(10, PeriodAnchor.ROLLING)
    async with world.store() as store:
        await ask(store, one(b"k", limit))
    change(world, f"UPDATE counter SET parts = {parts}")
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit)) == [0]
        world.clock.advance(MINUTE + SECOND)
        assert await admitted(store, one(b"k", limit, count=11)) == [10]


async def test_giving_back_never_mends_a_damaged_row(world: World) -> None:
    """What cannot be read as a number is not counted down to nothing."""
    limit = quota(10, PeriodAnchor.CALENDAR)
    async with world.store() as store:
        await ask(store, one(b"k", limit))
    change(world, "UPDATE counter SET used = 'few'")
    async with world.store() as store:
        assert await store.roll_up(1, 1, (), (GivenBack(b"k", NAME, 3),))
        assert await admitted(store, one(b"k", limit)) == [0]


async def test_a_file_from_before_there_were_period_counters_gets_a_table(world: World) -> None:
    """What it has stays."""
    async with world.store() as store:
        await ask(store, one(b"slow", SLOW, 10))
    change(world, "DROP TABLE counter")
    async with world.store() as store:
        assert await admitted(store, one(b"slow", SLOW), one(b"k", quota(10, PeriodAnchor.CALENDAR))) == [0, 1]
    assert rows(world, "used") == [(1,)]


@EACH
async def test_counters_that_leave_memory_are_read_again(world: World, anchor: PeriodAnchor) -> None:
    """Sixty live counters in a table of ten: none forgets what it admitted."""
    limit, keys = quota(10, anchor, multiple=60), [b"%d" % key for key in range(60)]
    async with world.store(buckets_max=10) as store:
        for key in keys:
            assert await admitted(store, one(key, limit, cost=6)) == [1]
        assert len(store._buckets) <= 10
        for key in keys:
            assert await admitted(store, one(key, limit, count=9)) == [4]
        assert store.counters().refused_full == 0


@EACH
async def test_rows_leave_the_file_when_their_period_is_over(world: World, anchor: PeriodAnchor) -> None:
    """Also those that memory does not have any more, and one without a lifetime; live ones stay."""
    async with world.store() as store:
        await ask(store, *(one(b"%d" % key, quota(10, anchor)) for key in range(900)))
        await ask(store, one(b"live", quota(10, anchor, multiple=60)))
    change(world, "UPDATE counter SET expires_ns = NULL WHERE key < x'32'")
    async with world.store() as store:
        for _ in range(180):
            world.clock.advance(SECOND)
            if rows(world, "count(*)") == [(1,)]:
                break
            await store.roll_up(1, world.clock.wall, ())
        assert rows(world, "substr(key, 1, quota_bytes)") == [(b"live",)]


async def test_a_period_that_the_file_told_of_is_not_told_of_again(world: World) -> None:
    """Memory has it still when its subject calls again; also over a restart each is told once."""
    limit = quota(10, PeriodAnchor.FIRST_USE, audit_periods=True)
    async with world.store() as store:
        await ask(store, one(b"k", limit, 4))
        world.clock.advance(MINUTE)
        await store.roll_up(1, 1, ())
        assert [(each.start_ns, each.used) for each in store.take_closed()] == [(WALL, 4)]
        await ask(store, one(b"k", limit, 5))
        assert store.take_closed() == ()
    world.clock.advance(MINUTE)
    async with world.store() as store:
        await ask(store, one(b"k", limit, 6))
        assert [(each.start_ns, each.used) for each in store.take_closed()] == [(WALL + MINUTE, 5)]
        world.clock.advance(MINUTE)
        store.tidy()
        await store.rolled_up(0)
        assert [each.used for each in store.take_closed()] == [6]


async def test_a_failed_commit_keeps_the_charge_and_gives_nothing_back(world: World) -> None:
    """Both are done once, when the disk is well again."""
    limit = quota(10, PeriodAnchor.CALENDAR)
    row = GivenBack(b"k", NAME, 2)
    async with world.store() as store:
        assert isinstance(store, SqliteStore)
        await ask(store, one(b"k", limit, 4))
        assert store._file._connection is not None
        store._file._connection.execute("PRAGMA query_only = ON")
        for asked in (ask(store, one(b"k", limit, 5)), store.roll_up(1, 1, (), (row,))):
            with pytest.raises(StoreError, match="readonly"):
                await asked
        store._file._connection.execute("PRAGMA query_only = OFF")
        assert await admitted(store, one(b"k", limit, count=9)) == [1]
        assert rows(world, "used") == [(10,)]
        assert await store.roll_up(1, 1, (), (row,))
        assert await admitted(store, one(b"k", limit, count=9)) == [2]
        assert sum(each.units for each in await store.rolled_up(0)) == 12


async def test_a_refusal_writes_nothing(world: World) -> None:
    """Nor does a peek; a region under a storm of refusals leaves the disk alone."""
    limit = quota(10, PeriodAnchor.CALENDAR)
    async with world.store() as store:
        assert isinstance(store, SqliteStore)
        await ask(store, one(b"k", limit, 10))
        before = store._file.commits
        assert await admitted(store, one(b"k", limit), one(b"k", limit, 0), one(b"f", FAST, peek=True)) == [0, 1, 1]
        assert store._file.commits == before
