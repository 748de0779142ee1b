"""The referee: sums what answers say was charged, by quota and epoch label, and meters it. Pure; time is an argument.

It believes nothing but answers: neither what an edge counts nor what the region sums. `compare` then holds the region's
own sum against it. Labels are placed on the caller's clock by the first answer that bears each.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

from apportion.core.epoch import EpochClock
from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.meter import Meter

WARM_UP_EPOCHS = 10
"""Whole epochs that utilisation leaves out at the start."""

SETTLE_NS = 200_000_000
"""An edge's epoch may end a little later than this process thinks: more than any mapping error on one machine."""


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Admitted / min(offered, limit) over `epochs` whole epochs behind `warm_up` ones; None where there are none.

    1 at most: what a saved burst lets through beyond that shows no better use of the limit.
    """

    value: float | None
    warm_up: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the meter says of the labels whose answers are in; see `Meter`. `through` is the last of those labels."""

    overshoot: int
    above_quota: int | None
    through: int | None


class Tally:
    """One quota: what was offered and admitted. Units are cost."""

    __slots__ = (
        "_arrived",
        "_arrived_units",
        "_within",
        "_within_units",
        "admitted",
        "by_label",
        "degraded",
        "divided",
        "limit",
        "offered",
        "offered_by_epoch",
        "refused",
        "unanswered",
        "unlabelled",
        "worst_arrived",
        "worst_within",
    )

    def __init__(self, limit: RateLimit, divided: bool) -> None:
        self.limit = limit
        self.divided = divided
        self.offered = 0
        self.admitted = 0
        self.refused = 0
        self.unanswered = 0
        self.unlabelled = 0
        self.degraded = 0
        self.by_label: dict[int, int] = defaultdict(int)
        self.offered_by_epoch: dict[int, int] = defaultdict(int)
        self.worst_arrived = 0
        self.worst_within = 0
        self._arrived: deque[tuple[int, int]] = deque()  # (arrived, units)
        self._arrived_units = 0
        self._within: list[tuple[int, int]] = []  # a heap of (sent, units)
        self._within_units = 0

    def true_second(self, units: int, sent_ns: int, now_ns: int) -> None:
        """Slide the real second up to the arrival of an answer that admits `units` of a request sent at `sent_ns`."""
        self._arrived.append((now_ns, units))
        self._arrived_units += units
        while self._arrived[0][0] <= now_ns - EPOCH_NS:
            self._arrived_units -= self._arrived.popleft()[1]
        self.worst_arrived = max(self.worst_arrived, self._arrived_units)
        heappush(self._within, (sent_ns, units))
        self._within_units += units
        while self._within and self._within[0][0] <= now_ns - EPOCH_NS:
            self._within_units -= heappop(self._within)[1]
        self.worst_within = max(self.worst_within, self._within_units)

    @property
    def overshoot_true_second(self) -> int:
        """The most that was admitted in any real second by the arrival of the answers, over rate x 1 s + burst.

        Delays of answers are in it: where they vary, more answers may arrive in a second than were decided in one.
        """
        return self._over_a_second(self.worst_arrived)

    @property
    def overshoot_true_second_certain(self) -> int:
        """The same of requests that were sent and answered within that second: decided in it, whatever the delays."""
        return self._over_a_second(self.worst_within)

    def _over_a_second(self, units: int) -> int:
        """Units, rounded up, over what the limit entitles to in a second."""
        limit = self.limit
        over = (units - limit.burst) * limit.period_ns - limit.units * EPOCH_NS
        return max(0, ceil_div(over, limit.period_ns))

    def verdict(self, through: int | None) -> Verdict:
        """Meter every label up to `through`, in order; None: nothing can be metered yet."""
        meter = Meter(self.limit, self.divided)
        if through is not None:
            for label in sorted(self.by_label):
                if label <= through:
                    meter.record(label, self.by_label[label])
        return Verdict(meter.worst, meter.above_quota, through)

    def utilisation(self, first: int, last: int) -> Utilisation:
        """Over the whole epochs `first` to `last` less the warm-up, which in a short run is half of them."""
        count = max(0, last - first + 1)
        warm_up = WARM_UP_EPOCHS if count > WARM_UP_EPOCHS else count // 2
        measured = range(first + warm_up, last + 1)
        offered = sum(self.offered_by_epoch.get(epoch, 0) for epoch in measured)
        quota = len(measured) * self.limit.units * EPOCH_NS / self.limit.period_ns
        possible = min(offered, quota)
        admitted = sum(self.by_label.get(epoch, 0) for epoch in measured)
        return Utilisation(min(1.0, admitted / possible) if possible else None, warm_up, len(measured))


