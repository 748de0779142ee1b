"""One crossing at the region: which part of each group a pool decides, which the store, and the answer to both
together.

A group is all or nothing (design 4): pool units are reserved first, because they are in memory; the store then
charges at most as many requests as the pools could serve; what the store did not admit goes back to the pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apportion.core.bucket import retry_after_ns
from apportion.core.budget import Budget
from apportion.core.limit import EPOCH_NS, Finite, RateLimit
from apportion.core.messages import Group, GroupAnswer, Member, MemberAnswer, Outcome
from apportion.core.value import value
from apportion.region.quotas import KnownQuota
from apportion.region.store import Charge, Charged, ChargedPeriod, Charges, ChargesAnswer

ADMITTED, OVER_LIMIT = Outcome.ADMITTED, Outcome.OVER_LIMIT  # reading a member of an enum takes as long as a call

QUARTER_NS = EPOCH_NS // 4
"""EXHAUSTED holds until the next quarter of the epoch at most: few fruitless crossings per quota, edge and epoch."""

WORTH_ASKING_NS = EPOCH_NS // 20
"""A level that was empty is worth another question once it has what the whole limit gives in so long."""


@value
class Instant:
    """Store time of a decision: the epoch it falls in, and the nanoseconds that epoch still lasts."""

    now_ns: int
    epoch: int
    left_ns: int

    @property
    def quarter_left_ns(self) -> int:
        """Nanoseconds until the next quarter of the epoch."""
        return self.left_ns % QUARTER_NS or QUARTER_NS


@value
class Route:
    """How one member is decided: by `pool` (this replica's part), by the store (`direct_epoch` set where the quota is
    lent directly), or not at all (`outcome` set). `limit`: of a bucket that fills slower now; None = the quota's own.
    """

    member: Member
    known: KnownQuota | None = None
    pool: Budget | None = None
    direct_epoch: int | None = None
    outcome: Outcome | None = None
    limit: Finite | None = None


@dataclass(slots=True)
class Routed:
    """A group on its way: its routes, how many requests the pools reserved, and its place in the store's batch (or
    None). `answered`: each member has an answer, so the group can be decided. `pools`: those that it draws on, with the
    cost of one request.
    """

    group: Group
    routes: tuple[Route, ...]
    at: Instant
    answered: bool
    pools: Sequence[tuple[Budget, int]]
    reserved: int = 0
    in_store: int | None = None


def reserve(group: Group, routes: tuple[Route, ...], at: Instant) -> Routed:
    """Reserve pool units for as many of the group's requests as fit; nothing for a peek or where a member has no
    answer.
    """
    answered, pools = True, False
    for route in routes:
        if route.outcome is not None:
            answered = False
        elif route.pool is not None:
            pools = True
    routed = Routed(group, routes, at, answered, _pool_costs(routes) if pools else ())
    if answered:
        fit = group.count
        for budget, cost in routed.pools:
            if cost:
                budget.deepen(cost)
                fit = min(fit, budget.available(at.now_ns) // cost)
        routed.reserved = fit
    if not group.peek:
        for budget, cost in routed.pools:
            budget.take(routed.reserved * cost)
    return routed


def store_charges(routed: Routed) -> Charges | None:
    """What the store must decide of the group; None when nothing. Where the pools refuse it is only asked how it
    stands.
    """
    if not routed.answered:
        return None
    members = [
        Charge(route.known.store_key, route.limit or route.known.limit, route.member.cost, route.direct_epoch)
        for route in routed.routes
        if route.pool is None and route.known is not None
    ]
    if not members:
        return None
    return Charges(max(routed.reserved, 1), tuple(members), routed.group.peek or routed.reserved == 0)


def answer(routed: Routed, from_store: ChargesAnswer | None, store_failed: bool) -> tuple[GroupAnswer, int]:
    """The group's answer, and how many of its requests were admitted and charged; unused reservations go back."""
    admitted = routed.reserved
    if routed.in_store is not None:
        admitted = min(admitted, from_store.admitted) if from_store else 0
    if not routed.group.peek and admitted < routed.reserved:
        for budget, cost in routed.pools:
            budget.put_back(routed.at.epoch, (routed.reserved - admitted) * cost)
    charged = iter(from_store.members if from_store else ())
    members = tuple([_member(route, routed, admitted, charged, store_failed) for route in routed.routes])
    return GroupAnswer(admitted, members), 0 if routed.group.peek else admitted


