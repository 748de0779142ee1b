"""How demand is spread over edges, and how it changes: the parts of a flow's load that each edge has at an instant.

Every shape gives an array of shape (edges,), float64, whose sum is the multiple of the flow's load then: 1.0 for those
that only move. They are the workloads of algorithms 1.5, and those of the cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

Parts = npt.NDArray[np.float64]

SECOND = 1_000_000_000


class Shape(Protocol):
    """Demand by place and time; the same arguments give the same parts."""

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        """The part of the load at each of `edges`, at `at_ns` of the run."""

    def changes_ns(self, until_ns: int) -> list[int]:
        """When demand moves at once from some edges to others, or changes, before `until_ns`."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """The same at each edge."""

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        return np.full(edges, 1 / edges)

    def changes_ns(self, until_ns: int) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class Zipf:
    """Edge n has a part in proportion to n ** -exponent; which edge is the n-th, the seed says."""

    exponent: float = 1.2

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        return _zipf(self.exponent, edges, seed)

    def changes_ns(self, until_ns: int) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class Hotspot:
    """One edge has `share` of the load, the others the rest; each `dwell_ns` it is another one."""

    dwell_ns: int = 20 * SECOND
    share: float = 0.6

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        if edges == 1:
            return np.ones(1)
        parts = np.full(edges, (1 - self.share) / (edges - 1))
        parts[self.hot(edges, at_ns, seed)] = self.share
        return parts

    def hot(self, edges: int, at_ns: int, seed: int) -> int:
        """Which edge it is: never the one before, whatever was drawn."""
        return _hot(edges, at_ns // self.dwell_ns, seed)

    def changes_ns(self, until_ns: int) -> list[int]:
        return list(range(self.dwell_ns, until_ns, self.dwell_ns))


@dataclass(frozen=True, slots=True)
class Step:
    """Even, `before` times the load until `at_ns`, then `after` times."""

    at_ns: int
    before: float
    after: float

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        return np.full(edges, (self.before if at_ns < self.at_ns else self.after) / edges)

    def changes_ns(self, until_ns: int) -> list[int]:
        return [self.at_ns]


@dataclass(frozen=True, slots=True)
class Halves:
    """One half of the edges has all of the load, each `dwell_ns` the other half."""

    dwell_ns: int = 5 * SECOND

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        turn = (np.arange(edges) % 2 == (at_ns // self.dwell_ns) % 2).astype(np.float64)
        part: Parts = turn / max(float(turn.sum()), 1.0)
        return part

    def changes_ns(self, until_ns: int) -> list[int]:
        return list(range(self.dwell_ns, until_ns, self.dwell_ns))


@dataclass(frozen=True, slots=True)
class OnOff:
    """Each edge is on for a while and off for a while, of `mean_ns` on average; half of them at a time on average."""

    mean_ns: int = 10 * SECOND

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        on = np.array([self._on(edge, at_ns, seed) for edge in range(edges)], np.float64)
        return on * 2 / edges

    def _on(self, edge: int, at_ns: int, seed: int) -> float:
        # One stretch each mean / 2, on or off by a coin: stretches of one kind in a row are `mean` long on average.
        return _coin(edge, at_ns // (self.mean_ns // 2), seed)

    def changes_ns(self, until_ns: int) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class Heavy:
    """One edge, the first, has `share` of the load from beginning to end."""

    share: float = 0.9

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        if edges == 1:
            return np.ones(1)
        parts = np.full(edges, (1 - self.share) / (edges - 1))
        parts[0] = self.share
        return parts

    def changes_ns(self, until_ns: int) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class Ramp:
    """Even, from nothing to the whole load over `over_ns`."""

    over_ns: int

    def parts(self, edges: int, at_ns: int, seed: int) -> Parts:
        return np.full(edges, min(1.0, at_ns / self.over_ns) / edges)

    def changes_ns(self, until_ns: int) -> list[int]:
        return []


# What was drawn, which is the same for many slots in a row.


@lru_cache
def _zipf(exponent: float, edges: int, seed: int) -> Parts:
    weights = np.arange(1, edges + 1, dtype=np.float64) ** -exponent
    parts = np.random.default_rng([seed, 1]).permutation(weights / weights.sum())
    parts.flags.writeable = False
    return parts


@lru_cache
def _hot(edges: int, moves: int, seed: int) -> int:
    strides = np.random.default_rng([seed, 2]).integers(1, max(edges, 2), size=moves + 1)
    return int(strides.sum() % edges)


@lru_cache(maxsize=1_024)
def _coin(edge: int, stretch: int, seed: int) -> float:
    return float(np.random.default_rng([seed, 3, edge]).integers(0, 2, size=stretch + 1)[-1])
