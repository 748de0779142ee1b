"""The mistake to make impossible: every edge under its threshold, every edge's logs correct, the sum past the limit."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.system.live import BOUND_S, EDGES, System, rules, system

SHED = (
    "  - {name: shed, match: {api: shed}, key: [api], limit: {rate: 5/s, burst: 1}, enforce: edge, at_each_edge: 5/s, "
    "wrong_costs: noise}\n"
)


async def passed(whole: System) -> dict[str, Any]:
    """Ask both edges until the region says that the sum passed a limit."""
    async with asyncio.timeout(BOUND_S):
        while True:
            await asyncio.gather(*(whole.decide(edge, "shed") for edge in EDGES))
            for line in whole.region.log.read_text().splitlines():
                if '"limit_passed_globally"' in line:
                    told: dict[str, Any] = json.loads(line)
                    return told


@pytest.mark.asyncio
async def test_the_region_says_that_the_sum_passed_a_limit_that_every_edge_kept(tmp_path: Path) -> None:
    """Two edges of 5/s each are 10/s under a limit of 5/s: nobody refused wrongly, and one line says it."""
    async with system(tmp_path) as whole:
        await whole.change(rules() + SHED)
        told = await passed(whole)
        assert (told["rule"], told["key"], told["limit"], told["edges"]) == ("shed", "shed", 5, 2)
        assert told["admitted"] > 5
        assert 0 < told["over"] <= 12
        said = await whole.explain()
        (rule,) = [each for each in said.rules if each.rule == "shed"]
        assert rule.worst_overshoot >= told["over"]
        assert rule.bound >= rule.worst_overshoot
