"""Reading `limit` and `cost` of a rule, and what they mean together with `enforce`. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apportion.core.document import MappingNode, Scalar
from apportion.core.limit import EPOCH_NS, Limit, RateLimit, Unlimited, burst_max, default_burst
from apportion.core.quantities import NUMBER_MAX, parse_rate, period_text, shown
from apportion.core.rule import Enforce
from apportion.core.rule_fields import Section
from apportion.core.rule_quota import QUOTA_FIELDS, read_quota
from apportion.core.rules_vocabulary import COST, LIMIT, LIMIT_LATER, NONE_ZERO_UNLIMITED

COST_DEFAULT = 1
"""Units that a request costs where nobody says otherwise."""


@dataclass(frozen=True, slots=True)
class Costs:
    """A `cost` field: None for what it does not say."""

    default: int | None = None
    most: int | None = None


def is_unlimited(rule: Section) -> bool:
    """Whether the rule says that it has no limit; then there is nothing to enforce, and nothing crosses."""
    limit = rule.node("limit")
    return isinstance(limit, MappingNode) and any(key.text == "unlimited" for key, _ in limit.entries)


def read_limit(rule: Section, enforce: Enforce | None, field: str = "limit", zone: str = "UTC") -> Limit | None:
    """The `limit` of a rule, or another field that says one, or None when it was reported. `zone`: that of calendar
    periods that say none of their own.
    """
    node = rule.node(field)
    if node is None or (isinstance(node, Scalar) and node.nothing):
        rule.refuse(field, f"missing; {NONE_ZERO_UNLIMITED}")
        return None
    if isinstance(node, Scalar):
        amount = node.text if node.text.isdecimal() else "100"
        meant = f"{{rate: {node.text}}}" if "/" in node.text else f"{{rate: {amount}/s}}"
        rule.refuse(field, f"found {shown(node.text)}, a mapping is meant, such as {meant}; {NONE_ZERO_UNLIMITED}")
        return None
    before = len(rule.problems)
    limit = rule.section(field, "a mapping such as {rate: 100/s}", LIMIT, LIMIT_LATER)
    if limit is None:
        return None
    if limit.has("from_plan"):
        limit.refuse("from_plan", "belongs to the limit of a rule; a plan says what the limit is")
        return None
    if limit.has("unlimited"):
        return _read_unlimited(limit)
    if limit.has("quota"):
        return read_quota(limit, enforce, zone)
    for other in QUOTA_FIELDS:
        if limit.has(other):
            limit.refuse(other, "belongs to `quota`: a rate has no period that begins")
    if not limit.has("rate"):
        if len(rule.problems) == before:
            limit.refuse(None, f"has no `rate`; {NONE_ZERO_UNLIMITED}")
        return None
    rate = limit.parsed("rate", "a rate such as 100/s", parse_rate)
    burst = limit.count("burst", 0, NUMBER_MAX)
    if rate is None or len(rule.problems) > before:
        return None
    return _rate_limit(limit, rate[0], rate[1], burst, enforce)


def _read_unlimited(limit: Section) -> Unlimited | None:
    for other in ("rate", "burst", "quota", *QUOTA_FIELDS):
        if limit.has(other):
            limit.refuse("unlimited", f"contradicts `{other}`; {NONE_ZERO_UNLIMITED}")
            return None
    if limit.boolean("unlimited") is False:
        limit.refuse("unlimited", f"found `false`, which says nothing; {NONE_ZERO_UNLIMITED}")
        return None
    return Unlimited()


def _rate_limit(
    limit: Section, units: int, period_ns: int, given: int | None, enforce: Enforce | None
) -> RateLimit | None:
    """The limit, after what rate, burst and enforce mean together was checked."""
    most = burst_max(period_ns)
    burst = default_burst(units, period_ns) if given is None else given
    rate_text = f"{units}/{period_text(period_ns)}"
    if units == 0 and burst > 0:
        limit.refuse("burst", f"found {burst} with a rate of 0, which refuses everything; leave the burst out")
        return None
    if units > 0 and burst == 0:
        limit.refuse(
            "burst", f"found 0, which refuses everything although the rate is {rate_text}; write {{rate: 0/s}} for that"
        )
        return None
    if burst > most:
        default = " (a quarter second's worth, since none is given)" if given is None else ""
        limit.refuse("burst", f"is {burst}{default}, the most for a period of {period_text(period_ns)} is {most}")
        return None
    result = RateLimit(units, period_ns, burst)
    if enforce is Enforce.LEASE and result.can_be_divided and burst * period_ns > units * EPOCH_NS:
        limit.refuse(
            "burst",
            f"found {burst}, but a `lease` quota of {rate_text} is divided over edges each second, so its burst is at "
            f"most one second's worth, {units * EPOCH_NS // period_ns}; a larger burst needs `enforce: region`",
        )
        return None
    return result


def read_cost(section: Section) -> Costs:
    """The `cost` field of a rule, or of `defaults`."""
    cost = section.section("cost", "a mapping such as {default: 1, max: 10}", COST)
    if cost is None:
        return Costs()
    return Costs(cost.count("default", 1, NUMBER_MAX), cost.count("max", 1, NUMBER_MAX))


def read_costs(rule: Section, limit: Limit | None, usual: Costs) -> tuple[int, int | None]:
    """Default and largest cost of the rule; what `defaults` say is capped to the burst, what the rule says is not."""
    own = read_cost(rule)
    cost_default = own.default or usual.default or COST_DEFAULT
    if limit is None:
        return cost_default, own.most
    if isinstance(limit, Unlimited):
        if own.most is not None:
            rule.refuse("cost", "`max` contradicts `unlimited`: an unlimited rule refuses no cost; leave it out")
        return cost_default, None
    of_rate = isinstance(limit, RateLimit)
    word, field = ("burst", "limit.burst") if of_rate else ("allowance", "limit.quota")
    if own.most is not None and own.most > limit.largest:
        rule.refuse(
            "cost",
            f"`cost.max` {own.most} is above the {word} {limit.largest}, and no cost above it can ever be admitted; "
            f"lower the one or raise `{field}`",
        )
        return cost_default, own.most
    cost_max = own.most or min(limit.largest, usual.most or limit.largest)
    # A rate of 0 refuses every cost, which is what it is for.
    if cost_default > cost_max and limit.units > 0:
        given = "" if own.default else ", from `defaults`," if usual.default else ", the usual one,"
        bound = "" if own.most else f", the {word}," if cost_max == limit.largest else ", from `defaults`,"
        rule.refuse(
            "cost",
            f"`cost.default` {cost_default}{given} is above `cost.max` {cost_max}{bound} so no request could pass",
        )
    return cost_default, cost_max
