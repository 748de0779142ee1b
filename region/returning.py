"""How a replica takes units back that an edge will not spend (design 5.7): into its pool, and to the leader. Pure.

Functions of the authority's own state, apart from it for its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from apportion.core.allocator_messages import Demand
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Return
from apportion.region.crossing import Instant
from apportion.region.events import Command, Send
from apportion.region.quotas import KnownQuota
from apportion.region.sessions import EdgeSession, refuse

if TYPE_CHECKING:
    from apportion.region.authority import Authority

DIVIDED_NS = EPOCH_NS // 2
"""Before an epoch's end the next has been divided: what comes later, a whole report overtakes."""


def take_back(authority: Authority, edge: EdgeSession, message: Return, now_ns: int) -> list[Command]:
    """Units of a label that is still lent go to this replica's pool of that label; those of a past one are lost."""
    if message.number <= edge.returns:
        return []  # a copy
    edge.returns = message.number
    at = authority.lending.instant(authority.register, now_ns)
    ready = message.ready.tolist() or [0] * len(message.ids)
    taken: list[KnownQuota] = []
    for identity, units, each in zip(message.ids.tolist(), message.units.tolist(), ready, strict=True):
        quota = edge.names.get(identity)
        known = authority.table.recall(quota, at.epoch) if quota is not None else None
        if known is None or units > authority.ledger.issued_to(message.epoch, edge.incarnation, known.id):
            return refuse(edge.session, "more was returned than was issued", retry=True)
        authority.ledger.issue(message.epoch, edge.incarnation, known.id, -units)
        _lend(authority, known, message.epoch, units, each, at)
        taken.append(known)
    useful = message.epoch == at.epoch and at.left_ns >= DIVIDED_NS
    return _tell(authority, edge, taken, message.epoch) if useful else []


def _lend(authority: Authority, known: KnownQuota, epoch: int, units: int, ready: int, at: Instant) -> None:
    plan = authority.lending.plans.get(epoch)
    if epoch == at.epoch:
        pool = authority.lending.pool_of(known, authority.register, at)
        if pool is not None:
            pool.add(units, ready, at.now_ns)
    elif epoch > at.epoch and plan is not None and known.id in plan.named:
        plan.parts[known.id] = plan.parts.get(known.id, 0) + units


def _tell(authority: Authority, edge: EdgeSession, taken: list[KnownQuota], epoch: int) -> list[Command]:
    """Tell allocators what the edge kept: the next epoch is divided before this one is reported."""
    wanted = [known for known in taken if known.for_leader]
    if not wanted:
        return []
    ids = np.array([known.id for known in wanted], np.uint32)
    kept = [authority.ledger.issued_to(epoch, edge.incarnation, known.id) for known in wanted]
    units = np.array(kept, np.uint64)
    return [
        Send(
            peer.session,
            Demand(edge.incarnation, epoch, peer.declared.names_for(ids, authority.table), ids, units, early=True),
        )
        for peer in authority.allocators.values()
    ]
