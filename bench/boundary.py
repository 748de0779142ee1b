"""What 20,000 subjects cost a region's store when their minute ends: four kinds of period, beside peers of this run.

    python bench/boundary.py [--subjects 20000] [--minutes 3] [--directory DIR]

Every subject calls once in the first second of each minute, in batches of 100. The store is tidied each half second,
as a region does. `decided/s` is by this machine's clock; `created` and `reclaimed` are by minute, and `worst second` is
the most that was reclaimed in one second of the store's own time: what a boundary brings at once. Peers: the rate
buckets of the same store, and a bare dict with a counter for each subject and minute, emptied after each.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from apportion.core.limit import EPOCH_NS, Finite, PeriodAnchor, PeriodLimit, RateLimit
from apportion.core.periods import Unit
from apportion.region.buckets import Buckets
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor, Charge, Charges

BATCH = 100
CALLERS = 16
MINUTE_NS = 60 * EPOCH_NS
START_NS = 1_800_000_000 * EPOCH_NS  # a full minute
RATE = RateLimit(5, MINUTE_NS, 5)
KINDS: dict[str, tuple[Finite, bool]] = {
    "rate buckets": (RATE, True),
    "calendar, all at once": (PeriodLimit(5, 1, Unit.MINUTE, PeriodAnchor.CALENDAR), False),
    "calendar, spread": (PeriodLimit(5, 1, Unit.MINUTE, PeriodAnchor.CALENDAR), True),
    "first_use": (PeriodLimit(5, 1, Unit.MINUTE, PeriodAnchor.FIRST_USE), True),
    "rolling": (PeriodLimit(5, 1, Unit.MINUTE, PeriodAnchor.ROLLING), True),
}
"""The limit, and whether reclaim is spread, which is how the stores ship it."""


@dataclass
class Seen:
    """What one kind cost: seconds of this machine, and how many."""

    deciding: float = 0.0
    decided: int = 0
    created: int = 0
    tidying: float = 0.0
    reclaimed: int = 0
    at_hand: int = 0
    by_second: Counter[int] = field(default_factory=Counter)

    @property
    def decided_rate(self) -> float:
        """Calls a second of this machine's time."""
        return self.decided / self.deciding


def batches(limit: Finite, subjects: int) -> list[tuple[Charges, ...]]:
    """Every subject once."""
    groups = [Charges(1, (Charge(b"tenant-requests/%06d" % key, limit, 1),)) for key in range(subjects)]
    return [tuple(groups[start : start + BATCH]) for start in range(0, subjects, BATCH)]


def in_memory(limit: Finite, spread: bool, subjects: int, minutes: int) -> Seen:
    """Some boundaries, in a store's memory, of which the first minute only fills it."""
    buckets, seen, work = Buckets(), Seen(), batches(limit, subjects)
    buckets.periods.spread_reclaim = spread
    anchor, gone = Anchor(1, START_NS), 0
    for minute in range(minutes + 1):
        now_ns = START_NS + minute * MINUTE_NS
        if minute == 1:
            seen = Seen()
        before, start = buckets.counters().created, time.perf_counter()
        for number, groups in enumerate(work):
            buckets.decide(groups, anchor, now_ns + number * EPOCH_NS // len(work))
        seen.deciding += time.perf_counter() - start
        seen.decided += subjects
        seen.created += buckets.counters().created - before
        seen.at_hand = max(seen.at_hand, len(buckets))
        for half in range(120):
            if half > 1:
                start = time.perf_counter()
                buckets.tidy(now_ns + half * EPOCH_NS // 2)
                seen.tidying += time.perf_counter() - start
            now_gone = buckets.counters().created - len(buckets)
            seen.by_second[minute * 60 + half // 2] += now_gone - gone
            seen.reclaimed += now_gone - gone
            gone = now_gone
    return seen


def in_a_dict(subjects: int, minutes: int) -> Seen:
    """The least that counting by subject and minute can cost."""
    seen, counts = Seen(), dict[bytes, int]()
    keys = [b"tenant-requests/%06d" % key for key in range(subjects)]
    for minute in range(minutes):
        start = time.perf_counter()
        suffix = b"/%d" % minute
        for key in keys:
            at = key + suffix
            counts[at] = counts.get(at, 0) + 1
        seen.deciding += time.perf_counter() - start
        seen.decided += subjects
        seen.created += subjects
        start = time.perf_counter()
        for at in list(counts):
            del counts[at]
        seen.tidying += time.perf_counter() - start
        seen.reclaimed += subjects
    seen.at_hand = subjects
    seen.by_second[0] = subjects
    return seen


class Clock:
    """Shows what the bench says."""

    def __init__(self) -> None:
        self.now_ns = START_NS

    def __call__(self) -> int:
        return self.now_ns


async def on_disk(path: Path, limit: Finite, subjects: int) -> tuple[float, float]:
    """Calls a second over a boundary, each on disk before it is answered, and rows reclaimed a second."""
    clock, work = Clock(), batches(limit, subjects)
    store = SqliteStore(path, clock, clock)
    await store.open()
    anchor = Anchor(1, START_NS)

    async def call(first: int) -> None:
        for at in range(first, len(work), CALLERS):
            await store.consume(work[at], anchor)

    deciding = 0.0
    for minute in range(2):
        clock.now_ns = START_NS + minute * MINUTE_NS
        start = time.perf_counter()
        await asyncio.gather(*(call(first) for first in range(CALLERS)))
        deciding = time.perf_counter() - start
    start = time.perf_counter()
    held = store.counters().at_hand
    for second in range(1, 181):
        clock.now_ns += EPOCH_NS
        store.tidy()
        await store.roll_up(1, second, ())
    reclaiming = time.perf_counter() - start
    assert store.counters().at_hand == 0, "three minutes later all are gone"
    await store.close()
    return subjects / deciding, held / reclaiming


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the SQLite files stand; a temporary one unless given")
    arguments = parser.parse_args()
    subjects, minutes = arguments.subjects, arguments.minutes
    runs = {"bare dict": in_a_dict(subjects, minutes)}
    runs |= {name: in_memory(limit, spread, subjects, minutes) for name, (limit, spread) in KINDS.items()}
    peer = runs["rate buckets"].decided_rate
    head = f"{'in memory':24}{'decided/s':>12}{'x rate':>8}{'created':>9}{'reclaimed':>11}"
    print(f"{head}{'worst second':>14}{'at hand':>9}{'tidying ms':>12}")
    for name, seen in runs.items():
        worst = max(seen.by_second.values())
        counts = f"{seen.created / minutes:9,.0f}{seen.reclaimed / minutes:11,.0f}{worst:14,}{seen.at_hand:9,}"
        print(
            f"{name:24}{seen.decided_rate:12,.0f}{seen.decided_rate / peer:8.2f}{counts}"
            f"{1000 * seen.tidying / minutes:12.1f}"
        )
    print(f"\n{'on disk':24}{'decided/s':>12}{'x rate':>8}{'rows reclaimed/s':>18}")
    rate = 0.0
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for number, (name, (limit, _)) in enumerate(KINDS.items()):
            decided, reclaimed = asyncio.run(on_disk(Path(directory) / f"{number}.db", limit, subjects))
            rate = rate or decided
            print(f"{name:24}{decided:12,.0f}{decided / rate:8.2f}{reclaimed:18,.0f}")


if __name__ == "__main__":
    main()
