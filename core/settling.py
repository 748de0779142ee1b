"""The whole of a local decision over one table, for any state of keys and clocks: find, check, charge.

The engine's fast path does the same for most requests and leaves all others to this; both must agree to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from apportion.core.decision import Decision
from apportion.core.part import Part, PeriodPart
from apportion.core.table import Table
from apportion.core.verdicts import fits, verdict_of, verdict_without_room

SWEEP_EVERY_NS = 1_000_000
SWEEP_STEPS = 8
"""Buckets looked at in one sweep: with a call each millisecond, a million in about two minutes."""

SWEEP_STEPS_NEW = 2
"""Buckets looked at for each key without a bucket: the table is gone through before it has doubled."""


class Settling:
    """Decides over a table of its own. `keys_full` counts requests refused because there was no room in it."""

    __slots__ = ("keys_full", "sweep_at_ns", "table")

    def __init__(self, keys_max: int) -> None:
        self.keys_full = 0
        self.sweep_at_ns = 0
        self.table = Table(keys_max)

    def sweep(self, now_ns: int, steps: int = SWEEP_STEPS) -> None:
        """Look at up to `steps` buckets and drop the drained ones."""
        self.sweep_at_ns = now_ns + SWEEP_EVERY_NS
        self.table.sweep(now_ns, steps)

    def settle(
        self, parts: Sequence[Part], costs: Sequence[int], now_ns: int, peek: bool, wall_ns: int = 0
    ) -> Decision:
        """Check all parts, then charge all of them or none; the verdicts are in their order. Period quotas need to know
        the wall clock, `wall_ns`.
        """
        if now_ns >= self.sweep_at_ns:
            self.sweep(now_ns)
        for part in parts:
            if isinstance(part, PeriodPart):
                assert wall_ns, "who has period quotas passes the wall clock"
                part.turn_to(self.table, now_ns, wall_ns)
        new = self._find(parts, costs, now_ns)
        held = [part.held(now_ns) for part in parts]
        allowed = all(map(fits, parts, costs, held))
        short = new[self.table.room :] if allowed else []
        if short:
            self.keys_full += 1
            allowed = False
        if allowed and not peek:
            for part, cost in zip(parts, costs, strict=True):
                if part in new:
                    part.begin(self.table, now_ns)
                if cost:
                    part.charge(cost)
        room_ns = self.table.room_after_ns(len(new), now_ns) if short else None
        verdicts = (
            verdict_without_room(part, cost, room_ns)
            if part in short
            else verdict_of(part, cost, units, allowed and not peek, part.late_ns(now_ns))
            for part, cost, units in zip(parts, costs, held, strict=True)
        )
        return Decision(allowed, tuple(verdicts))

    def _find(self, parts: Sequence[Part], costs: Sequence[int], now_ns: int) -> list[Part]:
        """Let each part find its bucket as the table has it; returns those that need a new one, having swept for them.

        After this nothing may be swept until the charge, or it would go to a bucket that is no longer in the table.
        """
        new = _new_parts(parts, costs)
        if new:
            self.table.sweep(now_ns, SWEEP_STEPS_NEW * len(new))
            self.table.make_room(len(parts), now_ns)
            new = _new_parts(parts, costs)
        return new


def _new_parts(parts: Sequence[Part], costs: Sequence[int]) -> list[Part]:
    """The parts of which a charge needs a bucket that is not there. A limit of 0 admits none, so it never has one."""
    return [part for part, cost in zip(parts, costs, strict=True) if not part.find() and cost and part.units]
