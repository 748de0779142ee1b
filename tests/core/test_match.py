"""Which rules apply, for single requests and against a reference that reads every rule (design 4)."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core import match as match_module
from apportion.core.limit import RateLimit
from apportion.core.match import Matcher, apply_rules
from apportion.core.match_reasons import crossings, reasons
from apportion.core.patterns import parse_pattern
from apportion.core.request import Application, Descriptor
from apportion.core.rule import Domain, Enforce, Fallback, Place, Rule, Stage

SECOND = 1_000_000_000


def rule(name: str, match: dict[str, str | list[str]], key: tuple[str, ...] = (), exact: bool = True) -> Rule:
    """A rule with these patterns."""
    lists = {dimension: value if isinstance(value, list) else [value] for dimension, value in match.items()}
    return Rule(
        domain="api",
        name=name,
        match=tuple((dimension, tuple(map(parse_pattern, lists[dimension]))) for dimension in sorted(lists)),
        key=key,
        limit=RateLimit(10, SECOND, 10),
        enforce=Enforce.REGION,
        when_unavailable=(Stage(Fallback.DENY),),
        deadline_ns=10**8,
        cost_default=1,
        cost_max=10,
        exact=exact,
        place=Place("rules.yaml", 1),
    )


def matcher_of(*rules: Rule) -> Matcher:
    """The matcher of these rules."""
    return Matcher(Domain("api", rules))


def names(matcher: Matcher, whole: bool = False, **dimensions: str) -> list[str]:
    """Names of the rules that apply."""
    return [found.name for found in matcher.match(dimensions, whole)]


@pytest.mark.parametrize(
    "pattern,fitting,other",
    [
        ("search", ["search"], ["", "searches", "Search", "search "]),
        ("/api/*", ["/api/", "/api/v1", "/api/*"], ["/api", "/ap", "", "x/api/"]),
        ("*", ["", "*", "anything"], []),
        ("", [""], ["a"]),
    ],
)
def test_a_pattern_fits_what_it_says(pattern: str, fitting: list[str], other: list[str]) -> None:
    """Exact, a prefix with a trailing `*`, `*` for any value that is present."""
    matcher = matcher_of(rule("r", {"a": pattern}))
    assert [value for value in [*fitting, *other] if names(matcher, a=value)] == fitting


def test_an_absent_dimension_never_fits() -> None:
    """`*` is any value that is present; "" is a value."""
    matcher = matcher_of(rule("r", {"a": "*", "b": "*"}))
    assert names(matcher, a="x") == []
    assert names(matcher) == []
    assert names(matcher, a="x", b="") == ["r"]


def test_dimensions_that_the_rule_does_not_name_do_not_matter_unless_the_descriptor_is_whole() -> None:
    """A descriptor of RLS must have exactly the rule's dimensions; `exact: false` lifts that."""
    matcher = matcher_of(rule("strict", {"a": "*"}), rule("loose", {"a": "x*"}, exact=False))
    assert names(matcher, a="y", b="1") == ["strict"]
    assert names(matcher, whole=True, a="y", b="1") == []
    assert names(matcher, whole=True, a="xy", b="1") == ["loose"]
    assert names(matcher, whole=True, a="y") == ["strict"]


def test_of_rules_with_the_same_dimensions_the_more_specific_applies() -> None:
    """Exact over longer prefix over shorter prefix over any."""
    matcher = matcher_of(
        rule("any", {"p": "*"}), rule("exact", {"p": "/a/b"}), rule("long", {"p": "/a/*"}), rule("short", {"p": "/*"})
    )
    assert [names(matcher, p=value) for value in ("/a/b", "/a/c", "/c", "c")] == [
        ["exact"],
        ["long"],
        ["short"],
        ["any"],
    ]


def test_rules_that_cross_both_apply() -> None:
    """Neither is more specific in every dimension."""
    matcher = matcher_of(rule("left", {"a": "x", "b": "*"}), rule("right", {"a": "*", "b": "y"}))
    assert names(matcher, a="x", b="y") == ["left", "right"]
    assert names(matcher, a="x", b="z") == ["left"]


def test_rules_with_other_dimensions_are_never_set_aside() -> None:
    """Precedence is only among rules with the same set of dimension names."""
    matcher = matcher_of(rule("tenant", {"a": "*"}), rule("both", {"a": "x", "b": "y"}), rule("api", {"b": "y"}))
    assert names(matcher, a="x", b="y") == ["api", "both", "tenant"]


def test_a_list_counts_by_the_pattern_in_it_that_fitted() -> None:
    """The same rule is more or less specific, depending on the request."""
    matcher = matcher_of(rule("list", {"a": ["x", "y*"]}), rule("prefix", {"a": ["x*", "yz*"]}))
    assert names(matcher, a="x") == ["list"]
    assert names(matcher, a="xx") == ["prefix"]
    assert names(matcher, a="yy") == ["list"]
    assert names(matcher, a="yzz") == ["prefix"]


def test_a_star_does_not_reach_over_the_joint_between_name_and_value() -> None:
    """A dimension path_b with the value z is not path=b* (case C28)."""
    matcher = matcher_of(rule("r", {"path": "b*"}))
    assert names(matcher, path_b="z") == []
    assert names(matcher, path="b_z") == ["r"]


