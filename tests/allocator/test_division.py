"""One division: slices and pool add up to the quota, whatever is asked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.allocator.division import QUOTA_UNITS_MAX, divide, split_pool

BASES = st.lists(st.lists(st.integers(0, 2_000) | st.integers(0, 2**53 - 1), max_size=8), min_size=1, max_size=6)
MORE = st.sampled_from([0.0, 1.0, 1.2, 3.0])
UNITS = st.integers(0, 3_000) | st.integers(0, QUOTA_UNITS_MAX)


def cut(units: int, base: list[int]) -> tuple[list[int], int]:
    """Slices and pool of one quota."""
    cells = np.array(base, np.int64)
    division = divide(np.array([units]), np.array([0, len(base)]), cells, cells.astype(np.float64))
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
    cells = np.array([b for base in bases for b in base], np.int64)
    more = np.array(data.draw(st.lists(MORE, min_size=len(cells), max_size=len(cells))))
    want = (cells * more).astype(np.float64)
    division = divide(np.array(units, np.int64), starts, cells, want)
    for row, base in enumerate(bases):
        slices = division.slices[starts[row] : starts[row + 1]].tolist()
        assert sum(slices) + int(division.pool[row]) == units[row]
        assert int(division.pool[row]) >= units[row] // 20
        kept = division.kept[starts[row] : starts[row + 1]].tolist()
        assert all(0 <= got <= asked or more for got, asked, more in zip(slices, base, kept, strict=True))


def test_division_depends_on_nothing_but_its_input() -> None:
    """The same input gives the same output, and is not changed."""
    units, starts, base = np.array([100, 50]), np.array([0, 3, 5]), np.array([90, 80, 1, 60, 2])
    first = divide(units, starts, base, base.astype(np.float64))
    second = divide(units, starts, base, base.astype(np.float64))
    assert first.slices.tolist() == second.slices.tolist() == [47, 47, 1, 46, 2]
    assert base.tolist() == [90, 80, 1, 60, 2]


# --- small edges in overload -----------------------------------------------------------------------------------------


def served(units: int, base: list[int], want: list[float]) -> tuple[list[int], list[bool]]:
    """Slices, and which of them are kept."""
    division = divide(np.array([units]), np.array([0, len(base)]), np.array(base), np.array(want))
    return division.slices.tolist(), division.kept.tolist()


def test_a_small_edge_beside_a_hog_gets_what_it_wants() -> None:
    """Its base demand is 2, the least of 8 seconds of 5 on average: with room for its spread it has 10."""
    assert served(100, [500, 2], [600, 10]) == ([85, 10], [False, True])


def test_without_overload_base_demand_is_enough() -> None:
    """The pool serves the spread."""
    assert served(100, [80, 2], [96, 10]) == ([80, 2], [False, False])


def test_small_edges_get_a_tenth_of_the_quota_at_most_the_smallest_first() -> None:
    """10 more units of 100: 4 for the smallest, and what is left in equal parts for two that are twice as large."""
    assert served(100, [500, 1, 2, 2], [600, 5, 11, 11]) == ([80, 5, 5, 5], [False, True, True, True])


def test_an_edge_above_the_fair_level_is_not_small() -> None:
    """The level is 480: one that wants 481 is not served before the other."""
    assert served(1000, [900, 470], [1080, 481]) == ([480, 470], [False, False])


def test_what_small_edges_get_more_never_lifts_them_above_the_others() -> None:
    """Nine of 10 and one hog under 100: the level is 10 and a bit, and nobody is pushed below it."""
    slices, kept = served(100, [500, *[5] * 9], [600, *[10.5] * 9])
    assert slices[0] >= max(slices[1:])
    assert sum(slices) == 95
    assert all(kept[1:])


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
    want = base * random.choice([1.0, 1.2, 2.0], starts[-1])
    together = divide(units, starts, base, want)
    for row in range(2_000):
        cells = slice(starts[row], starts[row + 1])
        alone = divide(units[row : row + 1], np.array([0, counts[row]]), base[cells], want[cells])
        assert (together.slices[cells] == alone.slices).all()
        assert together.pool[row] == alone.pool[0]
