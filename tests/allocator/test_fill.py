"""The water-fill and the rounding after it: exact, fair, monotone (algorithms 6, F1)."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.allocator.fill import Floats, Indexes, round_exact, row_sums, water_fill
from tests.allocator.slow_fill import slow_fill

DEMANDS = st.lists(st.integers(0, 10_000) | st.floats(0, 1e6), max_size=12)
CAPACITIES = st.floats(0, 1e6) | st.integers(0, 30_000)
ROWS = st.lists(st.tuples(DEMANDS, CAPACITIES), min_size=1, max_size=8)
WEIGHTS = st.sampled_from([0.25, 1.0, 2.0, 5.0])


def sparse(rows: list[list[float]]) -> tuple[Indexes, Floats]:
    """Rows as offsets and cells."""
    starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return starts, np.array([cell for row in rows for cell in row], np.float64)


def fill(demand: list[float], capacity: float, weights: list[float] | None = None) -> list[float]:
    """One row, filled."""
    starts, cells = sparse([demand])
    weight = None if weights is None else np.array(weights, np.float64)
    return list(water_fill(starts, cells, np.array([capacity], np.float64), weight).amounts)


def tolerance(*values: float) -> float:
    """1e-6 of the largest amount involved."""
    return 1e-6 * max(1.0, *values)


# --- exact -----------------------------------------------------------------------------------------------------------


@given(ROWS)
def test_every_row_is_what_bisection_finds(rows: list[tuple[list[float], float]]) -> None:
    """Rows of different lengths, filled together, get what each gets alone from the slow reference."""
    starts, cells = sparse([demand for demand, _ in rows])
    filled = water_fill(starts, cells, np.array([capacity for _, capacity in rows], np.float64))
    for row, (demand, capacity) in enumerate(rows):
        got = filled.amounts[starts[row] : starts[row + 1]]
        assert list(got) == pytest.approx(slow_fill(demand, capacity), abs=tolerance(capacity, *demand))


@given(st.data())
def test_a_weighted_row_is_what_bisection_finds(data: st.DataObject) -> None:
    """With weights a cell gets min(demand, level x weight)."""
    demand = data.draw(st.lists(st.floats(0, 1e6), min_size=1, max_size=12))
    weights = data.draw(st.lists(WEIGHTS, min_size=len(demand), max_size=len(demand)))
    capacity = data.draw(CAPACITIES)
    expected = slow_fill(demand, capacity, weights)
    assert fill(demand, capacity, weights) == pytest.approx(expected, abs=tolerance(capacity, *demand))


@given(ROWS)
def test_a_row_sums_to_the_lesser_of_capacity_and_demand(rows: list[tuple[list[float], float]]) -> None:
    """Nothing is lost, and nothing is given twice."""
    starts, cells = sparse([demand for demand, _ in rows])
    sums = row_sums(starts, water_fill(starts, cells, np.array([c for _, c in rows], np.float64)).amounts)
    for got, (demand, capacity) in zip(sums, rows, strict=True):
        assert got == pytest.approx(min(sum(demand), capacity), abs=tolerance(capacity, *demand))


@given(DEMANDS, CAPACITIES)
def test_the_level_is_what_a_throttled_cell_gets(demand: list[float], capacity: float) -> None:
    """Below the level a cell gets its demand, above it the level; the level is infinite where all demand fits."""
    starts, cells = sparse([demand])
    filled = water_fill(starts, cells, np.array([capacity], np.float64))
    assert list(filled.amounts) == [min(d, filled.level[0]) for d in demand]
    assert np.isinf(filled.level[0]) == (sum(demand) <= capacity)


def test_rows_without_cells_demand_or_capacity() -> None:
    """An empty row gives nothing, no demand gets nothing, no capacity gives nothing, one cell gets the lesser."""
    starts, cells = sparse([[], [0, 0], [5, 7], [], [9], [3], []])
    filled = water_fill(starts, cells, np.array([10, 10, 0, 0, 4, 4, 1], np.float64))
    assert list(filled.amounts) == [0, 0, 0, 0, 4, 3]
    assert list(filled.level) == [np.inf, np.inf, 0, np.inf, 4, np.inf, np.inf]


def test_no_rows_at_all() -> None:
    """Nothing to divide is divided into nothing."""
    filled = water_fill(np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
    assert len(filled.amounts) == len(filled.level) == 0


def test_amounts_of_billions_are_exact() -> None:
    """Eight thousand million units over three edges: a third each, and small demand is served in full."""
    assert fill([9e9, 8e9, 7e9], 8e9 + 1) == [(8e9 + 1) / 3] * 3
    assert fill([9e9, 1, 9e9], 8e9 + 1) == [4e9, 1, 4e9]


def test_demand_that_doubles_from_cell_to_cell_needs_many_steps() -> None:
    """The worst shape for Newton's method still ends at the exact level."""
    demand = [float(2**k) for k in range(45)]
    assert fill(demand, 2.0**44) == pytest.approx(slow_fill(demand, 2.0**44), rel=1e-12)


def test_weights_pull_the_level() -> None:
    """An edge of weight 3 gets three times what one of weight 1 gets while both want more."""
    assert fill([100, 100], 40, [1, 3]) == [10, 30]


