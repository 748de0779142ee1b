"""Reports: one per epoch, numbered, kept until the region says it has them (design 5.8). Pure.

Demand is offered cost that no other rule refused. Spent are units of slices and borrowed units, by label: what settles
after its epoch's report went out goes with a later report, under its own label. Nothing is counted twice, and what is
never acknowledged is counted by the region as spent in full.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from apportion.core.key import encode_key
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import Ids, Quota, Report, Units
from apportion.core.request import Application
from apportion.core.space_saving import Counted, SpaceSaving
from apportion.edge.holding import Holding
from apportion.edge.holdings import KEY_CHARACTERS_MAX, declare
from apportion.edge.holdings import Key as RuleKey

LATEST_NS = 300_000_000
"""A report leaves at most this long after its epoch's end, whatever still waits."""

UNACKNOWLEDGED_MAX = 120
"""Reports kept that are not acknowledged; an older one is given up, and its units stay counted as spent."""

PENDING_ROWS_MAX = 1_000_000
"""Rows of all of them, about 150 bytes each: ten seconds of 50,000 quotas in use. The oldest reports are given up
first, the latest never."""

HEAVY_MAX = 20
"""Quotas of which a report says that most was refused; `proto.wire_limits` has the same."""

DEGRADED_RULES_MAX = 1_024
"""Rules of which a report says how many answers were degraded; `proto.wire_limits` has the same."""

HEAVY_COUNTERS = 256
"""A quota with more than a 256th of what an epoch refused is sure to be among those counted."""

SPENT_MAX = 500_000
"""Quotas times labels of spending not reported yet, about 200 bytes each; of more, the oldest labels are given up."""

DEMAND_EPOCHS_KEPT = 2
"""Demand of longer ago divides nothing any more."""

RESEND_NS = EPOCH_NS
"""A report without an answer is sent again on the same stream after this."""

AGAIN_MAX = 10
"""None is sent again while so many are under way, or what an outage of the store costs would grow with its length."""


@dataclass(slots=True)
class Pending:
    """A closed report. `sent_ns` None: not yet sent on the present stream."""

    number: int
    epoch: int
    demand: tuple[tuple[Holding, int], ...]
    spent: tuple[tuple[Holding, int, int, int], ...]
    crossings: int
    degraded: int
    over_threshold: tuple[int, ...] = ()
    most_refused: tuple[Counted[Quota], ...] = ()
    degraded_rules: tuple[tuple[str, str, int], ...] = ()
    sent_ns: int | None = None

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.demand) + len(self.spent)


