"""Reading the region back: rules, quotas, epochs, holders, and by how much any quota was exceeded (design 9)."""

from __future__ import annotations

from collections import defaultdict

from apportion.core.key import key_text
from apportion.core.limit import Finite, PeriodLimit, RateLimit
from apportion.core.messages import EpochKind, no_ids, no_units
from apportion.core.rule import Enforce
from apportion.proto.v1 import region_pb2
from apportion.region.authority import Authority
from apportion.region.desk import Totals
from apportion.region.override_messages import messages
from apportion.region.periods import period_state
from apportion.region.plans import HeldPlan
from apportion.region.quotas import KnownQuota
from apportion.region.reading import (
    ASKED_MAX,
    STATE_TO_WIRE,
    asked_for,
    bound_units,
    describe,
    heaviest,
    largest_limit,
    metered,
    most_refused,
    offered_of,
    tell_used,
)
from apportion.region.region import Region
from apportion.region.states import States
from apportion.region.store import ROLLUP_EPOCHS_KEPT
from apportion.region.sums import RuleSum
from apportion.region.thresholds import refused_with_room

QUOTAS_MAX = 1_000
"""Quotas in one answer; a narrower question brings the others."""

_ENFORCE = {
    Enforce.EDGE: region_pb2.ENFORCE_EDGE,
    Enforce.EDGE_REGION: region_pb2.ENFORCE_EDGE_REGION,
    Enforce.LEASE: region_pb2.ENFORCE_LEASE,
    Enforce.REGION: region_pb2.ENFORCE_REGION,
}


async def explain(region: Region, request: region_pb2.ExplainRequest) -> region_pb2.ExplainResponse:
    """Answer an Explain: the quotas that fit the request, each with its latest epochs and its worst overshoot."""
    authority = region.authority
    now_ns = region.store.now_ns()
    epoch = authority.tick(now_ns).epoch
    admitted: dict[bytes, dict[int, int]] = defaultdict(dict)
    for row in await region.store.rolled_up(max(0, epoch - ROLLUP_EPOCHS_KEPT)):
        admitted[row.store_key][row.epoch] = row.units
    if request.dimensions:
        wanted = asked_for(authority, request, epoch)
    else:
        wanted = [known for known in authority.table if known.limited and _fits(known, request)]
    offered = offered_of(authority)
    refused: list[region_pb2.HeavyQuota] = []
    if request.heaviest:
        wanted = heaviest(authority, wanted, request.heaviest)
        refused = most_refused(authority, request.heaviest)
    else:
        wanted.sort(key=lambda known: (known.quota.domain, known.quota.rule, known.quota.key))
    response = region_pb2.ExplainResponse(
        epoch=epoch,
        register=region_pb2.Register(generation=authority.register.generation, highest=authority.register.highest),
        rules_version=authority.rules.version,
        replica=authority.replica,
        quotas=[
            _quota(authority, known, admitted.get(known.store_key, {}), epoch, request.epochs)
            for known in wanted[:QUOTAS_MAX]
        ],
        quotas_left_out=max(0, len(wanted) - QUOTAS_MAX),
        edges=[_edge(authority, session) for session in authority.edges],
        most_refused=refused,
    )
    pairs = list(zip(wanted, response.quotas, strict=False))
    for known, state in pairs:
        _tell_chunks(authority, known, state, now_ns)
    for known, state in pairs:
        describe(region, known, state, admitted.get(known.store_key, {}), offered.get(known.id, 0))
    if len(pairs) <= ASKED_MAX:
        await tell_used(region, pairs)
    _tell_rules(region, response, offered)
    response.overrides.extend(messages(region))
    if region.rules_status is not None and region.rules_status.rejected:
        response.rules_rejected = region.rules_status.reason
        response.rejected_files.extend(region.rules_status.rejected)
    return response


def _tell_rules(region: Region, response: region_pb2.ExplainResponse, offered: dict[int, int]) -> None:
    """Every rule, with its totals."""
    authority = region.authority
    states = States(authority, region.sums.rules)
    latest: dict[tuple[str, str], int] = defaultdict(int)
    for identity, units in offered.items():
        known = authority.table.by_id(identity)
        if known is not None:
            latest[known.quota.domain, known.quota.rule] += units
    for name, rule in sorted(authority.versions.effective.rules.items()):
        totals, summed = authority.desk.totals.get(name, Totals()), region.sums.rules.get(name, RuleSum())
        told = response.rules.add(
            domain=name[0],
            rule=name[1],
            offered=totals.offered,
            crossings=totals.crossings,
            enforce=_ENFORCE[rule.enforce],
            worst_overshoot=summed.worst,
            offered_latest=latest[name],
            admitted_latest=summed.admitted if summed.label == region.sums.judged else 0,
        )
        limit, bound = largest_limit(rule), bound_units(region, rule)
        if isinstance(limit, PeriodLimit):
            told.limit_units, told.limit_period_ns = limit.units, limit.length_ns
            told.limit_period = limit.period_text
        elif limit is not None:
            told.limit_units, told.limit_period_ns = limit.units, limit.period_ns
        if bound is not None:
            told.bound = bound
        told.state = STATE_TO_WIRE[states.of(rule, bound)[0]]


