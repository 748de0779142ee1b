"""Where crossings are taken in and answered: those under way, and the books kept of what they issued. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from apportion.core.messages import Acquire, AcquireAnswer, Lent, Register, Tick
from apportion.core.value import value
from apportion.region.crossing import Instant, Routed, answer, reserve, store_charges
from apportion.region.events import Consume, Consumed
from apportion.region.lending import Lending
from apportion.region.plans import Ledger
from apportion.region.sessions import EdgeSession
from apportion.region.store import Anchor, Charges, ChargesAnswer


@dataclass(slots=True)
class Totals:
    """Counts of one rule since this replica started, as reported by edges: offered cost, units spent degraded and
    requests answered so, units refused above a threshold without asking; and crossings that asked for it.
    `degraded_epoch` and `failed_epoch`: when an edge last answered degraded, and the store last failed; -1: never.
    """

    offered: int = 0
    crossings: int = 0
    degraded: int = 0
    degraded_requests: int = 0
    refused_at_edge: int = 0
    degraded_epoch: int = -1
    failed_epoch: int = -1


@value
class Crossing:
    """A crossing taken in; `routed` in the order of its groups."""

    edge: EdgeSession
    number: int
    routed: tuple[Routed, ...]
    lent: tuple[Lent, ...]
    at: Instant


class Desk:
    """Takes crossings in, hands to the store what it must decide, and answers."""

    def __init__(self, lending: Lending, ledger: Ledger) -> None:
        self.totals: dict[tuple[str, str], Totals] = defaultdict(Totals)
        self._lending = lending
        self._ledger = ledger
        self._requests = 0
        self._under_way: dict[int, Crossing] = {}

    def take_in(self, edge: EdgeSession, message: Acquire, register: Register, at: Instant) -> Consume:
        """Route a crossing. Returns what the store must decide; without groups where it need not be asked at all."""
        routed: list[Routed] = []
        charges: list[Charges] = []
        rules: set[tuple[str, str]] = set()
        for group in message.groups:
            routes = []
            for member in group.members:
                quota = edge.names.get(member.quota)
                if quota is not None:
                    rules.add((quota.domain, quota.rule))
                routes.append(self._lending.route(member, quota, register, at))
            each = reserve(group, tuple(routes), at)
            wanted = store_charges(each)
            if wanted is not None:
                each.in_store = len(charges)
                charges.append(wanted)
            routed.append(each)
        for rule in rules:
            self.totals[rule].crossings += 1
        lent = self._lend_ahead(edge, message, register, at) if message.ahead else ()
        self._requests += 1
        self._under_way[self._requests] = Crossing(edge, message.number, tuple(routed), lent, at)
        anchor = Anchor(register.anchor_epoch, register.anchor_ns)
        return Consume(self._requests, tuple(charges), anchor)

    def finish(self, event: Consumed, tick: Tick) -> tuple[EdgeSession, AcquireAnswer]:
        """The store decided, or failed: the answer to the crossing, and whose it is."""
        crossing = self._under_way.pop(event.request)
        answers: tuple[ChargesAnswer, ...] = event.answers or ()
        groups = []
        for each in crossing.routed:
            from_store = answers[each.in_store] if each.in_store is not None and answers else None
            reply, charged = answer(each, from_store, event.answers is None)
            groups.append(reply)
            for route in each.routes:
                if route.known is None:
                    continue
                if event.answers is None:
                    quota = route.known.quota
                    self.totals[quota.domain, quota.rule].failed_epoch = tick.epoch
                if charged and route.pool is not None:
                    units = charged * route.member.cost
                    self._ledger.issue(crossing.at.epoch, crossing.edge.incarnation, route.known.id, units)
        return crossing.edge, AcquireAnswer(crossing.number, tick, tuple(groups), crossing.lent)

    def _lend_ahead(self, edge: EdgeSession, message: Acquire, register: Register, at: Instant) -> tuple[Lent, ...]:
        lent = []
        for identity, wanted in message.ahead:
            quota = edge.names.get(identity)
            known = self._lending.table.find(quota, at.epoch) if quota is not None else None
            pool = self._lending.pool_of(known, register, at) if known is not None else None
            if known is None or pool is None:
                continue
            units = min(wanted, pool.available(at.now_ns))
            if units > 0:
                pool.take(units)
                self._ledger.issue(at.epoch, edge.incarnation, known.id, units)
                lent.append(Lent(identity, at.epoch, units))
        return tuple(lent)
