"""C16: zero hits over RLS: the request's 0 is the default cost, a descriptor's explicit 0 is a peek."""

import pytest

from tests.doors import OK, OVER_LIMIT, metadata, opened, rls_request, with_hits
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

RULES = rules_text(rule_text("r", "rate: 2/min, burst: 2"))


async def test_a_without_an_addend_each_request_costs_one() -> None:
    """OK rem 1, OK rem 0, OVER."""
    async with opened(RULES) as doors:
        answers = [await doors.limit({"tenant": "contoso"}) for _ in range(3)]
    told = [(answer.overall_code, answer.statuses[0].limit_remaining) for answer in answers]
    assert told == [(OK, 1), (OK, 0), (OVER_LIMIT, 0)]


async def test_b_an_explicit_zero_of_a_descriptor_is_a_peek() -> None:
    """Peek OK rem 2, twice; hits 2 OK rem 0; the last peek OK with rem 0 (decision D1). Peeks charge nothing."""
    async with opened(RULES) as doors:
        answers = [await doors.rls.ShouldRateLimit(with_hits({"tenant": "contoso"}, hits)) for hits in (0, 0, 2, 0)]
    assert [(answer.overall_code, answer.statuses[0].limit_remaining) for answer in answers] == [
        (OK, 2),
        (OK, 2),
        (OK, 0),
        (OK, 0),
    ]
    assert [len(metadata(answer)["charged"]) for answer in answers] == [0, 0, 1, 0]


async def test_the_default_cost_of_a_rule_is_not_always_one() -> None:
    """Without an addend the rule's own default counts."""
    rules = rules_text(rule_text("r", "rate: 10/min, burst: 10", more=", cost: {default: 3}"))
    async with opened(rules) as doors:
        assert (await doors.limit({"tenant": "contoso"})).statuses[0].limit_remaining == 7


async def test_a_descriptors_zero_stays_a_peek_beside_the_requests_addend() -> None:
    """The request says 2, one descriptor says 0: that one is only looked at."""
    request = rls_request({"tenant": "peeked"}, {"tenant": "charged"}, hits=2)
    request.descriptors[0].hits_addend.value = 0
    async with opened(RULES) as doors:
        answer = await doors.rls.ShouldRateLimit(request)
    assert [status.limit_remaining for status in answer.statuses] == [2, 0]
    assert [entry["key"] for entry in metadata(answer)["charged"]] == [["charged"]]