def _fits(known: KnownQuota, request: region_pb2.ExplainRequest) -> bool:
    quota = known.quota
    return (
        (not request.HasField("domain") or quota.domain == request.domain)
        and (not request.HasField("rule") or quota.rule == request.rule)
        and (not request.HasField("key") or quota.key == request.key)
    )


def _edge(authority: Authority, session: int) -> region_pb2.EdgeState:
    edge = authority.edges[session]
    return region_pb2.EdgeState(
        edge=edge.hello.edge,
        location=edge.hello.location,
        incarnation=edge.incarnation,
        attached=True,
        rules_version=edge.rules_version,
        crossings=edge.crossings,
        degraded=edge.degraded,
    )


def _quota(
    authority: Authority, known: KnownQuota, admitted: dict[int, int], epoch: int, epochs: int
) -> region_pb2.QuotaState:
    state = region_pb2.QuotaState(
        domain=known.quota.domain,
        rule=known.quota.rule,
        key=known.quota.key,
        key_text=key_text(known.quota.key),
        enforce=_ENFORCE[known.rule.enforce],
        divided=known.rule.divided,
        limit_units=known.limit.units,
        burst=known.limit.largest,
        quota_units=_worth(known.limit, epoch),
    )
    overshoots, meter = metered(authority.versions.segments(known.quota), admitted)
    if meter is not None:
        state.worst_overshoot = meter.worst
        if meter.above_quota is not None:
            state.above_quota = meter.above_quota
    if isinstance(known.limit, PeriodLimit):
        state.limit_period_ns = known.limit.length_ns
        state.period.CopyFrom(period_state(known.limit))
    else:
        state.limit_period_ns = known.limit.period_ns
        refused = authority.over_threshold.of(known.store_key)
        state.refused_at_edges = sum(refused.values())
        state.refused_with_room = sum(refused_with_room(known.limit, admitted, refused).values())
    for each in range(max(0, epoch - min(epochs, ROLLUP_EPOCHS_KEPT)), epoch + 1):
        state.epochs.append(_epoch(authority, known, each, admitted.get(each, 0), overshoots.get(each, 0)))
    plan = authority.lending.plans.get(epoch)
    for edge in authority.edges.values():
        ids, units = plan.column(edge.incarnation) if plan else (no_ids(), no_units())
        state.holders.add(
            edge=edge.hello.edge,
            location=edge.hello.location,
            slice=int(units[ids == known.id].sum()),
            demand=edge.demand.get(known.id, 0),
            last_report_epoch=edge.last_report,
        )
    return state


def _tell_chunks(authority: Authority, known: KnownQuota, state: region_pb2.QuotaState, now_ns: int) -> None:
    """What edges hold of a leased quota of a period; one that is killed holds its chunk until it would have ended."""
    chunks = authority.desk.chunks.open(known.id, now_ns)
    state.lent = sum(chunks.values())
    for holder, edge in zip(state.holders, authority.edges.values(), strict=True):
        holder.chunk = chunks.get(edge.incarnation, 0)


def _epoch(authority: Authority, known: KnownQuota, epoch: int, admitted: int, overshoot: int) -> region_pb2.EpochState:
    plan = authority.lending.plans.get(epoch)
    mark = authority.register.mark(epoch)
    planned = plan is not None and known.id in plan.named
    kind = EpochKind.PLANNED if planned else (mark.kind if mark else EpochKind.VOID)
    return region_pb2.EpochState(
        epoch=epoch,
        kind=kind.value + 1,  # type: ignore[arg-type]
        quota_units=_worth(known.limit, epoch),
        admitted=admitted,
        unreported=authority.ledger.unreported(epoch, known.id),
        pool=_unlent(known, plan) if plan else 0,
        overshoot=overshoot,
    )


def _worth(limit: Finite, epoch: int) -> int:
    """What an epoch is worth of a rate; a second has no part of a period's allowance."""
    return limit.units_in_epoch(epoch) if isinstance(limit, RateLimit) else 0


def _unlent(known: KnownQuota, plan: HeldPlan) -> int:
    """What this replica's part of the plan still holds."""
    if known.pool is not None and known.pool.epoch == plan.epoch:
        return known.pool.units
    return plan.parts.get(known.id, 0)
