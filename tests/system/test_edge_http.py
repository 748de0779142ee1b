"""The HTTP door of a real `apportion edge --alone` process."""

import asyncio
import json
import subprocess
import sysconfig
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.edge_process import attached_edge, running_edge, running_region
from tests.in_process import rule_text, rules_text

FIVE = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))
APPORTION = Path(sysconfig.get_path("scripts")) / "apportion"


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run([APPORTION, *arguments], env=variables, capture_output=True, text=True, check=False)


@pytest.mark.asyncio
async def test_a_process_answers_at_every_path_and_the_command_decide_says_the_same(tmp_path: Path) -> None:
    """`/check`, `/v1/decide`, health, and metrics that count both doors."""
    async with running_edge(FIVE, tmp_path) as edge, aiohttp.ClientSession(f"http://{edge.http}") as session:
        checked = await session.get("/check", headers={"X-Tenant": "contoso"})
        decided = await (await session.post("/v1/decide", json={"dimensions": {"tenant": "contoso"}})).json()
        command = await asyncio.to_thread(run, "decide", "--edge", edge.rls, "tenant=contoso", "--json")
        ready = await session.get("/readyz")
        samples = await scraped(session)
    assert (checked.status, ready.status) == (200, 200)
    assert decided["rules"][0]["remaining"] == 3
    assert set(decided) == set(json.loads(command.stdout))
    assert '"remaining": 2' in command.stdout
    assert samples["apportion_admitted_units_total"] == 3
    assert samples["process_open_fds"] > 0


@pytest.mark.asyncio
async def test_an_attached_edge_crosses_and_denies_when_its_region_is_gone(tmp_path: Path) -> None:
    """Ready once the region answered; its crossings are counted. Without the region it has its rules still, so it stays
    ready, and answers by their stages: 503, degraded, counted apart.
    """
    async with (
        running_region(FIVE, tmp_path) as (region, address),
        attached_edge(address) as edge,
        aiohttp.ClientSession(f"http://{edge.http}") as session,
    ):
        await until_ready(session, 200)
        told = [await session.get("/check", headers={"X-Tenant": "contoso"}) for _ in range(6)]
        before = await scraped(session)
        region.kill()
        await region.wait()
        away = await session.get("/check", headers={"X-Tenant": "fabrikam"})
        after = await scraped(session)
    assert [each.status for each in told] == [200] * 5 + [429]
    assert told[0].headers["RateLimit"] == '"tenant-requests";a=4;w=60;r=4;t=60;apportion-scope=region'
    assert before["apportion_crossings_total"] >= 5
    assert before["apportion_tickets_waiting"] == 0
    assert 0 <= before["apportion_epoch_mapping_error_seconds"] < 5
    assert (before["apportion_ready"], after["apportion_ready"]) == (1, 1)
    assert (away.status, away.headers["X-Apportion-Reason"]) == (503, "unavailable")
    assert away.headers["X-Apportion-Degraded"] == "true"
    assert (before["apportion_degraded_requests_total"], after["apportion_degraded_requests_total"]) == (0, 1)


async def until_ready(session: aiohttp.ClientSession, status: int) -> None:
    """Wait until `/readyz` answers with this status; the test's own timeout is the bound."""
    while (await session.get("/readyz")).status != status:  # noqa: ASYNC110 (nothing tells another process's test)
        await asyncio.sleep(0.05)


async def scraped(session: aiohttp.ClientSession) -> dict[str, float]:
    """The metrics by name; of those with labels the last."""
    text = await (await session.get("/metrics")).text()
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--check-headers", "tenant=X-Tenant"], "give --http ADDR too"),
        (["--http", "nowhere"], "'nowhere' is neither HOST:PORT"),
        (["--http", "127.0.0.1:0", "--check-headers", "tenant"], "'tenant' is not DIMENSION=HEADER"),
    ],
)
def test_wrong_flags_are_said_plainly(arguments: list[str], words: str, tmp_path: Path) -> None:
    """Exit code 2, one line, no traceback."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(FIVE)
    ran = run("edge", "--id", "a", "--location", "b", "--alone", "--rules", rules, *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


def test_flags_come_from_a_file_and_from_variables(tmp_path: Path) -> None:
    """Flag beats variable beats file: the file's mapping is fine, the variable's is not, and it is the one read."""
    rules, settings = tmp_path / "rules.yaml", tmp_path / "edge.yaml"
    rules.write_text(FIVE)
    settings.write_text("http: 127.0.0.1:0\ncheck-headers: tenant=X-Tenant\ncheck-domain: api\n")
    arguments = ("--id", "a", "--location", "b", "--alone", "--rules", rules, "--config", settings)
    ran = run("edge", *arguments, APPORTION_CHECK_HEADERS="broken")
    assert ran.returncode == 2
    assert "'broken' is not DIMENSION=HEADER" in ran.stderr
