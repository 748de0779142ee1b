"""Lifetimes of period counters are housekeeping: whatever becomes of them, no decision changes (design 4.2)."""

from pathlib import Path

import pytest

from apportion.core.key import encode_period
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.periods import Unit
from apportion.region.buckets import Buckets
from apportion.region.counters import StoredCounter
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor, Charge, Charges
from tests.contract.worlds import MINUTE, SECOND, WALL, World, admitted, ask, one, period, quota

KEYS = {
    PeriodAnchor.CALENDAR: encode_period(b"k", "2027-01-15T08Z/min"),
    PeriodAnchor.FIRST_USE: encode_period(b"k", "first_use/min"),
    PeriodAnchor.ROLLING: encode_period(b"k", "rolling/min"),
}
EACH = pytest.mark.parametrize("anchor", list(PeriodAnchor))


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)


def counter(store: MemoryStore | SqliteStore, anchor: PeriodAnchor) -> StoredCounter:
    """The counter of `k` in the first minute."""
    found = store._buckets.periods.get(KEYS[anchor])
    assert found is not None
    return found


def expires_ns(store: MemoryStore | SqliteStore, anchor: PeriodAnchor) -> int:
    """When its lifetime ends."""
    lifetime = counter(store, anchor).expires_ns
    assert lifetime is not None
    return lifetime


@pytest.mark.asyncio
@EACH
async def test_a_lifetime_stripped_before_every_hit_changes_no_decision(world: World, anchor: PeriodAnchor) -> None:
    """A call each second for two minutes, 10 a minute: 10 in each, let in when the period ends; mended and counted."""
    passed = []
    async with world.store() as store:
        for second in range(120):
            if second:
                found = store._buckets.periods.get(KEYS[anchor])
                if found is not None:
                    found.expires_ns = None
            if await admitted(store, one(b"k", quota(10, anchor))) == [1]:
                passed.append(second)
            world.clock.advance(SECOND)
        missing = store.counters().lifetimes_missing
    first = [*range(10), *range(60, 70)] if anchor is not PeriodAnchor.ROLLING else [*range(10), *range(61, 71)]
    assert passed == first
    # The calendar's second minute has a counter of its own, and the first one's is mended until it is reclaimed.
    assert missing == 119 or (anchor is PeriodAnchor.CALENDAR and 59 + 30 <= missing < 119)


@pytest.mark.asyncio
@EACH
async def test_a_mended_lifetime_is_the_one_that_was_lost(world: World, anchor: PeriodAnchor) -> None:
    """Not a fresh one: 20 s later it ends when it would have. A peek mends too."""
    async with world.store() as store:
        await ask(store, one(b"k", quota(10, anchor)))
        before = expires_ns(store, anchor)
        world.clock.advance(20 * SECOND)
        counter(store, anchor).expires_ns = None
        await ask(store, one(b"k", quota(10, anchor), peek=True))
        assert expires_ns(store, anchor) == before
        assert store.counters().lifetimes_missing == 1


@pytest.mark.asyncio
@EACH
async def test_a_lifetime_that_was_extended_changes_no_decision(world: World, anchor: PeriodAnchor) -> None:
    """By a day: the period ends when it does."""
    async with world.store() as store:
        assert await admitted(store, one(b"k", quota(10, anchor), count=11)) == [10]
        counter(store, anchor).expires_ns = WALL + 86_400 * SECOND
        world.clock.advance(MINUTE - 1)
        store.tidy()
        assert await admitted(store, one(b"k", quota(10, anchor))) == [0]
        world.clock.advance(SECOND + 1)
        assert await admitted(store, one(b"k", quota(10, anchor), count=11)) == [10]


@pytest.mark.asyncio
@EACH
async def test_a_lifetime_that_was_cut_changes_no_decision(world: World, anchor: PeriodAnchor) -> None:
    """What counts still is not reclaimed."""
    async with world.store() as store:
        assert await admitted(store, one(b"k", quota(10, anchor), count=11)) == [10]
        counter(store, anchor).expires_ns = 0
        store.tidy()
        assert await admitted(store, one(b"k", quota(10, anchor))) == [0]


@pytest.mark.asyncio
async def test_a_hit_never_extends_the_lifetime_of_a_first_use(world: World) -> None:
    """It ends with the period, 60 s after the first call."""
    limit = quota(100, PeriodAnchor.FIRST_USE)
    async with world.store() as store:
        for _ in range(59):
            await ask(store, one(b"k", limit))
            assert expires_ns(store, PeriodAnchor.FIRST_USE) == WALL + MINUTE
            world.clock.advance(SECOND)


