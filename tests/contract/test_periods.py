"""What every store promises of quotas of a period, held by each of them."""

import asyncio

import pytest

from apportion.core.key import encode_period
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.periods import Unit
from apportion.region.store import Charge, ChargedPeriod, Charges, GivenBack, RollupRow
from tests.contract.worlds import (
    ANCHOR,
    FAST,
    HOUR,
    MINUTE,
    SECOND,
    SLOW,
    WALL,
    World,
    admitted,
    ask,
    bucket,
    group,
    one,
    period,
    quota,
)

pytestmark = pytest.mark.asyncio

CALENDAR = quota(10, PeriodAnchor.CALENDAR)
NAME, BEFORE, HOUR_NAME = "2027-01-15T08Z/min", "2027-01-15T07:59Z/min", "2027-01-15T08Z/hour"
"""The period of CALENDAR at WALL, the one before it, and one that begins with it."""
FIRST_USE = quota(10, PeriodAnchor.FIRST_USE)
ROLLING = quota(10, PeriodAnchor.ROLLING)

ANCHORS = [pytest.param(limit, id=limit.anchor.value) for limit in (CALENDAR, FIRST_USE, ROLLING)]
PART = 500_000_000
"""A rolling minute is counted in parts of half a second."""


@pytest.mark.parametrize("limit", ANCHORS)
class TestAnyAnchor:
    async def test_the_most_that_fit_are_admitted(self, world: World, limit: PeriodLimit) -> None:
        """Of 8 requests of cost 3 an allowance of 10 admits 3; one more waits for the period's end."""
        async with world.store() as store:
            answer = await ask(store, one(b"k", limit, cost=3, count=8))
            assert answer.admitted == 3
            rolling = limit is ROLLING
            left = MINUTE + PART if rolling else MINUTE
            start = WALL - MINUTE if rolling else WALL
            assert answer.members == (ChargedPeriod(False, 9, start, left, left, 100),)
            assert await admitted(store, one(b"k", limit, 2), one(b"k", limit, 1)) == [0, 1]

    async def test_who_waits_as_told_is_admitted_and_not_before(self, world: World, limit: PeriodLimit) -> None:
        """To the nanosecond; 20 s into the minute."""
        world.clock.advance(20 * SECOND)
        async with world.store() as store:
            wait = period(await ask(store, one(b"k", limit, count=11))).wait_ns
            assert wait is not None
            world.clock.advance(wait - 1)
            assert await admitted(store, one(b"k", limit)) == [0]
            world.clock.advance(1)
            assert await admitted(store, one(b"k", limit, count=11)) == [10]

    async def test_a_cost_above_the_allowance_never_fits(self, world: World, limit: PeriodLimit) -> None:
        """And is told no time; so is every cost of an allowance of 0."""
        zero = quota(0, limit.anchor)
        async with world.store() as store:
            for each, cost in ((limit, 11), (limit, 2**64 - 1), (zero, 1)):
                answer = await ask(store, one(b"k", each, cost))
                assert (answer.admitted, period(answer).fits, period(answer).wait_ns) == (0, False, None)
            assert len(store._buckets) == 0

    async def test_all_members_or_none_beside_rates(self, world: World, limit: PeriodLimit) -> None:
        """Of 9 requests two pass, since the rate has room for two; a quota that is used up keeps the rate uncharged."""
        async with world.store() as store:
            answer = await ask(
                store, group(Charge(b"k", limit, 4), Charge(b"r", SLOW, 2), Charge(b"f", FAST, 1), count=9)
            )
            assert answer.admitted == 2
            assert [member.fits for member in answer.members] == [False, True, True]
            assert (period(answer).used, bucket(answer, 1).backlog, bucket(answer, 2).backlog) == (
                8,
                240_000_000,
                2_000_000,
            )
            answer = await ask(store, group(Charge(b"k", limit, 3), Charge(b"r2", SLOW, 1)))
            assert (answer.admitted, period(answer).used, bucket(answer, 1).backlog) == (0, 8, 0)
            assert (await ask(store, one(b"r", SLOW, 7), one(b"k", limit, 2, peek=True))).admitted == 1

    async def test_a_key_that_stands_twice_is_summed(self, world: World, limit: PeriodLimit) -> None:
        """3 + 2 units a request: two of three requests pass an allowance of ten."""
        async with world.store() as store:
            answer = await ask(store, group(Charge(b"k", limit, 3), Charge(b"k", limit, 2), count=3))
            assert answer.admitted == 2
            assert [(period(answer, at).used, period(answer, at).fits) for at in (0, 1)] == [(10, False)] * 2

    async def test_peeks_zero_costs_and_refusals_create_nothing(self, world: World, limit: PeriodLimit) -> None:
        """They are answered as any other."""
        async with world.store() as store:
            answer = await ask(store, one(b"k", limit, cost=4, count=5, peek=True))
            assert (answer.admitted, period(answer).used, period(answer).fits) == (2, 0, False)
            answer = await ask(store, one(b"k", limit, cost=0, count=5))
            assert (answer.admitted, period(answer).used, period(answer).wait_ns) == (5, 0, 0)
            assert await admitted(store, one(b"k", limit, cost=11)) == [0]
            assert await admitted(store, group(Charge(b"k", limit, 1), Charge(b"r", SLOW, 11))) == [0]
            assert len(store._buckets) == 0
            assert store.counters().created == 0
            assert await store.rolled_up(0) == ()

    async def test_what_is_admitted_is_rolled_up_under_the_quota(self, world: World, limit: PeriodLimit) -> None:
        """And its label, whatever the period."""
        async with world.store() as store:
            await ask(store, one(b"k", limit, cost=3), one(b"k", limit, cost=9))
            world.clock.advance(SECOND)
            await ask(store, one(b"k", limit, cost=2))
            assert await store.rolled_up(0) == (RollupRow(b"k", 100, 3), RollupRow(b"k", 101, 2))

    async def test_another_allowance_holds_at_once_and_usage_stays(self, world: World, limit: PeriodLimit) -> None:
        """C33: 8 of 10; of 20 there are 12 left; of 5 none; of 10 two."""
        more, less = quota(20, limit.anchor), quota(5, limit.anchor)
        async with world.store() as store:
            assert await admitted(store, one(b"k", limit, 8)) == [1]
            assert (await ask(store, one(b"k", more, count=99, peek=True))).admitted == 12
            answer = await ask(store, one(b"k", less))
            assert (answer.admitted, period(answer).used, period(answer).fits) == (0, 8, False)
            assert await admitted(store, one(b"k", limit, count=3)) == [2]

    async def test_concurrent_callers_share_one_counter(self, world: World, limit: PeriodLimit) -> None:
        """Forty callers for ten units: ten pass."""
        async with world.store() as store:
            answers = await asyncio.gather(*(admitted(store, one(b"k", limit)) for _ in range(40)))
            assert sum(answer[0] for answer in answers) == 10

    async def test_a_refused_call_never_moves_the_end(self, world: World, limit: PeriodLimit) -> None:
        """C06: asked each second for a minute, the period ends as it would have."""
        async with world.store() as store:
            assert await admitted(store, one(b"k", limit, count=10)) == [10]
            for _ in range(59):
                world.clock.advance(SECOND)
                assert await admitted(store, one(b"k", limit)) == [0]
            world.clock.advance(SECOND + (PART if limit is ROLLING else 0))
            assert await admitted(store, one(b"k", limit, count=11)) == [10]

    async def test_a_full_table_refuses(self, world: World, limit: PeriodLimit) -> None:
        """Buckets and counters share the room; who finds none asks again in a second. What disk has makes room."""
        async with world.store(buckets_max=3) as store:
            for key in (b"1", b"2"):
                await ask(store, one(key, limit))
            await ask(store, one(b"3", FAST))
            answer = await ask(store, one(b"4", limit))
            assert answer.admitted == (world.kind == "sqlite")
            if world.kind == "memory":
                assert answer.members[0].fits is False
                assert (period(answer).used, period(answer).wait_ns) == (10, SECOND)
                assert store.counters().refused_full == 1
            assert await admitted(store, one(b"1", limit, count=10)) == [9]


