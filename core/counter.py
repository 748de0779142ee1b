"""What is counted of a period quota (algorithms 3): an allowance used up within one period, or within any window. Pure.

Time is that of the store, in nanoseconds, and never goes back for a counter: one that is asked about an earlier time
answers as of the latest that it has seen.
"""

from __future__ import annotations

from collections import deque

from apportion.core.limit import EPOCH_NS, ceil_div

GRACE_MAX_NS = 60 * EPOCH_NS
"""A calendar counter outlives its period by at most this, and at most the period's length: half of it for clocks that
step back, the rest to spread what is reclaimed.
"""

PARTS = 120
"""A rolling window is counted in so many parts, the oldest counted whole: a unit leaves at most one part late, and at
least 120/121 of the allowance can be used at an even rate.
"""


class Count:
    """The count of one period, from `start_ns` until before `end_ns`: of a calendar, or begun by a first use."""

    __slots__ = ("end_ns", "start_ns", "used")

    def __init__(self, start_ns: int, end_ns: int, used: int = 0) -> None:
        assert start_ns < end_ns and used >= 0
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.used = used

    def begin(self, now_ns: int) -> int:
        """Units used at `now_ns`, which is before the period's end."""
        return self.used

    def charge(self, units: int) -> None:
        """Count units that fit at the instant of the last `begin`."""
        self.used += units

    def give_back(self, units: int) -> None:
        """Take back units that were charged and not used."""
        self.used = max(0, self.used - units)

    def wait_ns(self, allowance: int, cost: int, now_ns: int) -> int | None:
        """Nanoseconds until `cost` fits: 0 now, the period's end where it is used up, None where it never does."""
        if cost > allowance:
            return None
        return 0 if self.used + cost <= allowance else max(0, self.end_ns - now_ns)

    @property
    def over_ns(self) -> int:
        """When nothing of it counts any more."""
        return self.end_ns

    def reset_ns(self, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole."""
        return max(0, self.end_ns - now_ns)


class Ring:
    """The count of the last `PARTS` parts of a rolling window, and of the one under way.

    The window of any instant reaches back no further than the first of them, so no window of the length admits more
    than their sum. `parts`: number and units of those with any, the oldest first.
    """

    __slots__ = ("last", "part_ns", "parts", "used")

    def __init__(self, length_ns: int, now_ns: int) -> None:
        self.part_ns = ceil_div(length_ns, PARTS)
        self.last = now_ns // self.part_ns
        self.parts: deque[tuple[int, int]] = deque()
        self.used = 0

    def begin(self, now_ns: int) -> int:
        """Units that count at `now_ns`: what was used before its window is forgotten."""
        self.last = max(self.last, now_ns // self.part_ns)
        oldest = self.last - PARTS
        while self.parts and self.parts[0][0] < oldest:
            self.used -= self.parts.popleft()[1]
        return self.used

    def charge(self, units: int) -> None:
        """Count units that fit at the instant of the last `begin`."""
        before = self.parts.pop()[1] if self.parts and self.parts[-1][0] == self.last else 0
        if before + units:
            self.parts.append((self.last, before + units))
        self.used += units

    def wait_ns(self, allowance: int, cost: int, now_ns: int) -> int | None:
        """Nanoseconds until `cost` fits: 0 now, else when enough has left the window; None where it never does."""
        if cost > allowance:
            return None
        left = self.used + cost - allowance
        if left <= 0:
            return 0
        for part, units in self.parts:
            left -= units
            if left <= 0:
                return max(0, self._leaves_ns(part) - now_ns)
        raise AssertionError("the parts sum up to what is used")

    @property
    def over_ns(self) -> int:
        """When nothing of it counts any more: at the end of the last window that has its newest charge."""
        return self._leaves_ns(self.parts[-1][0]) if self.parts else 0

    def reset_ns(self, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole."""
        return max(0, self.over_ns - now_ns)

    def _leaves_ns(self, part: int) -> int:
        """When what was used in that part no longer counts."""
        return (part + PARTS + 1) * self.part_ns


Counter = Count | Ring
