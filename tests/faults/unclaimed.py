"""The world without the claim: any allocator divides each epoch by itself, and the authority takes every plan.

It exists to show that the claim is what holds the sum: everything else is as in the product.
"""

from __future__ import annotations

from apportion.allocator.events import Command
from apportion.allocator.leader import CLAIM_AFTER_NS, Leader
from apportion.core.allocator_messages import Plan
from apportion.core.rules_file import parse_rules
from apportion.region import events as regional
from apportion.region.authority import Authority
from apportion.region.plans import hold_plan
from apportion.region.sessions import AllocatorSession


class UnclaimedLeader(Leader):
    """Divides the next epoch at half of each, whoever else does."""

    def _advance(self, now_ns: int) -> list[Command]:
        epoch = self._clock.now(now_ns)
        if self.register is None or epoch is None or not self._links.governed():
            return []
        self.generation = self._hello.incarnation % 2**53
        commands = self._clear_up(epoch) if epoch > self._epoch else []
        if now_ns >= self._clock.start_ns(epoch) + CLAIM_AFTER_NS and self.divided <= epoch:
            commands += self._divide(epoch + 1, epoch)
        return commands

    def _see(self, register: object, now_ns: int) -> list[Command]:
        self.register = register  # type: ignore[assignment]
        return []


class AcceptingAuthority(Authority):
    """Takes the plans of every allocator: the first gives the slices, each gives its pool."""

    def _plan(self, peer: AllocatorSession, plan: Plan, now_ns: int) -> list[regional.Command]:
        peer.learn(plan.names)
        held = hold_plan(plan, self.replica, peer.localizer(plan, self.table), self.table, self.versions.effective)
        if isinstance(held, str) or plan.epoch < self.epoch:
            return []
        former = self.lending.plans.get(plan.epoch)
        self.lending.plans[plan.epoch] = held
        self._issue(held)
        slices: list[regional.Command] = [self._slices(edge, plan.epoch) for edge in self.edges.values()]
        if former is not None:
            for identity, units in held.parts.items():
                former.parts[identity] = former.parts.get(identity, 0) + units
            former.named |= held.named
            self.lending.plans[plan.epoch] = former
        return slices


def unclaimed(name: str, incarnation: int) -> UnclaimedLeader:
    """An allocator that asks nobody."""
    return UnclaimedLeader(name, incarnation, parse_rules)
