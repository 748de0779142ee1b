"""The heaviest of more keys than anybody can count: Space-Saving (Metwally, Agrawal, El Abbadi 2005), weighted. Pure.

With m counters, of N units in all: a count is at least the key's units, and above them by at most its `error`, which is
at most N/m; and every key with more than N/m units has a counter.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heapify, heapreplace, nlargest
from operator import attrgetter
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Counted(Generic[Key]):
    """The key has between `units - error` and `units` units."""

    key: Key
    units: int
    error: int


class SpaceSaving(Generic[Key]):
    """At most `counters_max` counters; `total` is N."""

    __slots__ = ("_by_key", "_counters_max", "_lightest", "total")

    def __init__(self, counters_max: int) -> None:
        assert counters_max > 0
        self.total = 0
        self._counters_max = counters_max
        self._by_key: dict[Key, Counted[Key]] = {}
        # A heap by the units that each counter had when it was put there: counters only grow, so whichever stands first
        # with the units that it still has is the lightest.
        self._lightest: list[tuple[int, int, Counted[Key]]] = []

    def add(self, key: Key, units: int = 1) -> None:
        """Count `units` more of `key`; a new key takes the lightest counter, and its units as the error."""
        assert units >= 0
        self.total += units
        found = self._by_key.get(key)
        if found is not None:
            found.units += units
        elif len(self._by_key) < self._counters_max:
            self._by_key[key] = Counted(key, units, 0)
        else:
            self._replace_lightest(key, units)

    def heaviest(self, most: int) -> list[Counted[Key]]:
        """The `most` heaviest, by their counts, the heaviest first."""
        return nlargest(most, self._by_key.values(), key=attrgetter("units"))

    def _replace_lightest(self, key: Key, units: int) -> None:
        heap = self._lightest
        if not heap:  # the first key without a counter
            heap += [(each.units, number, each) for number, each in enumerate(self._by_key.values())]
            heapify(heap)
        while (first := heap[0])[0] < first[2].units:
            heapreplace(heap, (first[2].units, first[1], first[2]))
        least, number, lightest = heap[0]
        del self._by_key[lightest.key]
        taken = self._by_key[key] = Counted(key, least + units, least)
        heapreplace(heap, (taken.units, number, taken))
