"""What an edge counts of one quota against what it may do by itself (design 4.1). Pure; the arithmetic is core's.

Three kinds. `EachEdge` and `Share` are all that ever decides an `edge` rule; `Passing` only says how much may cross,
and the region decides. All count by label, so a clock that is wrong shifts when units are spent, never how many.
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

    __slots__ = ("bucket", "label", "label_units", "spent")

    def __init__(self, limit: RateLimit) -> None:
        self.bucket = Bucket(limit, 0)
        self.label = -1
        self.label_units = ceil_div(limit.units * EPOCH_NS, limit.period_ns) + limit.burst
        self.spent = 0

    def carry_over(self, former: Threshold) -> None:
        """What was charged stays charged, in units of the former bucket rounded up."""
        if isinstance(former, EachEdge):
            self.bucket.backlog = ceil_div(former.bucket.backlog * self.bucket.period, former.bucket.period)
            self.bucket.last = former.bucket.last * former.bucket.tick_ns // self.bucket.tick_ns
            self.label, self.spent = former.label, former.spent

    def relabel(self, shift: int) -> None:
        """The label is called `shift` later."""
        self.label += shift

    def begin(self, epoch: int, part: int | None) -> None:
        """A plan has nothing to say here."""

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that could be taken now."""
        bucket, left = self.bucket, self.label_units - (self.spent if epoch <= self.label else 0)
        fit = (bucket.capacity - bucket.drain(now_ns)) // bucket.period
        return min(fit if fit > 0 else 0, left)

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units fit now."""
        return self.bucket.admits(cost, now_ns) and cost <= self._left(epoch)

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Charge `cost` units; call only after `admits` said yes at the same instant."""
        if epoch > self.label:
            self.label, self.spent = epoch, 0
        self.spent += cost
        self.bucket.charge(cost)

    def put_back(self, epoch: int, cost: int) -> None:
        """Undo a `take` that was not used."""
        self.bucket.refund(cost)
        if epoch == self.label:
            self.spent -= cost

    def wait_ns(self, cost: int, epoch: int, left_ns: int, now_ns: int) -> int:
        """Nanoseconds after which a lone caller's `cost` fits; `left_ns` of the epoch are left."""
        self.bucket.drain(now_ns)
        wait = self.bucket.retry_after_ns(cost)
        assert wait is not None, "a cost above the burst was refused before"
        return max(wait, left_ns if cost > self._left(epoch) else 0, 1)

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole again."""
        self.bucket.drain(now_ns)
        return self.bucket.reset_after_ns()

    def idle(self, now_ns: int) -> bool:
        """Whether a new one would be just the same."""
        return self.bucket.drain(now_ns) == 0

    def _left(self, epoch: int) -> int:
        return self.label_units - (self.spent if epoch <= self.label else 0)


class Share:
    """`edge` with slack: the slice of the label, slack included, or the share where there is none.

    The units of the label are the hard check. The level beside them spreads the spending as a slice of a `lease` does;
    it starts full, since there is nobody to borrow from, and a cost above its depth takes it below nothing.
    """

    __slots__ = ("burst", "depth", "epoch", "last_ns", "level", "part", "quota", "share", "units")

    def __init__(self, rule: Rule, limit: RateLimit) -> None:
        self.share = rule.share()
        self.burst = limit.burst
        self.quota = max(1, ceil_div(limit.units * EPOCH_NS, limit.period_ns))
        self.epoch = -1
        self.part = self.units = self.share
        self.depth = self._depth_of(self.share)
        self.level = self.depth * EPOCH_NS
        self.last_ns = 0

    def carry_over(self, former: Threshold) -> None:
        """What was spent of the label stays spent; a slice of the former rule is none of this one."""
        if isinstance(former, Share):
            self.epoch, self.last_ns = former.epoch, former.last_ns
            self.units = max(0, self.part - (former.part - former.units))
            self.level = min(former.level, self.depth * EPOCH_NS)

    def relabel(self, shift: int) -> None:
        """The label is called `shift` later."""
        self.epoch += shift

    def begin(self, epoch: int, part: int | None) -> None:
        """The plan of `epoch` gives `part` units, None: none. What was spent of the label already counts."""
        assert epoch >= self.epoch
        spent = self.part - self.units if epoch == self.epoch else 0
        self.epoch = epoch
        self.part = self.share if part is None else part
        self.units = max(0, self.part - spent)
        self.depth = self._depth_of(self.part)
        self.level = min(self.level, self.depth * EPOCH_NS)

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that could be taken now."""
        self._roll(epoch, now_ns)
        return max(0, min(self.units, self.level // EPOCH_NS))

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units fit now."""
        self._roll(epoch, now_ns)
        return cost <= self.units and min(cost, self.depth) * EPOCH_NS <= self.level

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Spend `cost` units; call only after `admits` said yes at the same instant."""
        self.units -= cost
        self.level -= cost * EPOCH_NS
        assert self.units >= 0, "an edge never admits more of a label than it was given"

    def put_back(self, epoch: int, cost: int) -> None:
        """Undo a `take` that was not used; void when its label has passed."""
        if epoch == self.epoch:
            self.units = min(self.part, self.units + cost)
            self.level = min(self.level + cost * EPOCH_NS, self.depth * EPOCH_NS)

    def wait_ns(self, cost: int, epoch: int, left_ns: int, now_ns: int) -> int:
        """Nanoseconds after which a lone caller's `cost` fits; `left_ns` of the epoch are left."""
        self._roll(epoch, now_ns)
        if cost > self.part:
            return left_ns + BIGGER_SLICE_NS
        missing = min(cost, self.depth) * EPOCH_NS - self.level
        wait = max(ceil_div(missing, self.part) if missing > 0 else 0, left_ns if cost > self.units else 0, 1)
        if wait < left_ns:
            return wait
        # The next label's slice may be deeper, so that all of the cost has to be there; or there is only the share.
        level = min(self.level + self.part * left_ns, self.depth * EPOCH_NS)
        return max(wait, left_ns + ceil_div(max(cost * EPOCH_NS - level, 0), self.share))

    def reset_ns(self, left_ns: int, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole again: with the next label."""
        return left_ns

    def idle(self, now_ns: int) -> bool:
        """Whether a new one would be just the same: once its label has passed, for the level fills within a second."""
        return True

    def _roll(self, epoch: int, now_ns: int) -> None:
        elapsed = now_ns - self.last_ns
        if elapsed > 0:
            self.level = min(self.level + self.part * elapsed, self.depth * EPOCH_NS)
            self.last_ns = now_ns
        if epoch > self.epoch:
            self.begin(epoch, None)

    def _depth_of(self, part: int) -> int:
        return min(part, max(part * self.burst // self.quota, DEPTH_MIN))


class Passing:
    """`edge+region`: how many units of a label may cross. A request that is refused after all gives its units back."""

    __slots__ = ("cost_max", "epoch", "limit", "most", "passed", "rule", "units")

    def __init__(self, rule: Rule, limit: RateLimit) -> None:
        self.rule = rule
        self.limit = limit
        self.cost_max = limit.burst if rule.cost_max is None else rule.cost_max
        self.epoch = -1
        self.passed = 0
        self.units = self.most = self._threshold(None)

    def carry_over(self, former: Threshold) -> None:
        """What has passed of the label has passed."""
        if isinstance(former, Passing):
            self.epoch, self.passed = former.epoch, former.passed

    def relabel(self, shift: int) -> None:
        """The label is called `shift` later."""
        self.epoch += shift

    def begin(self, epoch: int, part: int | None) -> None:
        """The plan of `epoch` has `part` units for this edge, None: none. What has passed already counts."""
        assert epoch >= self.epoch
        if epoch > self.epoch:
            self.epoch, self.passed = epoch, 0
        self.units = self._threshold(part)

    def room(self, epoch: int, now_ns: int) -> int:
        """Whole units that may pass now."""
        if epoch > self.epoch:
            self.begin(epoch, None)
        return max(0, self.units - self.passed)

    def admits(self, cost: int, epoch: int, now_ns: int) -> bool:
        """Whether `cost` units may pass now."""
        return cost <= self.room(epoch, now_ns)

    def possible(self, cost: int) -> bool:
        """Whether the region could admit them: never more than Q + burst of one label, whoever asks."""
        return self.passed + cost <= self.most

    def take(self, cost: int, epoch: int, now_ns: int) -> None:
        """Let `cost` units pass."""
        self.passed += cost

    def put_back(self, epoch: int, cost: int) -> None:
        """They were not admitted."""
        if epoch == self.epoch:
            self.passed -= cost

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
        assert self.rule.slack is not None and self.rule.edges_max is not None
        return passing_units(self.limit, self.rule.slack, self.rule.edges_max, self.cost_max, part)


Threshold = EachEdge | Share | Passing


def threshold_of(rule: Rule, limit: RateLimit, former: Threshold | None = None) -> Threshold | None:
    """What an edge counts of a quota of `rule`; None where the region gives it everything it may spend. What `former`
    counted by the rule as it was before still counts, where the rule counts in the same way.
    """
    threshold = _threshold_of(rule, limit)
    if threshold is not None and former is not None:
        threshold.carry_over(former)
    return threshold


def _threshold_of(rule: Rule, limit: RateLimit) -> Threshold | None:
    if rule.enforce is Enforce.EDGE_REGION:
        return Passing(rule, limit)
    if rule.enforce is not Enforce.EDGE:
        return None
    if rule.slack is not None and limit.units:
        return Share(rule, limit)
    own = rule.local_limit
    return EachEdge(own if isinstance(own, RateLimit) else limit)
