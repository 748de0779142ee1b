"""One division: slices and pool add up to the quota, whatever is asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.allocator.division import QUOTA_UNITS_MAX, divide, split_pool

BASES = st.lists(st.lists(st.integers(0, 2_000) | st.integers(0, 2**53 - 1), max_size=8), min_size=1, max_size=6)
UNITS = st.integers(0, 3_000) | st.integers(0, QUOTA_UNITS_MAX)


def cut(units: int, base: list[int]) -> tuple[list[int], int]:
    """Slices and pool of one quota."""
    division = divide(np.array([units]), np.array([0, len(base)]), np.array(base, np.int64))
    return division.slices.tolist(), int(division.pool[0])


def test_base_demand_is_sliced_and_the_rest_is_pool() -> None:
    """Where all base demand fits, each edge gets its own and no more."""
    assert cut(1000, [300, 200, 0]) == ([300, 200, 0], 500)


def test_in_overload_slices_are_max_min_and_the_pool_keeps_five_percent() -> None:
    """The small edge is served in full, the large ones share what is left."""
    assert cut(1000, [900, 800, 50]) == ([450, 450, 50], 50)


def test_a_twentieth_is_rounded_down() -> None:
    """Of 39 units 1 stays in the pool, of 19 none."""
    assert cut(39, [100]) == ([38], 1)
    assert cut(19, [100]) == ([19], 0)


def test_a_quota_without_demand_is_all_pool() -> None:
    """No base demand, or no edge at all."""
    assert cut(200, [0, 0]) == ([0, 0], 200)
    assert cut(200, []) == ([], 200)


def test_a_quota_of_nothing_gives_nothing() -> None:
    """Rate 0 gives neither slices nor pool."""
    assert cut(0, [5, 5]) == ([0, 0], 0)


def test_a_quota_of_billions_is_cut_to_the_unit() -> None:
    """8,000,000,001 units over three hungry edges."""
    slices, pool = cut(8_000_000_001, [9_000_000_000] * 3)
    assert pool == 400_000_000
    assert sorted(slices) == [2_533_333_333, 2_533_333_334, 2_533_333_334]


@given(BASES, st.data())
def test_slices_and_pool_add_up_to_every_quota(bases: list[list[int]], data: st.DataObject) -> None:
    """Exact to the unit, the pool never under its share, no slice above what was asked for."""
    units = data.draw(st.lists(UNITS, min_size=len(bases), max_size=len(bases)))
    starts = np.cumsum([0, *map(len, bases)])
    division = divide(np.array(units, np.int64), starts, np.array([b for base in bases for b in base], np.int64))
    for row, base in enumerate(bases):
        slices = division.slices[starts[row] : starts[row + 1]].tolist()
        assert sum(slices) + int(division.pool[row]) == units[row]
        assert int(division.pool[row]) >= units[row] // 20
        assert all(0 <= got <= asked for got, asked in zip(slices, base, strict=True))


def test_division_depends_on_nothing_but_its_input() -> None:
    """The same input gives the same output, and is not changed."""
    units, starts, base = np.array([100, 50]), np.array([0, 3, 5]), np.array([90, 80, 1, 60, 2])
    first = divide(units, starts, base)
    second = divide(units, starts, base)
    assert first.slices.tolist() == second.slices.tolist() == [47, 47, 1, 46, 2]
    assert base.tolist() == [90, 80, 1, 60, 2]


# --- the pool --------------------------------------------------------------------------------------------------------


def test_one_replica_gets_the_whole_pool() -> None:
    """Nothing to split."""
    assert split_pool(np.array([7, 0]), np.zeros((1, 2))).tolist() == [[7, 0]]


def test_the_pool_follows_the_demand_attached_to_each_replica() -> None:
    """Three quarters of the demand, three quarters of the pool."""
    assert split_pool(np.array([100]), np.array([[300.0], [100.0]])).tolist() == [[75], [25]]


def test_without_demand_the_pool_is_split_evenly() -> None:
    """Nobody knows where the first request will come."""
    assert split_pool(np.array([10]), np.zeros((3, 1))).sum(axis=0).tolist() == [10]
    assert sorted(split_pool(np.array([10]), np.zeros((3, 1)))[:, 0].tolist()) == [3, 3, 4]


@given(
    st.lists(UNITS, min_size=1, max_size=6),
    st.integers(1, 5),
    st.data(),
)
def test_no_unit_of_a_pool_is_lost_or_doubled(pool: list[int], replicas: int, data: st.DataObject) -> None:
    """The parts add up to the pool, and follow the shares to within a unit."""
    size = replicas * len(pool)
    demand = data.draw(st.lists(st.integers(0, 10**6) | st.just(0), min_size=size, max_size=size))
    table = np.array(demand, np.float64).reshape(replicas, len(pool))
    parts = split_pool(np.array(pool, np.int64), table)
    assert parts.sum(axis=0).tolist() == pool
    total = table.sum(axis=0)
    for quota in np.flatnonzero(total):
        ideal = table[:, quota] / total[quota] * pool[quota]
        assert parts[:, quota] == pytest.approx(ideal, abs=1 + 1e-9 * pool[quota])


def test_many_quotas_are_divided_as_each_alone() -> None:
    """Large inputs are worked through in blocks; where a block ends changes nothing."""
    random = np.random.default_rng(5)
    counts = random.integers(0, 200, 2_000)
    counts[1_000] = 70_000  # more than a block by itself
    starts = np.concatenate([[0], np.cumsum(counts)])
    base = random.integers(0, 500, starts[-1])
    units = random.integers(0, 40_000, 2_000)
    together = divide(units, starts, base)
    for row in range(2_000):
        cells = slice(starts[row], starts[row + 1])
        alone = divide(units[row : row + 1], np.array([0, counts[row]]), base[cells])
        assert (together.slices[cells] == alone.slices).all()
        assert together.pool[row] == alone.pool[0]
