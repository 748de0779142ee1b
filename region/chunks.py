"""Chunks of a period's allowance that edges are lent ahead (design 4.2): how much each may have, and which are open.

A chunk is charged in the store when it is lent, so nothing here decides whether an allowance is kept; a replica that
has just started knows of no open chunk, and loses nothing but what it could tell. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apportion.core.limit import EPOCH_NS, PeriodLimit
from apportion.core.messages import Lent
from apportion.core.periods import period_name
from apportion.core.value import value
from apportion.region.quotas import KnownQuota
from apportion.region.store import Charge, ChargedPeriod, Charges, ChargesAnswer

LASTS_NS = 10 * EPOCH_NS
"""A chunk may be spent for so long, at most until its period ends. An edge that did not ask for longer has none."""

TOLD_NS = 3 * EPOCH_NS
"""What is left of a chunk comes back, or is told to be spent, within so much of its end; later it never does."""


@dataclass(slots=True)
class Open:
    """What one edge was lent of a quota and has not told to be spent or given back; `until_ns` in the store's time."""

    units: int
    until_ns: int


@dataclass(slots=True)
class _Asked:
    """Edges by incarnation: when each last asked for the quota, and what each has open."""

    at_ns: dict[int, int] = field(default_factory=dict)
    open: dict[int, Open] = field(default_factory=dict)


@value
class Wanted:
    """A chunk that was asked for: the edge's id of the quota, and its place in the store's batch."""

    identity: int
    known: KnownQuota
    in_store: int


class Chunks:
    """Of each leased period quota, by its id: who asks for it, and what is open."""

    def __init__(self) -> None:
        self._quotas: dict[int, _Asked] = {}

    def asked(self, known: KnownQuota, incarnation: int, now_ns: int) -> None:
        """An edge asked for the quota."""
        quota = self._quotas.get(known.id)
        if quota is None:
            quota = self._quotas[known.id] = _Asked()
        quota.at_ns[incarnation] = now_ns

    def gone(self, incarnation: int) -> None:
        """An edge is not attached any more: no part of what is left is kept for it. What it has open stays so."""
        for quota in self._quotas.values():
            quota.at_ns.pop(incarnation, None)

    def forget(self, identity: int) -> None:
        """That id will mean another quota."""
        self._quotas.pop(identity, None)

    def active(self, known: KnownQuota, now_ns: int) -> int:
        """Edges that asked for the quota within the life of a chunk, at least 1."""
        quota = self._quotas.get(known.id)
        if quota is None:
            return 1
        for incarnation in [each for each, at_ns in quota.at_ns.items() if now_ns - at_ns > LASTS_NS]:
            del quota.at_ns[incarnation]
        return max(len(quota.at_ns), 1)

    def charge(self, known: KnownQuota, wanted: int, incarnation: int, now_ns: int) -> Charges:
        """What the store is to lend: of what is left, half of this edge's part at most, lest a few edges hold all."""
        self.asked(known, incarnation, now_ns)
        members = (Charge(known.store_key, known.limit, 1),)
        return Charges(wanted, members, lent_over=2 * self.active(known, now_ns))

    def lend(self, wanted: Wanted, answer: ChargesAnswer, incarnation: int, now_ns: int) -> Lent | None:
        """The chunk that the store has charged; None where nothing was left."""
        (charged,) = answer.members
        known, limit, units = wanted.known, wanted.known.limit, answer.admitted
        assert isinstance(charged, ChargedPeriod) and isinstance(limit, PeriodLimit)
        lasts_ns = min(LASTS_NS, charged.reset_ns)
        if not units or not lasts_ns:
            return None
        held = self._quotas.setdefault(known.id, _Asked()).open
        before = held.get(incarnation)
        left = before.units if before is not None and now_ns < before.until_ns + TOLD_NS else 0
        held[incarnation] = Open(left + units, now_ns + lasts_ns)
        period = period_name(charged.start_ns // EPOCH_NS, limit.multiple, limit.unit)
        return Lent(wanted.identity, charged.epoch, units, lasts_ns, period)

    def settle(self, identity: int, incarnation: int, units: int) -> None:
        """An edge has spent or given back so many units."""
        quota = self._quotas.get(identity)
        found = quota.open.get(incarnation) if quota is not None else None
        if quota is None or found is None:
            return
        found.units -= units
        if found.units <= 0:
            del quota.open[incarnation]

    def open(self, identity: int, now_ns: int) -> dict[int, int]:
        """Units that edges may still spend of the quota, or have spent and not told, by incarnation."""
        quota = self._quotas.get(identity)
        if quota is None:
            return {}
        for incarnation in [each for each, held in quota.open.items() if now_ns >= held.until_ns + TOLD_NS]:
            del quota.open[incarnation]
        return {incarnation: held.units for incarnation, held in quota.open.items()}
