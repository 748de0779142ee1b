"""What an edge may spend of a quota while nobody who may decide answers: the stages of `when_unavailable`. Pure.

The edge asks what its present stage gives; the allocator asks what an edge that it does not hear may be spending, and
holds that back from all others. Both count from the same words, so both live here.
"""

from __future__ import annotations

from collections.abc import Iterator

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.rule import Fallback, Rule, Stage

LAST_STAGE_NS = 15 * 60 * EPOCH_NS
"""How long a last stage that admits is counted for an edge that is not heard: nobody waits for ever."""


def stage_at(stages: tuple[Stage, ...], silent_ns: int) -> Stage:
    """The stage that answers when nothing was heard for so long; each but the last has a duration."""
    for stage in stages:
        if stage.duration_ns is None or silent_ns < stage.duration_ns:
            return stage
        silent_ns -= stage.duration_ns
    return stages[-1]


def fair_share(rule: Rule) -> int:
    """floor(Q / edges_max), whole units an epoch; 0 for a small quota."""
    assert isinstance(rule.limit, RateLimit)
    return rule.limit.units * EPOCH_NS // (rule.limit.period_ns * (rule.edges_max or 1))


def share_of(rule: Rule, fallback: Fallback, last_slice: int) -> int | None:
    """Units an epoch that one edge may spend in a stage, what it holds of the epoch included; None: no bound."""
    match fallback:
        case Fallback.KEEP_SHARE:
            return last_slice
        case Fallback.FAIR_SHARE:
            return fair_share(rule)
        case Fallback.ALLOW:
            return None
        case Fallback.DENY:
            return 0


def admits(rule: Rule) -> bool:
    """Whether any stage lets requests pass."""
    return any(stage.fallback is not Fallback.DENY for stage in rule.when_unavailable)


def kept(rule: Rule) -> bool:
    """Whether any stage spends the last slice."""
    return any(stage.fallback is Fallback.KEEP_SHARE for stage in rule.when_unavailable)


def lasting_ns(rule: Rule) -> int:
    """How long after an edge was heard last the rule may still let it spend, as far as that is counted."""
    spans = _spans(rule.when_unavailable)
    return max((end for stage, _, end in spans if stage.fallback is not Fallback.DENY), default=0)


def stages_between(stages: tuple[Stage, ...], least_ns: int, most_ns: int) -> frozenset[Fallback]:
    """The stages in which an edge may be that heard nothing for a time between the two, as far as they are counted."""
    return frozenset(stage.fallback for stage, start, end in _spans(stages) if start <= most_ns and least_ns < end)


def _spans(stages: tuple[Stage, ...]) -> Iterator[tuple[Stage, int, int]]:
    start = 0
    for stage in stages:
        end = start + (LAST_STAGE_NS if stage.duration_ns is None else stage.duration_ns)
        yield stage, start, end
        start = end
