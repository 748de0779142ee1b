"""C17: integers of 32, 53 and 64 bits over RLS, whose numbers have 32 bits where ours have more."""

import pytest

from tests.doors import OK, OVER_LIMIT, headers, metadata, opened, with_hits
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

UINT32_MAX = 4_294_967_295


async def test_a_all_32_bits_in_one_instant() -> None:
    """Hits 4294967295: OK rem 0; then 1: OVER."""
    async with opened(rules_text(rule_text("r", f"rate: {UINT32_MAX}/s, burst: {UINT32_MAX}"))) as doors:
        answers = [await doors.limit({"tenant": "contoso"}, hits=hits) for hits in (UINT32_MAX, 1)]
    told = [(answer.overall_code, answer.statuses[0].limit_remaining) for answer in answers]
    assert told == [(OK, 0), (OVER_LIMIT, 0)]


async def test_b_an_addend_of_64_bits_is_refused_and_charges_nothing() -> None:
    """Limit 10, addend 2^64-1: OVER; then 1: OK rem 9."""
    async with opened(rules_text(rule_text("r", "rate: 10/min, burst: 10"))) as doors:
        huge = await doors.rls.ShouldRateLimit(with_hits({"tenant": "contoso"}, 2**64 - 1))
        then = await doors.limit({"tenant": "contoso"})
    assert huge.overall_code == OVER_LIMIT
    assert metadata(huge)["charged"] == []
    assert headers(huge) == {"x-apportion-reason": "impossible"}
    assert (then.overall_code, then.statuses[0].limit_remaining) == (OK, 9)


async def test_b_two_addends_of_64_bits_do_not_wrap() -> None:
    """2^64-1 and 2 for one quota sum to 2^64+1, not to 1."""
    request = with_hits({"tenant": "contoso"}, 2**64 - 1)
    request.descriptors.append(with_hits({"tenant": "contoso"}, 2).descriptors[0])
    async with opened(rules_text(rule_text("r", "rate: 10/min, burst: 10"))) as doors:
        answer = await doors.rls.ShouldRateLimit(request)
    assert [status.code for status in answer.statuses] == [OVER_LIMIT, OVER_LIMIT]


async def test_e_remaining_above_32_bits_is_told_as_all_of_them() -> None:
    """Limit 8,000,000,000/s with that burst: the call succeeds, remaining and limit say 4294967295."""
    async with opened(rules_text(rule_text("r", "rate: 8000000000/s, burst: 8000000000"))) as doors:
        answer = await doors.limit({"tenant": "contoso"})
    (status,) = answer.statuses
    assert (answer.overall_code, status.limit_remaining) == (OK, UINT32_MAX)
    assert status.current_limit.requests_per_unit == UINT32_MAX
