"""From what a local bucket held to what a caller is told: verdicts, and a decision that completes itself when asked.

The numbers of a refusal or an admission (remaining, retry-after, reset) cost more than deciding does, and most callers
read `allowed` and nothing else. So the engine's fast path keeps what it saw of buckets, and this module does the
arithmetic later, of exactly that instant. Nothing here changes a bucket.
"""

from __future__ import annotations

from apportion.core.decision import Decision, Reason, Verdict, never
from apportion.core.part import Part

Seen = tuple[Part, int, "Seen"] | None
"""Parts, each with the backlog a decision saw there before its own charge, the last one first: cheaper than a list."""


class LocalDecision(Decision):
    """A decision of the engine's fast path: what it saw, and not a word yet of what that means.

    `part` is the last part of the plan, `backlog` what its bucket held, `seen` the same of those before it.
    Made without arguments and filled by assignment: an `__init__` in Python would cost a sixth of the whole decision.
    """

    __slots__ = ("backlog", "cost", "part", "seen")
    __init__ = object.__init__

    part: Part
    backlog: int
    seen: Seen
    cost: int | None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What each limited rule that applied said; computed at the first call, for the instant of the decision."""
        try:
            return self._verdicts
        except AttributeError:
            verdicts = []
            seen: Seen = (self.part, self.backlog, self.seen)
            while seen is not None:
                part, backlog, seen = seen
                cost = part.rule.cost_default if self.cost is None else self.cost
                verdicts.append(verdict_of(part, cost, backlog, self.allowed))
            self._verdicts = tuple(reversed(verdicts))
            return self._verdicts


def fits(part: Part, cost: int, held: int) -> bool:
    """Whether `cost` units pass where `held` counts; 0, a peek, always does (cases, D1)."""
    return cost <= part.cost_max and held + cost * part.period <= part.capacity


def verdict_of(part: Part, cost: int, held: int, charged: bool, late_ns: int = 0) -> Verdict:
    """What the rule of `part` says of `cost` units where `held` counted, in unit-ticks of a bucket or units of a
    period, before its own charge.

    `charged`: the request passed as a whole and was no peek. `late_ns`: how far the caller's clock is behind the latest
    instant the bucket saw, which has to pass before anything drains.
    """
    after = held + cost * part.period if charged else held
    allowed = fits(part, cost, held)
    wait_ns: int | None = 0
    reason = None
    if not allowed and cost > part.cost_max:
        wait_ns, reason = None, never(part.rule)
    elif not allowed:
        left_ns = part.wait_ns(cost, held)
        assert left_ns, "what does not fit now, and is not impossible, fits later"
        wait_ns, reason = left_ns + late_ns, Reason.OVER_LIMIT
    return Verdict(
        rule=part.rule,
        key=part.key,
        cost=cost,
        allowed=allowed,
        charged=charged and cost > 0,
        remaining=(part.capacity - after) // part.period,
        retry_after_ns=wait_ns,
        reset_after_ns=part.whole_in_ns(after) + late_ns if after else 0,
        reason=reason,
    )


def verdict_without_room(part: Part, cost: int, room_ns: int | None) -> Verdict:
    """What is said of a new key that there is no room to count for the next `room_ns`; None = ever."""
    return Verdict(
        rule=part.rule,
        key=part.key,
        cost=cost,
        allowed=False,
        remaining=0,
        retry_after_ns=room_ns,
        reason=Reason.KEYS_FULL,
    )
