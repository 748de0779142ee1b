"""Buckets of undivided quotas that fill slower while silent edges may still spend of them (design 4.1). Pure.

A plan names by how many units an epoch. A bucket drains at the rate it was last told, so each is told when the amount
changes, by a question that charges nothing; one that is not told again goes on slower than it must, never faster.
"""

from __future__ import annotations

from apportion.core.messages import Register
from apportion.region.events import Consume
from apportion.region.lending import Lending
from apportion.region.plans import HeldPlan
from apportion.region.store import Anchor, Charge, Charges

TELLING = 0
"""Number of the questions to the store that only tell buckets their rate; crossings are numbered from 1."""


def tell(lending: Lending, plan: HeldPlan | None, register: Register) -> list[Consume]:
    """What the store must be told at the start of the plan's epoch, or when the plan comes later."""
    if plan is None:
        return []
    former = lending.plans.get(plan.epoch - 1)
    before = former.slowed if former else {}
    groups = []
    for identity, units in plan.slowed.items():
        known = lending.table.by_id(identity)
        if known is not None and units != before.get(identity, 0):
            limit = lending.limit_of(known, plan.epoch)
            groups.append(Charges(1, (Charge(known.store_key, limit, 0),), peek=True))
    return [Consume(TELLING, tuple(groups), Anchor(register.anchor_epoch, register.anchor_ns))] if groups else []
