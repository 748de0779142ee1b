"""The fill written for reading: bisection for the fair level of one row. Slow, and exact to about 1e-12."""

from collections.abc import Sequence


def slow_fill(demand: Sequence[float], capacity: float, weights: Sequence[float] | None = None) -> list[float]:
    """What each cell gets."""
    weights = weights or [1.0] * len(demand)
    if sum(demand) <= capacity:
        return list(demand)
    low, high = 0.0, max(d / w for d, w in zip(demand, weights, strict=True))
    for _ in range(200):
        level = (low + high) / 2
        if sum(min(d, level * w) for d, w in zip(demand, weights, strict=True)) <= capacity:
            low = level
        else:
            high = level
    return [min(d, low * w) for d, w in zip(demand, weights, strict=True)]
