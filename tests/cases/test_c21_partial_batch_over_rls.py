"""C21: one descriptor over the limit must not charge the others; each has a status of its own."""

import pytest

from tests.doors import OK, OVER_LIMIT, metadata, opened
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

RULES = rules_text(
    rule_text("group", "rate: 10/min, burst: 10", "group"), rule_text("special", "rate: 3/min, burst: 3", "special")
)


async def test_a_refused_request_drains_no_wider_limit() -> None:
    """Requests 1-3 OK; 4-5 OVER with special=OVER and group=OK rem 7; then 7 OK with group only, 1 OVER."""
    async with opened(RULES) as doors:
        both = [await doors.limit({"special": "s"}, {"group": "g"}) for _ in range(5)]
        group = [await doors.limit({"group": "g"}) for _ in range(8)]
    assert [answer.overall_code for answer in both] == [OK, OK, OK, OVER_LIMIT, OVER_LIMIT]
    for answer in both[3:]:
        special, wider = answer.statuses
        assert (special.code, special.current_limit.name) == (OVER_LIMIT, "special")
        assert (wider.code, wider.current_limit.name, wider.limit_remaining) == (OK, "group", 7)
        assert metadata(answer)["charged"] == []
    assert [answer.overall_code for answer in group] == [OK] * 7 + [OVER_LIMIT]
