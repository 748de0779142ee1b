"""C28: wildcards, nesting and precedence over RLS: the most specific wins, whatever the order of the file's lines."""

from collections.abc import Sequence

import pytest

from tests.doors import OK, OVER_LIMIT, opened
from tests.in_process import rules_text

pytestmark = pytest.mark.asyncio


def rule(name: str, match: str, key: str, rate: str, burst: int) -> str:
    """A rule of the case."""
    return (
        f"  - {{name: {name}, match: {{{match}}}, key: [{key}], limit: {{rate: {rate}, burst: {burst}}}, "
        f"enforce: region, when_unavailable: [deny]}}\n"
    )


RULES = [
    rule("r1", 'path: "/api/v1/users"', "path", "1/min", 1),
    rule("r2", 'path: "/api/v1/*"', "path", "5/min", 5),
    rule("r3", 'path: "/api/*"', "path", "10/min", 10),
    rule("r4", 'path: "*"', "path", "20/min", 20),
    rule("r5", 'method: "GET", path: "/x*"', "method, path", "3/min", 3),
]
ORDERS = [RULES, RULES[::-1], *(RULES[at:] + RULES[:at] for at in range(1, 5)), [RULES[i] for i in (2, 4, 0, 3, 1)]]

REQUESTS = [
    ({"path": "/api/v1/users"}, "r1"),
    ({"path": "/api/v1/orders"}, "r2"),
    ({"path": "/api/v2/x"}, "r3"),
    ({"path": "/other"}, "r4"),
    ({"method": "GET", "path": "/xyz"}, "r5"),
    ({"method": "GET", "path": "/zzz"}, ""),
    ({"method": "POST", "path": "/xyz"}, ""),
    ({"path": "/api/v1/*"}, "r2"),
]


@pytest.mark.parametrize("order", ORDERS)
async def test_the_most_specific_rule_wins(order: Sequence[str]) -> None:
    """R1, R2, R3, R4, R5, none, none, and R2 for a literal star, which is an ordinary value."""
    async with opened(rules_text(*order)) as doors:
        answers = [await doors.limit(descriptor) for descriptor, _ in REQUESTS]
    assert [answer.statuses[0].current_limit.name for answer in answers] == [name for _, name in REQUESTS]
    assert {answer.overall_code for answer in answers} == {OK}


async def test_each_value_has_a_count_of_its_own() -> None:
    """/api/v1/a, /api/v1/b and the literal /api/v1/* do not share R2's five."""
    async with opened(rules_text(*RULES)) as doors:
        spent = await doors.limit({"path": "/api/v1/a"}, hits=5)
        over = await doors.limit({"path": "/api/v1/a"})
        others = [await doors.limit({"path": path}) for path in ("/api/v1/b", "/api/v1/*")]
    assert (spent.overall_code, over.overall_code) == (OK, OVER_LIMIT)
    assert [answer.statuses[0].limit_remaining for answer in others] == [4, 4]


async def test_a_star_does_not_reach_across_the_joint_of_key_and_value() -> None:
    """A key path_b with value z is not a path that begins with b."""
    async with opened(rules_text(rule("r", 'path: "b*"', "path", "1/min", 1))) as doors:
        answers = [await doors.limit(descriptor) for descriptor in ({"path_b": "z"}, {"path": "bz"})]
    assert [answer.statuses[0].current_limit.name for answer in answers] == ["", "r"]


async def test_entries_in_any_order_are_the_same_request() -> None:
    """Envoy's actions may be listed either way round."""
    async with opened(rules_text(*RULES)) as doors:
        one = await doors.limit({"method": "GET", "path": "/xyz"})
        other = await doors.limit({"path": "/xyz", "method": "GET"})
    assert [answer.statuses[0].limit_remaining for answer in (one, other)] == [2, 1]
