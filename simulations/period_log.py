"""What an event log says of quotas of a period: who was charged in which period, worked out again from the instants of
the store's clocks and the rules alone, never from what a counter said. Nothing is judged here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from apportion.core.counter import PARTS
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit, ceil_div
from apportion.core.periods import period_name
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log, Numbers
from apportion.simulations.rows import Clocked, Filed, GaveBack, Kept, Lifetimes, Rare, Tallied, Told
from apportion.simulations.sums import Name, named


class Clocks:
    """What the store's clocks show at instants of virtual time."""

    def __init__(self, rows: Iterable[Clocked]) -> None:
        self._rows: Numbers = np.array(list(rows), np.int64).reshape(-1, 5).T

    def store_ns(self, at_ns: Numbers) -> Numbers:
        """Store time."""
        return self._shown(at_ns, 1, 3)

    def wall_ns(self, at_ns: Numbers) -> Numbers:
        """The wall clock."""
        return self._shown(at_ns, 2, 4)

    def _shown(self, at_ns: Numbers, shown: int, fast: int) -> Numbers:
        rows = self._rows
        last = np.maximum(np.searchsorted(rows[0], at_ns, side="right") - 1, 0)
        passed = at_ns - rows[0][last]
        found: Numbers = rows[shown][last] + passed + passed * rows[fast][last] // 1_000_000
        return found

    @property
    def steps(self) -> list[tuple[int, int]]:
        """When a region started or the wall clock was set, and by how much, in ns."""
        at_ns = self._rows[0]
        before = self.wall_ns(at_ns - 1) + 1
        return list(zip(at_ns.tolist(), np.abs(self._rows[2] - before).tolist(), strict=True))


@dataclass(slots=True)
class Span:
    """A period with charges: from `start_ns` until before `end_ns` by the clock of its anchor. `at_ns`, `sums`: when
    something was charged or given back, of virtual time, and what was used from then on; `peak`: the most of it.
    """

    start_ns: int
    end_ns: int
    used: int = 0
    peak: int = 0
    at_ns: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)

    def add(self, at_ns: int, units: int) -> None:
        """Charge units, or take some back."""
        self.used += units
        self.peak = max(self.peak, self.used)
        self.at_ns.append(at_ns)
        self.sums.append(self.used)

    def used_at(self, at_ns: int) -> int:
        """What was used at an instant."""
        before = bisect_right(self.at_ns, at_ns)
        return self.sums[before - 1] if before else 0


@dataclass(slots=True)
class Refused:
    """A request that the store refused: when, its cost, what had been used and what may be."""

    at_ns: int
    cost: int
    used: int
    allowance: int


