"""Weighted max-min water-fill over sparse rows, and rounding that keeps sums exact (algorithms 1.1 and 1.3).

Rows are quotas, cells are what one edge asks of one of them, laid out as CSR: the cells of row r are
`starts[r]:starts[r + 1]`. Only arithmetic lives here; what a row or a cell means is `division`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)

AMOUNT_MAX = 2.0**53
"""Largest amount of a cell: above it a float has no fractions and skips whole units."""

CELLS_MAX = 2**30
"""Largest number of cells of one call: the sum of that many fractions still fits the fixed point of `round_exact`."""

FRACTION_BITS = 32
_ONE = 1 << FRACTION_BITS
_HALF = _ONE >> 1


@dataclass(frozen=True, slots=True)
class Filled:
    """`amounts` of each cell, before rounding; `level` of each row: what a cell of weight 1 gets at most (inf: no
    bound).

    A cell gets min(its demand, level x its weight); a row's amounts sum to min(capacity, sum of its demand).
    """

    amounts: Floats
    level: Floats


def water_fill(starts: Indexes, demand: Floats, capacity: Floats, weights: Floats | None = None) -> Filled:
    """Divide each row's `capacity` over its cells by weighted max-min; `weights` above 0, all 1 unless given. Units.

    Newton's method on f(level) = sum of min(demand, level x weight), which is concave: from the left it never passes
    the root, and a step that saturates no further cell has hit it exactly. Each step works on what is left to settle
    only.
    """
    _check(starts, demand, capacity)
    counts = np.diff(starts)
    level = np.full(len(capacity), np.inf)
    amounts = demand.astype(np.float64)  # a copy, also of floats
    short = row_sums(starts, demand) > capacity
    rows = np.flatnonzero(short)
    if not len(rows):
        return Filled(amounts, level)
    cells = np.flatnonzero(np.repeat(short, counts))
    chosen = amounts.take(cells)
    weight = None if weights is None else weights[cells]
    level[rows] = _levels(counts[rows], chosen, capacity[rows], weight)
    ceiling = np.repeat(level[rows], counts[rows])
    if weight is not None:
        ceiling *= weight
    amounts[cells] = np.minimum(chosen, ceiling, out=ceiling)
    return Filled(amounts, level)


def _levels(counts: Indexes, demand: Floats, capacity: Floats, weights: Floats | None) -> Floats:
    """The level of each row; every row asks for more than its capacity, so every row has cells."""
    levels = np.empty(len(capacity))
    rows = np.arange(len(capacity))
    room = capacity.astype(np.float64)
    while len(rows):
        starts = _starts(counts)
        step = room / (counts if weights is None else np.add.reduceat(weights, starts[:-1]))
        ceiling = np.repeat(step, counts)
        if weights is not None:
            ceiling *= weights
        unsettled = demand > ceiling
        left = np.add.reduceat(unsettled, starts[:-1], dtype=np.int64)
        # No cell more is saturated at this level: it is the root. (None left at all is the same but for rounding.)
        found = (left == counts) | (left == 0)
        levels[rows[found]] = step[found]
        room -= np.add.reduceat(demand * ~unsettled, starts[:-1])
        np.maximum(room, 0.0, out=room)
        going = np.flatnonzero(~found)
        unsettled &= np.repeat(~found, counts)
        kept = np.flatnonzero(unsettled)  # taking by index is several times faster than by mask
        rows, room, counts, demand = rows[going], room[going], left[going], demand.take(kept)
        weights = None if weights is None else weights.take(kept)
    return levels


def round_exact(starts: Indexes, amounts: Floats) -> Integers:
    """Whole units for each cell: a row's sum is that of its amounts rounded to nearest, each cell is off by
    less than 1.

    The difference of rounded running sums of the fractions, in fixed point: integers add up without error whatever the
    number of cells, and whole parts, however large, stay out of the sums. An amount that is whole stays as it is.
    """
    assert len(amounts) <= CELLS_MAX
    whole = np.floor(amounts)
    fraction = np.rint((amounts - whole) * _ONE).astype(np.int64)
    running = np.cumsum(fraction)
    before_row = np.concatenate([np.zeros(1, np.int64), running])[starts[:-1]]
    running -= np.repeat(before_row - _HALF, np.diff(starts))
    lower = (running - fraction) >> FRACTION_BITS
    running >>= FRACTION_BITS
    running -= lower
    running += whole.astype(np.int64)
    return running


def row_sums(starts: Indexes, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The sum of each row, of the values' own type; 0 for a row without cells."""
    sums = np.zeros(len(starts) - 1, values.dtype)
    filled = starts[:-1] < starts[1:]  # reduceat would give an empty row its neighbour's first value
    if filled.any():
        sums[filled] = np.add.reduceat(values, starts[:-1][filled])
    return sums


def _starts(counts: Indexes) -> Indexes:
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _check(starts: Indexes, demand: Floats, capacity: Floats) -> None:
    assert len(starts) == len(capacity) + 1, "one offset for each row and the end"
    assert starts[0] == 0 and starts[-1] == len(demand), "rows cover all cells"
    assert len(demand) <= CELLS_MAX
    assert not len(capacity) or capacity.min() >= 0, "a capacity is at least 0"
    assert not len(demand) or (demand.min() >= 0 and demand.max() <= AMOUNT_MAX), "a demand is 0 to 2^53"
