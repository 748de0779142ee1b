"""What a holder may spend of one quota in one epoch, smoothed: an edge's slice, or a replica's part of the pool.

Two checks, both must pass (design 4.1): the label's budget, which alone makes the sum safe, and a token level that
fills evenly over the epoch up to a depth, which spreads the spending. The level is carried over an epoch's border
and clipped, never refilled, so carrying can only delay spending, never raise a label's sum.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div

DEPTH_MIN = 5
"""Units: a shallower bucket would refuse evenly spaced requests that happen to come in pairs."""


REST_MIN_NS = EPOCH_NS // 8
"""Units that came from another holder fill over the rest of the epoch, or over so much if less is left."""


def comes_in_ns(limit: RateLimit, cost: int) -> int:
    """Nanoseconds into an epoch after which `cost` units can be had by a lone caller, however the quota is divided: a
    slice and a pool both fill from nothing, and one of them is at least half of it.
    """
    return min(2 * ceil_div(cost * limit.period_ns, limit.units), EPOCH_NS * 9 // 10)


class Budget:
    """Budget of one quota at one holder. Starts with nothing; `begin` gives it the units of an epoch.

    The level is in unit-nanoseconds (units x EPOCH_NS), so `rate` units an epoch fill `rate` of it each nanosecond. The
    rate is the part, until units move to another holder: what had not filled of them then fills there by the epoch's
    end, and no more here, so that all holders together fill as fast as before.
    """

    __slots__ = (
        "_burst",
        "_end_ns",
        "_largest",
        "_largest_before",
        "_quota_units",
        "depth",
        "epoch",
        "given_up",
        "last_ns",
        "level",
        "part",
        "rate",
        "units",
    )

    def __init__(self, now_ns: int) -> None:
        self.epoch: int | None = None
        self.part = self.rate = 0
        self.units = 0
        self.given_up = 0
        self.depth = 0
        self.level = 0
        self._burst = 0
        self._end_ns = now_ns
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
        self.part = self.rate = part
        self.units = part
        self._end_ns = now_ns + EPOCH_NS
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
        missing = units * EPOCH_NS - self.level
        if units > self.depth or (missing > 0 and not self.rate):
            return None
        return ceil_div(missing, self.rate) if missing > 0 else 0

    def add(self, units: int, ready: int, now_ns: int) -> None:
        """Add `units` of the same label that another holder gave up, and the level that it gave up with them, `ready`
        units: the others fill here by the end of the epoch.
        """
        assert 0 <= ready <= units
        self.refill(now_ns)
        self.part += units
        self.units += units
        self.rate += (units - ready) * EPOCH_NS // max(self._end_ns - now_ns, REST_MIN_NS)
        self.depth = max(self.depth, self._depth())
        self.level = min(self.level + ready * EPOCH_NS, self.depth * EPOCH_NS)

    def refill(self, now_ns: int) -> None:
        """Let the time until `now_ns` fill the level."""
        elapsed = now_ns - self.last_ns
        if elapsed > 0:
            self.level = min(self.level + self.rate * elapsed, self.depth * EPOCH_NS)
            self.last_ns = now_ns

    def available(self, now_ns: int) -> int:
        """Whole units that may be spent at `now_ns`."""
        if now_ns > self.last_ns:
            self.refill(now_ns)
        ready = self.level // EPOCH_NS
        return ready if ready < self.units else self.units

    def draw(self, units: int, now_ns: int) -> int:
        """`available` and `take` in one: whole units that may be spent after it; below 0, and nothing taken, where
        fewer than `units` may.
        """
        if now_ns > self.last_ns:
            level = self.level + self.rate * (now_ns - self.last_ns)
            full = self.depth * EPOCH_NS
            self.level = level if level < full else full
            self.last_ns = now_ns
        ready = self.level // EPOCH_NS
        left = (ready if ready < self.units else self.units) - units
        if left >= 0:
            self.units -= units
            self.level -= units * EPOCH_NS
        return left

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

    def lost(self, now_ns: int) -> int:
        """Units left that can be spent no more in this epoch: what a level that was full has not taken in."""
        self.refill(now_ns)
        return max(0, self.units - (self.level + self.rate * self._rest_ns(now_ns)) // EPOCH_NS)

    def largest(self) -> int:
        """The largest cost above DEPTH_MIN that was asked for in this epoch and the one before; 0: none."""
        return max(self._largest, self._largest_before)

    def give_up(self, units: int, now_ns: int) -> int:
        """Give up `units`, at most those that are left, for another holder to spend; returns how many of them could
        have been spent at once. The right is lowered here, before anybody else learns of it.
        """
        assert 0 <= units <= self.units, "a holder gives up only what it holds"
        self.refill(now_ns)
        rest_ns = self._rest_ns(now_ns)
        self.part -= units
        self.units -= units
        self.given_up += units
        self.depth = self._depth()
        to_come = self.rate * rest_ns
        level = min(self.level, self.depth * EPOCH_NS, max(self.level + to_come - units * EPOCH_NS, 0))
        ready = min(units, (self.level - level) // EPOCH_NS)
        self.level = level
        self.rate = max(to_come - (units - ready) * EPOCH_NS, 0) // rest_ns
        return ready

    def _rest_ns(self, now_ns: int) -> int:
        return min(max(self._end_ns - now_ns, 1), EPOCH_NS)

    def _depth(self) -> int:
        even = self.part * self._burst // self._quota_units
        return min(self.part, max(even, DEPTH_MIN, self.largest()))
