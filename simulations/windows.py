"""The checkers over a run whose log is too long to keep: window after window of it, each half of it the next one's too.

A window judges labels that it has from their beginning on: what an edge was given of one comes some seconds before it.
What was admitted before a window is not known in it, so it is milder than a whole log to what goes on for longer; the
meters of `fold` go on.
"""

from __future__ import annotations

from collections import deque

from apportion.core.rule import RuleSet
from apportion.region.rollup import Rollup
from apportion.simulations.checkers import judge
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.rows import Anchored, Counted, Issued, Ruled
from apportion.simulations.sums import Sums
from apportion.simulations.violation import Violation

HALF_S = 30
"""Half of a window: no unit of a label is charged so long after it."""

AHEAD_EPOCHS = 5
"""So long before its epoch begins nothing of a label is given."""

VIOLATIONS_MAX = 100
"""More are not told: one would do."""


class Windows:
    """`first`: the epoch in which traffic begins."""

    def __init__(self, rules: RuleSet, first: int) -> None:
        self._limits = InForce(rules, ())
        self._first = first
        self._logs: deque[Log] = deque(maxlen=2 * HALF_S)
        self._anchored: list[Anchored] = []
        self._largest: dict[tuple[int, bytes], Issued] = {}
        self._found: dict[Violation, None] = {}

    def take(self, log: Log, second: int, rollup: Rollup) -> None:
        """Take the log of one second of the run, the `second`-th from 0. `rollup`: as the region has it now."""
        for row in log.rows:
            if isinstance(row, Ruled):
                self._limits.add(row)
            elif isinstance(row, Anchored):
                self._anchored.append(row)
        self._logs.append(log)
        if second % HALF_S == HALF_S - 1:
            self._judge(second, rollup)

    def finish(self, second: int, log: Log, rollup: Rollup) -> tuple[Violation, ...]:
        """Take what is told at the end, after so many seconds; everything that was wrong."""
        self._logs.append(log)
        self._judge(second, rollup)
        return tuple(self._found)[:VIOLATIONS_MAX]

    def _judge(self, second: int, rollup: Rollup) -> None:
        begun = second + 1 - len(self._logs)
        since = self._first + begun + AHEAD_EPOCHS if begun > 0 else 0
        window = Log()
        carried: list[Anchored | Issued] = [*self._anchored, *self._largest.values()]
        for row in carried:
            if row.epoch < since:
                window.add(row)
        for log in self._logs:
            window.extend(log, since)
        for each in rollup.rows(since):
            window.add(Counted(each.store_key, each.epoch, each.units))
        sums = Sums(window)
        if len(self._found) < VIOLATIONS_MAX:
            self._found.update(dict.fromkeys(judge(sums, self._limits)))
        self._keep_largest(window, sums)

    def _keep_largest(self, window: Log, sums: Sums) -> None:
        """A stage lets an edge that is cut off spend of each label what its largest slice was, however long ago."""
        largest: dict[tuple[int, bytes], Issued] = {}
        for row in window.rows:
            if isinstance(row, Issued) and not row.lent and row.quota in sums.quotas:
                at = row.incarnation, row.quota
                largest[at] = max(row, largest.get(at, row), key=_units)
        self._largest = largest


def _units(row: Issued) -> int:
    return row.units
