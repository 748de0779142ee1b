"""What every edge was asked for, by quota, over the last ticks: the demand that the division follows (algorithms 1.2).

Sparse: a cell is one quota at one edge, kept only while it was asked for in the last 8 ticks, so cost grows with active
cells. Quotas are the leader's own dense ids; an edge is known by its incarnation. A leader and its standbys receive the
same demand and so keep the same history.

Choices that algorithms 1.2 leaves open:
- a report that does not come is not a zero: its tick repeats the edge's last known one until a late report replaces it;
- a report is complete: a quota that it does not name was asked for nothing, so a quota new to an edge starts from
  zeros, its base is 0 for 7 ticks and the pool serves it;
- an edge that ran before this allocator did has an unknown past, not an empty one: its first report stands for all 8
  ticks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from apportion.allocator.fill import AMOUNT_MAX, Floats, Indexes, Integers

Flags = npt.NDArray[np.bool_]

TICKS_KEPT = 8
"""Ticks remembered: more than the period of flapping demand, few enough that slices follow a shift (algorithms 1.5)."""

CELLS_MAX = 2_000_000
"""Cells kept at once, about 200 MB. Further ones are not recorded: their quota is served from the pool or directly."""

EDGES_MAX = 4000
"""Edges remembered at once: a plan has at most 4096 columns, and the replicas need some."""

DEMAND_MAX = int(AMOUNT_MAX) - 1
"""Largest demand of a cell, in units; a larger claim counts as this."""

ROOM_HEADROOM = 1.2
"""How far above its recent peak a cell wants room."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Active cells as CSR: row r is quota `quotas[r]`, its cells are `starts[r]:starts[r + 1]`, edges in one order.

    `base` and `most` are the least and the most of the ticks kept, in units, `want` is room for more, `recent` the
    smoothed demand; `edges` the incarnations that have cells, and `places[i]` where the cells of edge i are, in the
    order of `edge_quotas[i]`.
    """

    quotas: Indexes
    starts: Indexes
    base: Integers
    most: Integers
    want: Floats
    recent: Floats
    edges: tuple[int, ...]
    edge_quotas: tuple[Indexes, ...]
    places: tuple[Indexes, ...]


@dataclass(frozen=True, slots=True)
class Early:
    """What an edge kept of its slices of `epoch` when it returned the rest, in units by quota."""

    epoch: int
    quotas: Indexes
    kept: Integers


class EdgeHistory:
    """The cells of one edge: `quotas` ascending, and beside them a ring of ticks, base, smoothed and peak demand."""

    __slots__ = ("_found", "_named", "base", "early", "epoch", "peak", "quotas", "recent", "ring")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.early: Early | None = None
        self.quotas: Indexes = np.zeros(0, np.int64)
        self.ring: Integers = np.zeros((TICKS_KEPT, 0), np.int64)
        self.base: Integers = np.zeros(0, np.int64)
        self.recent: Floats = np.zeros(0)
        self.peak: Floats = np.zeros(0)
        self._named: Indexes | None = None
        self._found: tuple[Indexes, Flags] = (self.quotas, np.zeros(0, np.bool_))

    def find(self, quotas: Indexes) -> tuple[Indexes, Flags]:
        """Where the cells of `quotas` are, and which of them have one. Reports mostly name the same quotas again."""
        if self._named is None or not np.array_equal(quotas, self._named):
            places = np.searchsorted(self.quotas, quotas)
            inside = places < len(self.quotas)
            places[~inside] = 0
            known = inside & (self.quotas[places] == quotas) if len(self.quotas) else inside
            self._named, self._found = quotas, (places, known)
        return self._found

    def insert(self, quotas: Indexes) -> None:
        """Add cells for `quotas`, ascending and new here, with a past of zeros."""
        at = np.searchsorted(self.quotas, quotas)
        self.quotas = np.insert(self.quotas, at, quotas)
        self.ring = np.insert(self.ring, at, 0, axis=1)
        self.base, self.recent, self.peak = (
            np.insert(self.base, at, 0),
            np.insert(self.recent, at, 0.0),
            np.insert(self.peak, at, 0.0),
        )
        self._named = None

    def keep(self, kept: Flags) -> Indexes:
        """Drop all cells but `kept`; returns the quotas that were dropped."""
        dropped = self.quotas[~kept]
        if len(dropped):
            self.quotas, self.ring = self.quotas[kept], self.ring[:, kept]
            self.base, self.recent, self.peak = self.base[kept], self.recent[kept], self.peak[kept]
            self._named = None
        return dropped

    def record(self, epoch: int, row: Integers, whole_past: bool) -> None:
        """Write the tick of `epoch`; `whole_past`: for the ticks before it as well."""
        if whole_past:
            self.ring[:] = row
            self.recent[:], self.peak[:] = row, row
        elif epoch > self.epoch:
            last = self.ring[self.epoch % TICKS_KEPT].copy()
            for missed in range(max(self.epoch + 1, epoch - TICKS_KEPT + 1), epoch):
                self.ring[missed % TICKS_KEPT] = last
            self.recent += row
            self.recent *= 0.5
            self.peak *= 0.8
            np.maximum(self.peak, row, out=self.peak)
        self.ring[epoch % TICKS_KEPT] = row
        self.epoch = max(self.epoch, epoch)
        self.base = self.ring.min(axis=0)

    def idle(self) -> Flags:
        """Cells that nobody asked for in any tick kept."""
        idle: Flags = self.most() == 0
        return idle

    def lowered_base(self) -> Integers:
        """Base demand, lowered to what the edge will use of the epoch that is not reported yet: it keeps half as much
        again.
        """
        early = self.early
        if early is None or early.epoch <= self.epoch or not len(self.quotas):
            return self.base
        places = np.minimum(np.searchsorted(self.quotas, early.quotas), len(self.quotas) - 1)
        known = self.quotas[places] == early.quotas
        base = self.base.copy()
        base[places[known]] = np.minimum(base[places[known]], early.kept[known] * 2 // 3)
        return base

    def most(self) -> Integers:
        """The most of the ticks kept."""
        most: Integers = self.ring.max(axis=0)
        return most

    def want(self) -> Floats:
        """Room that serves a cell's demand with its usual spread."""
        return np.maximum(ROOM_HEADROOM * self.peak, self.recent + 2.0 * np.sqrt(self.recent))


