"""Which edge reports were added: a set of numbers by source, small because reports are numbered in a row. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict

REPORTS_KEPT_NS = 2 * 3600 * 1_000_000_000
"""A source's numbers are remembered this long after its last report; an edge gives up resending long before an hour."""

RANGES_MAX = 256
"""Gaps kept in a source's numbers. Above it the lowest counts as seen: a late report is lost, never added twice."""


class Numbers:
    """A set of integers, kept as ranges that neither touch nor overlap, ascending: [first, last, first, last, ...]."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: list[int] | None = None) -> None:
        self.ranges = ranges if ranges is not None else []

    def add(self, number: int) -> bool:
        """Add `number`; False if it was there."""
        ranges = self.ranges
        at = bisect_right(ranges, number)
        if at % 2 or (at and ranges[at - 1] == number):
            return False
        joins_left = at > 0 and ranges[at - 1] == number - 1
        joins_right = at < len(ranges) and ranges[at] == number + 1
        if joins_left and joins_right:
            del ranges[at - 1 : at + 1]
        elif joins_left:
            ranges[at - 1] = number
        elif joins_right:
            ranges[at] = number
        else:
            ranges[at:at] = [number, number]
        if len(ranges) > 2 * RANGES_MAX:
            del ranges[1:3]
        return True


class Reports:
    """The numbers of each source (an edge's incarnation), forgotten REPORTS_KEPT_NS after the source's last report."""

    __slots__ = ("_sources",)

    def __init__(self) -> None:
        self._sources: OrderedDict[int, tuple[Numbers, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, source: int, number: int, now_ns: int) -> bool:
        """Note the report; False if it was noted before."""
        numbers, _ = self._sources.pop(source, (Numbers(), 0))
        self._sources[source] = (numbers, now_ns)
        while next(iter(self._sources.values()))[1] < now_ns - REPORTS_KEPT_NS:
            self._sources.popitem(last=False)
        return numbers.add(number)
