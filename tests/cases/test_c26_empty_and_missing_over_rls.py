"""C26: the empty value is a value, an absent one matches nothing, and an empty request is an error, over RLS."""

import grpc
import pytest

from tests.doors import OK, OVER_LIMIT, opened, refusal, rls_request
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

RULES = rules_text(
    rule_text("any-key", "rate: 1/min, burst: 1", "api_key"),
    "  - {name: vip, match: {api_key: vip}, key: [api_key], limit: {rate: 5/min, burst: 5}, enforce: region, "
    "when_unavailable: [deny]}\n",
)


async def test_the_empty_value_has_its_own_count() -> None:
    """Twice "": OK, OVER; twice "x": OK, OVER."""
    async with opened(RULES) as doors:
        answers = [await doors.limit({"api_key": value}) for value in ("", "", "x", "x")]
    assert [answer.overall_code for answer in answers] == [OK, OVER_LIMIT, OK, OVER_LIMIT]


async def test_an_absent_value_is_allowed_with_no_limit_reported() -> None:
    """OK, and the status has no limit: an operator can see that nothing applied."""
    async with opened(RULES) as doors:
        answer = await doors.limit({"user": "ann"})
    assert answer.overall_code == OK
    assert [(status.code, status.HasField("current_limit")) for status in answer.statuses] == [(OK, False)]


async def test_an_empty_list_or_domain_is_the_callers_error() -> None:
    """INVALID_ARGUMENT that names it, not a crash: the next request is answered."""
    async with opened(RULES) as doors:
        no_descriptors = await refusal(doors.rls.ShouldRateLimit(rls_request()))
        no_domain = await refusal(doors.limit({"api_key": "x"}, domain=""))
        no_entries = await refusal(doors.limit({}))
        after = await doors.limit({"api_key": "x"})
    for (code, details), name in (
        (no_descriptors, "descriptors"),
        (no_domain, "domain"),
        (no_entries, "descriptors[0]"),
    ):
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert details.startswith(name)
    assert after.overall_code == OK