class DemandHistory:
    """The demand of every edge. `cells` counts the cells kept, `refused` those that found no room since the start."""

    def __init__(self, cells_max: int = CELLS_MAX) -> None:
        self._cells_max = cells_max
        self._edges: dict[int, EdgeHistory] = {}
        self._uses: Indexes = np.zeros(0, np.int64)
        self.cells = 0
        self.refused = 0

    def record(self, edge: int, epoch: int, quotas: Indexes, units: npt.NDArray[np.uint64], ran_before: bool) -> bool:
        """Take `edge`'s report of `epoch`; False when it is too old, or there is no room for the edge.

        `ran_before`: the edge ran before this allocator did, so what it was asked for before this is unknown.
        A report that came before changes nothing; a late one replaces what was assumed for its epoch.
        """
        history = self._edges.get(edge)
        first = history is None
        if history is None:
            if len(self._edges) >= EDGES_MAX:
                return False
            history = self._edges[edge] = EdgeHistory(epoch)
        if epoch <= history.epoch - TICKS_KEPT:
            return False
        demand = np.minimum(units, np.uint64(DEMAND_MAX)).astype(np.int64)
        self._admit(history, quotas, demand)
        places, known = history.find(quotas)
        row = np.zeros(len(history.quotas), np.int64)
        row[places[known]] = demand[known]
        history.record(epoch, row, whole_past=first and ran_before)
        idle = history.idle()
        if idle.any():
            self._drop(history, ~idle)
        return True

    def foresee(self, edge: int, epoch: int, quotas: Indexes, kept: npt.NDArray[np.uint64]) -> None:
        """Take what `edge` kept of its slices of `epoch`, said in parts; of use until it has reported that epoch."""
        history = self._edges.get(edge)
        if history is None:
            return
        units = np.minimum(kept, np.uint64(DEMAND_MAX)).astype(np.int64)
        known = history.early
        if known is not None and known.epoch == epoch:
            quotas, units = np.concatenate([known.quotas, quotas]), np.concatenate([known.kept, units])
        history.early = Early(epoch, quotas, units)

    def _admit(self, history: EdgeHistory, quotas: Indexes, demand: Integers) -> None:
        """Make cells for what is asked for and has none, as far as there is room."""
        _, known = history.find(quotas)
        wanted = quotas[~known & (demand > 0)]
        if not len(wanted):  # as of nearly every report
            return
        new = np.unique(wanted)
        room = max(self._cells_max - self.cells, 0)
        self.refused += max(len(new) - room, 0)
        new = new[:room]
        if len(new):
            history.insert(new)
            self._grow(int(new[-1]) + 1)
            self._uses[new] += 1
            self.cells += len(new)

    def _drop(self, history: EdgeHistory, kept: Flags) -> None:
        dropped = history.keep(kept)
        self._uses[dropped] -= 1
        self.cells -= len(dropped)

    def _grow(self, size: int) -> None:
        if size > len(self._uses):
            self._uses = np.concatenate([self._uses, np.zeros(max(size, 64), np.int64)])

    def last_epoch(self, edge: int) -> int | None:
        """The latest epoch that `edge` reported, None when it never did."""
        history = self._edges.get(edge)
        return None if history is None else history.epoch

    def edges(self) -> tuple[int, ...]:
        """Incarnations of the edges remembered, in the order of their first report."""
        return tuple(self._edges)

    def forget(self, edge: int) -> None:
        """Forget an edge and its cells."""
        history = self._edges.pop(edge)
        self._drop(history, np.zeros(len(history.quotas), np.bool_))

    def keep_quotas(self, kept: Flags) -> None:
        """Drop the cells of all quotas but those with `kept[quota]`, which has a flag for every quota recorded."""
        for history in self._edges.values():
            self._drop(history, kept[history.quotas])

    def uses(self, size: int) -> Indexes:
        """How many cells each of the quotas 0 to `size` - 1 has."""
        self._grow(size)
        return self._uses[:size]

    def select(self, edges: tuple[int, ...]) -> Cells:
        """The cells of `edges`, all of them remembered, laid out by quota. Linear in cells: no sort."""
        chosen = [(edge, self._edges[edge]) for edge in edges if len(self._edges[edge].quotas)]
        counts = np.zeros(len(self._uses), np.int64)
        for _, history in chosen:
            counts[history.quotas] += 1
        quotas = np.flatnonzero(counts)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[quotas])])
        cursor = np.zeros(len(counts), np.int64)
        cursor[quotas] = starts[:-1]
        base, most = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
        want, recent = np.empty(starts[-1]), np.empty(starts[-1])
        places = []
        for _, history in chosen:
            place = cursor[history.quotas]
            cursor[history.quotas] = place + 1
            base[place], most[place] = history.lowered_base(), history.most()
            want[place], recent[place] = history.want(), history.recent
            places.append(place)
        return Cells(
            quotas, starts, base, most, want, recent,
            tuple(edge for edge, _ in chosen), tuple(history.quotas for _, history in chosen), tuple(places),
        )  # fmt: skip
