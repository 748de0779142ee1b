"""How far what a rule says can be trusted now (design 6 and 9), and why, from facts that the region has. Pure.

`exact`: never over by label. `bounded`: by at most the bound. `degraded`: some of it is decided without the authority.
`advisory`: the sum has passed the bound, so something was lost that nobody counted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.rule import Rule
from apportion.core.stages import lasting_ns
from apportion.region.authority import Authority
from apportion.region.desk import Totals
from apportion.region.remembering import MUTE_EPOCHS
from apportion.region.sums import SAID_EVERY, RuleSum

DEGRADED_EPOCHS = 3
"""A degraded answer is told of by the report of its epoch, and the next one says whether it goes on."""


class State(Enum):
    """The value is the word for people and metrics."""

    EXACT = "exact"
    BOUNDED = "bounded"
    DEGRADED = "degraded"
    ADVISORY = "advisory"


def state_of(
    authority: Authority, rule: Rule, bound: int | None, sums: Mapping[tuple[str, str], RuleSum]
) -> tuple[State, str]:
    """The state of a rule whose bound on any plan is `bound`, and why it is not as its bound says; "" when it is."""
    name = rule.domain, rule.name
    passed = sums.get(name, RuleSum())
    if bound is not None and passed.over > bound and authority.epoch - passed.over_label <= SAID_EVERY:
        why = f"label {passed.over_label} was {passed.over} over, more than the bound of {bound}"
        return State.ADVISORY, why
    why = degraded_by(authority, rule)
    if why:
        return State.DEGRADED, why
    return State.EXACT if bound == 0 else State.BOUNDED, ""


def degraded_by(authority: Authority, rule: Rule) -> str:
    """Who decides some of the rule by its stages now, or may; "" when nobody does."""
    if rule.local:
        return ""
    totals = authority.desk.totals.get((rule.domain, rule.name), Totals())
    since = authority.epoch - DEGRADED_EPOCHS
    if totals.failed_epoch >= since:
        return "the store failed, and edges answered by when_unavailable"
    if totals.degraded_epoch >= since:
        return "edges answered by when_unavailable"
    away = authority.memory.away(authority.epoch - max(lasting_ns(rule) // EPOCH_NS, MUTE_EPOCHS))
    if away:
        return f"not heard, and may answer by when_unavailable: {', '.join(away[:5])}{' ...' if len(away) > 5 else ''}"
    return ""


def losses_of(authority: Authority, rule: Rule, limit: RateLimit) -> list[str]:
    """What the counters of a quota have lost that would still count against its limit now."""
    lost = authority.lost_epoch
    if lost is None or rule.local or (authority.epoch - lost) * EPOCH_NS > max(limit.drain_ns, EPOCH_NS):
        return []
    more = f"at most {limit.burst} units more were admitted"
    return [f"restart: the store began anew in epoch {lost}, and what was used before is not counted: {more}"]
