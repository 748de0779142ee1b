"""The exact integer bucket (algorithms 3): a backlog in unit-ticks that only time drains.

State is (backlog, last). `backlog` is what was admitted and has not drained yet, at least 0, in units x period ticks;
`last` is the tick of the latest decision and only moves forward: a clock that steps back neither refills nor starves.
Never a float, never a theoretical arrival time: a rate can change without touching the state.
"""

from __future__ import annotations

from apportion.core.limit import RateLimit, ceil_div


class Bucket:
    """One bucket of a limit. Starts full of tokens (backlog 0) unless `backlog` says otherwise.

    Ticks are `now_ns // limit.tick_ns`, of one clock for the life of the bucket.
    """

    __slots__ = ("backlog", "capacity", "last", "limit", "period", "tick_ns", "units")

    def __init__(self, limit: RateLimit, now_ns: int, backlog: int = 0) -> None:
        self.limit = limit
        self.units = limit.units
        self.period = limit.period_ticks
        self.tick_ns = limit.tick_ns
        self.capacity = limit.burst * self.period
        self.backlog = backlog
        self.last = now_ns // self.tick_ns

    def drain(self, now_ns: int) -> int:
        """Let the time until now drain the backlog; returns what is left, in unit-ticks."""
        tick = now_ns // self.tick_ns
        elapsed = tick - self.last
        if elapsed > 0:
            left = self.backlog - self.units * elapsed
            self.backlog = left if left > 0 else 0
            self.last = tick
        return self.backlog

    def admits(self, cost: int, now_ns: int) -> bool:
        """Whether `cost` units fit now. Charges nothing."""
        return self.drain(now_ns) + cost * self.period <= self.capacity

    def charge(self, cost: int) -> None:
        """Add `cost` units to the backlog; call only after `admits` said yes at the same instant."""
        self.backlog += cost * self.period

    def refund(self, cost: int) -> None:
        """Take back a charge of `cost` units that was not used; never below empty."""
        self.backlog = max(0, self.backlog - cost * self.period)

    def remaining(self) -> int:
        """Whole units that fit at the instant of the last `drain`."""
        return max(0, (self.capacity - self.backlog) // self.period)

    def retry_after_ns(self, cost: int) -> int | None:
        """Nanoseconds from the last `drain` until `cost` fits; 0 when it fits now, None when it never will."""
        return retry_after_ns(self.limit, self.backlog, cost)

    def reset_after_ns(self) -> int:
        """Nanoseconds from the last `drain` until the bucket is full again; 0 for a rate of 0."""
        return ceil_div(self.backlog, self.units) * self.tick_ns if self.units else 0


def retry_after_ns(limit: RateLimit, backlog: int, cost: int) -> int | None:
    """Nanoseconds until `cost` units fit behind `backlog` unit-ticks; 0 = now; None = never (design 7: no promise)."""
    if cost > limit.burst:
        return None
    excess = backlog + (cost - limit.burst) * limit.period_ticks
    if excess <= 0:
        return 0
    return ceil_div(excess, limit.units) * limit.tick_ns
