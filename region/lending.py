"""Who may lend a quota under which label (design 5.5, 5.6): the one place where a replica decides pool, store or no
answer.
"""

from __future__ import annotations

from apportion.core.budget import Budget
from apportion.core.limit import Finite
from apportion.core.messages import EpochKind, Member, Outcome, Quota, Register
from apportion.region.crossing import Instant, Route
from apportion.region.plans import HeldPlan
from apportion.region.quotas import KnownQuota, QuotaTable
from apportion.region.register import epoch_at, start_ns


class Lending:
    """Routes members of a crossing. `kept_through`: highest label that the register held when this region started; its
    store keeps label counters in memory, so nothing may be lent directly under those labels any more.
    """

    def __init__(self, table: QuotaTable, kept_through: int) -> None:
        self.table = table
        self.plans: dict[int, HeldPlan] = {}
        self.kept_through = kept_through

    def instant(self, register: Register, now_ns: int) -> Instant:
        """The epoch at store time `now_ns` and what is left of it."""
        epoch = epoch_at(register, now_ns)
        return Instant(now_ns, epoch, start_ns(register, epoch + 1) - now_ns)

    def route(self, member: Member, quota: Quota | None, register: Register, at: Instant) -> Route:
        """How `member` is decided at `at`; `quota` None: the peer never declared its id."""
        known = self.table.find(quota, at.epoch) if quota is not None else None
        if known is None:
            return Route(member, outcome=Outcome.UNKNOWN_QUOTA)
        if known.rule.local:  # nothing of it is decided here
            return Route(member, known, outcome=Outcome.UNKNOWN_QUOTA)
        if not known.rule.divided:
            return Route(member, known, limit=self.limit_of(known, at.epoch))
        mark = register.mark(at.epoch)
        plan = self.plans.get(at.epoch)
        if mark is None or mark.kind is EpochKind.VOID or (mark.kind is EpochKind.PLANNED and plan is None):
            return Route(member, known, outcome=Outcome.NO_PLAN)
        if plan is not None and known.id in plan.named:
            return Route(member, known, pool=self._pool(known, plan, register))
        if at.epoch <= self.kept_through:
            return Route(member, known, outcome=Outcome.NO_PLAN)
        return Route(member, known, direct_epoch=at.epoch)

    def limit_of(self, known: KnownQuota, epoch: int) -> Finite:
        """The limit that the quota's bucket has in `epoch`: slower by what silent edges may spend of it."""
        plan = self.plans.get(epoch)
        return known.slower(plan.slowed.get(known.id, 0)) if plan is not None and plan.slowed else known.limit

    def pool_of(self, known: KnownQuota, register: Register, at: Instant) -> Budget | None:
        """This replica's part of the quota's present epoch; None when it is not in a plan held here."""
        plan = self.plans.get(at.epoch) if known.rule.divided else None
        return self._pool(known, plan, register) if plan is not None and known.id in plan.named else None

    def _pool(self, known: KnownQuota, plan: HeldPlan, register: Register) -> Budget:
        # Begun when first asked for, but as of the epoch's start: a quota costs nothing in epochs in which nobody
        # borrows.
        began = start_ns(register, plan.epoch)
        if known.pool is None:
            known.pool = Budget(began)
        if known.pool.epoch != plan.epoch:
            part = plan.parts.get(known.id, 0)
            known.pool.begin(plan.epoch, part, known.rate.burst, known.rate.units_in_epoch(plan.epoch), began)
        return known.pool
