"""Period quotas against a log of all that was admitted, read by brute force: any limits, costs and times."""

import asyncio
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.periods import Unit
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from tests.contract.worlds import SECOND, World, ask, one, quota

Hit = tuple[int, int]
"""When, by the clock that the limit goes by, and how many units."""

KINDS = [pytest.param("memory", 60, id="memory"), pytest.param("sqlite", 3, id="sqlite")]


def window(hits: list[Hit], length_ns: int, now_ns: int) -> int:
    """Units of the window that ends now, its own beginning not in it."""
    return sum(units for at, units in hits if at > now_ns - length_ns)


class Reference:
    """The dumb reading of design 4.2: what a store should have admitted, from the log alone."""

    def __init__(self, limit: PeriodLimit) -> None:
        self.limit = limit
        self.hits: list[Hit] = []
        self.opened_ns: int | None = None

    def used(self, now_ns: int) -> int:
        """Units that count now."""
        if self.limit.anchor is PeriodAnchor.CALENDAR:
            name = stamp(now_ns, self.limit.unit)
            return sum(units for at, units in self.hits if stamp(at, self.limit.unit) == name)
        assert self.limit.anchor is PeriodAnchor.FIRST_USE
        if self.opened_ns is None or now_ns >= self.opened_ns + self.limit.length_ns:
            return 0
        return sum(units for at, units in self.hits if at >= self.opened_ns)

    def take(self, cost: int, count: int, now_ns: int) -> int:
        """How many of `count` requests pass; they are noted."""
        used = self.used(now_ns)
        passed = min(count, (self.limit.units - used) // cost)
        if passed:
            if not used:
                self.opened_ns = now_ns
            self.hits.append((now_ns, passed * cost))
        return passed


def stamp(now_ns: int, unit: Unit) -> str:
    """The calendar period, as far as the clock of UTC shows it."""
    shown = {Unit.MINUTE: "%Y-%m-%d %H:%M", Unit.HOUR: "%Y-%m-%d %H", Unit.DAY: "%Y-%m-%d"}
    return f"{datetime.fromtimestamp(now_ns // SECOND, UTC):{shown[unit]}}"


async def reopened(world: World, store: MemoryStore | SqliteStore, often: float) -> MemoryStore | SqliteStore:
    """Now and then another life of a store that keeps what it acknowledged."""
    if world.kind == "memory" or random.random() > often:
        return store
    await store.close()
    store = world.make()
    await store.open()
    return store


async def compare(world: World, limit: PeriodLimit, calls: int) -> None:
    """A walk of calls and sweeps, the store and the reference side by side."""
    reference, store = Reference(limit), world.make()
    await store.open()
    step_ns = limit.length_ns // 12
    for _ in range(calls):
        store = await reopened(world, store, often=0.05)
        world.clock.advance(random.choice((0, 1, random.randrange(step_ns), random.randrange(4 * step_ns))))
        cost, count = random.randint(1, limit.units), random.randint(1, 4)
        expected = reference.take(cost, count, world.clock.wall)
        assert (await ask(store, one(b"k", limit, cost, count))).admitted == expected
        if random.random() < 0.3:
            store.tidy()
    await store.close()


@pytest.mark.parametrize("kind, walks", KINDS)
@pytest.mark.parametrize("anchor", [PeriodAnchor.CALENDAR, PeriodAnchor.FIRST_USE])
def test_a_store_admits_what_the_log_says(kind: str, walks: int, anchor: PeriodAnchor) -> None:
    """To the unit and the nanosecond, with sweeps and restarts between."""
    for seed in range(walks):
        random.seed(seed)
        unit = random.choice((Unit.MINUTE, Unit.HOUR, Unit.DAY))
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(compare(World(kind, Path(directory)), quota(random.randint(1, 40), anchor, unit), 80))


async def roll(world: World, limit: PeriodLimit, calls: int) -> None:
    """A walk in bursts: no window that ends at a call, and so none at all, has more than the allowance."""
    hits: list[Hit] = []
    store = world.make()
    await store.open()
    for _ in range(calls):
        store = await reopened(world, store, often=0.05)
        nearly = limit.length_ns - random.randrange(limit.length_ns // 100)
        world.clock.advance(random.choice((0, 1, random.randrange(limit.length_ns // 10), nearly)))
        cost, now_ns = random.randint(1, limit.units), world.clock.wall
        answer = await ask(store, one(b"k", limit, cost, random.randint(1, 3)))
        hits.append((now_ns, answer.admitted * cost))
        used = window(hits, limit.length_ns, now_ns)
        assert used <= limit.units
        late = window(hits, limit.length_ns + 2 * limit.length_ns // 120, now_ns)
        assert answer.admitted or cost + late > limit.units, "what is refused would not have fitted a part later"
        if random.random() < 0.3:
            store.tidy()
    await store.close()


@pytest.mark.parametrize("kind, walks", KINDS)
def test_no_window_ever_has_more_than_a_rolling_allowance(kind: str, walks: int) -> None:
    """Checked against all hits by brute force; and who is refused has no more than one part to blame."""
    for seed in range(walks):
        random.seed(seed)
        unit = random.choice((Unit.SECOND, Unit.MINUTE, Unit.DAY))
        limit = quota(random.randint(1, 40), PeriodAnchor.ROLLING, unit, random.choice((1, 7)))
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(roll(World(kind, Path(directory)), limit, 80))


@pytest.mark.asyncio
async def test_at_an_even_load_at_least_95_percent_of_a_rolling_allowance_is_used(tmp_path: Path) -> None:
    """600 a minute, 20 a second offered evenly for five minutes, of which 10 can pass."""
    limit, passed, hits, world = quota(600, PeriodAnchor.ROLLING), 0, [], World("memory", tmp_path)
    async with world.store() as store:
        for number in range(5 * 60 * 20):
            took = (await ask(store, one(b"k", limit))).admitted
            hits.append((world.clock.wall, took))
            assert number % 100 or window(hits, limit.length_ns, world.clock.wall) <= 600
            passed += took
            world.clock.advance(SECOND // 20)
    assert passed >= 0.95 * 600 * 5
