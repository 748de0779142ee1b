"""C17: integers of 32, 53, 63 and 64 bits. Part (c): a counter forged to 2^63-2 in the store at hand."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from apportion.core.limit import RateLimit
from tests.contract.worlds import HOUR, MINUTE, SECOND, SLOW, World, admitted, ask, bucket, one

pytestmark = pytest.mark.asyncio

FORGED = 2**63 - 2


def rows(path: Path) -> list[tuple[object, ...]]:
    """All buckets of a file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM bucket").fetchall()


def forge(path: Path, column: str, value: object) -> None:
    """Write `value` into each bucket of a file that no region has open."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE bucket SET {column} = ?", (value,))
        connection.commit()


async def test_a_forged_backlog_in_memory_never_fits() -> None:
    """Nor does it change."""
    async with World("memory", Path()).store() as store:
        await ask(store, one(b"k", SLOW))
        bucket = store._buckets.get(b"k")
        assert bucket is not None
        bucket.backlog = FORGED
        assert await admitted(store, *(one(b"k", SLOW, cost=5) for _ in range(5))) == [0] * 5
        assert bucket.backlog == FORGED


async def test_c_a_forged_backlog_in_the_file_never_fits_and_stays(tmp_path: Path) -> None:
    """Hits of 5 are refused, no overflow reaches the caller, and the row is as it was, also after a restart."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        await ask(store, one(b"k", SLOW))
    forge(world.path, "backlog", FORGED)
    before = rows(world.path)
    for _ in range(2):
        async with world.store() as store:
            answer = await ask(store, one(b"k", SLOW, cost=5), one(b"k", SLOW, cost=2**64 - 1), one(b"k", SLOW, cost=5))
            assert answer.admitted == 0
            assert bucket(answer).backlog == FORGED
            assert await admitted(store, one(b"other", SLOW, cost=5)) == [1]
        assert [row for row in rows(world.path) if row[0] == b"k"] == before


async def test_a_forged_backlog_survives_a_change_of_the_limit(tmp_path: Path) -> None:
    """Rescaled from a minute to a day it would pass 64 bits: it saturates there, and still never fits."""
    daily = RateLimit(10, 24 * HOUR, 10)
    seconds = RateLimit(10, SECOND, 10)
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        await ask(store, one(b"k", seconds), one(b"k", RateLimit(1, SECOND, 10)))
    forge(world.path, "backlog", FORGED)
    async with world.store() as store:
        assert await admitted(store, one(b"k", daily, cost=5)) == [0]
    assert rows(world.path)[0][4] == 2**63 - 1
    async with world.store() as store:
        assert await admitted(store, one(b"k", daily)) == [0]


@pytest.mark.parametrize("column", ["units", "period_ns", "burst", "backlog", "last"])
@pytest.mark.parametrize("value", [-1, "x", b"\xff", 1.5], ids=["negative", "text", "bytes", "real"])
async def test_a_damaged_row_counts_as_a_bucket_without_tokens(tmp_path: Path, column: str, value: object) -> None:
    """Refused at first, whatever is wrong with it; right again once the whole burst has drained."""
    world = World("sqlite", tmp_path)
    async with world.store() as store:
        await ask(store, one(b"k", SLOW))
    forge(world.path, column, value)
    async with world.store() as store:
        assert await admitted(store, one(b"k", SLOW)) == [0]
        world.clock.advance(MINUTE)
        assert await admitted(store, one(b"k", SLOW, count=11)) == [10]
