"""C06 and C07: a lifetime is neither pushed by hits nor over before what it keeps; at the region's stores."""

from pathlib import Path

import pytest

from apportion.core.limit import PeriodAnchor, RateLimit
from apportion.core.periods import Unit
from tests.contract.worlds import HOUR, MINUTE, SECOND, WALL, World, admitted, one, quota

pytestmark = pytest.mark.asyncio
MS = 1_000_000


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)


@pytest.mark.parametrize("anchor", [PeriodAnchor.CALENDAR, PeriodAnchor.FIRST_USE])
async def test_c06_a_call_a_second_has_five_in_each_ten_seconds(world: World, anchor: PeriodAnchor) -> None:
    """5/10s for 60 s: 30 pass, the first five of each window, and after the third it is as before."""
    passed = []
    async with world.store() as store:
        for second in range(60):
            if await admitted(store, one(b"k", quota(5, anchor, Unit.SECOND, 10))) == [1]:
                passed.append(second)
            store.tidy()
            world.clock.advance(SECOND)
    assert passed == [second for second in range(60) if second % 10 < 5]


async def test_c07a_a_slow_bucket_is_not_forgotten(world: World) -> None:
    """A unit each 10 s, one at once: of calls at 0, 2, 4, 6, 8, 10.5 and 12 s those at 0 and 10.5 s pass."""
    slow, passed = RateLimit(1, 10 * SECOND, 1), []
    async with world.store() as store:
        for at in (0.0, 2.0, 4.0, 6.0, 8.0, 10.5, 12.0):
            world.clock.advance(WALL + round(at * SECOND) - world.clock.wall)
            store.tidy()
            if await admitted(store, one(b"k", slow)) == [1]:
                passed.append(at)
    assert passed == [0.0, 10.5]


@pytest.mark.parametrize("offset", [0, 7 * SECOND, 29 * SECOND, 59 * SECOND + 999 * MS])
async def test_c07b_the_window_before_is_not_gone(world: World, offset: int) -> None:
    """10/hour rolling: 1 at 0:00, 8 at 0:59, then of 10 at 1:01 exactly two pass, wherever the parts begin."""
    limit = quota(10, PeriodAnchor.ROLLING, Unit.HOUR)
    world.clock.advance(offset)
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit)) == [1]
        world.clock.advance(59 * MINUTE)
        store.tidy()
        assert await admitted(store, one(b"k", limit, count=8)) == [8]
        world.clock.advance(2 * MINUTE)
        store.tidy()
        assert await admitted(store, one(b"k", limit, count=10)) == [2]


async def test_c07c_what_ends_within_a_millisecond_counts_until_then(world: World) -> None:
    """2/s of the calendar, at 0.9991, 0.9993, 0.9995 and 1.0001 s: the third is refused, and the fourth passes."""
    limit, start, answers = quota(2, PeriodAnchor.CALENDAR, Unit.SECOND), world.clock.wall, []
    async with world.store() as store:
        for at in (999_100, 999_300, 999_500, 1_000_100):
            world.clock.advance(start + at * 1_000 - world.clock.wall)
            store.tidy()
            answers += await admitted(store, one(b"k", limit))
    assert answers == [1, 1, 0, 1]


@pytest.mark.parametrize("anchor", [PeriodAnchor.CALENDAR, PeriodAnchor.FIRST_USE])
async def test_c07d_a_lifetime_of_nothing_left_is_neither_the_end_nor_a_new_window(
    anchor: PeriodAnchor, tmp_path: Path
) -> None:
    """50/s at 1,000 calls a second for 30 s, the lifetime set to now before each, and to missing before every other:
    each second admits exactly 50, the first ones.
    """
    world, limit, passed = World("memory", tmp_path), quota(50, anchor, Unit.SECOND), []
    async with world.store() as store:
        for call in range(30_000):
            for record in store._buckets.periods._table.values():
                record.expires_ns = store.now_ns() if call % 2 else None
            store.tidy()
            if await admitted(store, one(b"k", limit)) == [1]:
                passed.append(call)
            world.clock.advance(MS)
    assert passed == [call for call in range(30_000) if call % 1000 < 50]


async def test_c07_the_longest_windows_are_kept_as_long(world: World) -> None:
    """A year's quota used up on January 15 is used up on December 31, after a tidying each week."""
    limit = quota(1, PeriodAnchor.CALENDAR, Unit.YEAR)
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit)) == [1]
        for _ in range(50):
            world.clock.advance(7 * 24 * HOUR)
            store.tidy()
            assert await admitted(store, one(b"k", limit)) == [0]
        world.clock.advance(24 * HOUR)
        assert await admitted(store, one(b"k", limit)) == [1]
