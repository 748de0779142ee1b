"""C33 (bucket form) and C19f: a limit that changes keeps what was used; leaving `unlimited` floods nobody."""

import pytest

from apportion.core.limit import RateLimit, default_burst
from apportion.region.memory_store import MemoryStore
from apportion.region.store import Anchor, Charge, Charges
from tests.contract.worlds import bucket

HOUR_NS = 3600 * 1_000_000_000
MS = 1_000_000

KEY = b"c33"


def per_hour(units: int) -> RateLimit:
    """A bucket as deep as an hour's worth."""
    return RateLimit(units, HOUR_NS, units)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_ns = 10**18

    def read(self) -> int:
        """What it shows."""
        return self.now_ns


async def ask(store: MemoryStore, limit: RateLimit, count: int, peek: bool = False) -> tuple[int, int]:
    """How many of `count` pass, and what is left then."""
    (answer,) = await store.consume((Charges(count, (Charge(KEY, limit, 1),), peek),), Anchor(1, 0))
    room = limit.burst * limit.period_ticks - bucket(answer).backlog
    return answer.admitted, max(0, room) // limit.period_ticks


@pytest.mark.asyncio
async def test_a_limit_raised_lowered_and_raised_again_keeps_what_was_used() -> None:
    """8 of 10 used; of 20 there are 12 left; of 5 none, and OVER; of 10 two, and then OVER. Status never errs."""
    clock = Clock()
    store = MemoryStore(clock.read, clock.read)
    await store.open()
    assert await ask(store, per_hour(10), 8) == (8, 2)
    assert await ask(store, per_hour(20), 1, peek=True) == (1, 12)
    assert await ask(store, per_hour(5), 1, peek=True) == (0, 0)
    assert await ask(store, per_hour(5), 1) == (0, 0)
    assert await ask(store, per_hour(10), 3) == (2, 0)


@pytest.mark.asyncio
async def test_another_period_keeps_what_was_used_too() -> None:
    """8 of 10 an hour are 8 of 10 a minute: never less used than it was."""
    clock = Clock()
    store = MemoryStore(clock.read, clock.read)
    await store.open()
    assert await ask(store, per_hour(10), 8) == (8, 2)
    minute = RateLimit(10, HOUR_NS // 60, 10)
    assert await ask(store, minute, 5) == (2, 0)


@pytest.mark.asyncio
async def test_leaving_unlimited_starts_a_bucket_that_neither_floods_nor_freezes() -> None:
    """100 calls in the second after the reload to 10/s: between 9 and 20 pass, for nothing was counted before."""
    clock = Clock()
    store = MemoryStore(clock.read, clock.read)
    await store.open()
    limit = RateLimit(10, 1_000_000_000, default_burst(10, 1_000_000_000))
    passed = 0
    for _ in range(100):
        clock.now_ns += 10 * MS
        passed += (await ask(store, limit, 1))[0]
    assert 9 <= passed <= 20
