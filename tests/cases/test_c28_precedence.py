"""C28: wildcards, nesting and precedence do not depend on the order of the file (core part)."""

from __future__ import annotations

from itertools import permutations

import pytest

from apportion.core.match import Matcher
from apportion.core.rules_file import parse_rules

HEAD = "version: 1\ndomain: api\nrules:\n"


def rule(name: str, match: str, rate: str) -> str:
    """One rule of the case."""
    key = "[method, path]" if "method" in match else "[path]"
    return (
        f"  - {{name: {name}, match: {match}, key: {key}, limit: {{rate: {rate}}}, enforce: region, "
        "when_unavailable: [deny]}\n"
    )


RULES = [
    rule("R1", "{path: /api/v1/users}", "1/min"),
    rule("R2", '{path: "/api/v1/*"}', "5/min"),
    rule("R3", '{path: "/api/*"}', "10/min"),
    rule("R4", '{path: "*"}', "20/min"),
    rule("R5", '{method: GET, path: "/x*"}', "3/min"),
]
REQUESTS: list[tuple[dict[str, str], list[str]]] = [
    ({"path": "/api/v1/users"}, ["R1"]),
    ({"path": "/api/v1/orders"}, ["R2"]),
    ({"path": "/api/v2/x"}, ["R3"]),
    ({"path": "/other"}, ["R4"]),
    ({"method": "GET", "path": "/xyz"}, ["R5"]),
    ({"method": "GET", "path": "/zzz"}, []),
    ({"method": "POST", "path": "/xyz"}, []),
    ({"path": "/api/v1/*"}, ["R2"]),
    ({"path_b": "z"}, []),
]


def matcher_of(rules: tuple[str, ...]) -> Matcher:
    """The rules as one file has them in this order."""
    return Matcher(parse_rules([("rules.yaml", HEAD + "".join(rules))]).domains["api"])


@pytest.mark.parametrize("request_dimensions,expected", REQUESTS, ids=str)
def test_the_most_specific_rule_applies(request_dimensions: dict[str, str], expected: list[str]) -> None:
    """As a descriptor of RLS, which has exactly a rule's dimensions."""
    found = matcher_of(tuple(RULES)).match(request_dimensions, whole=True)
    assert [rule.name for rule in found] == expected


def test_every_order_of_the_file_gives_the_same_answers() -> None:
    """All 120 of them."""
    for order in permutations(RULES):
        matcher = matcher_of(order)
        answers = [[rule.name for rule in matcher.match(request, whole=True)] for request, _ in REQUESTS]
        assert answers == [expected for _, expected in REQUESTS]


def test_two_paths_of_one_prefix_have_separate_counts() -> None:
    """Unless the rule's key says shared."""
    matcher = matcher_of(tuple(RULES))
    keys = []
    for path in ("/api/v1/a", "/api/v1/b"):
        (found,) = matcher.match({"path": path}, whole=True)
        keys.append(matcher.key(found, {"path": path}))
    assert keys == [("/api/v1/a",), ("/api/v1/b",)]
    shared = matcher_of((RULES[1].replace("key: [path]", "key: []"),))
    (found,) = shared.match({"path": "/api/v1/a"}, whole=True)
    assert shared.key(found, {"path": "/api/v1/a"}) == ()
