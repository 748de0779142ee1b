"""What reading a quota back needs beside what the replica has at hand: its meter over changed limits, its bound, what
is used of it now, and when that is over (design 9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from apportion.core.bounds import StoreKind, bound_of
from apportion.core.errors import StoreError
from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import Finite, PeriodAnchor, PeriodLimit, RateLimit, Unlimited, ceil_div
from apportion.core.messages import Quota
from apportion.core.meter import Meter
from apportion.core.rule import Rule
from apportion.proto.v1 import region_pb2
from apportion.region.authority import Authority
from apportion.region.lowering import lowered_by
from apportion.region.periods import tell_period
from apportion.region.quotas import KnownQuota
from apportion.region.region import Region
from apportion.region.sqlite_store import SqliteStore
from apportion.region.states import State, States, losses_of
from apportion.region.store import Anchor, Charge, Charged, ChargedPeriod, Charges
from apportion.region.versions import Limited

UNKNOWN_ID = 2**32 - 1
"""In place of an id: a quota that nobody has asked for yet."""

STATE_TO_WIRE = {
    State.EXACT: region_pb2.RULE_STATE_EXACT,
    State.BOUNDED: region_pb2.RULE_STATE_BOUNDED,
    State.ADVISORY: region_pb2.RULE_STATE_ADVISORY,
    State.DEGRADED: region_pb2.RULE_STATE_DEGRADED,
}

ASKED_MAX = 100
"""Quotas whose buckets the store is asked about; of more the answer does not say what is used."""


def metered(
    segments: list[tuple[int, Limited | None]], admitted: dict[int, int]
) -> tuple[dict[int, int], Meter | None]:
    """By how much each label was over, by the limit that it had, and a meter with the worst of all.

    A label in which the number of an undivided quota changed had both; it is judged by the one that gives more.
    """
    overs: dict[int, int] = {}
    worst: Meter | None = None
    for at, (start, limited) in enumerate(segments):
        end = segments[at + 1][0] if at + 1 < len(segments) else None
        if limited is None:
            continue
        rule, limit = limited
        if not isinstance(limit, RateLimit):  # a label has no part of a period's allowance
            continue
        former = _undivided_rate(segments[at - 1][1]) if at and not rule.divided else None
        mixed = former is not None and _gives(former) > _gives(limit)
        meter = Meter(limit, rule.divided)
        for epoch in sorted(each for each in admitted if each >= start and (end is None or each < end)):
            if mixed and epoch == start and former is not None:
                overs[epoch] = Meter(former, divided=False).record(epoch, admitted[epoch])
            else:
                overs[epoch] = meter.record(epoch, admitted[epoch])
        if worst is not None:
            meter.worst = max(meter.worst, worst.worst)
            above = [each for each in (meter.above_quota, worst.above_quota) if each is not None]
            meter.above_quota = max(above, default=None)
        worst = meter
    return overs, worst


def _undivided_rate(limited: Limited | None) -> RateLimit | None:
    """The limit of a quota that was not divided; None where it had another kind of limit."""
    if limited is None or limited[0].divided or not isinstance(limited[1], RateLimit):
        return None
    return limited[1]


def _gives(limit: RateLimit) -> float:
    return limit.burst + limit.per_second


def asked_for(authority: Authority, request: region_pb2.ExplainRequest, epoch: int) -> list[KnownQuota]:
    """The quotas whose key the request's dimensions give, also where nobody has asked for one yet."""
    found = []
    for (domain, name), rule in sorted(authority.versions.effective.rules.items()):
        if name != request.rule or (request.HasField("domain") and domain != request.domain):
            continue
        if any(each not in request.dimensions for each in rule.key):
            continue
        quota = Quota(domain, name, encode_key([request.dimensions[each] for each in rule.key]))
        limited = authority.versions.effective.find(quota)
        if limited is not None:
            met = authority.table.by_store_key(encode_quota(domain, name, quota.key))
            found.append(met if met is not None else KnownQuota(UNKNOWN_ID, quota, *limited))
    return found


def heaviest(authority: Authority, quotas: list[KnownQuota], most: int) -> list[KnownQuota]:
    """The `most` quotas that were asked for most of late, the heaviest first; those of which nothing was, left out."""
    offered = offered_of(authority)
    asked = [known for known in quotas if offered.get(known.id)]
    return sorted(asked, key=lambda known: -offered[known.id])[:most]


def offered_of(authority: Authority) -> dict[int, int]:
    """Offered cost of the latest report of every edge, by the quota's id."""
    offered: dict[int, int] = {}
    for edge in authority.edges.values():
        for identity, units in edge.demand.items():
            offered[identity] = offered.get(identity, 0) + units
    return offered


def most_refused(authority: Authority, most: int) -> list[region_pb2.HeavyQuota]:
    """The `most` quotas of which most was refused by the latest report of every edge, the heaviest first."""
    units: Counter[Quota] = Counter()
    errors: Counter[Quota] = Counter()
    for edge in authority.edges.values():
        for heavy in edge.most_refused:
            units[heavy.key] += heavy.units
            errors[heavy.key] += heavy.error
    return [
        region_pb2.HeavyQuota(domain=quota.domain, rule=quota.rule, key=quota.key, units=each, error=errors[quota])
        for quota, each in units.most_common(most)
    ]


