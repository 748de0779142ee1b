"""What the demo asks: for each rule one key, values that fit its match, and how often. Pure.

A question meets one rule alone, so that what is offered to a rule is known and its refusals are its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

from apportion.core.errors import InputError
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.match import Matcher
from apportion.core.quantities import period_text
from apportion.core.rule import Domain, Enforce, Pattern, PatternKind, Rule, RuleSet

OVERLOAD = 2.5
"""Offered cost is this many times the limit."""

REQUESTS_MIN = 5.0
"""Requests a second to a rule however low its limit is, so that something can be seen of it."""

REQUESTS_MAX = 1_500.0
"""Requests a second over all rules: what edges, region and load process answer together on two cores."""

CANDIDATES_MAX = 1_000
"""Combinations of values that are tried in search of one that meets a rule alone."""


@dataclass(frozen=True, slots=True)
class Question:
    """One rule, asked for one key: `dimensions` meet this rule alone, each request costs `cost` units."""

    rule: Rule
    limit: RateLimit
    dimensions: tuple[tuple[str, str], ...]
    key: tuple[str, ...]
    cost: int
    requests_per_second: float


def questions_for(rules: RuleSet) -> tuple[Question, ...]:
    """A question for each limited rule that is enforced, by domain, how it is enforced, and name.

    InputError: a rule that the demo cannot ask, and why.
    """
    found = [
        _question(domain, Matcher(domain), rule, rule.limit)
        for _, domain in sorted(rules.domains.items())
        for rule in sorted(domain.rules, key=_place)
        if isinstance(rule.limit, RateLimit) and not rule.shadow and rule.by_key is None
    ]
    if not found:
        raise InputError("every rule is unlimited, so there is nothing to exceed; give the demo a rule with a rate")
    _check_total(found)
    return tuple(found)


def _place(rule: Rule) -> tuple[int, str]:
    """Where a rule is shown: first the usual combination, last what asks the region each time."""
    order = (Enforce.EDGE_REGION, Enforce.EDGE, Enforce.LEASE, Enforce.REGION)
    return order.index(rule.enforce), rule.name


def requests_wanted(limit: RateLimit, cost: int) -> float:
    """Requests a second that offer OVERLOAD times the limit."""
    return max(limit.per_second * OVERLOAD / cost, REQUESTS_MIN)


def _question(domain: Domain, matcher: Matcher, rule: Rule, limit: RateLimit) -> Question:
    met: tuple[Rule, ...] = ()
    for dimensions in islice(_candidates(rule), CANDIDATES_MAX):
        met = matcher.match(dimensions, whole=True)
        if [each for each in met if not each.shadow] == [rule]:
            key = matcher.key(rule, dimensions)
            cost = rule.cost_default
            return Question(rule, limit, tuple(dimensions.items()), key, cost, requests_wanted(limit, cost))
    others = ", ".join(each.name for each in met if each is not rule)
    raise InputError(
        f"{rule.place.file}:{rule.place.line}: the demo asks each rule alone, and every request it can think of that "
        f"meets {rule.name!r} also meets {others or 'a more specific rule'}; leave one of them out for the demo"
    )


def _candidates(rule: Rule) -> Iterator[dict[str, str]]:
    """Requests that fit the rule's match, the plainest first."""
    names = [name for name, _ in rule.match]
    values = [[value for pattern in patterns for value in _values(pattern)] for _, patterns in rule.match]
    for chosen in product(*values):
        yield dict(zip(names, chosen, strict=True))


def _values(pattern: Pattern) -> list[str]:
    if pattern.kind is PatternKind.EXACT:
        return [pattern.text]
    return [pattern.text + "demo", pattern.text + "demo-2"]


def _check_total(questions: list[Question]) -> None:
    """Refuse what the machine cannot offer, naming the rule that wants most and what would do."""
    total = sum(question.requests_per_second for question in questions)
    if total <= REQUESTS_MAX:
        return
    most = max(questions, key=lambda question: question.requests_per_second)
    wanted, limit = most.requests_per_second, most.limit
    room = max(0.0, REQUESTS_MAX - (total - wanted))
    highest = int(room / OVERLOAD * most.cost * limit.period_ns / EPOCH_NS)
    period = period_text(limit.period_ns)
    advice = (
        f"for the demo, set its limit to at most {highest}/{period}, or leave other rules out"
        if highest > 0
        else "leave some rules out for the demo"
    )
    raise InputError(
        f"{most.rule.place.file}:{most.rule.place.line}: rule {most.rule.name!r} allows {limit.units}/{period}, and "
        f"{OVERLOAD:g} times that is {wanted:,.0f} requests a second; the demo offers at most {REQUESTS_MAX:,.0f} to "
        f"all rules together, which is what its processes answer on two cores: {advice}"
    )


def is_lease(question: Question) -> bool:
    """Whether no label of the question's quota may ever exceed Q_k."""
    return question.rule.enforce is Enforce.LEASE and question.rule.divided
