"""Decisions a second of the embedded stores, in batches of 100 groups, beside this machine's fdatasync rate.

    python bench/consume.py [--seconds 2] [--callers 16] [--directory DIR]

Each batch is 100 requests for 100 of 10,000 keys, one member each, nearly all admitted. `durable` waits for the disk
with `--callers` batches at once, as a region with that many edges does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.region.memory_store import MemoryStore
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor, Charge, Charges, Store

BATCH = 100
KEYS = 10_000
FAST = RateLimit(10_000, EPOCH_NS, 2_500)  # drains in 0.25 s
SLOW = RateLimit(10_000_000, 3600 * EPOCH_NS, 1_000_000)  # drains in 6 minutes


def batches(limit: RateLimit) -> list[tuple[Charges, ...]]:
    """All keys once."""
    groups = [Charges(1, (Charge(b"tenant-requests/%06d" % key, limit, 1),)) for key in range(KEYS)]
    return [tuple(groups[start : start + BATCH]) for start in range(0, KEYS, BATCH)]


async def measure(store: Store, limit: RateLimit, seconds: float, callers: int) -> tuple[float, float]:
    """Decisions a second, and the share that was admitted."""
    await store.open()
    anchor, work = Anchor(1, store.now_ns()), batches(limit)
    decided = admitted = 0
    end = time.monotonic() + seconds

    async def call(first: int) -> None:
        nonlocal decided, admitted
        at = first
        while time.monotonic() < end:
            answers = await store.consume(work[at % len(work)], anchor)
            decided += len(answers)
            admitted += sum(answer.admitted for answer in answers)
            at += callers

    start = time.monotonic()
    await asyncio.gather(*(call(first) for first in range(callers)))
    rate = decided / (time.monotonic() - start)
    await store.close()
    return rate, admitted / decided


def fdatasync_rate(directory: Path, seconds: float) -> float:
    """Syncs a second of 4 KiB written in place of a preallocated file."""
    path = directory / "fdatasync"
    with path.open("wb+") as file:
        file.write(bytes(1 << 20))
        os.fsync(file.fileno())
        syncs, start = 0, time.monotonic()
        while time.monotonic() < start + seconds:
            os.pwrite(file.fileno(), b"x" * 4096, syncs % 256 * 4096)
            os.fdatasync(file.fileno())
            syncs += 1
        return syncs / (time.monotonic() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--directory", type=Path, help="where the SQLite file stands; a temporary one unless given")
    arguments = parser.parse_args()
    clocks = (time.monotonic_ns, time.time_ns)
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        directory = Path(name)
        runs: list[tuple[str, Store, RateLimit, int]] = [
            ("memory", MemoryStore(*clocks), FAST, 1),
            ("sqlite, in memory", SqliteStore(directory / "fast.db", *clocks), FAST, 1),
            ("sqlite, durable, 1 caller", SqliteStore(directory / "one.db", *clocks), SLOW, 1),
            (
                f"sqlite, durable, {arguments.callers} callers",
                SqliteStore(directory / "many.db", *clocks),
                SLOW,
                arguments.callers,
            ),
        ]
        for title, store, limit, callers in runs:
            rate, share = asyncio.run(measure(store, limit, arguments.seconds, callers))
            print(f"{title:32} {rate:12,.0f} decisions/s   {share:.1%} admitted")
        print(f"{'fdatasync of 4 KiB':32} {fdatasync_rate(directory, arguments.seconds):12,.0f} /s")


if __name__ == "__main__":
    main()
