"""When which rule is asked at which edge: uneven, with a hotspot that moves. Pure: a seed in, arrivals out.

Arrivals are Poisson and open loop: nothing here knows of answers.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

DWELL_NS = 5_000_000_000
"""How long the hotspot stays at an edge, unless given."""

HOT_SHARE = 0.6
"""Part of the traffic that the hotspot's edge gets; the others share the rest, each half as much as the one before."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request: nanoseconds after the start, and the numbers of question and edge."""

    at_ns: int
    question: int
    edge: int


def shares(edges: int, hot: int) -> list[float]:
    """Each edge's part of the traffic while the hotspot is at edge `hot`; they add up to 1."""
    if edges == 1:
        return [1.0]
    cold = [0.5**distance for distance in range(1, edges)]
    result = [0.0] * edges
    result[hot] = HOT_SHARE
    for distance, weight in enumerate(cold, 1):
        result[(hot + distance) % edges] = (1 - HOT_SHARE) * weight / sum(cold)
    return result


def arrivals(
    rates: Sequence[float], edges: int, seed: int, length_ns: int, dwell_ns: int = DWELL_NS
) -> Iterator[Arrival]:
    """Arrivals of `length_ns`, in order; `rates` are requests a second for each question."""
    assert rates and min(rates) > 0 and edges > 0
    dice = random.Random(seed)
    first = dice.randrange(edges)
    total = sum(rates)
    by_rate = list(accumulate(rates))
    by_share = [list(accumulate(shares(edges, hot))) for hot in range(edges)]
    at = 0.0
    while True:
        at += dice.expovariate(total) * 1e9
        if at >= length_ns:
            return
        hot = (first + int(at) // dwell_ns) % edges
        question = min(bisect(by_rate, dice.random() * total), len(rates) - 1)
        yield Arrival(int(at), question, min(bisect(by_share[hot], dice.random()), edges - 1))


def hotspot(edges: int, seed: int, at_ns: int, dwell_ns: int = DWELL_NS) -> int:
    """The edge at which the hotspot is at that time."""
    return (random.Random(seed).randrange(edges) + at_ns // dwell_ns) % edges
