"""The division of a quota that has no pool: all of it goes to edges, in the four phases of algorithms 1.3. Pure.

`edge` quotas with slack have nobody to borrow from, and of `edge+region` quotas slices are only thresholds, so nothing
is kept back: floor, base demand, room for its spread, and what is left half by demand and half evenly.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from apportion.allocator.demand import Cells
from apportion.allocator.division import SMALL_DIVISOR
from apportion.allocator.fill import Floats, Indexes, Integers, round_exact, row_sums, water_fill

FLOOR_DIVISOR = 20
"""A floor is a 20th of the even part, and at least one unit: an edge that was given nothing would count as new."""


class Mode(IntEnum):
    """How a quota is divided."""

    POOLED = 0  # slices for what surely recurs, the rest is the replicas' pool
    WHOLE = 1  # all of it to the edges that ask for it
    FLOORED = 2  # all of it to the edges that take part, each of which has a floor


def divide_whole(units: Integers, starts: Indexes, base: Integers, want: Floats, floored: bool) -> Integers:
    """Slices of each cell; each row's, which has at least one cell, add up to its `units` exactly, asserted."""
    counts = np.diff(starts)
    assert (counts > 0).all(), "a quota that is divided is asked for by somebody"
    ceiling = np.repeat(units, counts).astype(np.float64)
    capacity = units.astype(np.float64)
    amounts = np.repeat(_floors(units, counts) if floored else np.zeros(len(units)), counts)
    for asked in (_with_small(units, starts, base.astype(np.float64), want), want):
        missing = np.maximum(np.minimum(asked, ceiling) - amounts, 0.0)
        left = np.maximum(capacity - row_sums(starts, amounts), 0.0)
        amounts = amounts + water_fill(starts, missing, left).amounts
    left = np.maximum(capacity - row_sums(starts, amounts), 0.0)
    total = row_sums(starts, want)
    by_demand = np.where(np.repeat(total, counts) > 0, want / np.repeat(np.maximum(total, 1e-9), counts), 0.0)
    evenly = 1.0 / np.repeat(counts, counts)
    parts = np.where(np.repeat(total, counts) > 0, (by_demand + evenly) / 2, evenly)
    slices = round_exact(starts, amounts + np.repeat(left, counts) * parts)
    return _settle(units, starts, slices)


def _with_small(units: Integers, starts: Indexes, base: Floats, want: Floats) -> Floats:
    """Base demand, and what small edges want beyond theirs, the smallest first, as far as there is room for them."""
    counts = np.diff(starts)
    row_of = np.repeat(np.arange(len(units)), counts)
    small = want <= np.repeat(water_fill(starts, want, units.astype(np.float64)).level, counts)
    extra = np.where(small, np.maximum(want - base, 0.0), 0.0)
    order = np.lexsort((want, row_of))
    before = np.cumsum(extra[order]) - extra[order]
    before -= np.repeat(before[starts[:-1]], counts)
    room = np.repeat(units / SMALL_DIVISOR, counts)
    raised = base.copy()
    raised[order] += np.clip(room - before, 0.0, extra[order])
    return raised


def _floors(units: Integers, counts: Indexes) -> Floats:
    even = units // counts
    floors: Floats = np.minimum(even, np.maximum(1, -(-units // (counts * FLOOR_DIVISOR)))).astype(np.float64)
    return floors


def _settle(units: Integers, starts: Indexes, slices: Integers) -> Integers:
    """Let each row's largest cell take what rounding left or took: a unit or so, by the error of floats."""
    off = units - row_sums(starts, slices)
    for row in np.flatnonzero(off).tolist():
        cells = slice(starts[row], starts[row + 1])
        slices[starts[row] + int(np.argmax(slices[cells]))] += off[row]
    assert not len(slices) or slices.min() >= 0
    assert (row_sums(starts, slices) == units).all(), "no unit is lost or doubled"
    return slices


def pick(cells: Cells, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Cells:
    """The cells of some of the rows, in the same order."""
    counts = np.diff(cells.starts)
    kept = np.repeat(rows, counts)
    place = np.cumsum(kept) - 1
    chosen = [kept[places] for places in cells.places]
    own = list(zip(cells.edges, cells.edge_quotas, cells.places, chosen, strict=True))
    own = [each for each in own if each[3].any()]
    return Cells(
        cells.quotas[rows],
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[rows])]),
        cells.base[kept],
        cells.most[kept],
        cells.want[kept],
        cells.recent[kept],
        tuple(edge for edge, _, _, _ in own),
        tuple(quotas[mask] for _, quotas, _, mask in own),
        tuple(place[places[mask]] for _, _, places, mask in own),
    )


def for_all(cells: Cells, edges: tuple[int, ...]) -> Cells:
    """The same rows with a cell for each of `edges`, empty where the edge asked for nothing; those with cells first."""
    everybody = (*cells.edges, *(edge for edge in edges if edge not in set(cells.edges)))
    rows, width = len(cells.quotas), len(everybody)
    row_of = np.repeat(np.arange(rows), np.diff(cells.starts))
    base, most = np.zeros(rows * width, np.int64), np.zeros(rows * width, np.int64)
    want, recent = np.zeros(rows * width), np.zeros(rows * width)
    for column, places in enumerate(cells.places):
        to = row_of[places] * width + column
        base[to], most[to] = cells.base[places], cells.most[places]
        want[to], recent[to] = cells.want[places], cells.recent[places]
    return Cells(
        cells.quotas,
        np.arange(rows + 1, dtype=np.int64) * width,
        base,
        most,
        want,
        recent,
        everybody,
        tuple(cells.quotas for _ in everybody),
        tuple(np.arange(rows, dtype=np.int64) * width + column for column in range(width)),
    )
