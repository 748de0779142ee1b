"""`--http` of region and allocator, as real processes: alive, ready, and what they tell a scrape."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from apportion.proto.v1 import region_pb2
from tests.system.live import BOUND_S, EDGES, HEAD, rule, system
from tests.system.test_reading_back import explained


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
        for counted in ("offered", "admitted", "degraded", "refused_at_edge", "refused_with_room"):
            assert region[f"apportion_{counted}_units_total{{{search}}}"] == 0
        assert {edge: region[f'apportion_edge_degraded_requests_total{{edge="{edge}"}}'] for edge in EDGES} == (
            dict.fromkeys(EDGES, 0)
        )
        assert region['apportion_losses_total{cause="restart"}'] == 0
        assert (region["apportion_counters_created_total"], region["apportion_counters_refused_total"]) == (0, 0)
        assert region["apportion_config_rejected_files"] == 1
        assert region["apportion_config_rejections_total"] >= 1
        assert region["apportion_register_generation"] == 1
        allocator = metrics((await asyncio.to_thread(get, whole.allocator_http, "/metrics"))[1])
        assert allocator["apportion_leads"] == 1
        assert allocator["apportion_epochs_divided_total"] >= 1
        assert allocator["apportion_division_seconds_count"] == allocator["apportion_epochs_divided_total"]
        assert allocator["apportion_rules_version"] == 1


@pytest.mark.asyncio
async def test_a_rule_is_degraded_while_an_edge_is_not_heard(tmp_path: Path) -> None:
    """At the status door, and read back, with the edge's name; its return ends it."""
    degraded = 'apportion_rule_state{domain="api",rule="search",state="degraded"}'
    async with system(tmp_path) as whole:
        whole.children[2].kill()
        said = await whole.until(lambda said: [edge.edge for edge in said.edges] == [EDGES[1]])
        assert {rule.state for rule in said.rules} == {region_pb2.RULE_STATE_DEGRADED}
        assert metrics((await asyncio.to_thread(get, whole.region_http, "/metrics"))[1])[degraded] == 1
        told = await explained(whole, "search", "api=search")
        assert (told["state"], told["losses"]) == ("degraded", [])
        assert told["state_reason"] == f"not heard, and may answer by when_unavailable: {EDGES[0]}"
        await whole.start_edge(EDGES[0])
        said = await whole.until(lambda said: len(said.edges) == len(EDGES))
        assert {rule.state for rule in said.rules} == {region_pb2.RULE_STATE_EXACT}