def test_descriptors_that_hit_one_rule_and_key_are_one_application_with_the_sum() -> None:
    """Charged once (design 4); a descriptor without a cost takes the rule's."""
    matcher = matcher_of(rule("any", {"a": "*"}, ("a",)), rule("b", {"b": "*"}))
    descriptors = [
        Descriptor({"a": "y"}, 5),
        Descriptor({"a": "x", "c": "1"}, 3),
        Descriptor({"a": "x", "b": "2"}),
        Descriptor({"a": "x"}, 0),
    ]
    found = apply_rules(matcher, descriptors, whole=False)
    assert [(one.rule.name, one.key, one.cost, one.descriptors) for one in found] == [
        ("any", ("x",), 4, (1, 2, 3)),
        ("any", ("y",), 5, (0,)),
        ("b", (), 1, (2,)),
    ]


def test_one_descriptor_gives_its_rules_by_name() -> None:
    """The key has the values of the rule's key in the key's order."""
    both = rule("both", {"a": "*", "b": "*"}, ("b", "a"))
    assert apply_rules(matcher_of(both), [Descriptor({"a": "1", "b": "2"})], whole=True) == (
        Application(both, ("2", "1"), 1, (0,)),
    )


def test_what_requests_bring_is_not_remembered_without_bound() -> None:
    """Dimension names come from outsiders."""
    matcher = matcher_of(rule("r", {"a": "*"}))
    for number in range(3 * match_module.PLANS_MAX):
        matcher.match({"a": "x", f"n{number}": "y"}, whole=False)
    matcher.match({"a": "x", "n" * 5_000: "y"}, whole=False)
    assert len(matcher._plans) <= match_module.PLANS_MAX
    assert max(len("".join(known)) for known in matcher._plans) < 100


def test_a_request_costs_the_same_however_many_rules_there_are() -> None:
    """5,000 rules of one shape are one look-up, like ten are; ten times the time would be a search."""
    seconds = []
    for count in (10, 5_000):
        matcher = matcher_of(*(rule(f"r{number}", {"a": f"v{number}", "b": "*"}) for number in range(count)))
        assert names(matcher, a="v7", b="") == ["r7"]
        request = {"a": "v7", "b": ""}
        seconds.append(min(timeit.repeat(lambda: matcher.match(request, False), number=1_000, repeat=7)))  # noqa: B023
    assert seconds[1] < 10 * seconds[0]


# ---- against a reference

WORDS = ["", "a", "ab", "abc", "b", "ba"]
DIMENSIONS = ["p", "q", "r"]
PATTERNS = st.sampled_from(["*", *WORDS, *(word + "*" for word in WORDS if word)])
LISTS = st.lists(PATTERNS, min_size=1, max_size=3, unique=True)
MATCHES = st.dictionaries(st.sampled_from(DIMENSIONS), LISTS, min_size=1, max_size=3)
RULES = st.lists(st.tuples(MATCHES, st.booleans()), max_size=8)
REQUESTS = st.dictionaries(st.sampled_from([*DIMENSIONS, "other"]), st.sampled_from([*WORDS, "abcd"]), max_size=4)


def specificity(patterns: list[str], value: str) -> int | None:
    """How specific the best pattern is that fits, by the words of design 4; None when none does."""
    found = []
    for pattern in patterns:
        if pattern == "*":
            found.append(0)
        elif pattern.endswith("*"):
            found += [len(pattern)] if value.startswith(pattern[:-1]) else []
        elif pattern == value:
            found.append(1_000)
    return max(found, default=None)


def expected(rules: list[tuple[dict[str, list[str]], bool]], request: dict[str, str], whole: bool) -> list[str]:
    """Names of the rules that apply, found by reading each."""
    fitted: dict[str, dict[str, int]] = {}
    for number, (match, exact) in enumerate(rules):
        values = {name: specificity(patterns, request[name]) for name, patterns in match.items() if name in request}
        levels = {name: value for name, value in values.items() if value is not None}
        if levels.keys() == match.keys() and not (whole and exact and request.keys() != match.keys()):
            fitted[f"r{number}"] = levels
    return sorted(
        name
        for name, levels in fitted.items()
        if not any(
            other.keys() == levels.keys() and other != levels and all(other[d] >= levels[d] for d in levels)
            for other in fitted.values()
        )
    )


@given(RULES, st.lists(REQUESTS, min_size=1, max_size=4), st.booleans(), st.randoms())
def test_the_matcher_agrees_with_reading_every_rule(
    rules: list[tuple[dict[str, list[str]], bool]], requests: list[dict[str, str]], whole: bool, shuffler: object
) -> None:
    """Whatever the rules, the requests and the order of the rules; and so do the reasons that check-config shows."""
    built = [rule(f"r{number}", dict(match), exact=exact) for number, (match, exact) in enumerate(rules)]
    shuffler.shuffle(built)  # type: ignore[attr-defined]  # hypothesis's Random
    matcher = matcher_of(*built)
    for request in requests:
        answer = expected(rules, request, whole)
        assert names(matcher, whole, **request) == answer
        shown = reasons(Domain("api", tuple(built)), request, whole)
        assert [one.rule.name for one in shown if one.applies] == answer


@given(RULES)
def test_every_crossing_that_is_shown_is_one(rules: list[tuple[dict[str, list[str]], bool]]) -> None:
    """The request that check-config shows meets both rules."""
    built = [rule(f"r{number}", dict(match)) for number, (match, _) in enumerate(rules)]
    for crossing in crossings(Domain("api", tuple(built)), most=20):
        found = names(matcher_of(*built), whole=True, **crossing.dimensions)
        assert {crossing.one.name, crossing.other.name} <= set(found)


def test_a_crossing_is_found() -> None:
    """Two rules that cross, with a request that meets both."""
    left, right = rule("left", {"a": "x*", "b": "*"}), rule("right", {"a": "*", "b": "y"})
    (crossing,) = crossings(Domain("api", (right, left)), most=5)
    assert (crossing.one.name, crossing.other.name, crossing.dimensions) == ("left", "right", {"a": "x", "b": "y"})
