"""Why a rule applies to a request or does not, in words, and which rules cross: for people, one rule after the other.

The hot path is `match`; this module answers `check-config` and must agree with it, which a test holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, islice

from apportion.core.match import Matcher, Shape, more_specific
from apportion.core.patterns import common_value, fits, pattern_text, rank
from apportion.core.quantities import shown
from apportion.core.rule import Domain, Rule

PAIRS_MAX = 200_000
"""Pairs of rules that are looked at for crossing; beyond, check-config would take minutes."""


@dataclass(frozen=True, slots=True)
class Reasons:
    """What one rule does with a request: `applies` or not, and `why`. `set_aside_for`: a rule that is more specific."""

    rule: Rule
    applies: bool
    why: str
    set_aside_for: Rule | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two rules with the same dimensions, neither more specific than the other, and a request that both apply to."""

    one: Rule
    other: Rule
    dimensions: dict[str, str]


def reasons(domain: Domain, dimensions: Mapping[str, str], whole: bool) -> tuple[Reasons, ...]:
    """What each rule of the domain does with a request, by rule name; `whole` as for `Matcher.match`."""
    fitting: list[tuple[Rule, Shape]] = []
    answers: list[Reasons] = []
    for rule in domain.rules:
        if why_not := _why_not(rule, dimensions, whole):
            answers.append(Reasons(rule, False, why_not))
        else:
            fitting.append((rule, _fitted_shape(rule, dimensions)))
    for rule, shape in fitting:
        better = [
            other
            for other, above in fitting
            if rule.dimensions == other.dimensions and more_specific(above, shape) and (rule.shadow or not other.shadow)
        ]
        if better:
            first = min(better, key=lambda other: other.name)
            answers.append(
                Reasons(rule, False, f"fits, but {shown(first.name)} with the same dimensions is more specific", first)
            )
        else:
            fitted = ", ".join(_fitted_text(rule, name, dimensions) for name, _ in rule.match)
            answers.append(Reasons(rule, True, fitted))
    return tuple(sorted(answers, key=lambda answer: answer.rule.name))


def crossings(domain: Domain, most: int) -> Iterator[Crossing]:
    """Pairs of rules that cross, each with a request that meets both, in the order of their names; at most `most`."""
    matcher = Matcher(domain)
    found = 0
    for one, other in islice(_pairs(domain), PAIRS_MAX):
        request = _request_for_both(one, other)
        if request is None or _fitted_shape(one, request) == _fitted_shape(other, request):
            continue
        # A third rule may set one of them aside for this very request; then it is no example.
        if {one.name, other.name} <= {rule.name for rule in matcher.match(request, whole=True)}:
            yield Crossing(one, other, request)
            found += 1
            if found == most:
                return


def _pairs(domain: Domain) -> Iterator[tuple[Rule, Rule]]:
    """Pairs of rules with the same dimensions: only those can be more specific than each other."""
    groups: dict[frozenset[str], list[Rule]] = {}
    for rule in sorted((rule for rule in domain.rules if not rule.shadow), key=lambda rule: rule.name):
        groups.setdefault(rule.dimensions, []).append(rule)
    return chain.from_iterable(combinations(rules, 2) for rules in groups.values())


def _request_for_both(one: Rule, other: Rule) -> dict[str, str] | None:
    request = {}
    for (name, patterns), (_, others) in zip(one.match, other.match, strict=True):
        values = (common_value(a, b) for a in patterns for b in others)
        value = next((value for value in values if value is not None), None)
        if value is None:
            return None
        request[name] = value
    return request


def _why_not(rule: Rule, dimensions: Mapping[str, str], whole: bool) -> str | None:
    """Why a rule does not fit a request; None when it fits."""
    for name, patterns in rule.match:
        if name not in dimensions:
            return f"the dimension {shown(name)} is absent"
        if not any(fits(pattern, dimensions[name]) for pattern in patterns):
            return f"{shown(name)} is {shown(dimensions[name])}, not {_patterns_text(rule, name)}"
    more = sorted(dimensions.keys() - rule.dimensions)
    if whole and rule.exact and more:
        return f"an RLS descriptor must have exactly its dimensions, this one has {shown(more[0])} as well"
    return None


def _fitted_shape(rule: Rule, dimensions: Mapping[str, str]) -> Shape:
    """Per dimension the most specific pattern that fits; a list counts by that one."""
    return tuple(
        max(rank(pattern) for pattern in patterns if fits(pattern, dimensions[name])) for name, patterns in rule.match
    )


def _fitted_text(rule: Rule, name: str, dimensions: Mapping[str, str]) -> str:
    patterns = next(patterns for dimension, patterns in rule.match if dimension == name)
    best = max((pattern for pattern in patterns if fits(pattern, dimensions[name])), key=rank)
    return f"{shown(name)} fits {shown(pattern_text(best))}"


def _patterns_text(rule: Rule, name: str) -> str:
    patterns = next(patterns for dimension, patterns in rule.match if dimension == name)
    texts = [shown(pattern_text(pattern)) for pattern in patterns[:5]]
    return " or ".join(texts) + (" or others" if len(patterns) > 5 else "")