class TestCalendar:
    async def test_a_new_period_is_a_new_counter(self, world: World) -> None:
        """At the minute, to the nanosecond."""
        world.clock.advance(59 * SECOND)
        async with world.store() as store:
            assert await admitted(store, one(b"k", CALENDAR, count=10)) == [10]
            world.clock.advance(SECOND - 1)
            assert period(await ask(store, one(b"k", CALENDAR))).wait_ns == 1
            world.clock.advance(1)
            answer = await ask(store, one(b"k", CALENDAR, count=3))
            assert answer.members == (ChargedPeriod(True, 3, WALL + MINUTE, 0, MINUTE, 160),)
            names = ["2027-01-15T08Z/min", "2027-01-15T08:01Z/min"]
            periods = store._buckets.periods
            assert [periods.get(encode_period(b"k", name)) is not None for name in names] == [True, True]

    async def test_a_wall_clock_that_steps_back_finds_the_former_counter(self, world: World) -> None:
        """And on again: each period is counted once, whatever the clock does."""
        async with world.store() as store:
            await ask(store, one(b"k", CALENDAR, count=10))
            world.clock.advance(MINUTE + SECOND)
            store.tidy()
            assert await admitted(store, one(b"k", CALENDAR, count=4)) == [4]
            world.clock.wall -= 2 * SECOND
            assert await admitted(store, one(b"k", CALENDAR)) == [0]
            world.clock.wall += 2 * SECOND
            assert await admitted(store, one(b"k", CALENDAR, count=9)) == [6]

    async def test_a_wall_clock_that_leaps_and_returns_reclaims_nothing(self, world: World) -> None:
        """A day ahead, and back: a lifetime passes by the store's time."""
        async with world.store() as store:
            await ask(store, one(b"k", CALENDAR, count=10))
            world.clock.wall += 24 * HOUR
            assert await admitted(store, one(b"k", CALENDAR)) == [1]
            store.tidy()
            world.clock.wall -= 24 * HOUR
            assert await admitted(store, one(b"k", CALENDAR)) == [0]

    async def test_two_months_that_begin_on_one_day_and_end_on_two(self, world: World) -> None:
        """From the 31st or the 30th: both begin on April 30, 2027; the one asked for says when it ends."""
        world.clock.wall = 1_809_043_200 * SECOND  # 2027-04-30
        end_31, end_30 = 1_811_721_600 * SECOND, 1_811_635_200 * SECOND
        limits = [quota(10, PeriodAnchor.CALENDAR, Unit.MONTH, month_starts_on=day) for day in (31, 30)]
        async with world.store() as store:
            first = period(await ask(store, one(b"k", limits[0], 4)))
            second = period(await ask(store, one(b"k", limits[1], 4)))
            assert (first.used, first.reset_ns) == (4, end_31 - world.clock.wall)
            assert (second.used, second.reset_ns) == (8, end_30 - world.clock.wall)


