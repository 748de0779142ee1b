"""C42 of cases.md, at the region and at an edge alone: buckets go when they are drained, and none goes before."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from apportion.core.request import Application
from apportion.edge.alone import Alone
from tests.contract.worlds import ANCHOR, FAST, SECOND, SLOW, World, one
from tests.in_process import ManualClock, rule_set, rule_text

KEYS = 20_000


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_store_s_memory_goes_back_while_nobody_asks(kind: str, tmp_path: Path) -> None:
    """20,000 keys of 10/min over five minutes: never more than those of the last 20 s; three minutes later none."""
    world = World(kind, tmp_path)
    most = 0
    async with world.store(buckets_max=100_000) as store:
        for number in range(0, KEYS, 100):
            await store.consume(tuple(one(b"key-%d" % each, SLOW) for each in range(number, number + 100)), ANCHOR)
            world.clock.advance(300 * SECOND * 100 // KEYS)
            store.tidy()
            most = max(most, len(store._buckets))
        assert most <= KEYS * 20 // 300
        for _ in range(360):
            world.clock.advance(SECOND // 2)
            store.tidy()
        assert len(store._buckets) == 0


def test_an_edge_alone_forgets_while_nobody_asks() -> None:
    """20,000 keys of 10/min that each have spent a unit: all there at once, and none 6 s and 20 looks later."""
    clock = ManualClock()
    rules = rule_set(rule_text("tenant-requests", "rate: 10/min"))
    alone = Alone(rules, clock)
    matcher = alone.matcher("api")
    assert matcher is not None
    (rule,) = matcher.match({"tenant": "x"}, whole=True)
    for number in range(KEYS):
        assert alone.decide((Application(rule, (f"key-{number}",), 1),), peek=False).allowed
    for _ in range(20):
        alone.tidy()
    assert alone.gauges().holdings == KEYS
    clock.now_ns += 6 * SECOND
    for _ in range(20):
        alone.tidy()
    assert alone.gauges().holdings == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("seed", range(6))
async def test_a_bucket_that_leaves_memory_for_the_file_is_not_decided_as_a_full_one(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for two of eight, batches that ask for several at once, time standing still: each key has its 10 once."""
    monkeypatch.setattr("apportion.region.buckets.CACHED_MAX", 2)
    random, admitted = Random(seed), Counter[int]()
    async with World("sqlite", tmp_path).store() as store:
        for _ in range(60):
            keys = [random.randrange(8) for _ in range(random.randrange(1, 8))]
            others = [store.consume((one(b"fast-%d" % random.randrange(8), FAST),), ANCHOR) for _ in range(2)]
            asked = [store.consume((one(b"key-%d" % key, SLOW, count=3),), ANCHOR) for key in keys]
            answers = await asyncio.gather(*asked, *others)
            store.tidy()
            for key, (answer,) in zip(keys, answers, strict=False):
                admitted[key] += answer.admitted
    assert admitted == dict.fromkeys(range(8), 10)
