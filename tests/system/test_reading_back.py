"""`apportion explain` and `apportion top` against real processes."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.live import BOUND_S, EDGES, System, system


async def run(*arguments: str) -> tuple[int, str, str]:
    """Run the program; its exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "apportion", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), BOUND_S)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def explained(whole: System, *arguments: str) -> dict[str, Any]:
    """What `explain --json` says."""
    code, out, err = await run("explain", "--region", whole.address, *arguments, "--json")
    assert code == 0, err
    told: dict[str, Any] = json.loads(out)
    return told


@pytest.mark.asyncio
async def test_what_is_decided_can_be_read_back(tmp_path: Path) -> None:
    """Used, who holds what, bound, versions; unused keys, too; mistakes name what would be right."""
    async with system(tmp_path) as whole:
        for _ in range(3):
            assert await whole.admitted(EDGES[0], "pay")
        told = await explained(whole, "pay", "api=pay")
        assert (told["enforce"], told["limit"], told["divided"], told["bound"]) == ("region", "10/min", False, 0)
        assert 1 <= told["used"] <= 3
        assert told["resets_after"] > 0
        assert sorted(edge["edge"] for edge in told["edges"]) == sorted(EDGES)
        assert {edge["rules_version"] for edge in told["edges"]} == {1}
        unused = await explained(whole, "search", "api=search", "other=passed-over")
        assert (unused["enforce"], unused["divided"], unused["used"], unused["rules_version"]) == ("lease", True, 0, 1)
        code, out, _ = await run("explain", "--region", whole.address, "pay", "api=pay")
        assert code == 0
        assert "limit       10/min, burst 10" in out
        assert "edge frankfurt" in out
        wrong = [
            await run("explain", "--region", whole.address, "serch", "api=search"),
            await run("explain", "--region", whole.address, "search", "tenant=x"),
            await run("explain", "--region", "127.0.0.1:1", "search"),
        ]
        assert [code for code, _, _ in wrong] == [2, 2, 3]
        assert "did you mean 'search'?" in wrong[0][2]
        assert "every dimension of its key" in wrong[1][2]

        code, out, _ = await run("top", "--region", whole.address, "--count", "1")
        assert code == 0
        assert "rules version 1" in out
        assert "rule search  enforce lease  limit 100/s" in out
        code, out, _ = await run("top", "--region", whole.address, "--keys", "--count", "1")
        assert code == 0
