"""C01: the wall clock steps backwards and locks a caller out. At the level of bucket and store; time is monotonic."""

from pathlib import Path

import pytest

from apportion.core.bucket import Bucket
from apportion.core.limit import RateLimit
from tests.contract.worlds import HOUR, SECOND, World, admitted, ask, bucket, one

T0 = 100 * SECOND
FIVE = RateLimit(1, SECOND, 5)


def take(bucket: Bucket, now_ns: int) -> bool:
    """One request."""
    fits = bucket.admits(1, now_ns)
    if fits:
        bucket.charge(1)
    return fits


def test_a_time_that_steps_back_neither_refills_nor_starves() -> None:
    """bucket(1/s, cap 5): three calls at 100 s, one at 89 s is the fourth; at 101 s it goes on from 100 s."""
    bucket = Bucket(FIVE, T0)
    assert [take(bucket, T0) for _ in range(3)] == [True, True, True]
    assert bucket.remaining() == 2
    assert take(bucket, T0 - 11 * SECOND)
    assert bucket.remaining() == 1
    assert [take(bucket, T0 + SECOND) for _ in range(3)] == [True, True, False]
    assert bucket.retry_after_ns(1) == SECOND
    assert 0 <= bucket.backlog <= bucket.capacity


def test_stepping_to_and_fro_never_admits_twice() -> None:
    """Alternating clocks credit each instant once: five units and no more."""
    bucket = Bucket(FIVE, T0)
    assert sum(take(bucket, T0 - (step % 2) * 10 * SECOND) for step in range(40)) == 5


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("limit", [FIVE, RateLimit(1, SECOND, 1)], ids=["durable", "in memory"])
async def test_a_store_does_not_see_the_wall_clock_step(kind: str, limit: RateLimit, tmp_path: Path) -> None:
    """The wall clock falls an hour; a unit is back after one real second, as told, and not later."""
    world = World(kind, tmp_path)
    async with world.store() as store:
        assert await admitted(store, one(b"k", limit, count=9)) == [limit.burst]
        world.clock.wall -= HOUR
        answer = await ask(store, one(b"k", limit))
        assert (answer.admitted, bucket(answer).backlog) == (0, limit.burst * 1_000_000)
        world.clock.monotonic += SECOND
        assert await admitted(store, one(b"k", limit, count=3)) == [1]
