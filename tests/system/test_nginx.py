"""A real nginx whose `auth_request` asks `/check`: what its users get to see."""

import signal
import time
from pathlib import Path

import aiohttp
import pytest

from apportion.edge.alone import Alone
from apportion.edge.check_request import CheckMapping
from tests.edge_process import running_edge
from tests.http_door import opened_http
from tests.in_process import rule_set, rule_text, rules_text
from tests.nginx import running_nginx

pytestmark = pytest.mark.asyncio

FIVE = rule_text("tenant-requests", "rate: 1/min, burst: 5")


def client(front: Path) -> aiohttp.ClientSession:
    """Asks the nginx at this socket."""
    return aiohttp.ClientSession("http://front", connector=aiohttp.UnixConnector(str(front)))


async def test_a_burst_of_five_passes_and_the_sixth_is_429(tmp_path: Path) -> None:
    """With Retry-After and the RateLimit field; another caller passes, and who sets the dimension is nginx alone."""
    edge = Alone(rule_set(FIVE), time.monotonic_ns)
    mapping = CheckMapping((("tenant", "X-Tenant"),))
    async with (
        opened_http(edge, mapping) as http,
        running_nginx(http.door.address, tmp_path) as front,
        client(front) as session,
    ):
        told = [await session.get("/", headers={"X-Api-Key": "contoso"}) for _ in range(7)]
        other = await session.get("/", headers={"X-Api-Key": "fabrikam"})
        forged = await session.get("/", headers={"X-Api-Key": "contoso", "X-Tenant": "somebody-else"})
        body = await told[0].text()
    assert [each.status for each in told] == [200] * 5 + [429] * 2
    assert body == "passed"
    assert told[0].headers["RateLimit"] == '"tenant-requests";a=4;w=60;r=4;t=60;apportion-scope=edge'
    assert 55 <= int(told[5].headers["Retry-After"]) <= 60
    assert told[5].headers["X-Apportion-Reason"] == "over_limit"
    assert (other.status, forged.status) == (200, 429)


async def test_a_real_edge_behind_it_that_goes_away(tmp_path: Path) -> None:
    """While it is away nginx says 500, for it lets nothing pass unchecked; the process stops cleanly on SIGTERM."""
    async with (
        running_edge(rules_text(FIVE), tmp_path) as edge,
        running_nginx(edge.http, tmp_path / "nginx") as front,
        client(front) as session,
    ):
        first = await session.get("/", headers={"X-Api-Key": "contoso"})
        edge.send(signal.SIGTERM)
        code = await edge.process.wait()
        away = await session.get("/", headers={"X-Api-Key": "contoso"})
    assert (first.status, code, away.status) == (200, 0, 500)
