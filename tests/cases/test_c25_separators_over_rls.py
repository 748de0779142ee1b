"""C25: separator characters inside values never make two callers one, over RLS."""

import pytest

from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone
from tests.doors import OK, OVER_LIMIT, opened
from tests.in_process import ManualClock, rule_text, rules_text

pytestmark = pytest.mark.asyncio

RULES = rules_text(rule_text("user", "rate: 1/min, burst: 1"), rule_text("both", "rate: 1/min, burst: 1", "ip tenant"))


@pytest.mark.parametrize("separator", ["_", ":", "|", "/", "{}", "*", "\n", "\0", ",", "\\", " ", "é", "\x1f"])
async def test_one_value_never_equals_two(separator: str) -> None:
    """X OK, Y OK, second X OVER, second Y OVER."""
    joined = {"tenant": f"a{separator}ip{separator}b"}
    apart = {"tenant": "a", "ip": "b"}
    async with opened(RULES) as doors:
        answers = [await doors.limit(descriptor) for descriptor in (joined, apart, joined, apart)]
    assert [answer.overall_code for answer in answers] == [OK, OK, OVER_LIMIT, OVER_LIMIT]


@pytest.mark.parametrize("separator", ["_", ":", "|", "/", "\0"])
async def test_a_border_between_values_is_not_moved(separator: str) -> None:
    """(a|b, c) and (a, b|c) have counts of their own."""
    left = {"ip": f"a{separator}b", "tenant": "c"}
    right = {"ip": "a", "tenant": f"b{separator}c"}
    async with opened(RULES) as doors:
        answers = [await doors.limit(descriptor) for descriptor in (left, right, left)]
    assert [answer.overall_code for answer in answers] == [OK, OK, OVER_LIMIT]


async def test_a_domain_that_ends_like_a_key_is_another_domain() -> None:
    """Domains `api` and `api_tenant`, with a rule of the same name in each."""
    texts = [
        (f"{domain}.yaml", rules_text(rule_text("r", "rate: 1/min, burst: 1"), domain=domain))
        for domain in ("api", "api_tenant")
    ]
    async with opened(Alone(parse_rules(texts), ManualClock())) as doors:
        answers = [
            await doors.limit({"tenant": value}, domain=domain)
            for domain, value in (("api", "tenant_x"), ("api_tenant", "x"), ("api_tenant", "tenant_x"), ("api", "x"))
        ]
    assert [answer.overall_code for answer in answers] == [OK, OK, OK, OK]
