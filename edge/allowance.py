"""What an edge knows of a quota of a period: what the region said of it last, and until when that rules requests out.
Pure.

Which period it is, and when it ends, is the region's word alone (design 4.2): a reset comes as a time from now, and is
kept as an instant of the edge's monotonic clock, whatever its wall clock shows.
"""

from __future__ import annotations

from apportion.core.limit import EPOCH_NS, Finite, PeriodLimit
from apportion.core.messages import MemberAnswer, Outcome
from apportion.core.rule import Rule

CLOCKS_APART = 5_000
"""Two clocks differ by one part in so many at most. What a refusal rules out ends as much earlier: who asks again then
learns the rest exactly, so a quota that is used up costs a handful of crossings until it resets, of however long.
"""

SAME_RESET_NS = EPOCH_NS
"""What the region says of the reset may be later than what was said before by so much without being another one: the
way back is longer for one answer than for another.
"""


LEASED_AGAIN_NS = 2 * EPOCH_NS
"""Of a leased quota others' chunks may come back before it resets: who was refused asks again after this."""


class Allowance:
    """`remaining` units by the last answer; `reset_at_ns` when all are there again, 0: not known. Costs of at least
    `hold_cost` cannot be admitted before `hold_until_ns`, and can for sure at `hold_told_ns`, if nobody else is there.
    `again_ns`: how long a refusal holds at most, whatever callers are told.
    """

    __slots__ = ("again_ns", "hold_cost", "hold_told_ns", "hold_until_ns", "remaining", "reset_at_ns")

    def __init__(self, again_ns: int | None = None) -> None:
        self.again_ns = again_ns
        self.remaining = 0
        self.reset_at_ns = 0
        self.hold_cost = 0
        self.hold_told_ns = 0
        self.hold_until_ns = 0

    def learn(self, member: MemberAnswer, cost: int, asked_ns: int, now_ns: int) -> None:
        """Take the region's answer to what was asked at `asked_ns`: what it says held at some instant since then."""
        assert member.reset_ns is not None
        self.remaining = member.remaining
        # One instant for all answers of a period, or callers would see it flicker by the length of the way back.
        if not asked_ns + member.reset_ns <= self.reset_at_ns <= now_ns + member.reset_ns + SAME_RESET_NS:
            self.reset_at_ns = now_ns + member.reset_ns
        if member.outcome is not Outcome.OVER_LIMIT or member.wait_ns is None:
            return
        # A larger cost may have to wait longer, which says nothing of the smaller one that is held already.
        if now_ns >= self.hold_until_ns or cost <= self.hold_cost:
            self.hold_cost = cost
            self.hold_until_ns = asked_ns + member.wait_ns - member.wait_ns // CLOCKS_APART
            if self.again_ns is not None:
                self.hold_until_ns = min(self.hold_until_ns, now_ns + self.again_ns)
            self.hold_told_ns = self.reset_at_ns if member.wait_ns == member.reset_ns else now_ns + member.wait_ns

    def go_on(self, before: Allowance) -> None:
        """Know what was known under former rules that had the same limit, but for refusals."""
        self.remaining, self.reset_at_ns = before.remaining, before.reset_at_ns

    def lend(self, units: int) -> None:
        """Units of what remained were lent to this edge."""
        self.remaining = max(0, self.remaining - units)

    def refusal_ns(self, cost: int, now_ns: int) -> int | None:
        """Nanoseconds to wait where the region cannot admit `cost` yet; None: it might, so ask."""
        if cost < self.hold_cost or now_ns >= self.hold_until_ns:
            return None
        return max(self.hold_told_ns - now_ns, 1)

    def reset_in_ns(self, now_ns: int) -> int:
        """Nanoseconds until the allowance is whole again; 0 also where that is not known."""
        return max(0, self.reset_at_ns - now_ns)

    def remaining_at(self, now_ns: int) -> int | None:
        """Units left if nobody else has spent any since the last answer; None: not known, or of a former period."""
        return self.remaining if now_ns < self.reset_at_ns else None


def allowance_of(rule: Rule, limit: Finite) -> Allowance | None:
    """What an edge knows of a quota of a period: nothing yet; None for a rate."""
    if not isinstance(limit, PeriodLimit):
        return None
    return Allowance(LEASED_AGAIN_NS if rule.chunked else None)
