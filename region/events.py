"""What happens to the authority, and what it wants done: the border between its pure core and the shell around it.

Every instant is store time. Commands are performed in the order given; each store command is answered by the event
of the same `request` number, exactly once, with None where the store failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from apportion.core.allocator_messages import FromAllocator, ToAllocator
from apportion.core.messages import FromEdge, Register, Rules, ToEdge
from apportion.core.rule import RuleSet
from apportion.region.store import Anchor, Charges, ChargesAnswer, RollupRow

# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EdgeSpoke:
    """A message came in on an edge's stream; `session` numbers the stream, never used again for another."""

    session: int
    message: FromEdge


@dataclass(frozen=True, slots=True)
class AllocatorSpoke:
    """A message came in on an allocator's stream."""

    session: int
    message: FromAllocator


@dataclass(frozen=True, slots=True)
class Closed:
    """A stream ended, for whatever reason."""

    session: int


@dataclass(frozen=True, slots=True)
class Polled:
    """Time passed."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """Answer to Consume; None: the store failed and whether anything was charged is unknown."""

    request: int
    answers: tuple[ChargesAnswer, ...] | None


@dataclass(frozen=True, slots=True)
class Swapped:
    """Answer to SwapRegister: whether it took effect and the register as it is now; None: the store failed."""

    request: int
    done: bool
    register: Register | None


@dataclass(frozen=True, slots=True)
class RolledUp:
    """Answer to RollUp: whether the rows are in the store now, and whether they were new to it."""

    request: int
    done: bool
    new: bool = True


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Other rules are in force from now on; `ruleset` is what `rules` says."""

    rules: Rules
    ruleset: RuleSet


Event = EdgeSpoke | AllocatorSpoke | Closed | Polled | Consumed | Swapped | RolledUp | RulesChanged

# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Send on that stream."""

    session: int
    message: ToEdge | ToAllocator


@dataclass(frozen=True, slots=True)
class Close:
    """End that stream, after what was sent on it."""

    session: int


@dataclass(frozen=True, slots=True)
class Consume:
    """Have the store decide."""

    request: int
    groups: tuple[Charges, ...]
    anchor: Anchor


@dataclass(frozen=True, slots=True)
class SwapRegister:
    """Compare-and-set the register."""

    request: int
    old: Register
    new: Register


@dataclass(frozen=True, slots=True)
class RollUp:
    """Add a report's rows to the rollup."""

    request: int
    source: int
    number: int
    rows: tuple[RollupRow, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Something to log: `event` in the past tense, `level` "info", "warning" or "error"."""

    level: str
    event: str
    fields: tuple[tuple[str, object], ...] = ()


Command = Send | Close | Consume | SwapRegister | RollUp | Note
