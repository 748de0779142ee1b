"""C38(b): the advice to wait is whole, never short, and who obeys it exactly is admitted; at every door."""

from collections.abc import Awaitable, Callable

import pytest
from google.protobuf.duration_pb2 import Duration

from apportion.proto.v1 import limiter_pb2
from tests.doors import headers, opened
from tests.http_door import OpenedHttp, opened_http
from tests.in_process import SECOND, ManualClock, rule_text, rules_text

pytestmark = pytest.mark.asyncio

RULES = rules_text(rule_text("bucket", "rate: 1/s, burst: 10", more=", cost: {default: 5}"))
"""bucket(1/s, cap 10); a request costs 5 unless it says otherwise."""

A = {"tenant": "a"}

Ask = Callable[[int], Awaitable[tuple[bool, object]]]
"""Asks for so many units; whether they were admitted, and the advice of the door in its own form."""


async def obeyed(ask: Ask, clock: ManualClock, advice: object, advice_at_1_9: object) -> None:
    """7 of 10 units go, 3 are left: cost 5 waits 2 s; at 1.9 s it is still refused, at 2 s it passes."""
    assert (await ask(7))[0]
    assert await ask(5) == (False, advice)
    began_ns = clock.now_ns
    clock.now_ns = began_ns + 19 * SECOND // 10
    assert await ask(5) == (False, advice_at_1_9)
    clock.now_ns = began_ns + 2 * SECOND
    assert (await ask(5))[0]


async def test_over_post_v1_decide() -> None:
    """Seconds as a number, to the last digit."""
    async with opened_http(RULES) as http:

        async def ask(cost: int) -> tuple[bool, object]:
            told = (await http.decide({"dimensions": A, "cost": cost})).json
            return told["allowed"], told["rules"][0]["retry_after"]

        await obeyed(ask, http.clock, 2.0, 0.1)


async def test_over_check() -> None:
    """Whole seconds, rounded up: 0.1 s is 1."""
    async with opened_http(RULES) as http:

        async def ask(cost: int) -> tuple[bool, object]:
            if cost != 5:
                return (await http.decide({"dimensions": A, "cost": cost})).json["allowed"], None
            told = await http.get("/check", x_tenant="a")
            return told.status == 200, told.headers.get("Retry-After")

        await obeyed(ask, http.clock, "2", "1")


async def test_over_grpc() -> None:
    """A duration, to the nanosecond."""
    async with opened(RULES) as doors:

        async def ask(cost: int) -> tuple[bool, object]:
            descriptor = limiter_pb2.Descriptor(dimensions=A, cost=cost)
            told = await doors.limiter.Decide(limiter_pb2.DecideRequest(descriptors=[descriptor]))
            return told.allowed, told.verdicts[0].retry_after

        await obeyed(ask, doors.clock, Duration(seconds=2), Duration(nanos=100_000_000))


async def test_over_rls() -> None:
    """Whole seconds in a header, rounded up."""
    async with opened(RULES) as doors:

        async def ask(cost: int) -> tuple[bool, object]:
            told = await doors.limit(A, hits=cost)
            return not told.response_headers_to_add, headers(told).get("retry-after")

        await obeyed(ask, doors.clock, "2", "1")


@pytest.mark.parametrize("rate, burst", [("3/s", 1), ("7/min", 2), ("1/s", 1), ("1000/s", 20), ("11/5min", 3)])
async def test_waiting_the_whole_seconds_of_the_header_is_enough(rate: str, burst: int) -> None:
    """At any rate, from any fraction of a second on: never 0 on a refusal, and never too short."""
    async with opened_http(rules_text(rule_text("bucket", f"rate: {rate}, burst: {burst}"))) as http:
        for step_ns in (0, 1, 333_333_333, 999_999_999):
            http.clock.now_ns += step_ns
            await _spend(http)
            refused = await http.get("/check", x_tenant="a")
            wait_s = int(refused.headers["Retry-After"])
            assert wait_s >= 1
            assert f";a=0;w={wait_s};r=0;t={wait_s};" in refused.headers["RateLimit"]
            http.clock.now_ns += wait_s * SECOND
            assert (await http.get("/check", x_tenant="a")).status == 200


async def _spend(http: OpenedHttp) -> None:
    while (await http.get("/check", x_tenant="a")).status == 200:
        pass
