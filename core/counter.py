"""What is counted of a period quota (algorithms 3): an allowance used up within one period, or within any window. Pure.

Time is that of the store, in nanoseconds, and never goes back for a counter: one that is asked about an earlier time
answers as of the latest that it has seen.
"""

from __future__ import annotations

from apportion.core.limit import ceil_div

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
    than their sum. `parts[i]` is the count of part number `last - i`.
    """

    __slots__ = ("last", "part_ns", "parts", "used")

    def __init__(self, length_ns: int, now_ns: int) -> None:
        self.part_ns = ceil_div(length_ns, PARTS)
        self.last = now_ns // self.part_ns
        self.parts = [0] * (PARTS + 1)
        self.used = 0

    def begin(self, now_ns: int) -> int:
        """Units that count at `now_ns`: what was used before its window is forgotten."""
        part = now_ns // self.part_ns
        passed = part - self.last
        if passed > 0:
            if self.used:
                self.parts = ([0] * min(passed, PARTS + 1) + self.parts)[: PARTS + 1]
                self.used = sum(self.parts)
            self.last = part
        return self.used

    def charge(self, units: int) -> None:
        """Count units that fit at the instant of the last `begin`."""
        self.parts[0] += units
        self.used += units

    def wait_ns(self, allowance: int, cost: int, now_ns: int) -> int | None:
        """Nanoseconds until `cost` fits: 0 now, else when enough has left the window; None where it never does."""
        if cost > allowance:
            return None
        left = self.used + cost - allowance
        if left <= 0:
            return 0
        for back in range(PARTS, -1, -1):
            left -= self.parts[back]
            if left <= 0:
                return max(0, self._leaves_ns(back) - now_ns)
        raise AssertionError("the parts sum up to what is used")

    @property
    def over_ns(self) -> int:
        """When nothing of it counts any more: at the end of the last window that has its newest charge."""
        newest = next((back for back, units in enumerate(self.parts) if units), None)
        return 0 if newest is None else self._leaves_ns(newest)

    def reset_ns(self, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole."""
        return max(0, self.over_ns - now_ns)

    def _leaves_ns(self, back: int) -> int:
        """When part number `last - back` no longer counts."""
        return (self.last - back + PARTS + 1) * self.part_ns


Counter = Count | Ring
