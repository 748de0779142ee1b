"""What happens to the authority, and what it wants done: the border between its pure core and the shell around it.

Every instant is store time. Commands are performed in the order given; each store command is answered by the event
of the same `request` number, exactly once, with None where the store failed.
"""

from __future__ import annotations

from apportion.core.allocator_messages import FromAllocator, ToAllocator
from apportion.core.messages import FromEdge, Register, Rules, ToEdge
from apportion.core.rule import RuleSet
from apportion.core.value import value
from apportion.region.store import Anchor, Charges, ChargesAnswer, RollupRow

# --- events ---------------------------------------------------------------------------------------------------------


@value
class EdgeSpoke:
    """A message came in on an edge's stream; `session` numbers the stream, never used again for another."""

    session: int
    message: FromEdge


@value
class AllocatorSpoke:
    """A message came in on an allocator's stream."""

    session: int
    message: FromAllocator


@value
class Closed:
    """A stream ended, for whatever reason."""

    session: int


@value
class Polled:
    """Time passed."""


@value
class Consumed:
    """Answer to Consume; None: the store failed and whether anything was charged is unknown."""

    request: int
    answers: tuple[ChargesAnswer, ...] | None


@value
class Swapped:
    """Answer to SwapRegister: whether it took effect and the register as it is now; None: the store failed."""

    request: int
    done: bool
    register: Register | None


@value
class RolledUp:
    """Answer to RollUp: whether the rows are in the store now, and whether they were new to it."""

    request: int
    done: bool
    new: bool = True


@value
class RulesChanged:
    """Other rules are in force from now on; `ruleset` is what `rules` says."""

    rules: Rules
    ruleset: RuleSet


Event = EdgeSpoke | AllocatorSpoke | Closed | Polled | Consumed | Swapped | RolledUp | RulesChanged

# --- commands -------------------------------------------------------------------------------------------------------


@value
class Send:
    """Send on that stream."""

    session: int
    message: ToEdge | ToAllocator


@value
class Close:
    """End that stream, after what was sent on it."""

    session: int


@value
class Consume:
    """Have the store decide."""

    request: int
    groups: tuple[Charges, ...]
    anchor: Anchor


@value
class SwapRegister:
    """Compare-and-set the register."""

    request: int
    old: Register
    new: Register


@value
class RollUp:
    """Add a report's rows to the rollup."""

    request: int
    source: int
    number: int
    rows: tuple[RollupRow, ...]


@value
class Note:
    """Something to log: `event` in the past tense, `level` "info", "warning" or "error"."""

    level: str
    event: str
    fields: tuple[tuple[str, object], ...] = ()


Command = Send | Close | Consume | SwapRegister | RollUp | Note