class Reports:
    """Counts demand and spending, closes epochs into reports, and says which to send. `given_up`: reports, since the
    start, that the region will never have.
    """

    def __init__(self) -> None:
        self.given_up = 0
        self._demand: dict[int, dict[Holding, int]] = {}
        self._over_threshold: dict[int, dict[Holding, int]] = {}
        self._spent: dict[tuple[Holding, int], int] = {}
        self._beyond: dict[tuple[Holding, int], int] = {}
        self._refused: SpaceSaving[RuleKey] = SpaceSaving(HEAVY_COUNTERS)
        self._crossings = 0
        self._degraded = 0
        self._degraded_rules: Counter[tuple[str, str]] = Counter()
        self._numbers = 0
        self._open: int | None = None
        self._pending: OrderedDict[int, Pending] = OrderedDict()

    @property
    def open_epoch(self) -> int | None:
        """The earliest epoch whose report is not closed yet."""
        return self._open

    def demand(self, epoch: int, holding: Holding, cost: int) -> None:
        """Count demand under the epoch in which it arrived, or under the open one if that is reported already."""
        if self._open is None:
            self._open = epoch
        label = epoch if epoch > self._open else self._open
        rows = self._demand.get(label)
        if rows is None:
            rows = self._demand[label] = {}
        rows[holding] = rows.get(holding, 0) + cost

    def admit(self, epoch: int, holding: Holding, cost: int) -> None:
        """Count demand that was served at once from what was held under its label."""
        self.demand(epoch, holding, cost)
        row = holding, epoch
        spent = self._spent
        spent[row] = spent.get(row, 0) + cost

    def refuse_above(self, epoch: int, holding: Holding, cost: int) -> None:
        """Count demand, counted as such already, that was refused above a threshold without asking the region."""
        assert self._open is not None
        rows = self._over_threshold.setdefault(max(epoch, self._open), {})
        rows[holding] = rows.get(holding, 0) + cost

    def refuse(self, application: Application) -> None:
        """Count what a rule refused, since the last report: also of a quota that nobody counts, as where it is 0."""
        rule, cost = application.rule, application.cost
        if rule.cost_max is not None and cost > rule.cost_max:
            cost = max(rule.cost_max, 1)  # or one absurd cost would hide all others
        long = sum(map(len, application.key)) > KEY_CHARACTERS_MAX
        values = encode_key(application.key) if long else application.key
        self._refused.add((rule.domain, rule.name, values), cost)

    def spend(self, holding: Holding, label: int, units: int, beyond: int = 0) -> None:
        """Count units spent under `label`, `beyond` of them covered by no slice or loan."""
        row = holding, label
        self._spent[row] = self._spent.get(row, 0) + units
        if beyond:
            self._beyond[holding, label] = self._beyond.get((holding, label), 0) + beyond

    def cross(self) -> None:
        """Count one crossing."""
        self._crossings += 1

    def degrade(self, rules: Iterable[tuple[str, str]]) -> None:
        """Count one answer that was degraded in these rules, by domain and name."""
        self._degraded += 1
        self._degraded_rules.update(rules)

    def started(self, epoch: int) -> None:
        """The edge's epoch is known to be `epoch`; nothing before the first will be reported. While the region is away,
        what was asked for long ago is forgotten, and at last what was spent, too.
        """
        if self._open is None:
            self._open = epoch
        for old in [each for each in self._demand if each < epoch - DEMAND_EPOCHS_KEPT]:
            del self._demand[old]
            self._over_threshold.pop(old, None)
        while len(self._spent) > SPENT_MAX:
            oldest = min(label for _, label in self._spent)
            self._spent = {row: units for row, units in self._spent.items() if row[1] > oldest}
            self._beyond = {row: units for row, units in self._beyond.items() if row[1] > oldest}

    def relabel(self, shift: int) -> None:
        """Every epoch so far was counted by this edge alone: `shift` later is what the region calls it."""
        self._open = None if self._open is None else self._open + shift
        self._demand = {epoch + shift: rows for epoch, rows in self._demand.items()}
        self._over_threshold = {epoch + shift: rows for epoch, rows in self._over_threshold.items()}
        self._spent = {(holding, label + shift): units for (holding, label), units in self._spent.items()}
        self._beyond = {(holding, label + shift): units for (holding, label), units in self._beyond.items()}

    def close(self, epoch: int) -> None:
        """Close the report of the open epoch, which is `epoch`; epochs passed over get no report."""
        assert self._open is not None
        assert epoch >= self._open
        demand: dict[Holding, int] = {}
        for each in [each for each in self._demand if each <= epoch]:
            for holding, cost in self._demand.pop(each).items():
                demand[holding] = demand.get(holding, 0) + cost
        refused: dict[Holding, int] = {}
        for each in [each for each in self._over_threshold if each <= epoch]:
            for holding, cost in self._over_threshold.pop(each).items():
                refused[holding] = refused.get(holding, 0) + cost
        above = tuple(refused.get(holding, 0) for holding in demand) if refused else ()
        spent = [
            (holding, label, units, self._beyond.pop((holding, label), 0))
            for (holding, label), units in self._spent.items()
            if label <= epoch
        ]
        for holding, label, _, _ in spent:
            del self._spent[holding, label]
        self._numbers += 1
        rows = tuple(demand.items()), tuple(spent)
        counts = self._crossings, self._degraded
        degraded = tuple((*name, count) for name, count in self._degraded_rules.most_common(DEGRADED_RULES_MAX))
        pending = Pending(self._numbers, epoch, *rows, *counts, above, _heaviest(self._refused), degraded)
        self._crossings = self._degraded = 0
        self._degraded_rules.clear()
        self._refused = SpaceSaving(HEAVY_COUNTERS)
        self._pending[pending.number] = pending
        self._open = epoch + 1
        self._give_up()

    def _give_up(self) -> None:
        """Let go of the oldest reports above what is kept; the latest stays."""
        rows = sum(pending.rows for pending in self._pending.values())
        while len(self._pending) > 1 and (len(self._pending) > UNACKNOWLEDGED_MAX or rows > PENDING_ROWS_MAX):
            _, oldest = self._pending.popitem(last=False)
            rows -= oldest.rows
            self.given_up += 1

    def acknowledge(self, number: int) -> None:
        """The region has report `number`."""
        self._pending.pop(number, None)

    def again_ns(self, now_ns: int) -> int:
        """When `to_send` has something next if nothing is acknowledged, after it had all at `now_ns`."""
        # What was held back waits for one that is under way, or for its answer.
        sent = [pending.sent_ns for pending in self._pending.values() if pending.sent_ns is not None]
        return min((each for each in sent if now_ns - each < RESEND_NS), default=now_ns) + RESEND_NS

    def to_send(self, now_ns: int) -> list[Pending]:
        """Reports to send now, oldest first; counted as sent."""
        if not self._pending:
            return []
        due = [pending for pending in self._pending.values() if pending.sent_ns is None]
        again = [
            (pending.sent_ns, number)
            for number, pending in self._pending.items()
            if pending.sent_ns is not None and now_ns - pending.sent_ns >= RESEND_NS
        ]
        if again:
            under_way = len(self._pending) - len(due) - len(again)
            due += [self._pending[number] for _, number in sorted(again)[: max(AGAIN_MAX - under_way, 0)]]
            due.sort(key=lambda pending: pending.number)
        for pending in due:
            pending.sent_ns = now_ns
        return due

    def new_stream(self) -> None:
        """The former stream is gone: whatever is not acknowledged must be sent again."""
        for pending in self._pending.values():
            pending.sent_ns = None


