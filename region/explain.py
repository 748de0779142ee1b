"""Reading the region back: rules, quotas, epochs, holders, and by how much any quota was exceeded (design 9)."""

from __future__ import annotations

from collections import defaultdict

from apportion.core.key import key_text
from apportion.core.messages import EpochKind, no_ids, no_units
from apportion.core.meter import Meter
from apportion.core.rule import Enforce
from apportion.proto.v1 import region_pb2
from apportion.region.authority import Authority
from apportion.region.plans import HeldPlan
from apportion.region.quotas import KnownQuota
from apportion.region.region import Region
from apportion.region.store import ROLLUP_EPOCHS_KEPT

QUOTAS_MAX = 1_000
"""Quotas in one answer; a narrower question brings the others."""

_ENFORCE = {Enforce.LEASE: region_pb2.ENFORCE_LEASE, Enforce.REGION: region_pb2.ENFORCE_REGION}


async def explain(region: Region, request: region_pb2.ExplainRequest) -> region_pb2.ExplainResponse:
    """Answer an Explain: the quotas that fit the request, each with its latest epochs and its worst overshoot."""
    authority = region.authority
    now_ns = region.store.now_ns()
    epoch = authority.tick(now_ns).epoch
    admitted: dict[bytes, dict[int, int]] = defaultdict(dict)
    for row in await region.store.rolled_up(max(0, epoch - ROLLUP_EPOCHS_KEPT)):
        admitted[row.store_key][row.epoch] = row.units
    wanted = [known for known in authority.table if _fits(known, request)]
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
    )
    for (domain, rule), totals in authority.desk.totals.items():
        response.rules.add(domain=domain, rule=rule, offered=totals.offered, crossings=totals.crossings)
    return response


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
        rules_version=authority.rules.version,
        crossings=edge.crossings,
        degraded=edge.degraded,
    )


def _quota(
    authority: Authority, known: KnownQuota, admitted: dict[int, int], epoch: int, epochs: int
) -> region_pb2.QuotaState:
    limit, divided = known.limit, known.rule.divided
    state = region_pb2.QuotaState(
        domain=known.quota.domain,
        rule=known.quota.rule,
        key=known.quota.key,
        key_text=key_text(known.quota.key),
        enforce=_ENFORCE[known.rule.enforce],
        divided=divided,
        limit_units=limit.units,
        limit_period_ns=limit.period_ns,
        burst=limit.burst,
        quota_units=limit.units_in_epoch(epoch),
    )
    meter = Meter(limit, divided)
    overshoots = {each: meter.record(each, admitted[each]) for each in sorted(admitted)}
    state.worst_overshoot = meter.worst
    if meter.above_quota is not None:
        state.above_quota = meter.above_quota
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


def _epoch(authority: Authority, known: KnownQuota, epoch: int, admitted: int, overshoot: int) -> region_pb2.EpochState:
    plan = authority.lending.plans.get(epoch)
    mark = authority.register.mark(epoch)
    planned = plan is not None and known.id in plan.named
    kind = EpochKind.PLANNED if planned else (mark.kind if mark else EpochKind.VOID)
    return region_pb2.EpochState(
        epoch=epoch,
        kind=kind.value + 1,  # type: ignore[arg-type]
        quota_units=known.limit.units_in_epoch(epoch),
        admitted=admitted,
        unreported=authority.ledger.unreported(epoch, known.id),
        pool=_unlent(known, plan) if plan else 0,
        overshoot=overshoot,
    )


def _unlent(known: KnownQuota, plan: HeldPlan) -> int:
    """What this replica's part of the plan still holds."""
    if known.pool is not None and known.pool.epoch == plan.epoch:
        return known.pool.units
    return plan.parts.get(known.id, 0)
