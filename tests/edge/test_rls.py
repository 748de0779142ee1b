"""Envoy's rate limit service in front of an edge, over a real connection: requests in, answers out."""

from collections.abc import Awaitable
from typing import Any

import grpc
import pytest
from envoy.service.ratelimit.v3 import rls_pb2

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.match import Matcher
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.edge.rls_answer import current_limit
from tests.doors import OK, OVER_LIMIT, headers, metadata, opened, refusal, rls_request, with_hits
from tests.in_process import SECOND, rule_of, rule_set, rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))
Limit = rls_pb2.RateLimitResponse.RateLimit


class Scripted:
    """A decider that says what a test wants."""

    ready = True

    def __init__(self, rules: RuleSet | None, **fields: Any) -> None:
        self.domains = tuple(rules.domains) if rules else ()
        self._matchers = {name: Matcher(domain) for name, domain in rules.domains.items()} if rules else {}
        self._fields = fields

    def matcher(self, domain: str) -> Matcher | None:
        return self._matchers.get(domain)

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        spoken = tuple(Verdict(a.rule, a.key, a.cost, **self._fields) for a in applications)
        return Decision(all(verdict.allowed for verdict in spoken), spoken)


class Broken(Scripted):
    """A decider with a fault of our own."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        raise KeyError("secret")


class BrokenLater(Scripted):
    """A decider whose fault shows when it is awaited."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision | Awaitable[Decision]:
        async def fail() -> Decision:
            raise KeyError("secret")

        return fail()


async def test_an_admitted_request_names_rule_limit_remaining_and_reset() -> None:
    """One unit of 10/min: nine left, whole again in six seconds."""
    async with opened(TENANT) as doors:
        answer = await doors.limit({"tenant": "contoso"})
    assert answer.overall_code == OK
    (status,) = answer.statuses
    assert (status.code, status.limit_remaining, status.duration_until_reset.seconds) == (OK, 9, 6)
    assert status.current_limit == Limit(name="tenant-requests", requests_per_unit=10, unit=Limit.MINUTE)
    assert headers(answer) == {}


async def test_a_refused_request_says_when_and_why() -> None:
    """retry-after in whole seconds, rounded up: 5.999 s are 6."""
    async with opened(TENANT) as doors:
        await doors.limit({"tenant": "contoso"}, hits=10)
        doors.clock.now_ns += 1_000_000
        answer = await doors.limit({"tenant": "contoso"})
    assert (answer.overall_code, answer.statuses[0].code, answer.statuses[0].limit_remaining) == (
        OVER_LIMIT,
        OVER_LIMIT,
        0,
    )
    assert headers(answer) == {"retry-after": "6", "x-apportion-reason": "over_limit"}
    assert metadata(answer)["charged"] == []
    assert metadata(answer)["reason"] == "over_limit"


async def test_a_wait_under_a_second_is_never_told_as_zero() -> None:
    """retry-after 0 would send the caller back at once."""
    rules = rules_text(rule_text("r", "rate: 100/s, burst: 1"))
    async with opened(rules) as doors:
        await doors.limit({"tenant": "contoso"})
        answer = await doors.limit({"tenant": "contoso"})
    assert headers(answer)["retry-after"] == "1"


async def test_what_can_never_pass_gets_no_promise() -> None:
    """A cost above the burst: no retry-after, and the reason says that waiting cannot help."""
    async with opened(TENANT) as doors:
        answer = await doors.limit({"tenant": "contoso"}, hits=11)
    assert headers(answer) == {"x-apportion-reason": "impossible"}


async def test_metadata_names_what_was_charged_under_which_label() -> None:
    """Rule, key, cost, epoch and degraded of each rule charged: a client can check the global sum by itself."""
    decider = Scripted(
        rule_set(rule_text("tenant-requests", "rate: 10/s")),
        allowed=True,
        charged=True,
        remaining=3,
        scope=Scope.REGION,
        epoch=1_700_000_123,
    )
    async with opened(decider) as doors:
        told = metadata(await doors.limit({"tenant": "contoso"}, hits=4))
    assert told.pop("decision_id")
    assert told == {
        "rule": "tenant-requests",
        "remaining_scope": "region",
        "degraded": False,
        "charged": [
            {"rule": "tenant-requests", "key": ["contoso"], "cost": 4.0, "epoch": 1_700_000_123.0, "degraded": False}
        ],
    }


async def test_decision_ids_differ() -> None:
    """Each answer has one of its own."""
    async with opened(TENANT) as doors:
        ids = [metadata(await doors.limit({"tenant": "contoso"}))["decision_id"] for _ in range(3)]
    assert len(set(ids)) == 3


