"""How far what a rule says can be trusted now (design 6 and 9), and why, from facts that the region has. Pure.

`exact`: never over by label. `bounded`: by at most the bound. `degraded`: some of it is decided without the authority.
`advisory`: the sum has passed the bound, so something was lost that nobody counted on.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from apportion.core.limit import EPOCH_NS, Finite, PeriodLimit
from apportion.core.rule import Rule
from apportion.core.stages import lasting_ns
from apportion.region.authority import Authority
from apportion.region.desk import Totals
from apportion.region.remembering import MUTE_EPOCHS
from apportion.region.sums import SAID_EVERY, RuleSum

DEGRADED_EPOCHS = 3
"""A degraded answer is told of by the report of its epoch, and the next one says whether it goes on."""

NAMED_MAX = 5
"""Edges that a reason names."""


class State(Enum):
    """The value is the word for people and metrics."""

    EXACT = "exact"
    BOUNDED = "bounded"
    DEGRADED = "degraded"
    ADVISORY = "advisory"


class States:
    """The states of rules at one instant; `sums` by domain and name."""

    def __init__(self, authority: Authority, sums: Mapping[tuple[str, str], RuleSum]) -> None:
        self._epoch = authority.epoch
        self._totals = authority.desk.totals
        self._sums = sums
        self._away = authority.memory.away()

    def of(self, rule: Rule, bound: int | None) -> tuple[State, str]:
        """The state of a rule whose bound on any plan is `bound`, and why it is not as that says; "" when it is."""
        passed = self._sums.get((rule.domain, rule.name), RuleSum())
        if bound is not None and passed.over > bound and self._epoch - passed.over_label <= SAID_EVERY:
            why = f"label {passed.over_label} was {passed.over} over, more than the bound of {bound}"
            return State.ADVISORY, why
        why = self._degraded_by(rule)
        if why:
            return State.DEGRADED, why
        return State.EXACT if bound == 0 else State.BOUNDED, ""

    def _degraded_by(self, rule: Rule) -> str:
        """Who decides some of the rule by its stages now, or may; "" when nobody does."""
        if rule.local:
            return ""
        totals = self._totals.get((rule.domain, rule.name), Totals())
        if totals.failed_epoch >= self._epoch - DEGRADED_EPOCHS:
            return "the store failed, and edges answered by when_unavailable"
        if totals.degraded_epoch >= self._epoch - DEGRADED_EPOCHS:
            return "edges answered by when_unavailable"
        since = self._epoch - max(lasting_ns(rule) // EPOCH_NS, MUTE_EPOCHS)
        away = [name for name, gone in self._away if gone >= since]
        if not away:
            return ""
        listed = ", ".join(away[:NAMED_MAX]) + (" ..." if len(away) > NAMED_MAX else "")
        return f"not heard, and may answer by when_unavailable: {listed}"


def losses_of(authority: Authority, rule: Rule, limit: Finite) -> list[str]:
    """What the counters of a quota have lost that would still count against its limit now."""
    lost = authority.lost_epoch
    lasting_ns = limit.length_ns if isinstance(limit, PeriodLimit) else max(limit.drain_ns, EPOCH_NS)
    if lost is None or rule.local or (authority.epoch - lost) * EPOCH_NS > lasting_ns:
        return []
    more = f"at most {limit.largest} units more were admitted"
    return [f"restart: the store began anew in epoch {lost}, and what was used before is not counted: {more}"]
