"""Kill -9 of a process that holds the file: no acknowledged unit is lost, none is doubled, and the file is free."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apportion.core.errors import InputError
from apportion.region.sqlite_store import SqliteStore
from apportion.region.store import Anchor
from tests.contract.worlds import bucket, one, period
from tests.region.consuming_child import LIMIT, QUOTAS

CHILD = Path(__file__).with_name("consuming_child.py")


@contextmanager
def child(path: Path, first: int, output: Path, *what: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes units and writes into `output`; killed in the end."""
    with output.open("wb") as file:
        process = subprocess.Popen([sys.executable, str(CHILD), str(path), str(first), *what], stdout=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def wait_for(output: Path, word: str, times: int) -> None:
    """Until the child has said `word` so often."""
    end = time.monotonic() + 20
    while output.read_text().count(word) < times:
        assert time.monotonic() < end, f"the child did not get to {times} x {word!r}: {output.read_text()[-200:]!r}"
        time.sleep(0.005)


def numbers(output: Path, word: str) -> set[int]:
    """What the child said with this word; a line that was cut off by the kill was not said."""
    return {int(number) for number in re.findall(rf"^{word} (\d+)\n", output.read_text(), re.MULTILINE)}


async def standing(path: Path) -> tuple[int, int, int]:
    """Units that stand of the key that every attempt took; those rolled up of it; those rolled up of all other keys."""
    store = SqliteStore(path, time.monotonic_ns, time.time_ns)
    await store.open()
    (answer,) = await store.consume((one(b"k", LIMIT, peek=True),), Anchor(1, store.now_ns()))
    rows = await store.rolled_up(0)
    await store.close()
    rolled_up = sum(row.units for row in rows if row.store_key == b"k")
    used = -(-bucket(answer).backlog // LIMIT.period_ticks)
    return used, rolled_up, sum(row.units for row in rows) - rolled_up


async def standing_periods(path: Path) -> tuple[dict[bytes, int], dict[bytes, int]]:
    """Units that stand of each period that every attempt took, and those rolled up of them, and of all other keys."""
    store = SqliteStore(path, time.monotonic_ns, time.time_ns)
    await store.open()
    groups = tuple(one(key, limit, peek=True) for key, limit in QUOTAS.items())
    answers = await store.consume(groups, Anchor(1, store.now_ns()))
    rolled_up = dict.fromkeys((*QUOTAS, b"others"), 0)
    for row in await store.rolled_up(0):
        rolled_up[row.store_key if row.store_key in QUOTAS else b"others"] += row.units
    await store.close()
    return {key: period(answer).used for key, answer in zip(QUOTAS, answers, strict=True)}, rolled_up


async def open_and_close(path: Path) -> None:
    """As a region that starts and stops."""
    store = SqliteStore(path, time.monotonic_ns, time.time_ns)
    await store.open()
    await store.close()


def test_no_acknowledged_unit_is_lost_and_none_is_doubled(tmp_path: Path) -> None:
    """Five lives, each killed in the middle of commits: what stands is what was acknowledged, at most tried."""
    path, tried, acknowledged = tmp_path / "region.db", set[int](), set[int]()
    for life in range(5):
        output = tmp_path / f"life-{life}"
        with child(path, first=life * 1_000_000, output=output):
            wait_for(output, "ok", 40 + 23 * life)
        tried |= numbers(output, "try")
        acknowledged |= numbers(output, "ok")
        used, rolled_up, others = asyncio.run(standing(path))
        assert len(acknowledged) <= used <= len(tried)
        assert rolled_up == used
        assert others == used
    assert len(acknowledged) >= 40 * 5


def test_of_periods_no_acknowledged_unit_is_lost_and_none_is_doubled_in_a_hundred_lives(tmp_path: Path) -> None:
    """Each killed in the middle of commits: of all three kinds, and of the bucket beside them, the same stands."""
    path, tried, acknowledged, output = tmp_path / "region.db", set[int](), set[int](), tmp_path / "output"
    for life in range(100):
        with child(path, life * 1_000_000, output, "periods"):
            wait_for(output, "ok", 1 + 7 * (life % 5))
        tried |= numbers(output, "try")
        acknowledged |= numbers(output, "ok")
        used, rolled_up = asyncio.run(standing_periods(path))
        assert len(set(used.values())) == 1
        assert len(acknowledged) <= used[b"k"] <= len(tried)
        assert rolled_up == {**used, b"others": used[b"k"]}
    assert len(acknowledged) >= 100


def test_a_second_region_is_refused_while_the_first_lives_and_not_after_it_was_killed(tmp_path: Path) -> None:
    """The message names the file and the process that holds it, and what to do."""
    path, output = tmp_path / "region.db", tmp_path / "output"
    with child(path, first=0, output=output) as process:
        wait_for(output, "open", 1)
        with pytest.raises(InputError) as caught:
            asyncio.run(open_and_close(path))
        assert str(caught.value) == (
            f"another region has {path}: process {process.pid} is still running with it; "
            "stop that one first, or give this region a file of its own"
        )
    asyncio.run(open_and_close(path))
