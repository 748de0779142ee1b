"""How a replica takes an edge's report: usage into the rollup, demand to every allocator (design 5.8). Pure.

Functions of the authority's own state, apart from it for its length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from apportion.core.allocator_messages import Demand
from apportion.core.limit import PeriodLimit
from apportion.core.messages import Report, ReportAck
from apportion.core.value import value
from apportion.region.events import Command, Note, RolledUp, RollUp, Send
from apportion.region.plans import EPOCHS_KEPT
from apportion.region.remembering import spending
from apportion.region.sessions import EdgeSession, refuse
from apportion.region.store import GivenBack, RollupRow
from apportion.region.thresholds import for_leader, rights

if TYPE_CHECKING:
    from apportion.region.authority import Authority

AHEAD_MAX = 2
"""Labels further beyond the region's own epoch than this were never lent here: edges follow the region's clock, and
one whose clock went back while it was away finds them ahead of it by no more.
"""


@value
class RollingUp:
    """A report on its way into the store: whose, its number and epoch, and by rule the units that were spent degraded
    and the requests that were answered so. `settled` and `given_back`: units of chunks by the quota's id, spent or
    given back, and those of them that were given back by rule.
    """

    session: int
    incarnation: int
    number: int
    epoch: int
    units: Mapping[tuple[str, str], int]
    requests: Mapping[tuple[str, str], int]
    settled: Mapping[int, int]
    given_back: Mapping[tuple[str, str], int]


def take_report(authority: Authority, edge: EdgeSession, message: Report) -> list[Command]:
    """Add what was used; acknowledged once the store has it."""
    edge.names.update((name.id, name.quota) for name in message.names)
    commands: list[Command] = []
    rows = []
    beyond: Counter[tuple[str, str]] = Counter()
    settled: Counter[int] = Counter()
    forgotten = max(authority.epoch - EPOCHS_KEPT, authority.lending.kept_through)
    for identity, label, units, degraded in spending(message):
        quota = edge.names.get(identity)
        if quota is None:
            return refuse(edge.session, f"report {message.number} names a quota never declared", retry=True)
        known = authority.table.recall(quota, authority.epoch)
        if known is None or label > authority.epoch + AHEAD_MAX:
            # A rule that was in force when the units were spent, or labels of a store that is gone. The edge
            # resends the report until it is acknowledged, so the rest of it must count.
            left_out = (("edge", edge.hello.edge), ("rule", quota.rule), ("epoch", label), ("units", units))
            commands.append(Note("warning", "report_row_left_out", left_out))
            continue
        rows.append(RollupRow(known.store_key, label, units))
        if degraded:
            beyond[quota.domain, quota.rule] += degraded
        if isinstance(known.limit, PeriodLimit):  # charged when it was lent, be it by former rules, under no label
            settled[known.id] += units - degraded
            continue
        issued = rights(known.rule, authority.ledger.issued_to(label, edge.incarnation, known.id))
        if units - degraded > issued and label > forgotten:
            fields = (("edge", edge.hello.edge), ("rule", known.quota.rule), ("epoch", label))
            commands.append(Note("error", "report_above_issued", (*fields, ("units", units), ("issued", issued))))
    back, taken = _given_back(authority, edge, message, settled)
    authority.requests += 1
    answers = {(domain, rule): requests for domain, rule, requests in message.degraded_rules}
    authority.rollups[authority.requests] = RollingUp(
        edge.session, edge.incarnation, message.number, message.epoch, beyond, answers, settled, taken
    )
    commands.append(RollUp(authority.requests, edge.incarnation, message.number, tuple(rows), back))
    if message.epoch <= authority.epoch + AHEAD_MAX:  # else of a store that is gone, and would be kept for ever
        authority.ledger.report(message.epoch, edge.incarnation)
        authority.memory.reported(edge, message.epoch)
    if message.epoch > edge.last_report:
        commands += _demand(authority, edge, message)
    return commands


def _given_back(
    authority: Authority, edge: EdgeSession, message: Report, settled: Counter[int]
) -> tuple[tuple[GivenBack, ...], Counter[tuple[str, str]]]:
    """What a report gives back of chunks, for the store, and its sum by rule; counted in `settled` too. Of a quota that
    is not known here any more it stays charged: nobody counts that any longer.
    """
    rows = []
    taken: Counter[tuple[str, str]] = Counter()
    for identity, units, period in zip(
        message.given_ids.tolist(), message.given.tolist(), message.given_period, strict=True
    ):
        quota = edge.names.get(identity)
        known = authority.table.recall(quota, authority.epoch) if quota is not None else None
        if known is None or not units:
            continue
        rows.append(GivenBack(known.store_key, period, units))
        settled[known.id] += units
        taken[known.quota.domain, known.quota.rule] += units
    return tuple(rows), taken


def _demand(authority: Authority, edge: EdgeSession, message: Report) -> list[Command]:
    """Pass a report's demand to every allocator, standbys too; remember it for reading back."""
    edge.last_report = message.epoch
    edge.degraded += message.degraded
    edge.most_refused = message.most_refused
    quotas = [edge.names.get(identity) for identity in message.demand_ids.tolist()]
    known = [authority.table.find(quota, authority.epoch) if quota is not None else None for quota in quotas]
    kept = np.array([found is not None for found in known], np.bool_)
    ids = np.array([found.id for found in known if found is not None], np.uint32)
    units = message.demand[kept]
    for found, cost in zip((each for each in known if each is not None), units.tolist(), strict=True):
        authority.desk.totals[found.quota.domain, found.quota.rule].offered += cost
    if len(message.over_threshold):
        for refused, cost in zip(known, message.over_threshold.tolist(), strict=True):
            if refused is not None and cost:
                authority.over_threshold.add(message.epoch, refused.store_key, cost)
                authority.desk.totals[refused.quota.domain, refused.quota.rule].refused_at_edge += cost
    edge.demand, edge.demand_epoch = dict(zip(ids.tolist(), units.tolist(), strict=True)), message.epoch
    rows = for_leader([found for found in known if found is not None], units, authority.lending.plans)
    ids, units = ids[rows], units[rows]
    return [
        Send(
            peer.session,
            Demand(edge.incarnation, message.epoch, peer.declared.names_for(ids, authority.table), ids, units),
        )
        for peer in authority.allocators.values()
    ]


def rolled_up(authority: Authority, event: RolledUp) -> list[Command]:
    """The store has taken a report, or could not. What was degraded is counted once, however late its report comes."""
    report = authority.rollups.pop(event.request)
    if not event.done:
        return []  # the edge sends it again
    if not event.new:
        report = replace(report, units={}, requests={}, settled={}, given_back={})
    for identity, units in report.settled.items():
        authority.desk.chunks.settle(identity, report.incarnation, units)
    for name, units in report.given_back.items():
        authority.desk.totals[name].given_back += units
    for name in report.units.keys() | report.requests.keys():
        if name in authority.versions.effective.rules:  # and no name that a peer made up
            totals = authority.desk.totals[name]
            totals.degraded += report.units.get(name, 0)
            totals.degraded_requests += report.requests.get(name, 0)
            totals.degraded_epoch = max(totals.degraded_epoch, report.epoch)
    return [Send(report.session, ReportAck(report.number))] if report.session in authority.edges else []