def encode(pending: Pending, stream: int) -> Report:
    """The report as it is sent on that stream, with the declarations that the stream still needs."""
    named = [holding for holding, _ in pending.demand] + [holding for holding, _, _, _ in pending.spent]
    beyond = [units for _, _, _, units in pending.spent]
    demand_ids, demand = columns(pending.demand)
    return Report(
        pending.number,
        pending.epoch,
        declare(named, stream),
        demand_ids,
        demand,
        np.array([holding.id for holding, _, _, _ in pending.spent], np.uint32),
        np.array([label for _, label, _, _ in pending.spent], np.uint64),
        np.array([units for _, _, units, _ in pending.spent], np.uint64),
        pending.crossings,
        pending.degraded,
        np.array(beyond if any(beyond) else [], np.uint64),
        np.array(pending.over_threshold, np.uint64),
        pending.most_refused,
        pending.degraded_rules,
    )


def _heaviest(refused: SpaceSaving[RuleKey]) -> tuple[Counted[Quota], ...]:
    return tuple(
        Counted(Quota(domain, rule, key if isinstance(key, bytes) else encode_key(key)), counted.units, counted.error)
        for counted in refused.heaviest(HEAVY_MAX)
        for domain, rule, key in (counted.key,)
    )


def columns(rows: Sequence[tuple[Holding, int]]) -> tuple[Ids, Units]:
    """Rows of a message: ids and units."""
    return (
        np.array([holding.id for holding, _ in rows], np.uint32),
        np.array([units for _, units in rows], np.uint64),
    )