def describe(
    region: Region, known: KnownQuota, state: region_pb2.QuotaState, admitted: dict[int, int], offered: int
) -> None:
    """Add what does not depend on the store's bucket: key, bound, demand, version."""
    authority, rule = region.authority, known.rule
    state.key_dimensions.extend(rule.key)
    state.rules_version = authority.versions.base if rule.divided else authority.versions.newest
    _tell_bound(region, rule, state)
    state.offered = offered
    told = max((edge.demand_epoch for edge in authority.edges.values()), default=0)
    state.refused = max(0, offered - admitted.get(told, 0))
    state.losses.extend(losses_of(authority, rule, known.limit))
    state.lowered_by.extend(lowered_by(authority, region.operator.laid, known))


def _tell_bound(region: Region, rule: Rule, state: region_pb2.QuotaState) -> None:
    bound = bound_of(rule, store_kind(region), region.authority.ruleset.edges_max)
    if bound.units is not None:
        state.bound = bound.units
    state.bound_reason = bound.sentence
    now, state.state_reason = States(region.authority, region.sums.rules).of(rule, bound.units)
    state.state = STATE_TO_WIRE[now]


def bound_units(region: Region, rule: Rule) -> int | None:
    """The most that one label of one key of a rule can be over, on whatever plan; None: no number bounds it."""
    kind, edges_max = store_kind(region), region.authority.ruleset.edges_max
    bounds = [bound_of(each, kind, edges_max).units for each in rule.on_plans if not isinstance(each.limit, Unlimited)]
    known = [each for each in bounds if each is not None]
    return max(known) if known and len(known) == len(bounds) else None


def largest_limit(rule: Rule) -> Finite | None:
    """The limit that gives most of those of the rule's plans; None: it has none."""
    limits = [each.limit for each in rule.on_plans if not isinstance(each.limit, Unlimited)]
    return max(limits, key=lambda limit: limit.per_second, default=None)


def store_kind(region: Region) -> StoreKind:
    """What keeps the counters."""
    return StoreKind.SQLITE if isinstance(region.store, SqliteStore) else StoreKind.MEMORY


async def tell_used(region: Region, pairs: Iterable[tuple[KnownQuota, region_pb2.QuotaState]]) -> None:
    """Add what is used now, and until when. What the store decides it is asked, without charging anything."""
    authority, now_ns = region.authority, region.store.now_ns()
    left_ns = authority.tick(now_ns).left_ns
    undivided = []
    for known, state in pairs:
        if known.rule.local:
            state.reset_reason = "each edge counts by itself, and tells what it admitted once a second"
            continue
        if not known.rule.divided:
            undivided.append((known, state))
            continue
        state.used = state.epochs[-1].admitted if state.epochs else 0
        state.resets_after_ns = left_ns
        state.reset_reason = "with the next epoch, which brings slices and a pool of its own"
    if not undivided or len(undivided) > ASKED_MAX:
        return
    try:
        told = await _looked_at(region, [(known, 0) for known, _ in undivided])
        oldest = await _oldest(region, told)
    except StoreError:
        return
    for (known, charged), (_, state) in zip(told, undivided, strict=True):
        if isinstance(charged, ChargedPeriod) and isinstance(known.limit, PeriodLimit):
            tell_period(known.limit, charged, oldest.get(known.store_key, 0), now_ns, state)
        elif isinstance(charged, Charged) and isinstance(known.limit, RateLimit):
            _tell_bucket(known.limit, charged, state)


Told = list[tuple[KnownQuota, Charged | ChargedPeriod]]
"""What the store said of quotas."""


async def _looked_at(region: Region, quotas: list[tuple[KnownQuota, int]]) -> Told:
    """What the store says of a request for each quota with that cost, without charging it."""
    asked = tuple(Charges(1, (Charge(known.store_key, known.limit, cost),), peek=True) for known, cost in quotas)
    register = region.authority.register
    answers = await region.store.consume(asked, Anchor(register.anchor_epoch, register.anchor_ns))
    return [(known, answer.members[0]) for (known, _), answer in zip(quotas, answers, strict=True)]


async def _oldest(region: Region, told: Told) -> dict[bytes, int]:
    """For each rolling quota of which something is used, by store key, nanoseconds until the oldest of it leaves the
    window: until one unit more fits than fits now.
    """
    wanted = []
    for known, charged in told:
        rolling = isinstance(known.limit, PeriodLimit) and known.limit.anchor is PeriodAnchor.ROLLING
        if rolling and isinstance(charged, ChargedPeriod) and charged.used:
            wanted.append((known, max(known.limit.units - charged.used, 0) + 1))
    if not wanted:
        return {}
    found = await _looked_at(region, wanted)
    return {known.store_key: each.wait_ns or 0 for known, each in found if isinstance(each, ChargedPeriod)}


def _tell_bucket(limit: RateLimit, charged: Charged, state: region_pb2.QuotaState) -> None:
    state.used = ceil_div(charged.backlog, limit.period_ticks)
    if limit.units:
        state.resets_after_ns = ceil_div(charged.backlog, limit.units) * limit.tick_ns
        state.reset_reason = "the bucket drains evenly at the limit's rate"
    else:
        state.reset_reason = "never: a rate of 0 drains nothing"