def _member(
    route: Route, routed: Routed, admitted: int, charged: Iterator[Charged | ChargedPeriod], store_failed: bool
) -> MemberAnswer:
    at = routed.at
    if route.outcome is not None:
        return MemberAnswer(route.outcome, at.epoch, 0, 0)
    assert route.known is not None
    if route.pool is not None:
        return _from_pool(route, routed, admitted)
    if store_failed:
        return MemberAnswer(Outcome.UNAVAILABLE, at.epoch, 0, 0)
    state = next(charged, None)
    if state is None:  # a member beside it has no answer, so the store was not asked
        return MemberAnswer(Outcome.NO_PLAN, at.epoch, 0, 0)
    return _of_period(route, state) if isinstance(state, ChargedPeriod) else _from_store(route, state, at)


def _from_pool(route: Route, routed: Routed, admitted: int) -> MemberAnswer:
    pool, cost, at = route.pool, route.member.cost, routed.at
    assert pool is not None
    left = pool.available(at.now_ns) if pool.epoch == at.epoch else 0
    if admitted == routed.group.count or left >= cost:
        return MemberAnswer(ADMITTED, at.epoch, left, 0, store=False)
    # Once the part is spent nothing comes before the next epoch; until then its level fills and is worth another
    # question: each quarter of the epoch, or as soon as a part that is large has filled by what the limit gives in
    # WORTH_ASKING_NS. A caller that obeys must find it filled.
    wait = at.left_ns if pool.units < cost else min(at.quarter_left_ns, _worth_asking_ns(route.known, pool, at))
    wait = max(wait, pool.fills_in_ns(cost, at.now_ns) or 0) if pool.part else wait
    return MemberAnswer(OVER_LIMIT, at.epoch, left, wait, store=False)


def _worth_asking_ns(known: KnownQuota | None, pool: Budget, at: Instant) -> int:
    assert known is not None and isinstance(known.limit, RateLimit)
    return WORTH_ASKING_NS * known.limit.units_in_epoch(at.epoch) // max(pool.rate, 1)


def _from_store(route: Route, state: Charged, at: Instant) -> MemberAnswer:
    assert route.known is not None
    limit, cost = route.limit or route.known.limit, route.member.cost
    assert isinstance(limit, RateLimit)
    if state.wrong_epoch:
        return MemberAnswer(Outcome.NO_PLAN, state.epoch, 0, 0)
    remaining = max(0, limit.burst * limit.period_ticks - state.backlog) // limit.period_ticks
    wait = retry_after_ns(limit, state.backlog, cost)
    if state.label_units is not None:
        remaining = min(remaining, state.label_units)
        if wait is not None and state.label_units < cost:
            wait = max(wait, at.left_ns)
    if state.fits:
        return MemberAnswer(ADMITTED, state.epoch, remaining, wait, state.backlog)
    outcome = Outcome.IMPOSSIBLE if wait is None else OVER_LIMIT
    return MemberAnswer(outcome, state.epoch, remaining, wait, state.backlog)


def _of_period(route: Route, state: ChargedPeriod) -> MemberAnswer:
    """What was used of an allowance, and when it resets: only the store's clock says in which period this was."""
    assert route.known is not None
    remaining = max(0, route.known.limit.units - state.used)
    outcome = Outcome.ADMITTED
    if not state.fits:
        outcome = Outcome.IMPOSSIBLE if state.wait_ns is None else Outcome.OVER_LIMIT
    return MemberAnswer(outcome, state.epoch, remaining, state.wait_ns, reset_ns=state.reset_ns)


def _pool_costs(routes: tuple[Route, ...]) -> list[tuple[Budget, int]]:
    """Each pool that the routes draw on, with the cost of one request summed over the members that share it."""
    costs: dict[int, tuple[Budget, int]] = {}
    for route in routes:
        if route.pool is not None and route.outcome is None:
            budget, cost = costs.get(id(route.pool), (route.pool, 0))
            costs[id(route.pool)] = (budget, cost + route.member.cost)
    return list(costs.values())
