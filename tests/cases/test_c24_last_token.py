"""C24: the last unit under concurrency, and a sweeper that removes nothing that counts; at the region's stores."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from tests.contract.worlds import SECOND, World, admitted, one, quota

pytestmark = pytest.mark.asyncio


async def worker(store: MemoryStore | SqliteStore, key: bytes, anchor: PeriodAnchor) -> int:
    """One of four, with 50 calls at once: how many pass."""
    answers = await asyncio.gather(*(admitted(store, one(key, quota(100, anchor))) for _ in range(50)))
    return sum(passed for (passed,) in answers)


@pytest.mark.parametrize("kind, rounds", [("memory", 200), ("sqlite", 67)])
@pytest.mark.parametrize("anchor", list(PeriodAnchor))
async def test_exactly_a_hundred_of_two_hundred_at_once(
    kind: str, rounds: int, anchor: PeriodAnchor, tmp_path: Path
) -> None:
    """100/min, four workers, 200 calls, each round on a fresh key; on disk 200 rounds of all kinds together."""
    async with World(kind, tmp_path).store(buckets_max=10_000) as store:
        for number in range(rounds):
            counts = await asyncio.gather(*(worker(store, b"%d" % number, anchor) for _ in range(4)))
            assert sum(counts) == 100


async def test_a_sweep_before_each_call_removes_nothing_that_counts(tmp_path: Path) -> None:
    """50/s rolling in memory, 500 calls a second for 10 s, at random so that none keeps step with its parts: at
    most 50 pass in every second that ends anywhere.
    """
    world, limit, passed = World("memory", tmp_path), quota(50, PeriodAnchor.ROLLING, Unit.SECOND), []
    offers = sorted(Random(24).choices(range(10 * SECOND), k=5_000))
    start = world.clock.wall
    async with world.store() as store:
        for at in offers:
            world.clock.advance(start + at - world.clock.wall)
            store.tidy()
            if await admitted(store, one(b"k", limit)) == [1]:
                passed.append(world.clock.wall)
    for end in passed:
        assert sum(end - SECOND < at <= end for at in passed) <= 50
    assert len(passed) >= 0.95 * 50 * 10
