"""What silent edges may still spend, taken out of the division of quotas that have a pool. Pure; no loop over cells.

A silent edge that is still in the plan keeps its last slice, inside what is held back for it: it may only be late.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from apportion.allocator.demand import Cells
from apportion.allocator.fill import Indexes, Integers, row_sums
from apportion.allocator.silence import Held


def with_held(cells: Cells, held: Held) -> Cells:
    """The cells with a row for every quota that is held back, and without the demand of silent edges where they are."""
    quotas = np.union1d(cells.quotas, held.quotas)
    counts = np.zeros(len(quotas), np.int64)
    counts[np.searchsorted(quotas, cells.quotas)] = np.diff(cells.starts)
    base, most, want, recent = cells.base.copy(), cells.most.copy(), cells.want.copy(), cells.recent.copy()
    for places, _ in _silent(cells, held):
        base[places], most[places], want[places], recent[places] = 0, 0, 0.0, 0.0
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return replace(cells, quotas=quotas, starts=starts, base=base, most=most, want=want, recent=recent)


def reserve(cells: Cells, units: Integers, held: Held) -> Integers:
    """Of each row's `units`, what nobody but a silent edge may have."""
    reserved = np.zeros(len(cells.quotas), np.int64)
    reserved[np.searchsorted(cells.quotas, held.quotas)] = held.units
    return np.minimum(reserved, units)


def pin(cells: Cells, slices: Integers, reserved: Integers, held: Held) -> tuple[Integers, Integers]:
    """`slices` with those of silent edges, and by row what is left of what is reserved, which nobody gets."""
    whole = np.zeros(len(cells.quotas), np.bool_)
    whole[np.searchsorted(cells.quotas, held.quotas)] = True
    whole &= reserved > 0
    full = np.zeros(len(cells.quotas), np.int64)
    full[np.searchsorted(cells.quotas, held.quotas)] = held.units
    whole &= reserved == full  # where less is left than they may spend, none of them gets a slice of it
    row_of = np.repeat(np.arange(len(cells.quotas)), np.diff(cells.starts))
    pinned = np.zeros(len(slices), np.int64)
    for places, most in _silent(cells, held):
        pinned[places] = np.where(whole[row_of[places]], most, 0)
    left = reserved - row_sums(cells.starts, pinned)
    assert not len(left) or left.min() >= 0
    return slices + pinned, left


def _silent(cells: Cells, held: Held) -> list[tuple[Indexes, Integers]]:
    """Of each silent edge with cells: where those are that it may still spend of, and its slice there."""
    found = []
    for edge, quotas, places in zip(cells.edges, cells.edge_quotas, cells.places, strict=True):
        spent = held.spent.get(edge)
        if spent is None:
            continue
        own = spent[quotas] > 0
        found.append((places[own], np.minimum(spent[quotas[own]], held.last[edge][quotas[own]])))
    return found