class Referee:
    """Takes note of requests and answers; `tallies` in the order of the questions."""

    def __init__(self, limits: list[tuple[RateLimit, bool]]) -> None:
        self.tallies = [Tally(limit, divided) for limit, divided in limits]
        self.first_label: int | None = None
        self._clock = EpochClock()

    def sent(self, question: int, cost: int, now_ns: int) -> None:
        """A request was sent."""
        tally = self.tallies[question]
        tally.offered += cost
        epoch = self._clock.now(now_ns)
        if epoch is not None:
            tally.offered_by_epoch[epoch] += cost

    def refused(self, question: int, degraded: bool) -> None:
        """An answer refused."""
        self.tallies[question].refused += 1
        self.tallies[question].degraded += degraded

    def admitted(
        self, question: int, charges: list[tuple[int | None, int]], degraded: bool, sent_ns: int, now_ns: int
    ) -> None:
        """An answer admitted; `charges` are the epoch labels and costs it names for this quota."""
        tally = self.tallies[question]
        tally.degraded += degraded
        for label, cost in charges:
            tally.admitted += cost
            tally.true_second(cost, sent_ns, now_ns)
            if label is None:
                tally.unlabelled += cost
                continue
            tally.by_label[label] += cost
            self._place(label, now_ns)
        if not charges:
            tally.unlabelled += 1

    def unanswered(self, question: int, cost: int) -> None:
        """No answer came: the cost may have been charged or not."""
        self.tallies[question].unanswered += cost

    def label_at(self, now_ns: int) -> int | None:
        """The epoch at `now_ns` as far as answers told; None before the first."""
        return self._clock.now(now_ns) if self.first_label is not None else None

    def settled_through(self, now_ns: int, oldest_sent_ns: int | None) -> int | None:
        """The last label whose answers are in: every request sent before its end, and a little more, is answered.

        `oldest_sent_ns`: when the oldest request that still waits was sent.
        """
        if self.first_label is None:
            return None
        instant = min(now_ns, oldest_sent_ns if oldest_sent_ns is not None else now_ns) - SETTLE_NS
        return (instant - self._clock.start_ns(0)) // EPOCH_NS - 1

    def _place(self, label: int, now_ns: int) -> None:
        """The first answer with a label comes at its start or later: the earliest of many tells where labels begin."""
        if self.first_label is None:
            self.first_label = label
        if self._clock.known is None or label > self._clock.known:
            self._clock.observe(label, EPOCH_NS, now_ns)


@dataclass(frozen=True, slots=True)
class RegionLabel:
    """What the region says of one label: units in its sum, and units issued to holders that have not reported."""

    admitted: int
    unreported: int


def compare(referee: Mapping[int, int], region: Mapping[int, RegionLabel], unanswered: int) -> list[str]:
    """Where the two sums cannot both be right, in words; empty: they agree within what is unreported or unanswered.

    The referee never has more than the region has or still awaits a report of; the region has more only for requests
    whose answer was lost, `unanswered` units in all.
    """
    differences = []
    excess = 0
    for label in sorted(referee.keys() | region.keys()):
        seen, known = referee.get(label, 0), region.get(label, RegionLabel(0, 0))
        if seen > known.admitted + known.unreported:
            differences.append(
                f"label {label}: answers add up to {seen}, the region has {known.admitted} and awaits reports of at "
                f"most {known.unreported}"
            )
        if known.admitted > seen:
            excess += known.admitted - seen
            if excess > unanswered:
                differences.append(
                    f"label {label}: the region has {known.admitted}, answers add up to {seen}, and only {unanswered} "
                    "units are without an answer"
                )
    return differences