@pytest.mark.asyncio
async def test_a_row_whose_lifetime_an_operator_removed_is_mended_when_it_is_read(tmp_path: Path) -> None:
    """On disk, over a restart, and counted; the row has it again."""
    world, limit = World("sqlite", tmp_path), quota(10, PeriodAnchor.FIRST_USE)
    async with world.store() as store:
        assert isinstance(store, SqliteStore)
        await ask(store, one(b"k", limit, count=4))
        connection = store._file._connection
        assert connection is not None
        connection.execute("UPDATE counter SET expires_ns = NULL")
    world.clock.advance(20 * SECOND)
    async with world.store() as store:
        assert isinstance(store, SqliteStore)
        answer = period(await ask(store, one(b"k", limit, peek=True)))
        assert (answer.used, answer.reset_ns) == (4, 40 * SECOND)
        assert store.counters().lifetimes_missing == 1
        assert store._file._connection is not None
        assert store._file._connection.execute("SELECT expires_ns FROM counter").fetchall() == [(WALL + MINUTE,)]


def test_reclaim_of_a_calendar_period_is_spread() -> None:
    """10,000 counters of one minute end over the last half of the grace, a thirtieth of them in each second or so."""
    limit, buckets, lifetimes = quota(10, PeriodAnchor.CALENDAR), Buckets(), []
    for number in range(10_000):
        store_key = b"key-%d" % number
        buckets.decide((one(store_key, limit),), Anchor(1, WALL), WALL)
        found = buckets.periods.get(encode_period(store_key, "2027-01-15T08Z/min"))
        assert found is not None
        assert found.expires_ns is not None
        lifetimes.append(found.expires_ns - (WALL + MINUTE))
    assert 30 * SECOND <= min(lifetimes) <= max(lifetimes) < 60 * SECOND
    by_second = [sum(each // SECOND == second for each in lifetimes) for second in range(30, 60)]
    assert max(by_second) < 2 * 10_000 / 30


def test_a_boundary_is_swept_in_bounded_steps() -> None:
    """20,000 subjects of the minute before: no call looks at more than a few of them, and all are gone in the end."""
    limit, buckets = quota(10, PeriodAnchor.CALENDAR), Buckets()
    for number in range(20_000):
        buckets.decide((one(b"old-%d" % number, limit),), Anchor(1, WALL), WALL)
    now_ns, held = WALL + 3 * MINUTE, len(buckets)
    for number in range(15_000):
        buckets.decide((one(b"new-%d" % number, limit),), Anchor(1, WALL), now_ns)
        assert held - len(buckets) < 6
        held = len(buckets)
    assert len(buckets) == 15_000


def names(limit: PeriodLimit, instants: range) -> set[bytes]:
    """The keys that these instants' counters have."""
    buckets = Buckets()
    return {buckets.key(Charge(b"k", limit, 1), instant * SECOND) for instant in instants}


def test_no_two_periods_anchors_subjects_or_rules_share_a_key() -> None:
    """Each minute, hour, day, week, month and year of a week, of every anchor and for two quotas: all have another."""
    units = (Unit.SECOND, Unit.MINUTE, Unit.HOUR, Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.YEAR)
    start = WALL // SECOND
    buckets, keys = Buckets(), []
    for store_key in (b"k", b"l", encode_period(b"k", "2027-01-15T08Z/min")):
        for unit in units:
            anchors = [each for each in PeriodAnchor if each is not PeriodAnchor.ROLLING or unit.fixed_s is not None]
            keys += [buckets.key(Charge(store_key, quota(1, each, unit), 1), WALL) for each in anchors]
    assert len(set(keys)) == len(keys)
    week = range(start, start + 7 * 86_400, 61)
    assert len(names(quota(1, PeriodAnchor.CALENDAR), week)) == len(week)
    assert len(names(quota(1, PeriodAnchor.CALENDAR, Unit.HOUR), week)) == 7 * 24
    assert len(names(quota(1, PeriodAnchor.FIRST_USE), week)) == 1


def test_a_group_is_charged_in_one_step_whatever_it_mixes() -> None:
    """A member that no room is left for keeps all others uncharged, and the table as it was."""
    buckets = Buckets(buckets_max=2)
    limits = [quota(10, anchor) for anchor in PeriodAnchor]
    group = Charges(1, tuple(Charge(b"%d" % at, limit, 1) for at, limit in enumerate(limits)))
    (answer,) = buckets.decide((group,), Anchor(1, WALL), WALL)
    assert (answer.admitted, [member.fits for member in answer.members]) == (0, [False] * 3)
    assert len(buckets) == 0
    assert not buckets.decided
