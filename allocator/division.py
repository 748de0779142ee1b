"""One division: what every quota is worth this epoch, cut into slices for edges and a pool for replicas (design 5.9).

A pure function of its inputs, in whole units. Slices are what surely recurs (base demand by weighted max-min); the rest
is pool, at least `POOL_PERCENT`. In overload nobody finds anything in the pool, so small edges get what they want: one
with random arrivals would live on its least second of eight. Whose cells they are, and which epoch it is, is the
leader's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apportion.allocator.fill import Filled, Floats, Indexes, Integers, round_exact, row_sums, water_fill

Flags = npt.NDArray[np.bool_]

POOL_PERCENT = 5
"""Share of a quota that is never sliced, rounded down: newcomers and surprises are served from it (algorithms 1.3)."""

QUOTA_UNITS_MAX = 2**53 - 1
"""Largest quota of an epoch that is divided: what the wire can name and a float hold. A larger one is lent directly."""


SMALL_DIVISOR = 10
"""In overload edges that want less than the fair level get it instead of base demand, up to a 10th of the quota."""

SIZE_CLASSES = 16
"""Small edges are served by size, in classes of a factor of two below the fair level; the last has all that is less."""

BLOCK_CELLS = 1 << 16
"""Cells that are divided in one go."""


@dataclass(frozen=True, slots=True)
class Division:
    """`slices` of each cell and `pool` of each quota; a quota's slices and pool add up to its units, asserted.

    `level`: the fair level of base demand of each quota, inf where all of it fitted. `kept`: small cells of
    overloaded quotas, which got what they want, and of which nothing is to be returned early.
    """

    slices: Integers
    pool: Integers
    level: Floats
    kept: Flags


def divide(units: Integers, starts: Indexes, base: Integers, want: Floats) -> Division:
    """Divide `units` of each quota over its cells, whose surely recurring demand is `base`, and which `want` so much in
    a bad second; cells as in `fill`.
    """
    assert not len(units) or (units.min() >= 0 and units.max() <= QUOTA_UNITS_MAX)
    slices, level, kept = np.empty(len(base), np.int64), np.empty(len(units)), np.zeros(len(base), np.bool_)
    for rows in _blocks(starts):
        cells = slice(starts[rows.start], starts[rows.stop])
        offsets = starts[rows.start : rows.stop + 1] - starts[rows.start]
        slices[cells], level[rows], kept[cells] = _slice(units[rows], offsets, base[cells], want[cells])
    pool = units - row_sums(starts, slices)
    assert not len(slices) or slices.min() >= 0
    assert (pool >= units - _sliceable(units)).all(), "slices never reach into the pool"
    return Division(slices, pool, level, kept)


def _slice(units: Integers, starts: Indexes, base: Integers, want: Floats) -> tuple[Integers, Floats, Flags]:
    """Slices, fair levels and kept cells of one block."""
    # No edge can use more than the whole quota, whatever it claims.
    asked = np.minimum(base, np.repeat(units, np.diff(starts))).astype(np.float64)
    capacity = _sliceable(units).astype(np.float64)
    filled = water_fill(starts, asked, capacity)
    kept = _serve_small(starts, asked, want, capacity, units / SMALL_DIVISOR, filled)
    return round_exact(starts, filled.amounts), filled.level, kept


def _serve_small(starts: Indexes, asked: Floats, want: Floats, capacity: Floats, room: Floats, filled: Filled) -> Flags:
    """Let small cells of overloaded rows ask for what they want, by at most `room` more a row, and fill those rows
    anew; returns which got what they want, or some of it. Changes `asked`.
    """
    counts = np.diff(starts)
    level = np.repeat(np.where(np.isfinite(filled.level), filled.level, 0.0), counts)
    kept = (want <= level) & (want >= asked) & (want > 0)
    if not kept.any():
        return kept
    extra = np.where(kept, want - asked, 0.0)
    added = row_sums(starts, extra)
    scarce = added > room
    if scarce.any():
        cells = np.flatnonzero(np.repeat(scarce, counts) & kept)
        rows = np.repeat(np.arange(len(counts)), counts)[cells]
        part = _by_size(rows, want[cells] / level[cells], extra[cells], room)
        extra[cells] *= part
        kept[cells] = part > 0
        added = row_sums(starts, extra)
    # The level falls by what was added over those that it cuts, at most: what asks for less has it already.
    cut = row_sums(starts, (asked >= level).astype(np.int64))
    lower = np.where(added > 0, filled.level - added / np.maximum(cut, 1), np.inf)
    asked += extra
    filled.amounts[:] += extra
    left_open = asked > np.repeat(lower, counts)
    opened = np.flatnonzero(left_open)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(row_sums(starts, left_open.astype(np.int64)))])
    settled = row_sums(starts, np.where(left_open, 0.0, asked))
    filled.amounts[opened] = water_fill(offsets, asked[opened], np.maximum(capacity - settled, 0.0)).amounts
    return kept


def _by_size(rows: Indexes, size: Floats, extra: Floats, room: Floats) -> Floats:
    """What part of its `extra` each cell gets, as far as its row has `room`: the smallest first, by class of `size`,
    which is 0 to 1. Those of a class are treated alike, which needs no sorting.
    """
    classes = np.clip(SIZE_CLASSES - 1 + np.frexp(size)[1], 0, SIZE_CLASSES - 1)
    at = rows * SIZE_CLASSES + classes
    wanted = np.bincount(at, extra, len(room) * SIZE_CLASSES).reshape(-1, SIZE_CLASSES)
    before = np.cumsum(wanted, axis=1) - wanted
    part = np.clip((room[:, np.newaxis] - before) / np.maximum(wanted, 1e-9), 0.0, 1.0)
    given: Floats = part.ravel()[at]
    return given


def _sliceable(units: Integers) -> Integers:
    """What may be sliced: all but `POOL_PERCENT`, rounded down, without a product that could overflow."""
    return units - units // 100 * POOL_PERCENT - units % 100 * POOL_PERCENT // 100


def _blocks(starts: Indexes) -> Iterator[slice]:
    """Ranges of rows with BLOCK_CELLS cells or little more, which stay in the processor's cache: twice as fast."""
    first, rows = 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + BLOCK_CELLS))
        yield slice(first, min(max(last, first + 1), rows))
        first = max(last, first + 1)


def split_pool(pool: Integers, demand: Floats) -> Integers:
    """Cut each quota's pool into parts, one row per replica, by the demand attached to it; evenly where there is none.

    `demand[replica, quota]`, at least 0. Exact: a quota's parts add up to its pool, asserted.
    """
    replicas = len(demand)
    assert replicas >= 1, "somebody must hold the pool"
    if replicas == 1:
        return pool[np.newaxis, :].copy()
    total = demand.sum(axis=0)
    weights = np.where(total > 0, demand, 1.0)
    reached = np.cumsum(weights, axis=0)
    reached /= reached[-1]
    borders = np.rint(reached * pool).astype(np.int64)  # the last is exactly 1 x pool, a float holds it
    parts = np.diff(borders, axis=0, prepend=0)
    assert parts.min(initial=0) >= 0
    assert (parts.sum(axis=0) == pool).all(), "no unit of the pool is lost or doubled"
    return parts
