"""Reading a scenario's one rule, which it writes as `limit` and `enforce`, and the clocks of its store. Pure."""

from __future__ import annotations

from datetime import datetime

from apportion.core.document import MappingNode
from apportion.core.limit import EPOCH_NS
from apportion.core.quantities import parse_quota, parse_rate, shown
from apportion.core.rule import Enforce
from apportion.core.rule_fields import Section
from apportion.core.rule_quota import QUOTA_FIELDS
from apportion.core.rules_vocabulary import nearest
from apportion.simulations.scenario import NOON_NS, OneRule, StoreClocks

ONE = ("limit", "burst", "enforce", "slack", "at_each_edge", "wrong_costs", "when_unavailable")
"""What belongs to a scenario that writes no `rules`."""

STORE = ("begins", "wall_drift", "reclaim")
RECLAIM = ("spread", "together")
DRIFT_MAX = 10_000


def read_one(top: Section) -> OneRule | None:
    """The rule that `limit` and the fields beside it describe, or None when it was reported."""
    quota = _read_quota(top)
    rate = quota[0] if quota else top.parsed("limit", "a rate such as 1000/s", _rate_text) if quota is None else None
    enforce = top.text("enforce", "a way to enforce")
    names = tuple(each.value for each in Enforce)
    if rate is None or enforce is None:
        for name, example in (("limit", "`limit: 1000/s`"), ("enforce", "`enforce: lease`")):
            if not top.has(name):
                top.refuse(None, f"`{name}` is missing; write {example}, or whole `rules: |`")
        return None
    if enforce not in names:
        top.refuse("enforce", f"found {shown(enforce)}, {nearest(enforce, names)}")
        return None
    more = {name: top.text(name, "a value") for name in ("slack", "at_each_edge", "wrong_costs")}
    stages = tuple(getattr(item, "text", "") for item in top.items("when_unavailable", "a list of stages", 9) or ())
    burst = top.text("burst", "units")
    if quota and burst is not None:
        top.refuse("burst", "contradicts `quota`: an allowance may be used at any pace; leave `burst` out")
    written = tuple((name, value) for name, value in more.items() if value is not None)
    return OneRule(rate, enforce, burst, stages or ("deny",), written, quota[1] if quota else None)


def _read_quota(top: Section) -> tuple[str, tuple[tuple[str, str], ...]] | tuple[()] | None:
    """The allowance and the fields beside it. None: the limit is a rate; (): it was reported."""
    if not isinstance(top.node("limit"), MappingNode):
        return None
    limit = top.section("limit", "a rate, or `quota` and `anchor`", ("quota", *QUOTA_FIELDS))
    assert limit is not None
    if not limit.has("quota"):
        limit.refuse(None, "`quota` is missing; write `limit: {quota: 100/min, anchor: calendar}`, or a rate")
        return ()
    amount = limit.parsed("quota", "an allowance such as 100/min", _quota_text)
    fields = [(name, limit.text(name, "a value")) for name in QUOTA_FIELDS if limit.has(name)]
    written = tuple((name, value) for name, value in fields if value is not None)
    return () if amount is None or len(written) < len(fields) else (amount, written)


def read_store(top: Section) -> StoreClocks:
    """What `store` says of clocks and reclaiming; where it says nothing, or what was reported, the usual."""
    store = top.section("store", "the clocks of the store", STORE)
    if store is None:
        return StoreClocks()
    begins_ns = store.parsed("begins", "an instant such as 2026-12-01T12:00:00Z", _instant_ns)
    reclaim = store.text("reclaim", "`spread` or `together`") if store.has("reclaim") else "spread"
    if reclaim not in RECLAIM:
        store.refuse("reclaim", f"found {shown(reclaim or '')}, {nearest(reclaim or '', RECLAIM)}")
    drift = store.count("wall_drift", 0, DRIFT_MAX) or 0
    return StoreClocks(NOON_NS if begins_ns is None else begins_ns, drift, reclaim == "spread")


def _instant_ns(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ValueError(f"found {shown(text)}; an instant with its zone is meant: 2026-12-01T12:00:00Z")
    return round(at.timestamp()) * EPOCH_NS


def _rate_text(text: str) -> str:
    parse_rate(text)
    return text


def _quota_text(text: str) -> str:
    parse_quota(text)
    return text
