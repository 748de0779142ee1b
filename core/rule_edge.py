"""Reading what a rule says of deciding at the edge: `slack`, `at_each_edge`, `wrong_costs`, and what they need. Pure.

The fields are read with their rule; what depends on `edges_max` is checked once the whole domain has been read, for it
may stand in another file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apportion.core.document import Problem, Scalar
from apportion.core.limit import Limit, RateLimit, burst_max
from apportion.core.quantities import parse_percent, parse_rate, period_text, shown
from apportion.core.rule import Enforce, Rule, Stage, WrongCosts
from apportion.core.rule_fields import Section
from apportion.core.rules_vocabulary import (
    HOW_TO_CHOOSE_AT_THE_EDGE,
    HOW_TO_CHOOSE_EDGES_MAX,
    HOW_TO_CHOOSE_WRONG_COSTS,
    unknown,
)
from apportion.core.threshold import SHARE_UNITS_MIN, SLACK_MAX, SLACK_ONE, slack_text

NEEDS_EDGES_MAX = (Enforce.EDGE, Enforce.EDGE_REGION)


@dataclass(frozen=True, slots=True)
class EdgeFields:
    """What a rule says of its thresholds; None for what it does not say or does not need."""

    slack: int | None = None
    at_each_edge: RateLimit | None = None
    wrong_costs: WrongCosts | None = None


def is_edge(rule: Section) -> bool:
    """Whether the rule says `enforce: edge`: nothing of it ever crosses, so nothing of it can be unavailable."""
    node = rule.node("enforce")
    return isinstance(node, Scalar) and node.text == Enforce.EDGE.value


def read_edge_fields(
    rule: Section, enforce: Enforce | None, limit: Limit | None, stages: tuple[Stage, ...] | None
) -> EdgeFields:
    """The fields, every problem of them reported."""
    wrong_costs = _read_wrong_costs(rule, enforce, limit, stages)
    slack = _read_slack(rule, enforce)
    at_each_edge = _read_at_each_edge(rule, enforce, limit)
    if enforce is Enforce.EDGE and isinstance(limit, RateLimit):
        if rule.has("slack") and rule.has("at_each_edge"):
            rule.refuse("at_each_edge", "contradicts `slack`: each edge has a threshold of its own, or a part of one")
        elif not rule.has("slack") and not rule.has("at_each_edge"):
            rule.refuse("at_each_edge", HOW_TO_CHOOSE_AT_THE_EDGE)
        if slack is not None and limit.burst * limit.period_ns > limit.units * 1_000_000_000 and limit.units:
            rule.refuse(
                "limit",
                f"burst {limit.burst} is more than one second's worth, and `edge` with `slack` is divided over edges "
                "each second; a larger burst needs `at_each_edge`, or another `enforce`",
            )
    return EdgeFields(slack, at_each_edge, wrong_costs)


def finish_rules(rules: Sequence[Rule], edges_max: int | None, problems: list[Problem]) -> list[Rule]:
    """The rules of a domain with its `edges_max`; reports those that need one, or another."""
    finished = []
    for rule in rules:
        if edges_max is None:
            if rule.enforce in NEEDS_EDGES_MAX and isinstance(rule.limit, RateLimit):
                problems.append(Problem(rule.place, f"`enforce: {rule.enforce.value}` {HOW_TO_CHOOSE_EDGES_MAX}"))
            finished.append(rule)
            continue
        whole = replace(rule, edges_max=edges_max)
        if whole.local and whole.planned:
            whole = _with_share(whole, problems)
        finished.append(whole)
    return finished


def _with_share(rule: Rule, problems: list[Problem]) -> Rule:
    """An `edge` rule with slack: no cost above its share can be promised, for an edge without a slice has no more."""
    share = rule.share()
    if share < SHARE_UNITS_MIN:
        problems.append(
            Problem(
                rule.place,
                f"is too small to be divided: with slack, {rule.edges_max} edges (`edges_max`) have {share} units a "
                f"second each, {SHARE_UNITS_MIN} are the least; write `at_each_edge` instead of `slack`",
            )
        )
    elif rule.cost_default > share:
        problems.append(
            Problem(
                rule.place,
                f"`cost.default` {rule.cost_default} is above what an edge admits before it has a slice, {share} units "
                "a second, so no request could pass; write `at_each_edge` instead of `slack`",
            )
        )
    return replace(rule, cost_max=min(rule.cost_max or share, share))


def _read_slack(rule: Section, enforce: Enforce | None) -> int | None:
    if not rule.has("slack"):
        return SLACK_ONE if enforce is Enforce.EDGE_REGION else None
    if enforce not in {None, *NEEDS_EDGES_MAX}:
        rule.refuse("slack", "belongs to `edge` and `edge+region`: nothing else has a threshold")
        return None
    slack = rule.parsed("slack", "a percentage such as 10%", parse_percent)
    if slack is not None and slack > SLACK_MAX:
        rule.refuse("slack", f"found {slack_text(slack)}, the most is {slack_text(SLACK_MAX)}")
        return None
    return slack


def _read_at_each_edge(rule: Section, enforce: Enforce | None, limit: Limit | None) -> RateLimit | None:
    if not rule.has("at_each_edge"):
        return None
    if enforce not in {None, Enforce.EDGE}:
        rule.refuse("at_each_edge", "belongs to `enforce: edge`, where each edge decides alone; leave it out")
        return None
    rate = rule.parsed("at_each_edge", "a rate such as 50/s", parse_rate)
    if rate is None or not isinstance(limit, RateLimit) or not limit.units:
        return None
    units, period_ns = rate
    if units == 0:
        rule.refuse(
            "at_each_edge", "found 0, which refuses everything at every edge; write `limit: {rate: 0/s}` for that"
        )
    elif units * limit.period_ns > limit.units * period_ns:
        rule.refuse(
            "at_each_edge",
            f"{units}/{period_text(period_ns)} is above the limit, {limit.units}/{period_text(limit.period_ns)}: one "
            "edge alone would pass it",
        )
    elif limit.burst > burst_max(period_ns):
        rule.refuse("at_each_edge", f"with a burst of {limit.burst} the period is too long; write a shorter one")
    else:
        return RateLimit(units, period_ns, limit.burst)
    return None


def _read_wrong_costs(
    rule: Section, enforce: Enforce | None, limit: Limit | None, stages: tuple[Stage, ...] | None
) -> WrongCosts | None:
    if not rule.has("wrong_costs"):
        if enforce is Enforce.EDGE and isinstance(limit, RateLimit):
            rule.refuse("wrong_costs", HOW_TO_CHOOSE_WRONG_COSTS)
        return None
    known = {each.value: each for each in WrongCosts}
    word = rule.text("wrong_costs", "`noise`, `overload` or `money`")
    if word is None:
        return None
    if word not in known:
        rule.refuse("wrong_costs", unknown(word, tuple(known)))
        return None
    if known[word] is WrongCosts.MONEY:
        if enforce is Enforce.EDGE:
            rule.refuse(
                "wrong_costs",
                "found `money`, but `edge` rules may be exceeded everywhere at once; write `edge+region` or `region`, "
                "or `lease` where no request should cross",
            )
        answers: set[str] = {stage.fallback.value for stage in stages or ()}
        if "allow" in answers:
            rule.refuse(
                "wrong_costs",
                f"found {shown(word)}, but `when_unavailable` has `allow`, which has no bound; end in deny",
            )
    return known[word]