# --- fair and monotone -----------------------------------------------------------------------------------------------


@given(DEMANDS, CAPACITIES, st.floats(0, 1e6))
def test_raising_the_quota_lowers_nobody(demand: list[float], capacity: float, more: float) -> None:
    """More to divide is never less for one of them."""
    slack = tolerance(capacity, more, *demand)
    for before, after in zip(fill(demand, capacity), fill(demand, capacity + more), strict=True):
        assert after >= before - slack


@given(DEMANDS.filter(bool), CAPACITIES, st.floats(0, 1e6), st.data())
def test_raising_one_demand_lowers_not_its_own_and_raises_no_other(
    demand: list[float], capacity: float, more: float, data: st.DataObject
) -> None:
    """Who asks for more is not punished, and nobody else profits."""
    who = data.draw(st.integers(0, len(demand) - 1))
    raised = [d + more if at == who else d for at, d in enumerate(demand)]
    before, after = fill(demand, capacity), fill(raised, capacity)
    slack = tolerance(capacity, *raised)
    assert after[who] >= before[who] - slack
    assert all(after[at] <= before[at] + slack for at in range(len(demand)) if at != who)


@given(DEMANDS, CAPACITIES, st.sampled_from([0.5, 3.0, 1000.0]))
def test_the_unit_of_measure_does_not_matter(demand: list[float], capacity: float, scale: float) -> None:
    """Counting in halves or thousands gives the same division."""
    scaled = fill([d * scale for d in demand], capacity * scale)
    expected = [amount * scale for amount in fill(demand, capacity)]
    assert scaled == pytest.approx(expected, abs=scale * tolerance(capacity, *demand))


@given(DEMANDS, CAPACITIES, st.randoms())
def test_the_order_of_edges_does_not_matter(demand: list[float], capacity: float, random: Random) -> None:
    """Shuffled edges get the same, shuffled."""
    order = list(range(len(demand)))
    random.shuffle(order)
    shuffled = fill([demand[at] for at in order], capacity)
    plain = fill(demand, capacity)
    assert shuffled == pytest.approx([plain[at] for at in order], abs=tolerance(capacity, *demand))


@given(DEMANDS, CAPACITIES)
def test_a_claim_above_the_quota_gains_nothing(demand: list[float], capacity: float) -> None:
    """Asking for a million times the quota is asking for the quota."""
    clamped = fill([min(d, capacity) for d in demand], capacity)
    exaggerated = fill([d * 1e6 if d >= capacity else d for d in demand], capacity)
    assert exaggerated == pytest.approx(clamped, abs=tolerance(capacity, *demand))


# --- rounding --------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(0, 1e9) | st.integers(0, 2**52), max_size=12), min_size=1, max_size=8))
def test_rounding_is_off_by_less_than_one_and_keeps_the_sum(rows: list[list[float]]) -> None:
    """Each cell becomes one of its two neighbours; a row's sum is its real sum rounded to nearest."""
    starts, cells = sparse(rows)
    rounded = round_exact(starts, cells)
    assert (np.abs(rounded - cells) < 1).all()
    for row in range(len(rows)):
        part = slice(starts[row], starts[row + 1])
        fractions = cells[part] - np.floor(cells[part])
        whole = int(np.floor(cells[part]).astype(np.int64).sum())
        assert abs(int(rounded[part].sum()) - whole - float(fractions.sum())) <= 0.5 + 1e-6


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=50), st.integers(0, 100_000))
def test_a_filled_row_of_whole_demand_rounds_to_exactly_its_capacity(demand: list[int], capacity: int) -> None:
    """After rounding the sum is min(capacity, demand) to the unit, and nobody gets more than asked."""
    starts, cells = sparse([list(demand)])
    rounded = round_exact(starts, water_fill(starts, cells, np.array([capacity], np.float64)).amounts)
    assert int(rounded.sum()) == min(capacity, sum(demand))
    assert all(0 <= got <= asked for got, asked in zip(rounded.tolist(), demand, strict=True))


def test_a_million_thirds_of_billions_lose_no_unit() -> None:
    """Errors do not add up over many cells: each of 20,000 rows of 50 sums to its capacity of 8e9 + 1."""
    starts = np.arange(20_001, dtype=np.int64) * 50
    cells = np.full(1_000_000, 1e9)
    capacity = np.full(20_000, 8e9 + 1)
    rounded = round_exact(starts, water_fill(starts, cells, capacity).amounts)
    assert set(row_sums(starts, rounded).tolist()) == {8_000_000_001}
    assert set(rounded.tolist()) == {160_000_000, 160_000_001}


def test_shuffled_edges_differ_by_at_most_one_unit_after_rounding() -> None:
    """Which edge gets the odd unit may depend on the order, and nothing else."""
    starts, cells = sparse([[60, 60, 5]])
    capacity = np.array([100.0])
    assert round_exact(starts, water_fill(starts, cells, capacity).amounts).tolist() == [48, 47, 5]
    starts, cells = sparse([[5, 60, 60]])
    assert round_exact(starts, water_fill(starts, cells, capacity).amounts).tolist() == [5, 48, 47]
