"""How far a quota was exceeded, by label (design 4.1). One meter serves the demo's referee, the region and the tests.

X = max(0, min(X, burst) + admitted_k - Q_k); over in k = max(0, X - burst), in the exact ticks of the bucket: Q_k of
`1/min` is 1/60 of a unit, never 0. A divided quota's Q_k is whole units.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div


class Meter:
    """Meters one quota over its epochs, in order.

    `worst` is the largest `over` so far, in units rounded up; `above_quota` the largest admitted_k - Q_k of one
    label, in units rounded up (None before the first): never above 0 for a divided quota.
    """

    __slots__ = ("_backlog", "_next", "above_quota", "divided", "limit", "worst")

    def __init__(self, limit: RateLimit, divided: bool) -> None:
        self.limit = limit
        self.divided = divided
        self.worst = 0
        self.above_quota: int | None = None
        self._backlog = 0
        self._next: int | None = None

    def record(self, epoch: int, admitted: int) -> int:
        """Meter `admitted` units of label `epoch`; epochs passed over count as 0. Returns `over` in units, rounded
        up.
        """
        assert self._next is None or epoch >= self._next, "epochs are metered once, in order"
        period, capacity = self.limit.period_ticks, self.limit.burst * self.limit.period_ticks
        if self._next is not None and epoch > self._next:
            self._backlog = max(0, min(self._backlog, capacity) - self._quota(self._next, epoch))
        quota = self._quota(epoch, epoch + 1)
        self._next = epoch + 1
        self._backlog = max(0, min(self._backlog, capacity) + admitted * period - quota)
        above = ceil_div(admitted * period - quota, period)
        self.above_quota = above if self.above_quota is None else max(self.above_quota, above)
        over = ceil_div(max(0, self._backlog - capacity), period)
        self.worst = max(self.worst, over)
        return over

    def become(self, limit: RateLimit) -> None:
        """Meter by another limit from the next epoch recorded on; what was in excess stays so."""
        if limit.period_ticks != self.limit.period_ticks:
            self._backlog = ceil_div(self._backlog * limit.period_ticks, self.limit.period_ticks)
        self.limit = limit

    @property
    def room(self) -> int:
        """Whole units that the quota could still have admitted when the latest label ended."""
        return max(0, self.limit.burst * self.limit.period_ticks - self._backlog) // self.limit.period_ticks

    def _quota(self, start: int, end: int) -> int:
        """Sum of Q_k for start <= k < end, in unit-ticks."""
        limit = self.limit
        if not self.divided:
            return (end - start) * limit.units * (EPOCH_NS // limit.tick_ns)
        per = limit.units * EPOCH_NS
        return (end * per // limit.period_ns - start * per // limit.period_ns) * limit.period_ticks
