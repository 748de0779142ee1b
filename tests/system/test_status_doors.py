"""`--http` of region and allocator, as real processes: alive, ready, and what they tell a scrape."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.system.live import BOUND_S, EDGES, HEAD, rule, system


def get(address: str, path: str) -> tuple[int, str]:
    """Status and text."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=BOUND_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(text: str) -> dict[str, float]:
    """Samples by name and labels."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@pytest.mark.asyncio
async def test_region_and_allocator_say_how_they_are(tmp_path: Path) -> None:
    """Bound, overshoot, state, version by edge, rejected files, generation, divisions."""
    async with system(tmp_path) as whole:
        for address in (whole.region_http, whole.allocator_http):
            assert await asyncio.to_thread(get, address, "/healthz") == (200, "alive\n")
            assert await asyncio.to_thread(get, address, "/readyz") == (200, "ready\n")
            assert (await asyncio.to_thread(get, address, "/other"))[0] == 404
        (whole.folder / "bad.yaml").write_text(HEAD + rule("x", "", "region"))
        await whole.until(lambda said: bool(said.rules_rejected))
        region = metrics((await asyncio.to_thread(get, whole.region_http, "/metrics"))[1])
        search = 'domain="api",rule="search"'
        assert region[f"apportion_bound_units{{{search}}}"] == 0
        assert region[f"apportion_overshoot_observed_units{{{search}}}"] == 0
        assert region[f'apportion_rule_state{{{search},state="exact"}}'] == 1
        assert {edge: region[f'apportion_edge_rules_version{{edge="{edge}"}}'] for edge in EDGES} == dict.fromkeys(
            EDGES, 1
        )
        assert region["apportion_config_rejected_files"] == 1
        assert region["apportion_config_rejections_total"] >= 1
        assert region["apportion_register_generation"] == 1
        allocator = metrics((await asyncio.to_thread(get, whole.allocator_http, "/metrics"))[1])
        assert allocator["apportion_leads"] == 1
        assert allocator["apportion_epochs_divided_total"] >= 1
        assert allocator["apportion_division_seconds_count"] == allocator["apportion_epochs_divided_total"]
        assert allocator["apportion_rules_version"] == 1