async def test_a_long_key_comes_back_as_its_digest() -> None:
    """A value of 2 MiB is limited like any other, and is not sent back."""
    value = "x" * 2**21
    async with opened(TENANT) as doors:
        answers = [await doors.limit({"tenant": value}) for _ in range(2)]
    assert [answer.statuses[0].limit_remaining for answer in answers] == [9, 8]
    (charged,) = metadata(answers[0])["charged"]
    assert charged["key"][0].startswith("blake2b:")
    assert answers[0].ByteSize() < 500


async def test_a_refusal_by_unavailability_is_told_apart() -> None:
    """OVER_LIMIT, because the rule says deny, with a reason of its own and marked degraded."""
    decider = Scripted(
        rule_set(rule_text("tenant-requests", "rate: 10/s")),
        allowed=False,
        reason=Reason.UNAVAILABLE,
        retry_after_ns=SECOND,
        degraded=True,
    )
    async with opened(decider) as doors:
        answer = await doors.limit({"tenant": "contoso"})
    assert answer.overall_code == OVER_LIMIT
    assert headers(answer) == {"retry-after": "1", "x-apportion-reason": "unavailable"}
    assert metadata(answer)["degraded"] is True
    assert metadata(answer)["reason"] == "unavailable"


@pytest.mark.parametrize("kind", [Broken, BrokenLater])
async def test_our_own_fault_is_answered_by_when_unavailable(
    kind: type[Scripted], capsys: pytest.CaptureFixture[str]
) -> None:
    """The caller gets the refusal that the rule wants, and nothing of the fault; the log has it."""
    async with opened(kind(rule_set(rule_text("tenant-requests", "rate: 10/s")))) as doors:
        answer = await doors.limit({"tenant": "contoso"})
    assert headers(answer)["x-apportion-reason"] == "unavailable"
    assert b"secret" not in answer.SerializeToString()
    assert "decision_failed" in capsys.readouterr().out


async def test_each_descriptor_has_a_status_of_its_own() -> None:
    """In order, by its own rules; one that no rule limits is OK and has no limit."""
    rules = rules_text(rule_text("by-tenant", "rate: 10/min, burst: 10"), rule_text("by-user", "rate: 2/min", "user"))
    async with opened(rules) as doors:
        answer = await doors.limit({"tenant": "contoso"}, {"color": "red"}, {"user": "ann"})
    told = [(status.code, status.current_limit.name, status.limit_remaining) for status in answer.statuses]
    assert told == [(OK, "by-tenant", 9), (OK, "", 0), (OK, "by-user", 1)]


async def test_a_quota_that_two_descriptors_hit_is_charged_once_with_the_sum() -> None:
    """Decision D2 of the cases."""
    async with opened(TENANT) as doors:
        answer = await doors.limit({"tenant": "contoso"}, {"tenant": "contoso"}, hits=2)
    assert [status.limit_remaining for status in answer.statuses] == [6, 6]
    assert [entry["cost"] for entry in metadata(answer)["charged"]] == [4]


async def test_an_unlimited_rule_says_nothing() -> None:
    """A request that only an unlimited rule meets has no limit, and nothing was charged."""
    async with opened(rules_text(rule_text("health", "unlimited: true", "path"))) as doors:
        answer = await doors.limit({"path": "/healthz"})
    assert (answer.overall_code, answer.statuses[0].HasField("current_limit")) == (OK, False)
    assert metadata(answer)["charged"] == []


async def test_an_unlimited_rule_beside_a_limited_one_leaves_its_status_alone() -> None:
    """Statuses still belong to their descriptors when a verdict is left out."""
    rules = rules_text(rule_text("a-health", "unlimited: true", "path"), rule_text("tenant", "rate: 10/min, burst: 10"))
    async with opened(rules) as doors:
        answer = await doors.limit({"path": "/healthz"}, {"tenant": "contoso"})
    assert [status.current_limit.name for status in answer.statuses] == ["", "tenant"]


@pytest.mark.parametrize(
    "limit, told",
    [
        ("rate: 100/s", (100, Limit.SECOND)),
        ("rate: 7/min", (7, Limit.MINUTE)),
        ("rate: 7/hour", (7, Limit.HOUR)),
        ("rate: 7/day", (7, Limit.DAY)),
        ("rate: 10/5min, burst: 3", (10, Limit.UNKNOWN)),
        ("rate: 8000000000/s, burst: 9", (2**32 - 1, Limit.SECOND)),
    ],
)
async def test_the_limit_is_told_as_well_as_it_can_be(limit: str, told: tuple[int, int]) -> None:
    """A period without a name has unit UNKNOWN; more than 32 bits is told as all of them."""
    said = current_limit(rule_of(rule_text("r", limit), name="r"))
    assert (said.requests_per_unit, said.unit) == told


