"""What lowered a quota below what its rule gives, or took its teeth, for whoever reads it back (design 9). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from apportion.core.key import decode_key
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.overrides import Override, Rate, is_overridden
from apportion.region.authority import Authority
from apportion.region.quotas import KnownQuota


def lowered_by(authority: Authority, laid: Sequence[Override], known: KnownQuota) -> list[str]:
    """Each input that lowers `known` now, in words; none when it has what its rule gives."""
    found = _operator(laid, known)
    if known.limit.units == 0 and not found:
        found.append("the rule's own rate of 0: nothing is admitted")
    plan = authority.lending.plans.get(authority.epoch)
    held = plan.held.get(known.id, 0) + plan.slowed.get(known.id, 0) if plan is not None else 0
    if held:
        found.append(f"held back: {held} units of this epoch, which edges that are not heard may still spend")
    return found


def _operator(laid: Sequence[Override], known: KnownQuota) -> list[str]:
    if not is_overridden(known.rule):
        return []
    key = decode_key(known.quota.key) or ()
    limit = known.limit
    now = Rate(limit.units, limit.period_ns) if isinstance(limit, RateLimit) else None  # no rate lowers an allowance
    return [
        f"the operator, until {until_text(each)}: {each}"
        for each in laid
        if each.hits(known.rule, key) and (each.rate is None or (now is not None and not now.below(each.rate)))
    ]


def until_text(override: Override) -> str:
    """When it ends by the store's clock, in UTC."""
    return datetime.fromtimestamp(override.until_ns // EPOCH_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
