"""C52: fair division by golden vectors, before rounding; order and overstated demand do not matter."""

from itertools import permutations

import numpy as np
import pytest

from apportion.allocator.division import divide
from apportion.allocator.fill import round_exact, water_fill

VECTORS = [
    (120, [1000, 50, 10], [60, 50, 10]),
    (100, [90, 0, 0, 0, 0, 0, 0, 0, 0, 0], [90, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    (100, [60, 60, 5], [47.5, 47.5, 5]),
    (100, [10, 10], [10, 10]),
]


def fill(capacity: float, demand: list[float]) -> list[float]:
    """One quota's fill before rounding."""
    starts = np.array([0, len(demand)])
    return list(water_fill(starts, np.array(demand, np.float64), np.array([capacity], np.float64)).amounts)


@pytest.mark.parametrize("capacity,demand,expected", VECTORS)
def test_golden_vectors(capacity: float, demand: list[float], expected: list[float]) -> None:
    """Max-min: small demand is met, the rest share evenly, and nothing more than the demand is given."""
    assert fill(capacity, demand) == expected


@pytest.mark.parametrize("capacity,demand,expected", VECTORS)
def test_the_sum_is_the_lesser_of_capacity_and_demand(
    capacity: float, demand: list[float], expected: list[float]
) -> None:
    """Before rounding and after it."""
    starts, cells = np.array([0, len(demand)]), np.array(fill(capacity, demand))
    assert cells.sum() == sum(expected) == min(capacity, sum(demand))
    assert int(round_exact(starts, cells).sum()) == min(capacity, sum(demand))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_edges_does_not_matter(order: tuple[int, ...]) -> None:
    """Not at all before rounding, by at most one unit after it."""
    demand, expected = [60, 60, 5], [47.5, 47.5, 5]
    amounts = fill(100, [demand[at] for at in order])
    assert amounts == [expected[at] for at in order]
    rounded = round_exact(np.array([0, 3]), np.array(amounts)).tolist()
    assert all(abs(got - expected[at]) < 1 for got, at in zip(rounded, order, strict=True))


def test_overstating_demand_costs_others_nothing_beyond_the_fair_share() -> None:
    """Who claims a million instead of 60 gets the same 47.5, and so does the honest one."""
    assert fill(100, [1_000_000, 60, 5]) == [47.5, 47.5, 5]


def test_the_hog_does_not_starve_the_small_edge() -> None:
    """E1 offers 10,000/s, E2 5/s, limit 100/s: E2 has all it wants in a bad second, E1 the rest but the pool."""
    division = divide(np.array([100]), np.array([0, 2]), np.array([10_000, 5]), np.array([12_000.0, 9.5]))
    assert division.slices.tolist() == [86, 9]
    assert division.pool.tolist() == [5]
