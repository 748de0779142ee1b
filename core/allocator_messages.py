"""What region and allocator say to each other, as plain values: see `core.messages`, whose rules hold here too."""

from __future__ import annotations

from dataclasses import field

from apportion.core.messages import Ids, QuotaName, Refused, Register, Rules, Tick, Units, no_ids, no_units
from apportion.core.value import value


@value
class AllocatorHello:
    """First message of an allocator."""

    allocator: str
    incarnation: int


@value
class Lead:
    """Take the lead: set generation to `generation` if the register still holds `generation` - 1."""

    generation: int


@value
class Claim:
    """Claim `epoch` for `generation`, before any slice of it is sent."""

    generation: int
    epoch: int


@value
class Column:
    """What one holder gets: an edge or a replica, by incarnation. `kept`: ids whose units an edge does not return
    early, because it is small and the quota overloaded (design 5.9).
    """

    holder: int
    ids: Ids
    units: Units
    kept: Ids = field(default_factory=no_ids)


@value
class Plan:
    """The division of `epoch`, complete. Sum over columns + `held_*` = Q_k for every divided quota that it names.
    `held_*`: what silent edges may still spend; `slowed_*` the same of undivided quotas, whose buckets fill less.
    """

    generation: int
    epoch: int
    rules_version: int
    names: tuple[QuotaName, ...]
    columns: tuple[Column, ...]
    held_ids: Ids = field(default_factory=no_ids)
    held: Units = field(default_factory=no_units)
    slowed_ids: Ids = field(default_factory=no_ids)
    slowed: Units = field(default_factory=no_units)


@value
class Holder:
    """An attached edge, or a replica (`replica` true), as the leader sees it."""

    incarnation: int
    name: str
    location: str
    replica: bool


@value
class Governance:
    """Region to allocator, on attaching and each second: time, register, rules version, who is attached to this
    replica.
    """

    tick: Tick
    register: Register
    replica: int
    holders: tuple[Holder, ...]
    rules_version: int


@value
class RegisterAnswer:
    """Outcome of a Lead or Claim: whether it took effect, and the register as it is now."""

    done: bool
    register: Register


@value
class Demand:
    """One edge's report as the allocator needs it. `early`: the epoch is not over, `demand` is what the edge kept of
    these quotas when it returned the rest, and of others nothing is said.
    """

    holder: int
    epoch: int
    names: tuple[QuotaName, ...]
    ids: Ids
    demand: Units
    early: bool = False


@value
class Remembered:
    """What a replica remembers of the edge with that id: its last slices, and its last sign of life.

    `reported_epoch` is that of its latest report (before the first: the one before it attached), `gone_epoch` the one
    in which its stream ended, None while it is open. `left`: in good order, so it spends nothing more.
    """

    edge: str
    incarnation: int
    reported_epoch: int
    gone_epoch: int | None
    left: bool
    names: tuple[QuotaName, ...] = ()
    ids: Ids = field(default_factory=no_ids)
    units: Units = field(default_factory=no_units)


FromAllocator = AllocatorHello | Lead | Claim | Plan
ToAllocator = Rules | Governance | RegisterAnswer | Demand | Remembered | Refused
