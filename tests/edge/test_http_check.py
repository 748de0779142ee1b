"""`/check` over a real connection: what a proxy is told, and what is wrong with its request."""

import asyncio

import pytest

from apportion.core.decision import Decision
from apportion.core.errors import InputError
from apportion.core.request import Application
from apportion.edge import verdicts
from apportion.edge.check_request import CheckMapping, parse_mapping
from tests.doors import Waiting
from tests.http_door import MAPPING, opened_http
from tests.in_process import SECOND, rule_text, rules_text

TENANT = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_a_request_within_the_limit_passes_with_what_is_left(method: str) -> None:
    """200, no body, and the fields of draft 12 with those of drafts 08 to 11 beside them."""
    async with opened_http(TENANT) as http:
        told = await http.ask(method, "/check", headers={"X-Tenant": "contoso"})
    assert (told.status, told.body) == (200, b"")
    assert told.headers["RateLimit-Policy"] == '"tenant-requests";q=1;w=60;apportion-burst=5'
    assert told.headers["RateLimit"] == '"tenant-requests";a=4;w=60;r=4;t=60;apportion-scope=edge'
    assert told.headers["X-Apportion-Rule"] == "tenant-requests"
    assert told.headers["X-Apportion-Decision-Id"].endswith("-1")
    assert told.headers["Cache-Control"] == "no-store"
    assert told.headers["Server"] == "apportion"
    assert not {"Retry-After", "X-Apportion-Reason", "X-Apportion-Degraded"} & set(told.headers)


@pytest.mark.asyncio
async def test_the_sixth_of_a_burst_of_five_is_refused_and_told_when_to_come_back() -> None:
    """429, the whole seconds to wait, which rule and why; the body is the draft's problem."""
    async with opened_http(TENANT) as http:
        told = [await http.get("/check", x_tenant="contoso") for _ in range(6)]
        other = await http.get("/check", x_tenant="fabrikam")
    assert [each.status for each in told] == [200] * 5 + [429]
    refused = told[5]
    assert refused.headers["Retry-After"] == "60"
    assert refused.headers["RateLimit"] == '"tenant-requests";a=0;w=60;r=0;t=60;apportion-scope=edge'
    assert refused.headers["X-Apportion-Rule"] == "tenant-requests"
    assert refused.headers["X-Apportion-Reason"] == "over_limit"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "the limit is used up",
        "status": 429,
        "violated-policies": ["tenant-requests"],
    }
    assert other.status == 200


@pytest.mark.asyncio
async def test_a_request_that_waiting_cannot_help_is_promised_nothing() -> None:
    """A limit of 0: 429 without Retry-After and without a window."""
    async with opened_http(rules_text(rule_text("blocked", "rate: 0/s"))) as http:
        told = await http.get("/check", x_tenant="contoso")
    assert told.status == 429
    assert "Retry-After" not in told.headers
    assert told.headers["X-Apportion-Reason"] == "impossible"
    assert told.headers["RateLimit"] == '"blocked";a=0;r=0;apportion-scope=edge'


@pytest.mark.asyncio
async def test_a_header_that_is_absent_is_a_dimension_that_is_absent() -> None:
    """A rule over tenant and api meets only requests that have both; an empty header is a value."""
    rules = rules_text(rule_text("both", "rate: 1/min, burst: 1", match="tenant api"))
    async with opened_http(rules) as http:
        free = [await http.get("/check", x_tenant="contoso") for _ in range(3)]
        empty = [await http.get("/check", x_tenant="contoso", x_api="") for _ in range(2)]
    assert [told.status for told in free] == [200, 200, 200]
    assert "RateLimit" not in free[0].headers
    assert [told.status for told in empty] == [200, 429]


@pytest.mark.asyncio
@pytest.mark.parametrize("header", ["x-tenant", "X-TENANT"])
async def test_names_of_headers_are_alike_in_any_case(header: str) -> None:
    """As HTTP has it."""
    async with opened_http(TENANT) as http:
        told = await http.ask("GET", "/check", headers={header: "contoso"})
    assert told.headers["X-Apportion-Rule"] == "tenant-requests"


@pytest.mark.asyncio
async def test_the_domain_is_the_flag_else_the_header_else_the_only_one() -> None:
    """What the flag names no header can change: a caller could choose rules that refuse nobody."""
    async with opened_http(TENANT) as http:
        assert (await http.get("/check", x_tenant="contoso", x_apportion_domain="api")).status == 200
        wrong = await http.get("/check", x_tenant="contoso", x_apportion_domain="apl")
    async with opened_http(TENANT, CheckMapping(MAPPING.headers, "api")) as http:
        assert (await http.get("/check", x_tenant="contoso", x_apportion_domain="apl")).status == 200
    assert wrong.status == 404
    assert wrong.json == {"error": "there is no domain 'apl'; the rules have 'api'"}


@pytest.mark.asyncio
async def test_without_a_mapping_no_check_passes() -> None:
    """A check of nothing would let everybody through; the error says which flag is missing."""
    async with opened_http(TENANT, CheckMapping()) as http:
        told = await http.get("/check", x_tenant="contoso")
    assert told.status == 400
    assert "--check-headers tenant=X-Tenant" in told.json["error"]


