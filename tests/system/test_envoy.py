"""A real Envoy in front of an edge: what its users get to see. The edge is in this process, without a region."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from apportion.edge.alone import Alone
from tests.doors import opened
from tests.envoy import running_envoy
from tests.http_load import HttpConnection, offer
from tests.in_process import rule_set, rule_text

pytestmark = pytest.mark.asyncio


def alone(limit: str) -> Alone:
    """An edge with one rule over `tenant`, on the real clock."""
    return Alone(rule_set(rule_text("tenant-requests", limit)), time.monotonic_ns)


@asynccontextmanager
async def envoy_before(
    edge: Alone, folder: Path, *, rls: str = "127.0.0.1:0", domain: str = "api"
) -> AsyncIterator[str]:
    """A running Envoy that asks `edge`; gives its HOST:PORT."""
    async with opened(edge, rls) as doors, running_envoy(doors.doors.address, folder, domain=domain) as address:
        yield address


async def test_a_burst_of_five_passes_and_no_more(tmp_path: Path) -> None:
    """With `rate: 1/min, burst: 5` exactly five 200s, then 429s that say when to come back and why they were."""
    async with envoy_before(alone("rate: 1/min, burst: 5"), tmp_path) as address, HttpConnection(address) as connection:
        answers = [await connection.get("/", {"x-tenant": "contoso"}) for _ in range(8)]
        other = await connection.get("/", {"x-tenant": "fabrikam"})
    assert [answer.status for answer in answers] == [200, 200, 200, 200, 200, 429, 429, 429]
    assert answers[0].body == b"passed"
    assert answers[0].headers["x-ratelimit-remaining"] == "4"
    refused = answers[5].headers
    assert refused["x-apportion-reason"] == "over_limit"
    assert 55 <= int(refused["retry-after"]) <= 60
    assert other.status == 200


def admissible(answered_at: Iterable[float], rate: float, burst: float) -> int:
    """How many of the requests answered at these instants a bucket of its own would have let pass."""
    level, last, passed = burst, 0.0, 0
    for at in sorted(answered_at):
        level, last = min(burst, level + (at - last) * rate), at
        if level >= 1:
            level, passed = level - 1, passed + 1
    return passed


async def test_three_times_the_rate_is_cut_to_the_rate(tmp_path: Path) -> None:
    """With 100/s, offered 300/s for three seconds: at most rate x w + burst pass, and at least 90 % of that.

    The lower bound is reckoned from the instants of the answers, as a machine that stalls offers less meanwhile.
    """
    async with envoy_before(alone("rate: 100/s"), tmp_path) as address:
        start = time.monotonic()
        answers = await offer(address, {"x-tenant": "contoso"}, rate=300, seconds=3, connections=12)
        seconds = max(answer.at for answer in answers) - start
    assert {answer.status for answer in answers} == {200, 429}
    passed = sum(answer.status == 200 for answer in answers)
    assert passed <= 100 * seconds + 25
    assert passed >= 0.9 * admissible((answer.at for answer in answers), rate=100, burst=25)


async def test_a_unix_socket_serves_envoy_too(tmp_path: Path) -> None:
    """The agent may listen at unix:PATH, which Envoy calls a pipe."""
    edge = alone("rate: 1/min, burst: 1")
    async with (
        envoy_before(edge, tmp_path, rls=f"unix:{tmp_path}/rls.sock") as address,
        HttpConnection(address) as connection,
    ):
        answers = [await connection.get("/", {"x-tenant": "contoso"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 429]


async def test_a_domain_without_rules_is_seen(tmp_path: Path) -> None:
    """A misspelt domain is an error to Envoy, which denies here: it does not switch limiting off unseen."""
    async with (
        envoy_before(alone("rate: 1/min, burst: 1"), tmp_path, domain="apis") as address,
        HttpConnection(address) as connection,
    ):
        answer = await connection.get("/", {"x-tenant": "contoso"})
    assert answer.status == 500


async def test_a_request_without_the_header_is_not_limited(tmp_path: Path) -> None:
    """Envoy makes no descriptor where a header is absent, and then asks nobody."""
    async with envoy_before(alone("rate: 1/min, burst: 1"), tmp_path) as address, HttpConnection(address) as connection:
        answers = [await connection.get("/") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 200]