class Use:
    """What was used of one quota; `limit` has the largest allowance that was in force, `least` is the smallest.

    `spans` in the order in which they were begun; of a rolling quota instead `times` of store time and the `costs`
    charged then. `refused`: what the store refused, whether rightly or not. `net`: charged less what was given back,
    `lent` of that ahead; `returned_ns`: when something was.
    """

    def __init__(self, limit: PeriodLimit, rule: str, key: tuple[str, ...]) -> None:
        self.limit, self.rule, self.key = limit, rule, key
        self.spans: dict[int, Span] = {}
        self.times: list[int] = []
        self.costs: list[int] = []
        self.refused: list[Refused] = []
        self.least = limit.units
        self.net = self.lent = 0
        self.returned_ns: list[int] = []
        self._newest: Span | None = None
        self._sums = [0]

    @property
    def rolling(self) -> bool:
        """Whether there are no periods."""
        return self.limit.anchor is PeriodAnchor.ROLLING

    def tally(self, row: Tallied, allowance: int) -> None:
        """Take what the store decided next; `allowance`: the least that was in force."""
        self.least = min(self.least, allowance)
        self.net += row.units
        self.lent += row.units if row.lent else 0
        if row.units:
            self._charge(row)
        if row.refused:
            used = self.used_by(row.at_ns, row.store_ns, row.wall_ns)
            self.refused.append(Refused(row.at_ns, row.cost, used, allowance))

    def _charge(self, row: Tallied) -> None:
        if self.rolling:
            self.times.append(row.store_ns)
            self.costs.append(row.units)
            self._sums.append(self._sums[-1] + row.units)
            return
        span = self.span(row.store_ns, row.wall_ns)
        if span is None:
            span = self._newest = self._begun(row)
            self.spans[span.start_ns] = span
        span.add(row.at_ns, row.units)

    def _begun(self, row: Tallied) -> Span:
        if self.limit.anchor is PeriodAnchor.FIRST_USE:
            return Span(row.store_ns, self.limit.ends_ns(row.store_ns))
        period = self.limit.calendar.period(row.wall_ns // EPOCH_NS)
        return Span(period.start_s * EPOCH_NS, period.end_s * EPOCH_NS)

    def give_back(self, row: GaveBack) -> None:
        """Take units back of the period of that name."""
        limit = self.limit
        for span in self.spans.values():
            if period_name(span.start_ns // EPOCH_NS, limit.multiple, limit.unit) == row.period:
                span.add(row.at_ns, -row.units)
        self.net -= row.units
        self.lent -= row.units
        self.returned_ns.append(row.at_ns)

    def span(self, store_ns: int, wall_ns: int) -> Span | None:
        """The period under way when the clocks show that; None: nothing was charged of it."""
        at_ns = wall_ns if self.limit.anchor is PeriodAnchor.CALENDAR else store_ns
        newest = self._newest
        if newest is not None and newest.start_ns <= at_ns < newest.end_ns:
            return newest
        return next((span for span in self.spans.values() if span.start_ns <= at_ns < span.end_ns), None)

    def used_by(self, at_ns: int, store_ns: int, wall_ns: int) -> int:
        """What counts at an instant, by all three clocks; of a rolling quota the oldest part of the window whole."""
        if not self.rolling:
            span = self.span(store_ns, wall_ns)
            return span.used_at(at_ns) if span is not None else 0
        part_ns = ceil_div(self.limit.length_ns, PARTS)
        first = bisect_right(self.times, store_ns - (PARTS + 1) * part_ns)
        return self._sums[bisect_right(self.times, store_ns)] - self._sums[first]

    def most(self) -> int:
        """The most that was used of any one period, or in any window, tried one by one."""
        if not self.rolling:
            return max((span.peak for span in self.spans.values()), default=0)
        length_ns, found, first = self.limit.length_ns, 0, 0
        for last, at_ns in enumerate(self.times):
            while self.times[first] <= at_ns - length_ns:
                first += 1
            found = max(found, self._sums[last + 1] - self._sums[first])
        return found


class PeriodLog:
    """All of a log that is of quotas of a period; `uses` by what the store files a quota under. `filed`: when counters
    were made and reclaimed, by rule. `told`: by rule and key, what callers were told to wait.
    """

    def __init__(self, log: Log, limits: InForce) -> None:
        self.limits = limits
        self.uses: dict[bytes, Use] = {}
        self.kept: list[Kept] = []
        self.told: dict[Name, list[Told]] = {}
        self.made: Counter[tuple[str, int]] = Counter()
        self.reclaimed: Counter[tuple[str, int]] = Counter()
        self.lifetimes = Lifetimes(0, 0)
        self.clocks = Clocks(row for row in log.rows if isinstance(row, Clocked))
        for row in log.rows:
            self._add(row)

    def _add(self, row: Rare) -> None:
        match row:
            case Tallied():
                self._tally(row)
            case GaveBack() if row.quota in self.uses:
                self.uses[row.quota].give_back(row)
            case Filed():
                (self.made if row.made else self.reclaimed)[named(row.quota)[0], row.at_ns // EPOCH_NS] += 1
            case Kept():
                self.kept.append(row)
            case Lifetimes():
                self.lifetimes = row
            case Told():
                self.told.setdefault((row.rule, row.key), []).append(row)

    def _tally(self, row: Tallied) -> None:
        name, key = named(row.quota)
        found = [rule.limit for rule in self.limits.rules(name, row.epoch, key)]
        in_force = [limit for limit in found if isinstance(limit, PeriodLimit)]
        if not in_force:
            return
        use = self.uses.get(row.quota)
        if use is None:
            use = self.uses[row.quota] = Use(in_force[-1], name, key)
        if in_force[-1].units > use.limit.units:
            use.limit = in_force[-1]
        use.tally(row, min(limit.units for limit in in_force))

    def of_rule(self, name: str) -> list[Use]:
        """The quotas of one rule."""
        return [use for use in self.uses.values() if use.rule == name]
