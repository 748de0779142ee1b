"""What a holder may spend of one quota in one epoch, smoothed: an edge's slice, or a replica's part of the pool.

Two checks, both must pass (design 4.1): the label's budget, which alone makes the sum safe, and a token level that
fills evenly over the epoch up to a depth, which spreads the spending. The level is carried over an epoch's border
and clipped, never refilled, so carrying can only delay spending, never raise a label's sum.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div

DEPTH_MIN = 5
"""Units: a shallower bucket would refuse evenly spaced requests that happen to come in pairs."""


def comes_in_ns(limit: RateLimit, cost: int) -> int:
    """Nanoseconds into an epoch after which `cost` units can be had by a lone caller, however the quota is divided: a
    slice and a pool both fill from nothing, and one of them is at least half of it.
    """
    return min(2 * ceil_div(cost * limit.period_ns, limit.units), EPOCH_NS * 9 // 10)


class Budget:
    """Budget of one quota at one holder. Starts with nothing; `begin` gives it the units of an epoch.

    The level is in unit-nanoseconds (units x EPOCH_NS), so `part` units an epoch fill `part` of it each nanosecond.
    """

    __slots__ = (
        "_burst",
        "_largest",
        "_largest_before",
        "_quota_units",
        "depth",
        "epoch",
        "given_up",
        "last_ns",
        "level",
        "part",
        "units",
    )

    def __init__(self, now_ns: int) -> None:
        self.epoch: int | None = None
        self.part = 0
        self.units = 0
        self.given_up = 0
        self.depth = 0
        self.level = 0
        self._burst = 0
        self._quota_units = 1
        self._largest = 0  # cost asked for in this epoch, and in the one before it
        self._largest_before = 0
        self.last_ns = now_ns

    def begin(self, epoch: int, part: int, burst: int, quota_units: int, now_ns: int) -> None:
        """Start epoch `epoch` with `part` of the quota's `quota_units` units; what the former label still held is
        void.
        """
        assert part >= 0
        assert self.epoch is None or epoch > self.epoch, "one holder's budget of a label is given once"
        self.refill(now_ns)
        self.epoch = epoch
        self.part = part
        self.units = part
        self.given_up = 0
        self._burst = burst
        self._quota_units = max(quota_units, 1)
        self._largest_before, self._largest = self._largest, 0
        self.depth = self._depth()
        self.level = min(self.level, self.depth * EPOCH_NS)

    def deepen(self, cost: int) -> None:
        """Let the level reach `cost` in this epoch and the next, for requests that no shallower bucket could ever
        serve; at most the part.
        """
        if cost > self._largest:
            self._largest = cost
            self.depth = max(self.depth, self._depth())

    def fills_in_ns(self, units: int, now_ns: int) -> int | None:
        """Nanoseconds until the level reaches `units`, if nothing is taken; None when it never does."""
        self.refill(now_ns)
        if units > self.depth:
            return None
        return max(0, -(-(units * EPOCH_NS - self.level) // self.part))

    def add(self, units: int, ready: int, now_ns: int) -> None:
        """Add `units` of the same label that another holder gave up, and the level that it gave up with them, `ready`
        units: they fill here as they would have filled there.
        """
        assert 0 <= ready <= units
        self.refill(now_ns)
        self.part += units
        self.units += units
        self.depth = max(self.depth, self._depth())
        self.level = min(self.level + ready * EPOCH_NS, self.depth * EPOCH_NS)

    def refill(self, now_ns: int) -> None:
        """Let the time until `now_ns` fill the level."""
        elapsed = now_ns - self.last_ns
        if elapsed > 0:
            self.level = min(self.level + self.part * elapsed, self.depth * EPOCH_NS)
            self.last_ns = now_ns

    def available(self, now_ns: int) -> int:
        """Whole units that may be spent at `now_ns`."""
        if now_ns > self.last_ns:
            self.refill(now_ns)
        ready = self.level // EPOCH_NS
        return ready if ready < self.units else self.units

    def take(self, units: int) -> None:
        """Spend `units`; call only for what `available` named at the same instant."""
        assert 0 <= units <= self.units, "a holder never spends more of a label than it holds"
        self.units -= units
        self.level = max(0, self.level - units * EPOCH_NS)

    def put_back(self, epoch: int, units: int) -> None:
        """Undo a `take` of this label that was not used; ignored when the label has passed."""
        if epoch == self.epoch:
            self.units += units
            self.level = min(self.level + units * EPOCH_NS, self.depth * EPOCH_NS)

    def give_up(self, units: int, now_ns: int) -> int:
        """Give up `units`, at most those that are left, for another holder to spend; returns how many of them could
        have been spent at once. The right is lowered here, before anybody else learns of it.
        """
        assert 0 <= units <= self.units, "a holder gives up only what it holds"
        self.refill(now_ns)
        self.part -= units
        self.units -= units
        self.given_up += units
        self.depth = self._depth()
        former, self.level = self.level, min(self.level, self.depth * EPOCH_NS)
        return min(units, (former - self.level) // EPOCH_NS)

    def _depth(self) -> int:
        even = self.part * self._burst // self._quota_units
        return min(self.part, max(even, DEPTH_MIN, self._largest, self._largest_before))
