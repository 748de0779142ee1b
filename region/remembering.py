"""What a replica remembers of each edge, whichever process bears its `--id`: its last slices and last sign of life.

It is told to allocators, so that a new leader holds back what a silent edge may still spend (design 4.1). Only what
rules that let edges spend without the region need is remembered. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from apportion.core.allocator_messages import Remembered
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Ids, Quota, Report, Units
from apportion.core.rule import RuleSet
from apportion.core.stages import admits, lasting_ns
from apportion.region.plans import HeldPlan
from apportion.region.quotas import QuotaTable
from apportion.region.sessions import AllocatorSession, EdgeSession

COLUMNS_KEPT = 5
"""Last slices kept of each edge: which of them it had when it was cut off is not known."""

REPORT_EPOCHS = 3
"""A plan of an epoch so far beyond the edge's latest report may not have reached it any more."""

MUTE_EPOCHS = 6
"""An attached edge whose reports stay out for so long is taken off: it has not heard this replica either."""


@dataclass(slots=True)
class Memory:
    """One edge. `slices`: its last ones by name, once they are some epochs old; until then `columns` has them by id."""

    incarnation: int
    reported: int
    gone: int | None = None
    columns: deque[tuple[int, Ids, Units]] = field(default_factory=lambda: deque(maxlen=COLUMNS_KEPT))
    slices: dict[Quota, int] = field(default_factory=dict)


class EdgeMemory:
    """Every edge that may still spend something, by its id."""

    def __init__(self, ruleset: RuleSet, table: QuotaTable) -> None:
        self._table = table
        self._edges: dict[str, Memory] = {}
        self.adopt(ruleset)

    def adopt(self, ruleset: RuleSet) -> None:
        """Go by other rules from now on."""
        rules = ruleset.rules
        self.needed = any(admits(rule) for rule in rules)
        self._epochs = max(map(lasting_ns, rules), default=0) // EPOCH_NS + MUTE_EPOCHS

    def attached(self, edge: EdgeSession, epoch: int) -> None:
        """An edge's stream is open; what an earlier process of it was given may still be on its disk."""
        memory = self._edges.setdefault(edge.hello.edge, Memory(edge.incarnation, epoch - 1))
        memory.incarnation, memory.gone = edge.incarnation, None

    def gone(self, edge: EdgeSession, epoch: int, left: bool) -> Remembered | None:
        """An edge's stream is over; returns what allocators are to be told if it left in good order."""
        memory = self._edges.get(edge.hello.edge)
        if memory is None or memory.incarnation != edge.incarnation:
            return None
        if not left:
            memory.gone = epoch
            return None
        del self._edges[edge.hello.edge]
        return Remembered(edge.hello.edge, edge.incarnation, memory.reported, epoch, left=True)

    def reported(self, edge: EdgeSession, epoch: int) -> None:
        """An edge reported that epoch."""
        memory = self._edges.get(edge.hello.edge)
        if memory is not None and memory.incarnation == edge.incarnation:
            memory.reported = max(memory.reported, epoch)

    def planned(self, plan: HeldPlan) -> None:
        """A plan is in hand: its columns are the last slices of the edges that it may reach."""
        if not self.needed:
            return
        for memory in self._edges.values():
            if memory.reported >= plan.epoch - REPORT_EPOCHS:
                memory.slices = {}
                memory.columns.append((plan.epoch, *plan.column(memory.incarnation)))

    def roll(self, epoch: int) -> None:
        """A new epoch: keep by name what is old, since ids are used again; forget whose stages have run out."""
        for name, memory in list(self._edges.items()):
            if memory.columns and memory.columns[-1][0] < epoch - COLUMNS_KEPT:
                memory.slices = self._by_name(memory)
                memory.columns.clear()
            if memory.gone is not None and memory.gone < epoch - self._epochs:
                del self._edges[name]

    def mute(self, edges: Iterable[EdgeSession], epoch: int) -> list[EdgeSession]:
        """The attached edges that are taken off since nothing was heard of them for too long."""
        return [edge for edge in edges if _heard(edge) < epoch - MUTE_EPOCHS] if self.needed else []

    def away(self) -> list[tuple[str, int]]:
        """Edges whose stream ended, not in good order, and has not come back: name, and the epoch in which it ended."""
        return sorted((name, memory.gone) for name, memory in self._edges.items() if memory.gone is not None)

    def tell(self, peer: AllocatorSession, epoch: int) -> list[Remembered]:
        """All of it, for one allocator."""
        told = []
        for name, memory in self._edges.items() if self.needed else ():
            slices = self._by_name(memory) if memory.columns else memory.slices
            known = [(found, units) for quota, units in slices.items() if (found := self._table.find(quota, epoch))]
            ids = np.array([found.id for found, _ in known], np.uint32)
            units = np.array([units for _, units in known], np.uint64)
            names = peer.declared.names_for(ids, self._table)
            told.append(Remembered(name, memory.incarnation, memory.reported, memory.gone, False, names, ids, units))
        return told

    def _by_name(self, memory: Memory) -> dict[Quota, int]:
        slices: dict[Quota, int] = {}
        for _, ids, units in memory.columns:
            for identity, each in zip(ids.tolist(), units.tolist(), strict=True):
                known = self._table.by_id(identity)
                if known is not None:
                    slices[known.quota] = max(each, slices.get(known.quota, 0))
        return slices


def _heard(edge: EdgeSession) -> int:
    """The last epoch of which an edge was heard: by a report, or since its stream was only opened after it."""
    return max(edge.last_report, edge.attached_epoch - 1)


def spending(report: Report) -> Iterator[tuple[int, int, int, int]]:
    """Rows of what an edge spent: id, label, units, and how many of them no slice or loan covered."""
    degraded = report.spent_degraded if len(report.spent_degraded) else np.zeros(len(report.spent), np.uint64)
    columns = (report.spent_ids, report.spent_epoch, report.spent, degraded)
    return zip(*(column.tolist() for column in columns), strict=True)
