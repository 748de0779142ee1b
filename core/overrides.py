"""What an operator lays over the rules for a while: a lower rate, or shadow, for a rule or for keys of it. Pure.

Overrides travel as one more text of the rules, named TEXT, which no file can be: so versions, acknowledgements, plans
and what an edge keeps on disk cover them without knowing. A rule under an override is a rule by key (`tenancy.ByKey`):
the same for matching, another for deciding. What is laid over a rule that is gone, or whose key is another by now, is
passed over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from apportion.core.errors import InputError
from apportion.core.limit import EPOCH_NS, RateLimit, Unlimited
from apportion.core.plan_rules import NOTHING
from apportion.core.quantities import period_text
from apportion.core.rule import Domain, Rule
from apportion.core.tenancy import ByKey

TEXT = "/overrides"
"""The name of their text; a file's name has no slash."""

ALL_RULES = "*"
"""In the place of a rule's name: every rule whose key has the dimensions."""

Target = tuple[str, str, tuple[tuple[str, str], ...]]
"""Domain, rule and key that an override is laid over."""

PLAN_MARK = "\n"
"""In the `plan` of a rule under an override, before what it does: the name of a plan is printable."""

OVERRIDES_MAX = 1_000
"""At a time, of all rules: each is read again by every edge whenever one changes."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `units` in each `period_ns`; 0 units: nothing."""

    units: int
    period_ns: int

    def below(self, other: Rate) -> bool:
        """Whether it gives less."""
        return self.units * other.period_ns < other.units * self.period_ns

    def __str__(self) -> str:
        return f"{self.units}/{period_text(self.period_ns)}"


@dataclass(frozen=True, slots=True)
class Override:
    """Until `until_ns`, store time: the quotas of `rule` whose key has these values, dimensions in sorted order, get at
    most `rate`, or refuse nobody (`shadow`). `domain` "": of every domain, with ALL_RULES only. `why` and `who` are for
    people.
    """

    domain: str
    rule: str
    key: tuple[tuple[str, str], ...]
    rate: Rate | None
    shadow: bool
    until_ns: int
    why: str
    who: str

    @property
    def target(self) -> Target:
        """What it is laid over; there is one override for each."""
        return self.domain, self.rule, self.key

    def covers(self, rule: Rule) -> bool:
        """Whether it is laid over (some keys of) `rule`."""
        named = self.rule == ALL_RULES or self.rule == rule.name
        return named and self.domain in ("", rule.domain) and all(name in rule.key for name, _ in self.key)

    def hits(self, rule: Rule, key: Sequence[str | None]) -> bool:
        """Whether it is laid over the quota of `rule` with these values of the key."""
        return self.covers(rule) and all(key[rule.key.index(name)] == value for name, value in self.key)

    def __str__(self) -> str:
        at = " ".join((self.rule, *(f"{name}={value}" for name, value in self.key)))
        return f"{at}: {'shadow' if self.rate is None else f'at most {self.rate}'} ({self.why}; {self.who})"


def encode(overrides: Iterable[Override]) -> str:
    """Overrides as a text of the rules."""
    return json.dumps([asdict(each) for each in overrides])


def decode(text: str) -> tuple[Override, ...]:
    """The overrides of a text. InputError: no region wrote it."""
    try:
        return tuple(_decoded(fields) for fields in json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"the overrides cannot be read ({type(error).__name__}); clear them and lay them anew"
        ) from None


def _decoded(fields: dict[str, Any]) -> Override:
    rate = Rate(int(fields["rate"]["units"]), int(fields["rate"]["period_ns"])) if fields["rate"] else None
    if rate is not None and (rate.units < 0 or rate.period_ns <= 0):
        raise ValueError("a rate is no rate")
    key = tuple(sorted((str(name), str(value)) for name, value in fields["key"]))
    texts = {name: str(fields[name]) for name in ("domain", "rule", "why", "who")}
    return Override(**texts, key=key, rate=rate, shadow=bool(fields["shadow"]), until_ns=int(fields["until_ns"]))


def overlaid(domains: Mapping[str, Domain], overrides: Sequence[Override]) -> dict[str, Domain]:
    """The domains as they are under the overrides."""
    named = _by_rule(overrides)
    return {
        name: replace(domain, rules=tuple(_overlaid(rule, _covering(rule, named)) for rule in domain.rules))
        for name, domain in domains.items()
    }


def coverage(domains: Mapping[str, Domain], overrides: Sequence[Override]) -> Counter[Target]:
    """Over how many rules each is laid; those over none are left out."""
    named = _by_rule(overrides)
    rules = (rule for domain in domains.values() for rule in domain.rules)
    return Counter(each.target for rule in rules for each in _covering(rule, named))


def is_overridden(rule: Rule) -> bool:
    """Whether an override made this rule, of those that a rule by key can be, another than the file has."""
    return PLAN_MARK in rule.plan


