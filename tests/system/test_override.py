"""`apportion override` with real processes: on every edge within two seconds, also without a region, until its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from apportion.commands.demonstration.running import serving
from apportion.core.key import encode_key
from apportion.proto.v1 import region_pb2
from tests.system.live import BOUND_S, EDGES, System, acknowledged, system
from tests.system.test_reading_back import explained, run


async def override(whole: System, *arguments: str) -> dict[str, Any]:
    """What `override --json` says."""
    code, out, err = await run("override", "--region", whole.address, *arguments, "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    return told


async def allowed(whole: System, api: str) -> list[bool]:
    """Whether each edge lets a request pass that waits as it is told."""
    return [await whole.admitted(edge, api) for edge in EDGES]


async def metrics(whole: System) -> str:
    """What the region's `/metrics` says."""
    async with aiohttp.ClientSession() as session, session.get(f"http://{whole.region_http}/metrics") as answer:
        return await answer.text()


async def until_refusals_are_told(whole: System) -> None:
    """Ask both edges until the region says that of the blocked quota most is refused."""
    async with asyncio.timeout(BOUND_S):
        while True:
            for edge in EDGES:
                await whole.decide(edge, "search")
            said = await whole.explain(region_pb2.ExplainRequest(heaviest=5))
            if [(each.rule, each.key, each.error) for each in said.most_refused] == [
                ("search", encode_key(["search"]), 0)
            ]:
                return


@pytest.mark.asyncio
async def test_a_block_is_everywhere_within_two_seconds_outlives_the_region_and_ends_by_itself(tmp_path: Path) -> None:
    """Proved by acknowledged versions; an edge that starts while the region is away has it from its disk."""
    async with system(tmp_path) as whole:
        assert await allowed(whole, "search") == [True, True]
        before = await whole.explain()
        laid = asyncio.create_task(
            override(whole, "search", "api=search", "--rate", "0/s", "--for", "1h", "--why", "abuse", "--who", "ops")
        )
        started = await whole.until(lambda said: said.rules_version == before.rules_version + 1)
        blocked = await whole.until(lambda said: acknowledged(said, before.rules_version + 1))
        assert blocked.epoch - started.epoch <= 2
        assert (await laid)["edges_behind"] == []
        assert await allowed(whole, "search") == [False, False]
        assert await allowed(whole, "pay") == [True, True]
        told = await explained(whole, "search", "api=search")
        assert [words.split(", until")[0] for words in told["lowered_by"]] == ["the operator"]
        assert "search api=search: at most 0/s (abuse; ops)" in told["lowered_by"][0]
        _, out, _ = await run("top", "--region", whole.address, "--count", "1")
        assert "! override: search api=search: at most 0/s for " in out
        await until_refusals_are_told(whole)
        assert 'apportion_overrides{domain="api",effect="block",rule="search"} 1.0' in await metrics(whole)

        whole.region.kill()
        assert await allowed(whole, "search") == [False, False]
        whole.children[2].kill()
        await whole.children[2].process.wait()
        child = await whole.start_edge(EDGES[0])
        await serving(child, whole.doors[EDGES[0]])
        assert await allowed(whole, "search") == [False, False]

        await whole.start_region()
        again = await whole.until(lambda said: acknowledged(said, said.rules_version))
        assert [each.rule for each in again.overrides] == ["search"]
        assert await allowed(whole, "search") == [False, False]
        await override(whole, "search", "api=search", "--rate", "0/s", "--for", "1s", "--why", "soon over")
        await whole.logged("override_ended")
        await whole.until(lambda said: acknowledged(said, said.rules_version) and not said.overrides)
        assert await allowed(whole, "search") == [True, True]


@pytest.mark.asyncio
async def test_break_glass_refuses_nobody_and_goes_on_counting(tmp_path: Path) -> None:
    """Every rule says that it is a shadow; cleared, all is as before. Mistakes say what is right."""
    async with system(tmp_path) as whole:
        await override(whole, "pay", "--rate", "0/s", "--for", "1h", "--why", "a mistake")
        assert await allowed(whole, "pay") == [False, False]
        said = await override(whole, "*", "--shadow", "--for", "5m", "--why", "INC-42")
        assert [(each["rule"], each["shadow"]) for each in said["overrides"]] == [("pay", False), ("*", True)]
        for edge in EDGES:
            answer = await whole.decide(edge, "pay")
            assert (answer.allowed, [(each.allowed, each.shadow) for each in answer.verdicts]) == (
                True,
                [(False, True)],
            )
        said = await override(whole, "*", "--clear", "--why", "found it")
        assert [each["rule"] for each in said["overrides"]] == ["pay"]
        assert await allowed(whole, "pay") == [False, False]
        code, out, _ = await run("override", "--region", whole.address)
        assert (code, out.startswith("pay: at most 0/s for "), "because: a mistake (" in out) == (0, True, True)
        wrong = [
            await run("override", "--region", whole.address, "serch", "--rate", "0/s", "--for", "1h", "--why", "x"),
            await run("override", "--region", whole.address, "pay", "--rate", "0/m", "--for", "1h", "--why", "x"),
            await run("override", "--region", whole.address, "pay", "--rate", "0/s", "--why", "x"),
            await run("override", "--region", whole.address, "search", "--clear"),
            await run("override", "--region", "127.0.0.1:1"),
        ]
        assert [code for code, _, _ in wrong] == [2, 2, 2, 2, 3]
        assert "there is no rule 'serch'; did you mean 'search'?" in wrong[0][2]
        assert "--rate: found the unit `m`, which could be `min`" in wrong[1][2]
        assert "--for is missing: say how long, such as --for 1h" in wrong[2][2]
        assert "there is no such override; there is pay: at most 0/s (a mistake;" in wrong[3][2]
