"""A store that goes on failing: one line at first, then one each ten seconds that counts."""

from __future__ import annotations

import pytest

from apportion.core.errors import StoreError
from apportion.core.rules_file import parse_rules
from apportion.region.events import RollUp
from apportion.region.memory_store import MemoryStore
from apportion.region.region import Region
from apportion.region.reporting import RollingUp
from apportion.region.store import GivenBack, RollupRow
from apportion.region.trouble import AGAIN_NS, Trouble
from tests.region.test_region_faults import RULES


def test_a_failure_is_told_at_once_and_then_counted() -> None:
    """By operation."""
    trouble = Trouble()
    assert trouble.tell("roll_up", "full", 5) == 1
    assert trouble.tell("consume", "full", 6) == 1
    assert [trouble.tell("roll_up", "full", 7 + each) for each in range(300)] == [None] * 300
    assert trouble.tell("roll_up", "full", 5 + AGAIN_NS) == 301
    assert trouble.tell("roll_up", "full", 6 + AGAIN_NS) is None


def test_another_reason_is_told_at_once() -> None:
    """What was not told before goes with it."""
    trouble = Trouble()
    assert trouble.tell("roll_up", "full", 5) == 1
    assert trouble.tell("roll_up", "full", 6) is None
    assert trouble.tell("roll_up", "gone", 7) == 2


class Full(MemoryStore):
    """Takes no reports."""

    async def roll_up(
        self, source: int, number: int, rows: tuple[RollupRow, ...], given_back: tuple[GivenBack, ...] = ()
    ) -> bool:
        raise StoreError("the disk is full")


@pytest.mark.asyncio
async def test_a_region_logs_an_outage_in_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a hundred reports that fail within ten seconds."""
    texts = (("api.yaml", RULES),)
    region = Region(Full(lambda: 1, lambda: 1), parse_rules(texts), texts)
    await region.start()
    capsys.readouterr()
    for number in range(1, 101):
        region.authority.requests += 1
        region.authority.rollups[region.authority.requests] = RollingUp(1, 1, number, 1, {}, {}, {}, {})
        await region._roll_up(RollUp(region.authority.requests, 1, number, ()))
    told = capsys.readouterr().out
    await region.stop()
    assert told.count("store_failed") == 1
    assert "the disk is full" in told
