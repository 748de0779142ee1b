"""The figures and series of a run whose log is too long to keep: rows go in second by second, and are forgotten.

What stays is by second and edge (numbers), and what is still open: labels and keys of the last seconds. Says the same
as `measures` and `series` say of a whole log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from apportion.core.limit import EPOCH_NS
from apportion.core.meter import Meter
from apportion.core.rule import RuleSet
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.measures import RuleFigures, figures_of, metered, overshoot_in_a_second
from apportion.simulations.rows import Issued, Returned, Row, Ruled, Sliced
from apportion.simulations.rule_log import RuleLog, Series, logs_of, sort_log
from apportion.simulations.series import Over, RuleSeries, add_issued, rule_series

OPEN_EPOCHS = 30
"""Units of an older label are charged no more: an edge maps epochs within milliseconds, stages end by seconds."""

CLOSED_EVERY_S = 10
"""How often what is closed is forgotten."""

ROOM_S = 4_096
"""Seconds of the series at first; doubled when they are full."""


@dataclass(slots=True)
class _Folded:
    """One rule: its rows that are still open in `log`, and what the closed ones came to."""

    log: RuleLog
    issued: Series
    meters: dict[tuple[str, ...], tuple[Meter, int]] = field(default_factory=dict)
    over: dict[int, int] = field(default_factory=dict)
    keys: int = 1
    worst_second: int = 0
    column: tuple[int, Counter[int]] | None = None
    moved: list[float] = field(default_factory=list)
    unspent: list[float] = field(default_factory=list)


class Fold:
    """`first`: the epoch in which traffic begins, at `begun_ns`."""

    def __init__(self, rules: RuleSet, edges: int, begun_ns: int, first: int) -> None:
        self.requests = 0
        self._rules = rules
        self._begun_ns = begun_ns
        self._first = first
        self._limits = InForce(rules, ())
        names = [f"edge-{at}" for at in range(edges)]
        self._logs = logs_of(Log(), rules, self._limits, names, ROOM_S, begun_ns)
        self._folded = {name: _Folded(log, np.zeros((ROOM_S, edges))) for name, log in self._logs.items()}
        self._places: dict[int, int] = {}

    def take(self, log: Log, second: int) -> None:
        """Take the log of one second of the run, the `second`-th from 0."""
        self.requests += int(log.offers().first.sum())
        for row in log.rows:
            if isinstance(row, Sliced):
                self._places[row.incarnation] = int(row.edge.removeprefix("edge-"))
            elif isinstance(row, Ruled):
                self._limits.add(row)
        for folded in self._folded.values():
            while len(folded.issued) <= second + OPEN_EPOCHS:
                _double(folded)
            at_ns = self._begun_ns + second * EPOCH_NS
            folded.log.limits[second : second + 2] = self._limits.per_second(folded.log.rule.name, at_ns)
        self._take_issued(log.rows)
        sort_log(self._logs, log)
        if second % CLOSED_EVERY_S == 0:
            self._close(second, self._first + second - OPEN_EPOCHS)

    def finish(
        self, seconds: int, warm_up: int, changes: Sequence[int]
    ) -> tuple[tuple[RuleFigures, ...], tuple[RuleSeries, ...]]:
        """Figures and series of a run of so many seconds. Nothing is taken after it."""
        self._close(seconds, self._first + len(next(iter(self._folded.values())).issued))
        figures, series = [], []
        for folded in self._folded.values():
            log = folded.log
            _resize(folded, seconds)
            limit = log.limit if 0 < log.limit < np.inf else 1.0
            found = replace(
                figures_of(log, warm_up, changes, self._rules.edges_max),
                overshoot_label=max(folded.over.values(), default=0),
                overshoot_true_second=folded.worst_second,
                churn=float(np.mean(folded.moved[warm_up:] or [0.0]) / limit),
                stranded_share=float(np.mean(folded.unspent[warm_up:] or [0.0]) / limit),
            )
            over = [Over(epoch - self._first + 0.5, units) for epoch, units in sorted(folded.over.items())]
            figures.append(found)
            series.append(rule_series(found, log, folded.keys, folded.issued, over))
        return tuple(figures), tuple(series)

    def _take_issued(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if isinstance(row, Issued | Returned) and row.incarnation in self._places:
                add_issued(self._folded[row.rule].issued, row, self._first, self._places[row.incarnation])

    def _close(self, second: int, before: int) -> None:
        """Forget labels and slices of epochs `before` that, and rows more than a second old."""
        for folded in self._folded.values():
            log = folded.log
            log.settle()
            folded.keys = max(folded.keys, len(log.labels))
            folded.worst_second = max(folded.worst_second, overshoot_in_a_second(log))
            recent = np.searchsorted(log.times, self._begun_ns + (second - 1) * EPOCH_NS)
            log.forget_charges(int(recent))
            _close_labels(folded, before)
            _close_slices(folded, before)


def _close_labels(folded: _Folded, before: int) -> None:
    log = folded.log
    for key in list(log.labels):
        labels = log.labels[key]
        meter, _ = folded.meters.get(key) or (None, 0)
        for epoch in sorted(epoch for epoch in labels if epoch < before):
            meter, over = metered(log, meter, key, epoch, labels.pop(epoch))
            if over:
                folded.over[epoch] = max(folded.over.get(epoch, 0), over)
            if meter is not None:
                folded.meters[key] = meter, epoch
        if not labels:
            del log.labels[key]
    for key, (meter, last) in list(folded.meters.items()):
        if key not in log.labels and last + meter.limit.drain_ns // EPOCH_NS + 2 < before:
            del folded.meters[key]


def _close_slices(folded: _Folded, before: int) -> None:
    log = folded.log
    for epoch in sorted(epoch for epoch in log.given if epoch < before):
        folded.unspent.append(max(0, log.given.pop(epoch) - log.spent_at_edges.pop(epoch, 0)))
        column = log.slices.pop(epoch, None)
        if column is None:
            continue
        if folded.column is not None and folded.column[0] == epoch - 1:
            former = folded.column[1]
            folded.moved.append(sum(abs(former[at] - column[at]) for at in former.keys() | column.keys()) / 2)
        folded.column = epoch, column
    for epoch in [epoch for epoch in log.spent_at_edges if epoch < before]:
        del log.spent_at_edges[epoch]


def _double(folded: _Folded) -> None:
    _resize(folded, 2 * len(folded.issued))


def _resize(folded: _Folded, seconds: int) -> None:
    """Give the series another length; what is new is zero."""
    log = folded.log
    for name in ("requests", "offered", "admitted", "refused_at_edge", "crossings", "may", "limits"):
        setattr(log, name, _resized(getattr(log, name), seconds))
    folded.issued = _resized(folded.issued, seconds)
    log.seconds = seconds


def _resized(series: Series, seconds: int) -> Series:
    found = np.zeros((seconds, *series.shape[1:]))
    kept = min(seconds, len(series))
    found[:kept] = series[:kept]
    return found
