"""C04: each unit has its length, and no counter outlives its period by more than the documented grace."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from apportion.core.counter import GRACE_MAX_NS
from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Charge
from tests.contract.worlds import ANCHOR, MINUTE, SECOND, WALL, World, ask, one, period, quota

LENGTHS = {
    Unit.SECOND: 1,
    Unit.MINUTE: 60,
    Unit.HOUR: 3600,
    Unit.DAY: 86_400,
    Unit.WEEK: 604_800,
    Unit.MONTH: 31 * 86_400,  # January
    Unit.YEAR: 365 * 86_400,  # 2027
}
"""Seconds of the period that 2027-01-15T08:00Z is in; the traps of whole days and of years of 356 days among them."""


def seconds(text: str) -> int:
    """A day of UTC, since 1970."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


STARTS = {
    Unit.SECOND: WALL // SECOND,
    Unit.MINUTE: WALL // SECOND,
    Unit.HOUR: WALL // SECOND,
    Unit.DAY: seconds("2027-01-15"),
    Unit.WEEK: seconds("2027-01-11"),
    Unit.MONTH: seconds("2027-01-01"),
    Unit.YEAR: seconds("2027-01-01"),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("unit", list(Unit))
async def test_the_window_the_reset_and_the_lifetime_of_every_unit(kind: str, unit: Unit, tmp_path: Path) -> None:
    """One hit each: of a calendar from its start on, of a first use from the hit on, a rolling one a part longer."""
    world, length = World(kind, tmp_path), LENGTHS[unit] * SECOND
    start = STARTS[unit] * SECOND
    async with world.store() as store:
        for anchor in PeriodAnchor:
            if anchor is PeriodAnchor.ROLLING and unit.fixed_s is None:
                continue
            limit = quota(5, anchor, unit)
            state = period(await ask(store, one(anchor.value.encode(), limit)))
            end = WALL + state.reset_ns
            if anchor is PeriodAnchor.ROLLING:
                assert 0 < end - (WALL + length) <= length // 120 + 120
            else:
                assert end == (start if anchor is PeriodAnchor.CALENDAR else WALL) + length
            record = store._buckets.periods.get(store._buckets.key(Charge(anchor.value.encode(), limit, 1), WALL))
            assert record is not None
            assert record.expires_ns is not None
            assert 0 <= record.expires_ns - end <= min(length, GRACE_MAX_NS) <= 60 * SECOND
            assert anchor is PeriodAnchor.CALENDAR or record.expires_ns == end


@pytest.mark.asyncio
@pytest.mark.parametrize("anchor", list(PeriodAnchor))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_ten_thousand_keys_of_a_minute_are_gone_three_minutes_later(
    kind: str, anchor: PeriodAnchor, tmp_path: Path
) -> None:
    """From memory while nobody asks, and from the file beside one write a second."""
    world, limit = World(kind, tmp_path), quota(5, anchor)
    async with world.store(buckets_max=100_000) as store:
        for number in range(0, 10_000, 1000):
            await store.consume(tuple(one(b"%d" % each, limit) for each in range(number, number + 1000)), ANCHOR)
        assert len(store._buckets) == 10_000
        for second in range(180):
            world.clock.advance(SECOND)
            store.tidy()
            store.tidy()
            await store.roll_up(1, second, ())
        assert len(store._buckets) == 0
        if isinstance(store, SqliteStore):
            assert store._file._connection is not None
            assert store._file._connection.execute("SELECT count(*) FROM counter").fetchone() == (0,)
    assert world.clock.wall == WALL + 3 * MINUTE
