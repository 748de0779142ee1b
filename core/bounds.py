"""By how much a rule can be exceeded, as a number and as sentences for a design review (design 4.1). Pure.

Only what the rule and the store say is used; nothing is measured here. What a bound is compared with is `meter`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from apportion.core.bounds_edge import DEPTHS_TEXT, edge_sentences, edge_units, threshold_sentence
from apportion.core.bounds_period import period_sentences, period_units
from apportion.core.bounds_stages import degraded_units, stages_sentence
from apportion.core.limit import DIVIDED_UNITS_MIN, EPOCH_NS, PeriodLimit, RateLimit, Unlimited
from apportion.core.quantities import period_text
from apportion.core.rule import Enforce, Rule


class StoreKind(Enum):
    """What keeps the region's counters. The value is the scheme of the store's URL."""

    MEMORY = "memory"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that one epoch can be over, by label, or one period of a quota: `units`, and why, in words. None:
    nothing bounds it, since there is no limit, or `when_unavailable` allows.

    `units` holds for any failure of any process or link; on a store that forgets, for one restart of the region in an
    epoch.
    """

    units: int | None
    sentence: str


def bound_of(rule: Rule, store: StoreKind | None = None, edges_max: int | None = None) -> Bound:
    """The bound of a rule; `store` None: not said which, so the sentence speaks of each and the number of sqlite."""
    if rule.unlisted:
        return Bound(0, "A tenant on no plan, which is refused: every cost, at once, everywhere.")
    if rule.shadow:
        enforced = bound_of(replace(rule, shadow=False), store, edges_max)
        return replace(enforced, sentence=f"Shadow: refuses nobody, counted as if enforced. Then: {enforced.sentence}")
    limit = rule.limit
    if isinstance(limit, Unlimited):
        return Bound(None, "There is no limit: nothing is counted, so nothing can be over.")
    if limit.units == 0:
        what, measured = ("A rate", "By label") if isinstance(limit, RateLimit) else ("An allowance", "In a period")
        return Bound(0, f"{what} of 0: every cost is refused at once, everywhere. {measured}: over by at most 0.")
    if isinstance(limit, PeriodLimit):
        forgets = None if store is None else store is StoreKind.MEMORY
        return Bound(period_units(rule, limit, forgets is True), " ".join(period_sentences(rule, limit, forgets)))
    if rule.local:
        return Bound(edge_units(rule, limit), " ".join(edge_sentences(rule, limit)))
    degraded = degraded_units(rule, limit)
    units = None if degraded is None else degraded + (limit.burst if store is StoreKind.MEMORY else 0)
    parts = [
        _by_label(units, degraded),
        _true_second(rule, limit, edges_max),
        _crossing(rule, limit),
        stages_sentence(rule, limit),
        _store(limit, store),
    ]
    return Bound(units, " ".join(parts))


def _by_label(units: int | None, degraded: int | None) -> str:
    if units is None:
        return (
            "By label: no bound while the region is unavailable, since `when_unavailable` has `allow`; else over by 0."
        )
    cause = "whatever fails"
    if degraded:
        cause = "by edges that are cut off from the region"
    if units != degraded:
        cause = (
            f"{cause}, and when the region restarts once in an epoch"
            if degraded
            else ("when the region restarts once in an epoch, else by 0")
        )
    return f"By label: over by at most {units}, {cause}."


def limit_text(rule: Rule) -> str:
    """What a rule allows, as the rules file writes it: `10000/s`, `50/day, calendar`, `unlimited`."""
    limit = rule.limit
    if isinstance(limit, PeriodLimit):
        return f"{limit.units}/{limit.period_text}, {limit.anchor.value}"
    return "unlimited" if isinstance(limit, Unlimited) else f"{limit.units}/{period_text(limit.period_ns)}"


def _true_second(rule: Rule, limit: RateLimit, edges_max: int | None) -> str:
    if not rule.divided:
        return "In a true second: nothing more, the store's clock decides."
    a_hundredth = -(-limit.units * EPOCH_NS // limit.period_ns // 100)
    edges = f" (at most {edges_max})" if edges_max is not None else ""
    return (
        f"In a true second, in addition: e x {_per_second(limit)} (e is the largest error of an edge's epochs, "
        f"measured and exported; 10 ms of it are {a_hundredth} units), one borrowed chunk per edge{edges}, "
        f"{DEPTHS_TEXT}, and {limit.burst} (the burst) where an epoch turns direct."
    )


def _crossing(rule: Rule, limit: RateLimit) -> str:
    if rule.divided:
        return "Divided over the edges each second: most requests do not cross."
    if rule.enforce is Enforce.LEASE:
        return (
            f"Undivided, since {_per_second(limit)} is below the {DIVIDED_UNITS_MIN} units a second that are worth "
            "dividing: crosses on every request, but those that the region has just said cannot pass."
        )
    if rule.enforce is Enforce.EDGE_REGION:
        return threshold_sentence(rule, limit)
    return "Crosses on every request, batched, but those that the region has just said cannot pass."


def _store(limit: RateLimit, store: StoreKind | None) -> str:
    """What the store's losses add; a bucket that forgets is a whole burst again."""
    memory = f"on memory: {limit.burst} (one burst) for each restart of the region"
    sqlite = "on sqlite: 0, an acknowledged decision is on disk"
    if limit.drain_ns <= 2 * EPOCH_NS:
        sqlite = "on sqlite: 0, a bucket that drains in 2s starts empty of tokens after a restart"
    chosen = {StoreKind.MEMORY: (memory,), StoreKind.SQLITE: (sqlite,), None: (sqlite, memory)}[store]
    return f"The store adds, {'; '.join(chosen)}."


def _per_second(limit: RateLimit) -> str:
    """Units a second, exact where they are whole."""
    whole, rest = divmod(limit.units * EPOCH_NS, limit.period_ns)
    return f"{whole}/s" if not rest else f"{limit.per_second:.3g}/s"
