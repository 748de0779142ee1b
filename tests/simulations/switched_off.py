"""The shipped cores with one protection switched off each, to show that a checker sees what it is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from apportion.core.allocator_messages import Plan
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Ids, Quota, Slices, Units
from apportion.edge.agent import Agent
from apportion.edge.events import Command
from apportion.edge.holding import Holding
from apportion.edge.holdings import Holdings
from apportion.edge.part import Part
from apportion.edge.requests import Requests
from apportion.region import events as regional
from apportion.region.authority import Authority
from apportion.region.plans import HeldPlan
from apportion.region.sessions import AllocatorSession


class AdmittedOnly(Agent):
    """Reports what it admitted for its demand: throttled, it seems to want no more than it has."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._requests = _Admitted(self.clock, self._holdings, self._reports, self.fallbacks)


class _Admitted(Requests):
    def _count_demand(self, parts: Sequence[Part], epoch: int) -> None:
        if not any(part.refused for part in parts):
            super()._count_demand(parts, epoch)


class Deltas(Authority):
    """Takes a plan for what its leader changed since the plan before: a new leader, which knows none, adds its first
    to what the former one left.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._left: HeldPlan | None = None

    def _plan(self, peer: AllocatorSession, plan: Plan, now_ns: int) -> list[regional.Command]:
        plans = self.lending.plans
        former = max(plans.values(), key=lambda each: each.epoch, default=None)
        commands = super()._plan(peer, plan, now_ns)
        if former is not None and former.generation != plan.generation:
            self._left = former
        if self._left is None or plan.epoch not in plans:
            return commands
        for holder, column in self._left.columns.items():
            plans[plan.epoch].columns[holder] = _added(column, plans[plan.epoch].column(holder))
        kept: list[regional.Command] = [each for each in commands if not _gives(each)]
        return kept + [self._slices(edge, plan.epoch) for edge in self.edges.values()]


def _added(*columns: tuple[Ids, Units]) -> tuple[Ids, Units]:
    units: Counter[int] = Counter()
    for ids, given in columns:
        units.update(dict(zip(ids.tolist(), given.tolist(), strict=True)))
    return np.array([*units], np.uint32), np.array([*units.values()], np.uint64)


def _gives(command: regional.Command) -> bool:
    return isinstance(command, regional.Send) and isinstance(command.message, Slices)


EARLY_NS = 100_000_000
"""A grant ends that much before its instant, for clocks that are right but for a message's way."""


class ByWallClock(Agent):
    """Takes a slice for a grant that is good until an instant, which it judges by its own clock."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._grants: dict[int, dict[Quota, int]] = {}
        self._zero_ns: int | None = None  # when epoch 0 began, as the clock showed it at first

    def _received(self, message: object, now_ns: int) -> list[Command]:
        commands = super()._received(message, now_ns)
        if isinstance(message, Slices) and message.generation:
            self._grants[message.epoch] = dict(self._holdings._slices.get(message.epoch, {}))
            self._zero_ns = self.clock.start_ns(0) if self._zero_ns is None else self._zero_ns
        return commands

    def _roll(self, now_ns: int) -> int | None:
        before, epoch = self._epoch, super()._roll(now_ns)
        if epoch is not None and epoch != before and self._zero_ns is not None:
            good: Counter[Quota] = Counter()
            for label, grant in self._grants.items():
                if label <= epoch and now_ns + EARLY_NS < self._zero_ns + (label + 1) * EPOCH_NS:
                    good.update(grant)
            self._holdings._slices[epoch] = dict(good)
        return epoch


class Unsmoothed(Agent):
    """Spends a slice as fast as it is asked to."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._holdings = _Deep(self.clock)
        self._requests = Requests(self.clock, self._holdings, self._reports, self.fallbacks)


class _Deep(Holdings):
    def _begin(self, holding: Holding, epoch: int) -> None:
        super()._begin(holding, epoch)
        if holding.budget is not None:
            holding.budget.depth = holding.budget.part
            holding.budget.level = holding.budget.part * EPOCH_NS


class NeverDirect(Authority):
    """Lends nothing of an epoch that nobody divided."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lending.kept_through = 2**63


class CountsTwice(Authority):
    """Takes every copy of a report for a new one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._numbers = count(1)

    def step(self, event: Any, now_ns: int) -> list[regional.Command]:
        commands = super().step(event, now_ns)
        return [
            replace(each, number=next(self._numbers)) if isinstance(each, regional.RollUp) else each
            for each in commands
        ]
