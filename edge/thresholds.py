"""What an edge counts of one quota against what it may do by itself (design 4.1). Pure; the arithmetic is core's.

Three kinds. `EachEdge` and `Share` are all that ever decides an `edge` rule; `Passing` only says how much may cross, and
the region decides. All count by label, so a clock that is wrong shifts when units are spent, never how many.
"""

from __future__ import annotations

from apportion.core.bucket import Bucket
from apportion.core.budget import DEPTH_MIN
from apportion.core.limit import EPOCH_NS, RateLimit, ceil_div
from apportion.core.rule import Enforce, Rule
from apportion.core.threshold import passing_units

BIGGER_SLICE_NS = 2 * EPOCH_NS
"""A cost above the slice waits for another one: it is reported at the epoch's end and is in the plan after the next."""


class EachEdge:
    """`at_each_edge`: an exact bucket, and beside it what one label may have at most, whatever the clock does.

    One second admits the rate and the burst, so the second check never binds while labels last a second.
    """

    __slots__ = ("_bucket", "_label", "_label_units", "_spent")

    def __init__(self, limit: RateLimit) -> None:
        self._bucket = Bucket(limit, 0)
        self._label = -1
        self._label_units = ceil_div(limit.units * EPOCH_NS, limit.period_ns) + limit.burst
        self._spent = 0

    def begin(self, epoch: int, part: int | None) -> None:
        """A plan has nothing to say here."""

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that could be taken now."""
        self._bucket.drain(now_ns)
        return min(self._bucket.remaining(), self._left(epoch))

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units fit now."""
        return self._bucket.admits(cost, now_ns) and cost <= self._left(epoch)

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Charge `cost` units; call only after `admits` said yes at the same instant."""
        if epoch > self._label:
            self._label, self._spent = epoch, 0
        self._spent += cost
        self._bucket.charge(cost)

    def put_back(self, epoch: int, cost: int) -> None:
        """Undo a `take` that was not used."""
        self._bucket.refund(cost)
        if epoch == self._label:
            self._spent -= cost

    def wait_ns(self, cost: int, epoch: int, left_ns: int, now_ns: int) -> int:
        """Nanoseconds after which a lone caller's `cost` fits; `left_ns` of the epoch are left."""
        self._bucket.drain(now_ns)
        wait = self._bucket.retry_after_ns(cost)
        assert wait is not None, "a cost above the burst was refused before"
        return max(wait, left_ns if cost > self._left(epoch) else 0, 1)

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole again."""
        self._bucket.drain(now_ns)
        return self._bucket.reset_after_ns()

    def idle(self, now_ns: int) -> bool:
        """Whether a new one would be just the same."""
        return self._bucket.drain(now_ns) == 0

    def _left(self, epoch: int) -> int:
        return self._label_units - (self._spent if epoch <= self._label else 0)


class Share:
    """`edge` with slack: the slice of the label, slack included, or the share where there is none.

    The units of the label are the hard check. The level beside them spreads the spending as a slice of a `lease` does;
    it starts full, since there is nobody to borrow from, and a cost above its depth takes it below nothing.
    """

    __slots__ = ("_burst", "_depth", "_epoch", "_last_ns", "_level", "_part", "_quota", "_share", "_units")

    def __init__(self, rule: Rule, limit: RateLimit) -> None:
        self._share = rule.share()
        self._burst = limit.burst
        self._quota = max(1, ceil_div(limit.units * EPOCH_NS, limit.period_ns))
        self._epoch = -1
        self._part = self._units = self._share
        self._depth = self._depth_of(self._share)
        self._level = self._depth * EPOCH_NS
        self._last_ns = 0

    def begin(self, epoch: int, part: int | None) -> None:
        """The plan of `epoch` gives `part` units, None: none. What was spent of the label already counts."""
        assert epoch >= self._epoch
        spent = self._part - self._units if epoch == self._epoch else 0
        self._epoch = epoch
        self._part = self._share if part is None else part
        self._units = max(0, self._part - spent)
        self._depth = self._depth_of(self._part)
        self._level = min(self._level, self._depth * EPOCH_NS)

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that could be taken now."""
        self._roll(epoch, now_ns)
        return max(0, min(self._units, self._level // EPOCH_NS))

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units fit now."""
        self._roll(epoch, now_ns)
        return cost <= self._units and min(cost, self._depth) * EPOCH_NS <= self._level

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Spend `cost` units; call only after `admits` said yes at the same instant."""
        self._units -= cost
        self._level -= cost * EPOCH_NS
        assert self._units >= 0, "an edge never admits more of a label than it was given"

    def put_back(self, epoch: int, cost: int) -> None:
        """Undo a `take` that was not used; void when its label has passed."""
        if epoch == self._epoch:
            self._units = min(self._part, self._units + cost)
            self._level = min(self._level + cost * EPOCH_NS, self._depth * EPOCH_NS)

    def wait_ns(self, cost: int, epoch: int, left_ns: int, now_ns: int) -> int:
        """Nanoseconds after which a lone caller's `cost` fits; `left_ns` of the epoch are left."""
        self._roll(epoch, now_ns)
        if cost > self._part:
            return left_ns + BIGGER_SLICE_NS
        missing = min(cost, self._depth) * EPOCH_NS - self._level
        wait = ceil_div(missing, self._part) if missing > 0 else 0
        return max(wait, left_ns if cost > self._units else 0, 1)

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole again: with the next label."""
        return left_ns

    def idle(self, now_ns: int) -> bool:
        """Whether a new one would be just the same: once its label has passed, for the level fills within a second."""
        return True

    def _roll(self, epoch: int, now_ns: int) -> None:
        elapsed = now_ns - self._last_ns
        if elapsed > 0:
            self._level = min(self._level + self._part * elapsed, self._depth * EPOCH_NS)
            self._last_ns = now_ns
        if epoch > self._epoch:
            self.begin(epoch, None)

    def _depth_of(self, part: int) -> int:
        return min(part, max(part * self._burst // self._quota, DEPTH_MIN))


class Passing:
    """`edge+region`: how many units of a label may cross. A request that is refused after all gives its units back."""

    __slots__ = ("_cost_max", "_epoch", "_limit", "_passed", "_rule", "_units")

    def __init__(self, rule: Rule, limit: RateLimit) -> None:
        self._rule = rule
        self._limit = limit
        self._cost_max = limit.burst if rule.cost_max is None else rule.cost_max
        self._epoch = -1
        self._passed = 0
        self._units = self._threshold(None)

    def begin(self, epoch: int, part: int | None) -> None:
        """The plan of `epoch` has `part` units for this edge, None: none. What has passed already counts."""
        assert epoch >= self._epoch
        if epoch > self._epoch:
            self._epoch, self._passed = epoch, 0
        self._units = self._threshold(part)

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that may pass now."""
        if epoch > self._epoch:
            self.begin(epoch, None)
        return max(0, self._units - self._passed)

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units may pass now."""
        return cost <= self.room(epoch, now_ns)

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Let `cost` units pass."""
        self._passed += cost

    def put_back(self, epoch: int, cost: int) -> None:
        """They were not admitted."""
        if epoch == self._epoch:
            self._passed -= cost

    def wait_ns(self, cost: int, epoch: int, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until `cost` may pass: with the next label."""
        return max(left_ns, 1)

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until all of the threshold is free again."""
        return left_ns

    def idle(self, now_ns: int) -> bool:
        """Once its label has passed, always."""
        return True

    def _threshold(self, part: int | None) -> int:
        assert self._rule.slack is not None and self._rule.edges_max is not None
        return passing_units(self._limit, self._rule.slack, self._rule.edges_max, self._cost_max, part)


Threshold = EachEdge | Share | Passing


def threshold_of(rule: Rule, limit: RateLimit) -> Threshold | None:
    """What an edge counts of a quota of `rule`; None where the region gives it everything it may spend."""
    if rule.enforce is Enforce.EDGE_REGION:
        return Passing(rule, limit)
    if rule.enforce is not Enforce.EDGE:
        return None
    own = rule.local_limit
    if rule.slack is not None and limit.units:
        return Share(rule, limit)
    return EachEdge(own if isinstance(own, RateLimit) else limit)