def _by_rule(overrides: Sequence[Override]) -> dict[str, list[Override]]:
    named: dict[str, list[Override]] = {}
    for each in overrides:
        named.setdefault(each.rule, []).append(each)
    return named


def _covering(rule: Rule, named: Mapping[str, list[Override]]) -> list[Override]:
    return [each for name in (rule.name, ALL_RULES) for each in named.get(name, ()) if each.covers(rule)]


def _overlaid(rule: Rule, laid: Sequence[Override]) -> Rule:
    if not laid:
        return rule
    rates = {each.rate for each in laid if each.rate is not None}
    rules = {
        (base.plan, rate, shadow): _variant(base, rate, shadow)
        for base in rule.on_plans
        for rate in (None, *rates)
        for shadow in ((False, True) if any(each.shadow for each in laid) else (False,))
    }
    by_places: dict[tuple[int, ...], dict[tuple[str | None, ...], Override]] = {}
    for each in laid:
        places = tuple(rule.key.index(name) for name, _ in each.key)
        values = tuple(value for _, value in each.key)
        former = by_places.setdefault(places, {}).get(values)
        by_places[places][values] = each if former is None else _both(former, each)
    # As for a rule by plan: who asks it without a key gets nothing.
    return replace(rule, limit=NOTHING, cost_max=0, plan="", by_key=Overridden(rules, rule, tuple(by_places.items())))


def _both(one: Override, other: Override) -> Override:
    """Two that hit the same keys of one rule: its own and that of ALL_RULES."""
    return replace(one, rate=_least(one.rate, other.rate), shadow=one.shadow or other.shadow)


def _least(one: Rate | None, other: Rate | None) -> Rate | None:
    if one is None or other is None:
        return one or other
    return other if other.below(one) else one


@dataclass(frozen=True, slots=True, eq=False)
class Overridden(ByKey):
    """`whole` under overrides: `laid` has them by places in the key and values there. Of several the least counts."""

    whole: Rule
    laid: tuple[tuple[tuple[int, ...], Mapping[tuple[str | None, ...], Override]], ...]

    def rule(self, key: Sequence[str | None]) -> Rule:
        base = self.whole.for_key(key)
        rate, shadow = None, False
        for places, by_values in self.laid:
            found = by_values.get(tuple(key[at] for at in places))
            if found is not None:
                rate, shadow = _least(rate, found.rate), shadow or found.shadow
        return self.rules[base.plan, rate, shadow]

    def content(self) -> object:
        base = self.whole.by_key.content() if self.whole.by_key is not None else None
        laid = {(places, values): (each.rate, each.shadow) for places, by in self.laid for values, each in by.items()}
        return base, laid


def _variant(rule: Rule, rate: Rate | None, shadow: bool) -> Rule:
    """`rule` under a rate and shadow; itself where they change nothing."""
    lower = rule if rate is None else _lowered(rule, rate)
    if lower is rule and not (shadow and not rule.shadow):
        return rule
    # A name of its own, for whoever keeps something by plan.
    return replace(
        lower, shadow=rule.shadow or shadow, plan=f"{rule.plan}{PLAN_MARK}{rate or ''}{' shadow' if shadow else ''}"
    )


def _lowered(rule: Rule, rate: Rate) -> Rule:
    """`rule` with the rate as its limit, where it is lower. The burst stays, as far as the new limit may have it."""
    limit = rule.limit
    if not rate.units:
        admits_nothing = not isinstance(limit, Unlimited) and not limit.units
        return rule if admits_nothing else replace(rule, limit=NOTHING, cost_max=0, at_each_edge=None)
    if not isinstance(limit, RateLimit) or not rate.below(Rate(limit.units, limit.period_ns)):
        return rule
    lower = replace(rule, limit=_with_burst(rate, limit.burst))
    if rule.at_each_edge is not None:
        each = Rate(rule.at_each_edge.units, rule.at_each_edge.period_ns)
        lower = replace(lower, at_each_edge=_with_burst(_least(rate, each) or each, limit.burst))
    elif lower.divided or (lower.local and lower.planned):
        a_second = max(1, rate.units * EPOCH_NS // rate.period_ns)
        lower = replace(lower, limit=_with_burst(rate, min(limit.burst, a_second)))
    assert isinstance(lower.limit, RateLimit)
    most = min(lower.limit.burst, lower.share()) if lower.local and lower.planned else lower.limit.burst
    return replace(lower, cost_max=most if rule.cost_max is None else min(rule.cost_max, most))


def _with_burst(rate: Rate, burst: int) -> RateLimit:
    """A limit of that rate, with the burst as far as it stays exact."""
    exact = RateLimit(rate.units, rate.period_ns, 1)
    return replace(exact, burst=min(burst, exact.burst_max))
