"""A region's worth of a store in a process of its own, to be killed: takes units for ever and says what it was told.

    python consuming_child.py FILE FIRST_TRY [periods]

Writes `open`, then for each attempt `try N` before it asks and `ok N` once the store has acknowledged it.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

from apportion.core.limit import PeriodAnchor, PeriodLimit, RateLimit
from apportion.core.periods import Unit
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor, Charge, Charges

DAY = 86_400 * 1_000_000_000
LIMIT = RateLimit(1, DAY, 1_000_000)
"""A unit a day: what was taken stays in sight."""

QUOTAS = {
    b"k": PeriodLimit(1_000_000, 1, Unit.YEAR, PeriodAnchor.CALENDAR),
    b"first-use": PeriodLimit(1_000_000, 1, Unit.YEAR, PeriodAnchor.FIRST_USE),
    b"rolling": PeriodLimit(1_000_000, 1, Unit.WEEK, PeriodAnchor.ROLLING),
}
"""The same of periods, one of each kind."""


def say(line: str) -> None:
    """Tell the test at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def buckets(number: int) -> tuple[Charge, ...]:
    """A key that every attempt takes a unit of, and one of fifty."""
    return Charge(b"k", LIMIT, 1), Charge(b"%d" % (number % 50), LIMIT, 1)


def periods(number: int) -> tuple[Charge, ...]:
    """One period of each kind, and a bucket of fifty."""
    return *(Charge(key, limit, 1) for key, limit in QUOTAS.items()), Charge(b"%d" % (number % 50), LIMIT, 1)


async def main(path: Path, attempt: int, members: Callable[[int], tuple[Charge, ...]]) -> None:
    """Eight callers until somebody kills the process."""
    store = SqliteStore(path, time.monotonic_ns, time.time_ns)
    await store.open()
    anchor = Anchor(1, store.now_ns())
    say("open")

    async def call(number: int) -> None:
        while True:
            say(f"try {number}")
            await store.consume((Charges(1, members(number)),), anchor)
            say(f"ok {number}")
            number += 8

    await asyncio.gather(*(call(attempt + each) for each in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), periods if "periods" in sys.argv else buckets))
