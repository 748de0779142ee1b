"""One division: what every quota is worth this epoch, cut into slices for edges and a pool for replicas (design 5.9).

A pure function of its inputs, in whole units. Slices are what surely recurs (base demand by weighted max-min); the rest
is pool, at least `POOL_PERCENT`. Whose cells they are, and which epoch it is, is the leader's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from apportion.allocator.fill import Floats, Indexes, Integers, round_exact, row_sums, water_fill

POOL_PERCENT = 5
"""Share of a quota that is never sliced, rounded down: newcomers and surprises are served from it (algorithms 1.3)."""

QUOTA_UNITS_MAX = 2**53 - 1
"""Largest quota of an epoch that is divided: what the wire can name and a float hold. A larger one is lent directly."""


BLOCK_CELLS = 1 << 16
"""Cells that are divided in one go."""


@dataclass(frozen=True, slots=True)
class Division:
    """`slices` of each cell and `pool` of each quota; a quota's slices and pool add up to its units, asserted.

    `level`: the fair level of each quota, inf where all base demand fitted.
    """

    slices: Integers
    pool: Integers
    level: Floats


def divide(units: Integers, starts: Indexes, base: Integers) -> Division:
    """Divide `units` of each quota over its cells, whose surely recurring demand is `base`; cells as in `fill`."""
    assert not len(units) or (units.min() >= 0 and units.max() <= QUOTA_UNITS_MAX)
    slices, level = np.empty(len(base), np.int64), np.empty(len(units))
    for rows in _blocks(starts):
        cells = slice(starts[rows.start], starts[rows.stop])
        offsets = starts[rows.start : rows.stop + 1] - starts[rows.start]
        slices[cells], level[rows] = _slice(units[rows], offsets, base[cells])
    pool = units - row_sums(starts, slices)
    assert not len(slices) or slices.min() >= 0
    assert (pool >= units - _sliceable(units)).all(), "slices never reach into the pool"
    return Division(slices, pool, level)


def _slice(units: Integers, starts: Indexes, base: Integers) -> tuple[Integers, Floats]:
    """Slices and fair levels of one block."""
    # No edge can use more than the whole quota, whatever it claims.
    asked = np.minimum(base, np.repeat(units, np.diff(starts)))
    # A step more goes here: small edges get what they want in overload instead of their base (design 5.9).
    filled = water_fill(starts, asked.astype(np.float64), _sliceable(units).astype(np.float64))
    return round_exact(starts, filled.amounts), filled.level


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
