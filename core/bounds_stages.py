"""What `when_unavailable` adds to a rule's bound, as a number and in words (design 4.1). Pure.

Degraded spending is beyond the division only while nobody has held it back: until an edge's silence is noticed, in
epochs that no leader divided, and once it is no longer counted. So it adds what all edges cut off spend in one epoch.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.quantities import duration_text
from apportion.core.rule import Fallback, Rule, Stage
from apportion.core.stages import LAST_STAGE_NS, admits, fair_share

NOTICED_EPOCHS = 2
"""Epochs from an edge's last report to the first that is divided without it."""


def degraded_units(rule: Rule, limit: RateLimit) -> int | None:
    """The most that degraded spending adds to one epoch, over all edges; None: it has no bound."""
    quota = ceil_div(limit.units * EPOCH_NS, limit.period_ns)
    found = 0
    for stage in rule.when_unavailable:
        match stage.fallback:
            case Fallback.ALLOW:
                return None
            case Fallback.KEEP_SHARE if rule.planned:
                found = max(found, quota)
            case Fallback.FAIR_SHARE:
                found = max(found, fair_share(rule) * (rule.edges_max or 1))
    if found and not rule.divided:
        # The store's bucket does not see what was spent before it is told to fill slower: it fills meanwhile.
        found += limit.burst
    return found


def stages_text(stages: tuple[Stage, ...]) -> str:
    """As the rules file writes them: `keep_share for 30s, deny`."""
    return ", ".join(
        stage.fallback.value + (f" for {duration_text(stage.duration_ns)}" if stage.duration_ns is not None else "")
        for stage in stages
    )


def stages_sentence(rule: Rule, limit: RateLimit) -> str:
    """What happens while the region is unavailable, and what it adds."""
    waits = duration_text(rule.deadline_ns)
    head = f"While the region is unavailable, or has not answered within {waits}: {stages_text(rule.when_unavailable)}"
    if not admits(rule):
        idle = ", and a killed edge leaves nothing idle" if rule.divided else ""
        return f"{head}, which adds 0{idle}."
    parts = [f"{head}; every such answer is marked degraded."]
    parts += [text for stage in rule.when_unavailable if (text := _stage_text(rule, limit, stage))]
    if degraded_units(rule, limit) is not None:
        parts.append(_when_text(rule, limit))
    return " ".join(parts)


def _stage_text(rule: Rule, limit: RateLimit, stage: Stage) -> str:
    quota = ceil_div(limit.units * EPOCH_NS, limit.period_ns)
    edges = rule.edges_max or 1
    match stage.fallback:
        case Fallback.ALLOW:
            return "`allow` has no bound: each edge that is cut off lets everything pass."
        case Fallback.KEEP_SHARE if not rule.planned:
            return "`keep_share` adds 0: so small a quota is not divided, so no edge has a slice to keep."
        case Fallback.KEEP_SHARE:
            return f"`keep_share` adds the last slice of each edge that is cut off, together at most {quota} an epoch."
        case Fallback.FAIR_SHARE if not fair_share(rule):
            return f"`fair_share` adds 0 and admits nothing: {quota} units are less than one for each of {edges} edges."
        case Fallback.FAIR_SHARE:
            share = fair_share(rule)
            return f"`fair_share` adds {share} an epoch for each edge that is cut off, at most {edges} x {share}."
        case Fallback.DENY:
            return ""


def _when_text(rule: Rule, limit: RateLimit) -> str:
    quota = ceil_div(limit.units * EPOCH_NS, limit.period_ns)
    last = rule.when_unavailable[-1]
    lasting = "" if last.fallback is Fallback.DENY else f", after {duration_text(LAST_STAGE_NS)} of the last stage"
    filled = (
        "" if rule.divided else f", and once more the burst of {limit.burst}, which the store's bucket fills meanwhile"
    )
    return (
        f"They are over the limit only until the silence is noticed ({NOTICED_EPOCHS} epochs), in epochs that no "
        f"leader divided{lasting}{filled}; otherwise they are held back from all others, so a killed edge leaves its "
        f"share idle until it returns or its stages have run out. Up to {quota} for as long as the stages last if "
        "region and allocator lose their memory at the same time."
    )