@pytest.mark.asyncio
async def test_a_header_that_comes_twice_is_refused() -> None:
    """Neither value may be dropped: the limit that it was meant for would be off."""
    async with opened_http(TENANT) as http:
        told = await http.ask("GET", "/check", headers=[("X-Tenant", "a"), ("X-Tenant", "b")])
    assert told.status == 400
    assert told.json == {"error": "header X-Tenant comes 2 times, and a dimension has one value"}


@pytest.mark.asyncio
async def test_a_header_that_is_not_utf_8_is_refused_and_one_that_is_is_read() -> None:
    """Bytes of another encoding are no text."""
    async with opened_http(TENANT) as http:
        head = b"GET /check HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Tenant: "
        wrong = await http.raw(head + b"caf\xe9\r\n\r\n")
        right = await http.raw(head + "café".encode() + b"\r\n\r\n")
    assert b" 400 " in wrong.splitlines()[0]
    assert b'{"error": "header X-Tenant is not UTF-8 text"}' in wrong
    assert b" 200 " in right.splitlines()[0]


class Away(Waiting):
    """A decider that answers as an edge without its region: by `when_unavailable: [deny]`."""

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:  # type: ignore[override]
        return verdicts.unavailable(applications)


@pytest.mark.asyncio
async def test_a_refusal_because_nobody_could_decide_is_503_and_marked() -> None:
    """Not the caller's doing: another status and reason than over the limit, degraded, with when to try again."""
    async with opened_http(Away()) as http:
        told = await http.get("/check", x_tenant="contoso")
    assert told.status == 503
    assert told.headers["X-Apportion-Reason"] == "unavailable"
    assert told.headers["X-Apportion-Degraded"] == "true"
    assert told.headers["Retry-After"] == "1"
    assert told.json["type"] == "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"


class Empty(Waiting):
    """An edge that has no rules yet."""

    ready = False
    domains = ()  # type: ignore[assignment]

    def matcher(self, domain: str) -> None:  # type: ignore[override]
        return None


@pytest.mark.asyncio
async def test_before_the_first_rules_nothing_passes() -> None:
    """503, not ready, and when to try again."""
    async with opened_http(Empty()) as http:
        told = await http.get("/check", x_tenant="contoso")
        ready = await http.get("/readyz")
    assert (told.status, told.headers["Retry-After"], ready.status) == (503, "1", 503)
    assert told.json["error"].startswith("there are no rules yet")


@pytest.mark.asyncio
async def test_a_request_that_crosses_is_answered_when_its_decision_comes() -> None:
    """It waits, others do not."""
    decider = Waiting()
    async with opened_http(decider) as http:
        crossing = asyncio.create_task(http.get("/check", x_tenant="contoso"))
        applications, future = await decider.asked.get()
        assert (await http.get("/healthz")).status == 200
        future.set_result(Decision(True, (verdicts.passed(applications[0], charged=True),)))
        told = await crossing
    assert told.status == 200
    assert told.headers["X-Apportion-Rule"] == "tenant-requests"
    assert "RateLimit" not in told.headers
    assert told.headers["RateLimit-Policy"] == '"tenant-requests";q=10;w=1;apportion-burst=10'


@pytest.mark.asyncio
async def test_several_rules_are_several_policies_the_deciding_one_first() -> None:
    """Of a refused request the limits that refused it, so that no window ends after Retry-After."""
    slow, fast = rule_text("a-slow", "rate: 1/min, burst: 1"), rule_text("fast", "rate: 10/s, burst: 10", key="tenant")
    async with opened_http(rules_text(slow, fast.replace("{tenant:", "{api: '*', tenant:"))) as http:
        passed = await http.get("/check", x_tenant="contoso", x_api="search")
        refused = await http.get("/check", x_tenant="contoso", x_api="search")
        http.clock.now_ns += 60 * SECOND
        again = await http.get("/check", x_tenant="contoso", x_api="search")
    assert passed.headers["RateLimit-Policy"].split(", ") == [
        '"a-slow";q=1;w=60;apportion-burst=1',
        '"fast";q=10;w=1;apportion-burst=10',
    ]
    assert refused.headers["RateLimit"] == '"a-slow";a=0;w=60;r=0;t=60;apportion-scope=edge'
    assert (refused.headers["Retry-After"], again.status) == ("60", 200)


def test_a_mapping_is_read_from_its_text() -> None:
    """Pairs in order, spaces do not matter."""
    assert parse_mapping("tenant=X-Tenant, client ip = X-Forwarded-For") == (
        ("tenant", "X-Tenant"),
        ("client ip", "X-Forwarded-For"),
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "'' is not DIMENSION=HEADER"),
        ("tenant", "'tenant' is not"),
        ("tenant=", "'tenant=' is not"),
        ("=X-Tenant", "'=X-Tenant' is not"),
        ("tenant=X Tenant", "'tenant=X Tenant' is not"),
        ("tenant=X-Tenant,", "'' is not"),
        ("tenant=X-A,tenant=X-B", "'tenant' is given twice"),
        ("t" * 300 + "=X", "more than 256 characters"),
        (",".join(f"d{number}=X" for number in range(65)), "has 65 pairs, the most is 64"),
    ],
)
def test_what_is_wrong_with_a_mapping_is_said(text: str, words: str) -> None:
    """The part is named."""
    with pytest.raises(InputError, match="--check-headers") as refused:
        parse_mapping(text)
    assert words in str(refused.value)
