"""Reading one rule of a rules file: its fields and every problem of it. Pure.

What rules mean to each other, duplicates above all, is `rules_file`'s business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from apportion.core.limit import EPOCH_NS
from apportion.core.quantities import duration_text, parse_duration, shown
from apportion.core.request import MEASURE_NAME_MAX
from apportion.core.rule import REQUESTS, Enforce, Fallback, Place, Rule, Stage
from apportion.core.rule_edge import is_edge, read_edge_fields
from apportion.core.rule_fields import Section
from apportion.core.rule_limit import Costs, is_unlimited, read_costs, read_limit
from apportion.core.rule_match import read_key, read_match
from apportion.core.rule_stages import read_stages
from apportion.core.rules_vocabulary import (
    ENFORCE_LATER,
    HOW_TO_CHOOSE_ENFORCE,
    HOW_TO_CHOOSE_WHEN_UNAVAILABLE,
    not_built,
    unknown,
)

RULE_NAME_MAX = 64
"""Characters: a rule's name is a metric label and part of each store key."""

DEADLINE_NS_MAX = 60 * EPOCH_NS
"""A caller that waits longer for a rate limiter has left."""

DEADLINE_NS_DEFAULT = 100_000_000

_RULE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the file says for rules without a value of their own: its `defaults`, and its zone."""

    deadline_ns: int = DEADLINE_NS_DEFAULT
    cost: Costs = field(default_factory=Costs)
    time_zone: str = "UTC"


def read_rule(rule: Section, domain: str, defaults: Defaults) -> Rule | None:
    """The rule that `rule` describes, or None when anything in it was reported."""
    before = len(rule.problems)
    name = read_rule_name(rule)
    match = read_match(rule)
    key = read_key(rule, match)
    enforce = _read_enforce(rule)
    limit = read_limit(rule, enforce, zone=defaults.time_zone)
    when_unavailable = _read_when_unavailable(rule, enforce)
    deadline_ns = read_deadline(rule)
    cost_default, cost_max = read_costs(rule, limit, defaults.cost)
    exact = rule.boolean("exact")
    counts = _read_counts(rule)
    shadow = rule.boolean("shadow") or rule.has("candidate_for")
    edge = read_edge_fields(rule, enforce, limit, when_unavailable)
    if len(rule.problems) > before:
        return None
    assert name and match and key is not None and limit is not None and enforce and when_unavailable
    return Rule(
        domain=domain,
        name=name,
        match=match,
        key=key,
        limit=limit,
        enforce=enforce,
        when_unavailable=when_unavailable,
        deadline_ns=defaults.deadline_ns if deadline_ns is None else deadline_ns,
        cost_default=cost_default,
        cost_max=cost_max,
        exact=exact is not False,
        place=Place(rule.file, rule.line, rule.path),
        shadow=shadow,
        slack=edge.slack,
        at_each_edge=edge.at_each_edge,
        wrong_costs=edge.wrong_costs,
        counts=counts or REQUESTS,
    )


def read_rule_name(rule: Section) -> str | None:
    """A rule's name; reports one that is missing or is no name."""
    name = rule.text("name", "a name")
    if name is None:
        if not rule.has("name"):
            rule.refuse("name", "missing; every rule has a name, which logs, metrics and store keys carry")
        return None
    if not _RULE_NAME.fullmatch(name) or len(name) > RULE_NAME_MAX:
        rule.refuse(
            "name",
            f"found {shown(name)}; a name has letters, digits, `-`, `_` and `.`, begins with a letter or digit, has "
            f"at most {RULE_NAME_MAX} characters",
        )
        return None
    return name


def read_deadline(section: Section) -> int | None:
    """Nanoseconds of a `deadline` field."""
    deadline_ns = section.parsed("deadline", "a duration such as 100ms", parse_duration)
    if deadline_ns is not None and deadline_ns > DEADLINE_NS_MAX:
        section.refuse(
            "deadline", f"found {duration_text(deadline_ns)}, the longest is {duration_text(DEADLINE_NS_MAX)}"
        )
        return None
    return deadline_ns


def _read_counts(rule: Section) -> str | None:
    """The measure that a rule counts."""
    measure = rule.text("counts", "a measure such as tokens")
    if measure is None or measure == REQUESTS:
        return measure
    if not _RULE_NAME.fullmatch(measure) or len(measure) > MEASURE_NAME_MAX:
        rule.refuse(
            "counts",
            f"found {shown(measure)}; a measure has letters, digits, `-`, `_` and `.`, begins with a letter or digit, "
            f"has at most {MEASURE_NAME_MAX} characters",
        )
        return None
    if get_close_matches(measure.lower(), [REQUESTS], cutoff=0.85):
        rule.refuse(
            "counts", f"found {shown(measure)}; did you mean `{REQUESTS}`? A rule counts them unless it says so"
        )
        return None
    return measure


def _read_enforce(rule: Section) -> Enforce | None:
    if not rule.has("enforce"):
        if is_unlimited(rule):
            return Enforce.LEASE
        rule.refuse("enforce", HOW_TO_CHOOSE_ENFORCE)
        return None
    word = rule.text("enforce", "`edge+region`, `edge`, `lease` or `region`")
    built = {enforce.value: enforce for enforce in Enforce}
    if word is None or word in built:
        return built.get(word or "")
    rule.refuse(
        "enforce",
        not_built(shown(word)) if word in ENFORCE_LATER else unknown(word, tuple(built), ENFORCE_LATER),
    )
    return None


def _read_when_unavailable(rule: Section, enforce: Enforce | None) -> tuple[Stage, ...] | None:
    denies = (Stage(Fallback.DENY),)
    if not rule.has("when_unavailable"):
        if is_unlimited(rule) or is_edge(rule):
            return denies
        rule.refuse("when_unavailable", HOW_TO_CHOOSE_WHEN_UNAVAILABLE)
        return None
    return read_stages(rule, enforce)
