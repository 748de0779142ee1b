"""C14 (b) and (c): mixed and large costs of a rolling quota, at the region's stores."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from tests.contract.worlds import SECOND, WALL, World, admitted, ask, one, period, quota

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("offset_ms", [0, 1, 250, 499, 999])
async def test_mixed_costs_are_counted_by_their_units(kind: str, offset_ms: int, tmp_path: Path) -> None:
    """10/60s: 8 units at 0 s, 2 at 1 s, one at 2 s is refused, 8 at 60.5 s, one at 60.6 s is refused."""
    world, limit, answers = World(kind, tmp_path), quota(10, PeriodAnchor.ROLLING, Unit.SECOND, 60), []
    world.clock.advance(offset_ms * 1_000_000)
    start = world.clock.wall
    async with world.store() as store:
        for at, cost in ((0.0, 8), (1.0, 2), (2.0, 1), (60.5, 8), (60.6, 1)):
            world.clock.advance(start + round(at * SECOND) - world.clock.wall)
            answers += await admitted(store, one(b"k", limit, cost))
    assert answers == [1, 1, 0, 1, 0]


async def test_a_large_cost_takes_no_more_room_than_a_small_one(tmp_path: Path) -> None:
    """1,000,000/hour: 50,000 at once leave 950,000, and the row is as long as that of one unit, but for the digits."""
    world, limit = World("sqlite", tmp_path), quota(1_000_000, PeriodAnchor.ROLLING, Unit.HOUR)
    async with world.store() as store:
        answer = await ask(store, one(b"large", limit, 50_000))
        assert (answer.admitted, limit.units - period(answer).used) == (1, 950_000)
        assert await admitted(store, one(b"small", limit, 1)) == [1]
    with closing(sqlite3.connect(world.path)) as connection:
        rows = connection.execute("SELECT used, parts FROM counter ORDER BY key").fetchall()
    part = WALL // (30 * SECOND)
    assert rows == [(50_000, f"[[{part}, 50000]]"), (1, f"[[{part}, 1]]")]