async def test_the_wrong_request_is_named() -> None:
    """INVALID_ARGUMENT, with the field that is wrong and what to do."""
    unnamed = rls_request({"tenant": "contoso"}, domain="")
    twice = rls_request({"tenant": "contoso"})
    twice.descriptors[0].entries.add(key="tenant", value="fabrikam")
    overriding = rls_request({"tenant": "contoso"})
    overriding.descriptors[0].limit.requests_per_unit = 5
    many = rls_request(*({"tenant": str(number)} for number in range(257)))
    wide = rls_request({f"d{number}": "" for number in range(257)})
    rows = [
        (unnamed, "domain is empty"),
        (rls_request(), "descriptors is empty"),
        (rls_request({"tenant": "a"}, {}), "descriptors[1].entries is empty"),
        (rls_request({"": "a"}), "descriptors[0].entries[0].key is empty"),
        (twice, "descriptors[0].entries has the key 'tenant' twice"),
        (overriding, "descriptors[0].limit is not supported"),
        (many, "descriptors has 257 entries, the most is 256"),
        (wide, "descriptors[0].entries has 257 entries, the most is 256"),
    ]
    async with opened(TENANT) as doors:
        for request, text in rows:
            code, details = await refusal(doors.rls.ShouldRateLimit(request))
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert text in details
        assert (await doors.limit({"tenant": "contoso"})).statuses[0].limit_remaining == 9


async def test_giving_units_back_is_refused_not_charged() -> None:
    """`is_negative_hits`, field 4 of a descriptor, is newer than the classes we have: it must not pass as a charge."""
    request = rls_request({"tenant": "contoso"}).SerializeToString()
    # Descriptor is field 2 of the request; append the flag to it and correct its length.
    at = request.index(b"\x12") + 1
    raw = request[:at] + bytes([request[at] + 2]) + request[at + 1 :] + b"\x20\x01"
    async with opened(TENANT) as doors:
        code, details = await refusal(doors.raw("/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", raw))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "descriptors[0].is_negative_hits is not supported" in details
        assert (await doors.limit({"tenant": "contoso"})).statuses[0].limit_remaining == 9


async def test_an_unknown_domain_names_the_known_ones() -> None:
    """NOT_FOUND, so that Envoy's failure mode applies and its error count shows it."""
    async with opened(TENANT) as doors:
        told = await refusal(doors.limit({"tenant": "contoso"}, domain="apis"))
    assert told == (grpc.StatusCode.NOT_FOUND, "there is no domain 'apis'; the rules have 'api'")


async def test_without_rules_yet_the_edge_says_so() -> None:
    """An edge that never reached its region cannot know a domain."""
    async with opened(Scripted(None)) as doors:
        code, details = await refusal(doors.limit({"tenant": "contoso"}))
    assert code is grpc.StatusCode.UNAVAILABLE
    assert "no rules yet" in details


async def test_descriptors_match_as_a_whole() -> None:
    """A descriptor with a dimension more than the rule has meets it only with `exact: false`."""
    strict = rule_text("strict", "rate: 10/min", "tenant")
    loose = rule_text("loose", "rate: 10/min", "user", more=", exact: false")
    async with opened(rules_text(strict, loose)) as doors:
        answers = [await doors.limit({name: "x", "color": "red"}) for name in ("tenant", "user")]
    assert [answer.statuses[0].current_limit.name for answer in answers] == ["", "loose"]


async def test_the_own_addend_of_a_descriptor_counts_before_the_requests() -> None:
    """3 for the descriptor that says so, 2 for the other."""
    request = with_hits({"tenant": "a"}, 3)
    request.hits_addend = 2
    request.descriptors.add().entries.add(key="tenant", value="b")
    async with opened(TENANT) as doors:
        answer = await doors.rls.ShouldRateLimit(request)
    assert [status.limit_remaining for status in answer.statuses] == [7, 8]


async def test_reset_is_told_to_the_nanosecond() -> None:
    """Half a unit of 10/min drains in three seconds and a bit."""
    async with opened(TENANT) as doors:
        await doors.limit({"tenant": "contoso"})
        doors.clock.now_ns += 2_500_000_000
        answer = await doors.rls.ShouldRateLimit(with_hits({"tenant": "contoso"}, 0))
    reset = answer.statuses[0].duration_until_reset
    assert (reset.seconds, reset.nanos) == (3, 500_000_000)
