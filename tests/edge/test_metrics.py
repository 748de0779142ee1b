"""Metrics of an edge, as Prometheus reads them: per rule, never per key, and their sums agree."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import grpc.aio
import pytest
from envoy.service.ratelimit.v3 import rls_pb2_grpc
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.request import Application
from apportion.edge import counts as counting
from apportion.edge import verdicts
from apportion.edge.counts import Counts
from apportion.edge.doors import open_doors
from tests.doors import Waiting, rls_request
from tests.http_door import OpenedHttp, opened_http
from tests.in_process import rule_of, rule_text, rules_text

TENANT = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))
RULE = rule_of(rule_text("tenant-requests", "rate: 1/min, burst: 5"), name="tenant-requests")

Samples = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


async def scraped(http: OpenedHttp) -> Samples:
    """Every sample by its name and labels."""
    told = await http.get("/metrics")
    assert told.headers["Content-Type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(told.body.decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def of_rule(samples: Samples, name: str, **labels: str) -> float:
    """A sample of the rule; 0 where it is not there."""
    wanted = {"domain": "api", "rule": "tenant-requests", **labels}
    return samples.get((name, frozenset(wanted.items())), 0.0)


@pytest.mark.asyncio
async def test_units_are_counted_by_outcome() -> None:
    """Offered = admitted + denied; a peek is no offer."""
    async with opened_http(TENANT) as http:
        for cost in (3, 2, 4, 9):
            await http.decide({"dimensions": {"tenant": "a"}, "cost": cost})
        await http.decide({"dimensions": {"tenant": "a"}, "cost": 7, "peek": True})
        samples = await scraped(http)
    assert of_rule(samples, "apportion_offered_units_total") == 18
    assert of_rule(samples, "apportion_admitted_units_total") == 5
    assert of_rule(samples, "apportion_denied_units_total", reason="over_limit", place="edge") == 4
    assert of_rule(samples, "apportion_denied_units_total", reason="impossible", place="edge") == 9
    assert samples["apportion_peeked_requests_total", frozenset()] == 1
    assert samples["apportion_decision_seconds_count", frozenset()] == 5
    assert 0 < samples["apportion_decision_seconds_sum", frozenset()] < 5
    assert samples["apportion_holdings", frozenset()] == 1
    assert samples["apportion_ready", frozenset()] == 1


@pytest.mark.asyncio
async def test_every_door_is_counted() -> None:
    """gRPC and HTTP of one edge have one count."""
    async with opened_http(TENANT) as http:
        doors = await open_doors("127.0.0.1:0", http.counted)
        try:
            async with grpc.aio.insecure_channel(doors.address) as channel:
                stub = rls_pb2_grpc.RateLimitServiceStub(channel)
                await stub.ShouldRateLimit(rls_request({"tenant": "a"}, hits=2))
        finally:
            await doors.close(1.0)
        await http.get("/check", x_tenant="a")
        assert of_rule(await scraped(http), "apportion_admitted_units_total") == 3


@pytest.mark.asyncio
async def test_the_number_of_series_does_not_depend_on_the_number_of_keys() -> None:
    """3,000 tenants leave the series of one, and no tenant's name is in the text."""
    async with opened_http(TENANT) as http:
        await http.decide({"dimensions": {"tenant": "tenant-0"}, "cost": 6})
        await http.decide({"dimensions": {"tenant": "tenant-0"}})
        before = await scraped(http)
        for number in range(3_000):
            application = Application(RULE, (f"tenant-{number}",), 1)
            http.counted.decide((application,), False)
        after = await scraped(http)
        text = (await http.get("/metrics")).body
    assert set(before) == set(after)
    assert of_rule(after, "apportion_offered_units_total") == 3_007
    assert b"tenant-0" not in text


@pytest.mark.asyncio
async def test_openmetrics_for_who_asks() -> None:
    """By the Accept field, as Prometheus sends it."""
    async with opened_http(TENANT) as http:
        await http.get("/check", x_tenant="a")
        told = await http.get("/metrics", accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert told.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in openmetrics_families(told.body.decode())}  # type: ignore[no-untyped-call]
    assert {"apportion_offered_units", "apportion_decision_seconds", "apportion_ready"} <= names


class Away(Waiting):
    """A decider that answers as an edge without its region."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:  # type: ignore[override]
        return verdicts.unavailable(applications)


@pytest.mark.asyncio
async def test_degraded_answers_have_their_own_count_and_reason() -> None:
    """They are not mixed with limits that were reached."""
    async with opened_http(Away()) as http:
        for _ in range(3):
            await http.get("/check", x_tenant="a")
        samples = await scraped(http)
    assert of_rule(samples, "apportion_degraded_requests_total") == 3
    assert of_rule(samples, "apportion_denied_units_total", reason="unavailable", place="edge") == 3
    assert of_rule(samples, "apportion_denied_units_total", reason="over_limit", place="edge") == 0


@pytest.mark.asyncio
async def test_a_caller_that_goes_away_is_counted_and_so_is_a_fault() -> None:
    """Neither is an answer."""
    decider = Waiting()
    async with opened_http(decider) as http:
        started = http.counted.decide((Application(RULE, ("a",), 1),), False)
        assert not isinstance(started, Decision)
        left = asyncio.ensure_future(started)
        await decider.asked.get()
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        asked = asyncio.create_task(http.get("/check", x_tenant="a"))
        _, future = await decider.asked.get()
        future.set_exception(RuntimeError("a fault"))
        assert (await asked).status == 503
        samples = await scraped(http)
    assert samples["apportion_abandoned_requests_total", frozenset()] == 1
    assert samples["apportion_failed_requests_total", frozenset()] == 1


def verdict(allowed: bool, cost: int, scope: Scope = Scope.REGION, reason: Reason | None = None) -> Verdict:
    """What RULE said."""
    return Verdict(RULE, ("a",), cost, allowed=allowed, scope=scope, reason=reason)


def test_a_refusal_is_counted_where_it_was_known() -> None:
    """By the region or by the edge itself; a rule that did not refuse says so."""
    counts = Counts()
    counts.decided(Decision(False, (verdict(False, 2, Scope.REGION, Reason.OVER_LIMIT),)), False, 1)
    counts.decided(Decision(False, (verdict(False, 3, Scope.EDGE, Reason.OVER_LIMIT), verdict(True, 4))), False, 1)
    of = counts.rules["api", "tenant-requests"]
    assert (of.offered, of.admitted) == (9, 0)
    assert of.denied == {
        (Reason.OVER_LIMIT, Scope.REGION): 2,
        (Reason.OVER_LIMIT, Scope.EDGE): 3,
        (None, Scope.REGION): 4,
    }


def test_times_fall_into_the_buckets_of_their_bounds() -> None:
    """A bound belongs to its bucket, as Prometheus has it; beyond the last is the one more."""
    counts = Counts()
    for took_ns in (0, 25_000, 25_001, 1_000_000_000, 1_000_000_001):
        counts.decided(Decision(True, ()), False, took_ns)
    assert Counter(dict(enumerate(counts.seconds)))[0] == 2
    assert counts.seconds[1] == 1
    assert counts.seconds[-2:] == [1, 1]


def test_rules_counted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload with ever new names does not fill the memory."""
    monkeypatch.setattr(counting, "RULES_MAX", 2)
    counts = Counts()
    for name in ("a", "b", "c"):
        rule = rule_of(rule_text(name, "rate: 10/s"), name=name)
        counts.decided(Decision(True, (Verdict(rule, (), 1, allowed=True),)), False, 1)
    assert set(counts.rules) == {("api", "c")}