class TestFirstUse:
    async def test_the_first_admitted_call_opens_the_period(self, world: World) -> None:
        """Neither a peek nor a refusal does; then the store's clock counts, whatever the wall clock does."""
        async with world.store() as store:
            await ask(store, one(b"k", FIRST_USE, peek=True), one(b"k", FIRST_USE, 11))
            world.clock.advance(25 * SECOND)
            answer = await ask(store, one(b"k", FIRST_USE, count=11))
            assert answer.members == (ChargedPeriod(False, 10, WALL + 25 * SECOND, MINUTE, MINUTE, 125),)
            world.clock.wall += HOUR
            world.clock.advance(MINUTE - 1)
            assert await admitted(store, one(b"k", FIRST_USE)) == [0]
            world.clock.advance(1)
            peeked = period(await ask(store, one(b"k", FIRST_USE, peek=True)))
            assert (peeked.used, peeked.start_ns) == (0, WALL + 85 * SECOND)
            world.clock.advance(5 * SECOND)
            assert period(await ask(store, one(b"k", FIRST_USE))).start_ns == WALL + 90 * SECOND


class TestLending:
    async def test_a_chunk_is_a_part_of_what_is_left_and_charged_at_once(self, world: World) -> None:
        """Of 10 units over 4: three, two, two, one, one, one. None is rolled up: the borrower tells what it spends."""
        async with world.store() as store:
            asked = (Charges(5, (Charge(b"k", CALENDAR, 1),), lent_over=4),) * 7
            answers = await store.consume(asked, ANCHOR)
            assert [answer.admitted for answer in answers] == [3, 2, 2, 1, 1, 1, 0]
            assert [period(answer).fits for answer in answers] == [True] * 5 + [False] * 2
            assert await store.rolled_up(0) == ()

    async def test_no_more_than_asked(self, world: World) -> None:
        """Two of the five that a chunk may have."""
        async with world.store() as store:
            (answer,) = await store.consume((Charges(2, (Charge(b"k", CALENDAR, 1),), lent_over=2),), ANCHOR)
            assert (answer.admitted, period(answer).used) == (2, 2)

    async def test_what_is_given_back_is_taken_once(self, world: World) -> None:
        """By source and number, of the period that it was lent of, and never below nothing; also after a restart."""
        row = GivenBack(b"k", NAME, 3)
        async with world.store() as store:
            await ask(store, one(b"k", CALENDAR, 8))
            assert [await store.roll_up(7, 1, (), (row,)) for _ in range(2)] == [True, False]
            assert await store.roll_up(8, 1, ()) is True
            assert await admitted(store, one(b"k", CALENDAR, count=9)) == [5]
            others = tuple(GivenBack(*each, 3) for each in ((b"k", BEFORE), (b"k", HOUR_NAME), (b"l", NAME)))
            assert await store.roll_up(7, 2, (), others) is True
            assert await admitted(store, one(b"k", CALENDAR)) == [0]
            assert await store.roll_up(8, 2, (), (GivenBack(b"k", NAME, 99),)) is True
            assert period(await ask(store, one(b"k", CALENDAR, peek=True))).used == 0
        if world.kind == "sqlite":
            async with world.store() as store:
                assert await store.roll_up(7, 1, (), (row,)) is False
                assert await admitted(store, one(b"k", CALENDAR, count=11)) == [10]


class TestClosing:
    async def test_each_closed_period_is_told_once(self, world: World) -> None:
        """Soon after its end, with what was used of which allowance; a rolling one never, nor one nobody asked for."""
        calendar, first_use = (
            quota(10, a, audit_periods=True) for a in (PeriodAnchor.CALENDAR, PeriodAnchor.FIRST_USE)
        )
        rolling = quota(10, PeriodAnchor.ROLLING, audit_periods=True)
        async with world.store() as store:
            await ask(store, one(b"c", calendar, 4), one(b"f", first_use, 5), one(b"r", rolling), one(b"q", CALENDAR))
            world.clock.advance(MINUTE)
            await ask(store, one(b"f", first_use, 6))
            told = list(store.take_closed())
            for _ in range(240):
                world.clock.advance(SECOND)
                store.tidy()
                await store.rolled_up(10**6)
                told += store.take_closed()
            assert sorted((each.store_key, each.start_ns - WALL, each.end_ns - WALL, each.used) for each in told) == [
                (b"c", 0, MINUTE, 4),
                (b"f", 0, MINUTE, 5),
                (b"f", MINUTE, 2 * MINUTE, 6),
            ]
            assert {each.allowance for each in told} == {10}
            assert len(store._buckets) == 0
