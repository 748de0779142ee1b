"""What every store promises of decisions, held by each of them. A store's own promises are in tests/region."""

import asyncio

import pytest

from apportion.core.limit import RateLimit
from apportion.region.store import ROLLUP_EPOCHS_KEPT, Anchor, Charge, Charged, RollupRow
from tests.contract.worlds import (
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
    direct,
    group,
    one,
)

pytestmark = pytest.mark.asyncio

SLOW_UNIT = 60_000_000
"""Backlog of one unit of SLOW: the microseconds of its period."""

LIMITS = [pytest.param(FAST, id="fast"), pytest.param(SLOW, id="slow")]


class TestDecisions:
    @pytest.mark.parametrize("limit", LIMITS)
    async def test_the_most_that_fit_are_admitted(self, world: World, limit: RateLimit) -> None:
        """Of 8 requests of cost 3 a burst of 10 admits 3, and the bucket holds their 9 units."""
        async with world.store() as store:
            answer = await ask(store, one(b"k", limit, cost=3, count=8))
            assert answer.admitted == 3
            assert answer.members == (Charged(fits=False, backlog=9 * limit.period_ticks, epoch=100),)

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_smaller_cost_still_fits_what_is_left(self, world: World, limit: RateLimit) -> None:
        """A refusal of a large cost charges nothing."""
        async with world.store() as store:
            assert await admitted(store, one(b"k", limit, 9), one(b"k", limit, 2), one(b"k", limit, 1)) == [1, 0, 1]

    async def test_time_drains(self, world: World) -> None:
        """10 a minute is a unit each 6 s, to the nanosecond."""
        async with world.store() as store:
            assert await admitted(store, one(b"k", SLOW, count=11)) == [10]
            world.clock.advance(6 * SECOND - 1)
            assert await admitted(store, one(b"k", SLOW)) == [0]
            world.clock.advance(1)
            assert await admitted(store, one(b"k", SLOW, count=2)) == [1]

    async def test_a_fast_bucket_drains(self, world: World) -> None:
        """10 a second is a unit each 100 ms."""
        async with world.store() as store:
            assert await admitted(store, one(b"k", FAST, count=11)) == [10]
            world.clock.advance(350_000_000)
            assert await admitted(store, one(b"k", FAST, count=9)) == [3]

    async def test_all_members_or_none(self, world: World) -> None:
        """A member that is refused keeps the others uncharged."""
        async with world.store() as store:
            await ask(store, one(b"tight", SLOW, cost=10))
            answer = await ask(store, group(Charge(b"roomy", FAST, 4), Charge(b"tight", SLOW, 1)))
            assert answer.admitted == 0
            assert [member.fits for member in answer.members] == [True, False]
            assert bucket(answer).backlog == 0
            assert await admitted(store, one(b"roomy", FAST, 10)) == [1]

    async def test_the_tightest_member_decides_how_many(self, world: World) -> None:
        """Of 7 requests two pass, since one member holds five units and each request takes two."""
        async with world.store() as store:
            await ask(store, one(b"b", SLOW, cost=5))
            answer = await ask(store, group(Charge(b"a", FAST, 1), Charge(b"b", SLOW, 2), count=7))
            assert answer.admitted == 2
            assert [member.fits for member in answer.members] == [True, False]
            assert [bucket(answer, at).backlog for at in (0, 1)] == [2 * 1_000_000, 9 * SLOW_UNIT]

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_key_that_stands_twice_is_summed(self, world: World, limit: RateLimit) -> None:
        """3 + 2 units a request: two of three requests pass a burst of ten."""
        async with world.store() as store:
            answer = await ask(store, group(Charge(b"k", limit, 3), Charge(b"k", limit, 2), count=3))
            assert answer.admitted == 2
            assert [member.fits for member in answer.members] == [False, False]
            assert {bucket(answer, at).backlog for at in (0, 1)} == {10 * limit.period_ticks}

    async def test_groups_are_decided_in_order(self, world: World) -> None:
        """An earlier group of the same call takes first."""
        async with world.store() as store:
            groups = [one(b"k", SLOW, count=4), one(b"k", FAST, count=0), one(b"k2", SLOW, cost=7), one(b"k2", SLOW, 4)]
            assert await admitted(store, *groups) == [4, 0, 1, 0]

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_peek_charges_nothing(self, world: World, limit: RateLimit) -> None:
        """It says what would pass, leaves no bucket, and rolls nothing up."""
        async with world.store() as store:
            answer = await ask(store, one(b"k", limit, cost=4, count=5, peek=True))
            assert answer.admitted == 2
            assert answer.members == (Charged(fits=False, backlog=0, epoch=100),)
            assert len(store._buckets) == 0
            assert await store.rolled_up(0) == ()
            pair = group(Charge(b"k", limit, 6), Charge(b"l", limit, 1), peek=True)
            assert await admitted(store, pair, pair) == [1, 1]

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_zero_cost_charges_nothing_and_always_fits(self, world: World, limit: RateLimit) -> None:
        """Even where nothing else does."""
        async with world.store() as store:
            assert await admitted(store, one(b"new", limit, cost=0, count=5)) == [5]
            assert len(store._buckets) == 0
            await ask(store, one(b"k", limit, cost=10))
            answer = await ask(store, group(Charge(b"k", limit, 0), count=3))
            assert answer.admitted == 3
            assert answer.members == (Charged(fits=True, backlog=10 * limit.period_ticks, epoch=100),)

    async def test_a_refusal_leaves_no_bucket(self, world: World) -> None:
        """Nor does a cost that can never fit, however large."""
        async with world.store() as store:
            answer = await ask(store, one(b"k", SLOW, cost=11), one(b"k", FAST, cost=2**64 - 1))
            assert answer.admitted == 0
            assert answer.members == (Charged(fits=False, backlog=0, epoch=100),)
            assert len(store._buckets) == 0

    async def test_a_limit_of_zero_admits_nothing(self, world: World) -> None:
        """And is written nowhere."""
        zero = RateLimit(0, MINUTE, 0)
        async with world.store() as store:
            assert await admitted(store, one(b"k", zero), one(b"k", zero, count=9)) == [0, 0]
            assert await admitted(store, group(Charge(b"k", zero, 1), Charge(b"l", FAST, 1))) == [0]
            assert len(store._buckets) == 0
            assert await store.rolled_up(0) == ()

    async def test_a_huge_count_is_one_step(self, world: World) -> None:
        """4,294,967,295 requests cost no more than one."""
        wide = RateLimit(2**32 - 1, SECOND, 2**32 - 1)
        async with world.store() as store:
            assert await admitted(store, one(b"k", wide, count=2**32 - 1), one(b"k", wide)) == [2**32 - 1, 0]

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_concurrent_callers_share_one_bucket(self, world: World, limit: RateLimit) -> None:
        """Forty callers for ten units: ten pass."""
        async with world.store() as store:
            answers = await asyncio.gather(*(admitted(store, one(b"k", limit)) for _ in range(40)))
            assert sum(answer[0] for answer in answers) == 10
            rows = await store.rolled_up(0)
            assert rows == (RollupRow(b"k", 100, 10),)

    @pytest.mark.parametrize("limit", LIMITS)
    async def test_a_cancelled_caller_leaves_the_state_valid(self, world: World, limit: RateLimit) -> None:
        """What it asked is charged once or not at all, and rolled up as it is charged."""
        async with world.store() as store:
            task = asyncio.create_task(admitted(store, one(b"k", limit, cost=4)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            answer = await ask(store, one(b"k", limit, count=10))
            assert answer.admitted in (6, 10)
            assert await store.rolled_up(0) == (RollupRow(b"k", 100, 10),)


class TestLimitChanges:
    async def test_another_rate_keeps_the_backlog(self, world: World) -> None:
        """8 used of 10 are 8 used of 20."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=8))
            answer = await ask(store, one(b"k", RateLimit(20, MINUTE, 20), count=20))
            assert answer.admitted == 12

    async def test_a_smaller_burst_waits_for_the_backlog(self, world: World) -> None:
        """10 used of 10; with a burst of 4 nothing fits until 7 have drained."""
        small = RateLimit(10, MINUTE, 4)
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=10))
            answer = await ask(store, one(b"k", small))
            assert answer.admitted == 0
            assert bucket(answer).backlog == 10 * SLOW_UNIT
            world.clock.advance(7 * 6 * SECOND - 1)
            assert await admitted(store, one(b"k", small)) == [0]
            world.clock.advance(1)
            assert await admitted(store, one(b"k", small)) == [1]

    async def test_another_period_rescales_the_backlog_rounding_up(self, world: World) -> None:
        """4 units of 10/7 ms less one microsecond's drain are 27,990 unit-ticks, 11.9957 of 3 us: 12."""
        seven, three = RateLimit(10, 7_000_000, 10), RateLimit(10, 3_000, 10)
        async with world.store() as store:
            await ask(store, one(b"k", seven, cost=4))
            world.clock.advance(1_000)
            answer = await ask(store, one(b"k", three, cost=10))
            assert answer.admitted == 0
            assert bucket(answer).backlog == 12

    async def test_a_refused_request_brings_the_new_limit_into_force(self, world: World) -> None:
        """From 600 a minute to 1 a minute: what drains from then on drains slowly."""
        quick, slow = RateLimit(600, MINUTE, 100), RateLimit(1, MINUTE, 100)
        async with world.store() as store:
            await ask(store, one(b"k", quick, cost=100))
            assert await admitted(store, one(b"k", slow)) == [0]
            world.clock.advance(59 * SECOND)
            assert await admitted(store, one(b"k", slow)) == [0]
            world.clock.advance(SECOND)
            assert await admitted(store, one(b"k", slow)) == [1]

    async def test_ticks_of_another_length_never_drain_twice(self, world: World) -> None:
        """To and fro between microseconds and milliseconds in one instant: the backlog never falls."""
        hourly = RateLimit(36_000, HOUR, 10)
        async with world.store() as store:
            world.clock.advance(999_999)
            await ask(store, one(b"k", SLOW, cost=10))
            for _ in range(5):
                hour = await ask(store, one(b"k", hourly, peek=True))
                minute = await ask(store, one(b"k", SLOW, peek=True))
                assert (hour.admitted, bucket(hour).backlog) == (0, 10 * 3_600_000)
                assert (minute.admitted, bucket(minute).backlog) == (0, 10 * SLOW_UNIT)

    async def test_from_slow_to_fast_and_back_keeps_what_was_used(self, world: World) -> None:
        """The bucket moves between disk and memory without a fresh allowance."""
        async with world.store() as store:
            await ask(store, one(b"k", SLOW, cost=6))
            assert await admitted(store, one(b"k", FAST, count=10)) == [4]
            assert await admitted(store, one(b"k", SLOW)) == [0]


class TestLabels:
    async def test_the_label_is_that_of_the_store_time(self, world: World) -> None:
        """Epoch 100 ends a second after the anchor."""
        async with world.store() as store:
            world.clock.advance(SECOND - 1)
            assert (await ask(store, one(b"k", FAST))).members[0].epoch == 100
            world.clock.advance(1)
            assert (await ask(store, one(b"k", FAST))).members[0].epoch == 101
            later = await store.consume((one(b"k", FAST),), Anchor(epoch=500, at_ns=WALL - 3 * SECOND))
            assert later[0].members[0].epoch == 504

    async def test_what_is_admitted_is_rolled_up_under_its_label(self, world: World) -> None:
        """Units by quota and label, refused ones not."""
        async with world.store() as store:
            await ask(store, one(b"a", FAST, cost=2, count=3), one(b"b", SLOW, cost=10), one(b"b", SLOW))
            world.clock.advance(SECOND)
            await ask(store, group(Charge(b"a", FAST, 1), Charge(b"b", SLOW, 0), count=2))
            first = {RollupRow(b"a", 100, 6), RollupRow(b"b", 100, 10)}
            assert set(await store.rolled_up(100)) == first | {RollupRow(b"a", 101, 2)}
            assert await store.rolled_up(101) == (RollupRow(b"a", 101, 2),)

    async def test_a_direct_label_lends_no_more_than_its_quota(self, world: World) -> None:
        """30/s: although the bucket drains meanwhile, epoch 100 lends 30 and epoch 101 again."""
        limit = RateLimit(30, SECOND, 30)
        async with world.store() as store:
            answer = await ask(store, direct(b"q", limit, 100, count=20))
            assert answer.admitted == 20
            assert bucket(answer).label_units == 10
            world.clock.advance(900_000_000)
            answer = await ask(store, direct(b"q", limit, 100, count=20))
            assert answer.admitted == 10
            assert answer.members == (Charged(fits=False, backlog=10 * 1_000_000, epoch=100, label_units=0),)
            world.clock.advance(100_000_000)
            assert await admitted(store, direct(b"q", limit, 101, count=31)) == [23]
            assert await store.rolled_up(0) == (RollupRow(b"q", 100, 30), RollupRow(b"q", 101, 23))

    async def test_a_direct_label_is_held_to_whole_units(self, world: World) -> None:
        """51 in 2 s: labels of 25 and 26 in turn."""
        limit = RateLimit(51, 2 * SECOND, 51)
        async with world.store() as store:
            assert await admitted(store, direct(b"q", limit, 100, count=60)) == [25]
            world.clock.advance(SECOND)
            assert await admitted(store, direct(b"q", limit, 101, count=60)) == [26]

    async def test_a_direct_label_of_another_time_charges_nothing(self, world: World) -> None:
        """Neither before nor after it; and no other member either."""
        limit = RateLimit(30, SECOND, 30)
        async with world.store() as store:
            for epoch in (99, 101):
                members = Charge(b"q", limit, 1, epoch), Charge(b"k", SLOW, 1)
                answer = await ask(store, group(*members))
                assert answer.admitted == 0
                assert [bucket(answer, at).wrong_epoch for at in (0, 1)] == [True, False]
                assert [member.fits for member in answer.members] == [False, True]
            assert len(store._buckets) == 0

    async def test_a_lowered_limit_lowers_the_label(self, world: World) -> None:
        """What was lent under the label counts against the new quota."""
        async with world.store() as store:
            assert await admitted(store, direct(b"q", RateLimit(100, SECOND, 100), 100, count=40)) == [40]
            assert await admitted(store, direct(b"q", RateLimit(50, SECOND, 50), 100, count=40)) == [10]
            assert await admitted(store, direct(b"q", RateLimit(30, SECOND, 30), 100)) == [0]

    async def test_old_labels_are_dropped_and_never_fresh_again(self, world: World) -> None:
        """After ten epochs the counter of the first is gone; an anchor that leads back to it is refused."""
        limit = RateLimit(30, SECOND, 30)
        async with world.store() as store:
            for epoch in range(100, 120):
                assert await admitted(store, direct(b"q", limit, epoch, count=30)) == [30]
                world.clock.advance(SECOND)
            assert len(store._buckets._labels) <= 8
            back = Anchor(epoch=100, at_ns=WALL + 20 * SECOND)
            answer = (await store.consume((direct(b"q", limit, 100),), back))[0]
            assert (answer.admitted, bucket(answer).wrong_epoch) == (0, True)

    async def test_the_rollup_keeps_the_newest_labels(self, world: World) -> None:
        """A row that is ROLLUP_EPOCHS_KEPT labels old is not read any more."""
        async with world.store() as store:
            await store.roll_up(1, 1, (RollupRow(b"k", 100, 5), RollupRow(b"k", 101, 6)))
            await store.roll_up(1, 2, (RollupRow(b"k", 100 + ROLLUP_EPOCHS_KEPT, 7),))
            kept = (RollupRow(b"k", 101, 6), RollupRow(b"k", 100 + ROLLUP_EPOCHS_KEPT, 7))
            assert await store.rolled_up(0) == kept


class TestBounds:
    @pytest.mark.parametrize("limit", LIMITS)
    async def test_drained_buckets_are_swept_and_live_ones_are_not(self, world: World, limit: RateLimit) -> None:
        """After 2,000 keys that came and drained, few are left; the one that did not drain is."""
        live = RateLimit(1, 24 * HOUR, 10)
        async with world.store(buckets_max=100_000) as store:
            await ask(store, one(b"live", live, cost=10))
            for batch in range(20):
                keys = (b"%d" % key for key in range(100 * batch, 100 * batch + 100))
                await ask(store, *(one(key, limit, cost=1) for key in keys))
                world.clock.advance(10 * SECOND)
            assert len(store._buckets) < 400
            assert await admitted(store, one(b"live", live)) == [0]

    async def test_no_call_sweeps_more_than_a_few(self, world: World) -> None:
        """Five hundred drained buckets outlast one small call."""
        async with world.store() as store:
            await ask(store, *(one(b"%d" % key, FAST) for key in range(500)))
            world.clock.advance(HOUR)
            await ask(store, one(b"0", FAST))
            assert len(store._buckets) > 450

    async def test_a_full_store_refuses_further_keys_and_serves_the_others(self, world: World) -> None:
        """The eleventh live key counts as without tokens; when one has drained there is room again."""
        async with world.store(buckets_max=10) as store:
            assert await admitted(store, *(one(b"%d" % key, FAST, cost=10) for key in range(10))) == [1] * 10
            answer = await ask(store, one(b"new", FAST))
            assert answer.admitted == 0
            assert answer.members == (Charged(fits=False, backlog=10 * 1_000_000, epoch=100),)
            answer = await ask(store, group(Charge(b"new", FAST, 1), Charge(b"newer", FAST, 1)))
            assert (answer.admitted, [member.fits for member in answer.members]) == (0, [False, False])
            assert store.counters().refused_full == 2
            world.clock.advance(SECOND)
            assert await admitted(store, one(b"0", FAST), one(b"1", FAST)) == [1, 1]
            assert await admitted(store, one(b"new", FAST)) == [1]
