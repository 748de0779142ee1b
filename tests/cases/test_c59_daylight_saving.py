"""C59: days of 23 and 25 hours, a hit a millisecond before and after each boundary, whatever zone the host is in."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from tests.contract.worlds import SECOND, World, admitted, ask, one, period, quota

HOUR = 3600
MS = 1_000_000

DAYS = [
    ("Europe/Paris", "2026-03-28T23:00", "2026-03-29T22:00", 23),
    ("Europe/Paris", "2026-10-24T22:00", "2026-10-25T23:00", 25),
    ("America/New_York", "2026-03-08T05:00", "2026-03-09T04:00", 23),
    ("Africa/Cairo", "2026-04-23T22:00", "2026-04-24T21:00", 23),  # from 01:00 on: there was no midnight
    ("Africa/Cairo", "2026-10-28T21:00", "2026-10-29T22:00", 25),
    ("UTC", "2026-10-25T00:00", "2026-10-26T00:00", 24),  # without a tenant's zone
]


def instant(text: str) -> int:
    """A time of UTC, in nanoseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("zone, start, end, hours", DAYS)
async def test_a_day_begins_and_ends_to_the_millisecond(
    kind: str, zone: str, start: str, end: str, hours: int, tmp_path: Path
) -> None:
    """One call a day: of hits at each boundary minus and plus 1 ms those after it pass, and the first."""
    limit, world = quota(1, PeriodAnchor.CALENDAR, Unit.DAY, zone=zone), World(kind, tmp_path)
    assert instant(end) - instant(start) == hours * HOUR * SECOND
    world.clock.wall = instant(start) - MS
    async with world.store() as store:
        assert period(await ask(store, one(b"k", limit))).reset_ns == MS
        world.clock.advance(2 * MS)
        first = period(await ask(store, one(b"k", limit)))
        assert (first.fits, first.start_ns, first.reset_ns) == (True, instant(start), hours * HOUR * SECOND - MS)
        world.clock.advance(hours * HOUR * SECOND - 2 * MS)
        assert await admitted(store, one(b"k", limit)) == [0]
        world.clock.advance(2 * MS)
        assert await admitted(store, one(b"k", limit)) == [1]


NODE = """
import asyncio, json, sys
from pathlib import Path
from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from tests.cases.test_c59_daylight_saving import DAYS, instant
from tests.contract.worlds import World, ask, one, period, quota

async def main():
    world, told = World("memory", Path()), []
    async with world.store() as store:
        for zone, *boundaries, _ in DAYS:
            limit = quota(9, PeriodAnchor.CALENDAR, Unit.DAY, zone=zone)
            for at in map(instant, boundaries):
                for world.clock.wall in (at - 1_000_000, at + 1_000_000):
                    state = period(await ask(store, one(zone.encode(), limit)))
                    told.append((state.start_ns, state.reset_ns, state.used))
    print(json.dumps(told))

asyncio.run(main())
"""


def test_two_nodes_in_two_zones_reset_at_the_same_instants() -> None:
    """TZ=UTC and TZ=America/New_York: the same starts, resets and counts, to the nanosecond."""
    root = Path(__file__).parents[2]
    told = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", NODE], cwd=root, env={**os.environ, "TZ": zone}, capture_output=True, check=True
            ).stdout
        )
        for zone in ("UTC", "America/New_York")
    ]
    assert told[0] == told[1]
    assert len(told[0]) == 4 * len(DAYS)
