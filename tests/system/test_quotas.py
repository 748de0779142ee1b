"""Quotas of a period through real processes: a region on SQLite and an edge, over boundaries, restarts and reloads."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.edge_process import attached_edge, running_region
from tests.in_process import rule_text, rules_text
from tests.system.test_edge_http import until_ready
from tests.system.test_reading_back import run

BOUND_S = 60.0
"""What anything gets to happen; usually a few seconds."""

FAST = rule_text("fast", "quota: 5/2s, anchor: calendar, audit_periods: true")
DAILY = rule_text("daily", "quota: 5/day, anchor: calendar, time_zone: Europe/Berlin", match="user")
OWN = rule_text("own", "quota: 5/day, anchor: first_use", match="app")
LAST = rule_text("last", "quota: 5/day, anchor: rolling", match="api")


class Quotas:
    """A region, its address, and a door of an edge of it."""

    def __init__(self, region: asyncio.subprocess.Process, address: str, session: aiohttp.ClientSession) -> None:
        self.region = region
        self.address = address
        self._session = session

    async def decide(self, **dimensions: str) -> dict[str, Any]:
        """What the rule of a request said."""
        told = await (await self._session.post("/v1/decide", json={"dimensions": dimensions})).json()
        verdict: dict[str, Any] = told["rules"][0]
        return verdict

    async def explained(self, *arguments: str) -> dict[str, Any]:
        """What `explain --json` says."""
        code, out, err = await run("explain", "--region", self.address, *arguments, "--json")
        assert code == 0, err
        told: dict[str, Any] = json.loads(out)
        return told

    async def logged(self, event: str) -> dict[str, Any]:
        """The next line of the region's log with that event."""
        assert self.region.stderr is not None
        async with asyncio.timeout(BOUND_S):
            while line := json.loads(await self.region.stderr.readline()):
                if line["event"] == event:
                    told: dict[str, Any] = line
                    return told
        raise AssertionError("unreachable")


@asynccontextmanager
async def quotas(rules: str, folder: Path) -> AsyncIterator[Quotas]:
    """Both processes, ready; the store is a file of the folder, which may have been used before."""
    async with (
        running_region(rules, folder, f"sqlite:///{folder / 'region.db'}") as (region, address),
        attached_edge(address) as edge,
        aiohttp.ClientSession(f"http://{edge.http}") as session,
    ):
        await until_ready(session, 200)
        yield Quotas(region, address, session)


@pytest.mark.asyncio
async def test_each_period_admits_its_allowance_and_tells_of_itself_when_it_closes(tmp_path: Path) -> None:
    """Full demand over three boundaries: five of each two seconds, and one line each; the reset is the boundary."""
    admitted: Counter[int] = Counter()
    async with quotas(rules_text(FAST), tmp_path) as system, asyncio.timeout(BOUND_S):
        while len(admitted) < 4:
            verdict = await system.decide(tenant="contoso")
            assert verdict["allowed"] or verdict["retry_after"] > 0
            if verdict["allowed"]:
                admitted[round((time.time() + verdict["reset_after"]) / 2)] += 1
        closed = [await system.logged("period_closed") for _ in range(3)]
    periods = sorted(admitted)
    assert periods == list(range(periods[0], periods[0] + 4))
    assert [admitted[each] for each in periods[1:3]] == [5, 5]
    assert all(units <= 5 for units in admitted.values())
    assert [(line["rule"], line["key"], line["allowance"]) for line in closed] == [("fast", "contoso", 5)] * 3
    assert [line["used"] for line in closed] == [admitted[each] for each in periods[:3]]


@pytest.mark.asyncio
async def test_a_region_that_is_killed_has_what_was_used_and_explains_it(tmp_path: Path) -> None:
    """C48: no restart of region and edge is worth a fresh allowance, of any anchor."""
    asked = {"daily": {"user": "ann"}, "own": {"app": "shop"}, "last": {"api": "search"}}
    rules = rules_text(DAILY, OWN, LAST)
    async with quotas(rules, tmp_path) as system:
        for dimensions in asked.values():
            assert [(await system.decide(**dimensions))["remaining"] for _ in range(4)] == [4, 3, 2, 1]
        system.region.send_signal(signal.SIGKILL)
    async with quotas(rules, tmp_path) as system:
        for name, dimensions in asked.items():
            assert (await system.decide(**dimensions))["remaining"] == 0
            refused = await system.decide(**dimensions)
            assert (refused["allowed"], refused["reason"]) == (False, "over_limit")
            ((dimension, value),) = dimensions.items()
            told = await system.explained(name, f"{dimension}={value}")
            assert (told["used"], told["limit"], told["period"]["length"]) == (5, "5/day", "day")
            assert told["period"]["start"] < told["period"]["end"]
            assert {
                "daily": "00:00 Europe/Berlin, when the calendar day ends",
                "own": "24 hours after the subject's first call at ",
                "last": "as what was used leaves the window of 24 hours; the oldest does at ",
            }[name] in told["reset_reason"]


@pytest.mark.asyncio
async def test_what_must_be_kept_is_not_counted_in_memory(tmp_path: Path) -> None:
    """Refused at the start, and on a reload, which leaves what was in force; each names the rule and the fix."""
    path = tmp_path / "rules.yaml"
    path.write_text(rules_text(DAILY))
    code, _, err = await run("region", "--rules", str(path), "--listen", "127.0.0.1:0", "--store", "memory:")
    assert code == 2
    assert "rules[daily]: the quota 5/day would be counted in the store `memory:`" in err
    assert "`wrong_costs: noise`" in err
    assert "Traceback" not in err
    async with running_region(rules_text(FAST), tmp_path) as (region, _):
        (tmp_path / "region-rules.yaml").write_text(rules_text(FAST, DAILY))
        assert region.stderr is not None
        async with asyncio.timeout(BOUND_S):
            while (line := json.loads(await region.stderr.readline()))["event"] != "config_rejected":
                assert line["event"] != "rules_adopted"
        assert "rules[daily]" in line["reason"]
