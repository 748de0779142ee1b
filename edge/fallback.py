"""What an edge answers when nobody who may decide has: the stages of `when_unavailable` (design 4.1). Pure.

A degraded answer is one of the edge's own: it spends under the label of the edge's epoch, counts against the slice that
the edge holds of it, is marked, counted and reported. The first stage counts from the last epoch message or answer.
"""

from __future__ import annotations

from collections import Counter

from apportion.core.decision import Reason, Verdict
from apportion.core.epoch import EpochClock
from apportion.core.limit import EPOCH_NS
from apportion.core.rule import Fallback
from apportion.core.stages import share_of, stage_at
from apportion.edge import verdicts as say
from apportion.edge.holdings import Holdings
from apportion.edge.part import Part
from apportion.edge.reporting import Reports

Count = tuple[str, str, str, bool]
"""Domain, rule, word of the stage, and whether the request passed the rule."""


class Fallbacks:
    """Answers for the region. `counts`: how many answers each rule's stages gave since the start."""

    def __init__(self, clock: EpochClock, holdings: Holdings, reports: Reports) -> None:
        self.counts: Counter[Count] = Counter()
        self._clock = clock
        self._holdings = holdings
        self._reports = reports
        self._heard_ns: int | None = None
        self._shares_ns = 0

    def boot(self, silent_ns: int, now_ns: int) -> None:
        """Nobody was heard by this process yet, and by the one before it not for `silent_ns`."""
        self._heard_ns, self._shares_ns = now_ns - silent_ns, now_ns + EPOCH_NS

    def hear(self, now_ns: int) -> None:
        """An epoch message or an answer came: from here on the stages are counted anew."""
        if self._heard_ns is None:
            self._shares_ns = now_ns + EPOCH_NS
        self._heard_ns = now_ns

    def silent_ns(self, now_ns: int) -> int:
        """For how long nothing was heard."""
        return 0 if self._heard_ns is None else max(now_ns - self._heard_ns, 0)

    def answer(self, part: Part, peek: bool, epoch: int, now_ns: int) -> None:
        """Let the present stage of the part's rule speak; nothing is spent before `spend`, at this very instant."""
        application = part.application
        rule = application.rule
        stage = stage_at(rule.when_unavailable, self.silent_ns(now_ns))
        if stage.fallback is Fallback.DENY or part.holding is None:
            part.verdict = say.unanswered(application)
        else:
            share = share_of(rule, stage.fallback, self._holdings.last_slice(part.holding.quota, epoch))
            if share is not None and now_ns < self._shares_ns:
                share = 0  # in its first second, or a process that starts again and again would have a share each time
            room = None if share is None else part.holding.room(epoch, share)
            if room is None or room >= max(application.cost, 1):
                part.fallen = True
                left_ns = part.holding.reset_ns(self._clock.left_ns(now_ns), now_ns)
                after = None if room is None else room - (0 if peek else application.cost)
                part.verdict = say.degraded(application, not peek and application.cost > 0, after, left_ns, epoch)
            else:
                part.verdict = self._spent(part, share or 0, now_ns)
        if not peek:
            self.counts[rule.domain, rule.name, stage.fallback.value, part.fallen] += 1

    def _spent(self, part: Part, share: int, now_ns: int) -> Verdict:
        """The share of this epoch does not have what is asked; the next one may."""
        wait = self._clock.left_ns(now_ns) if part.application.cost <= share else say.UNAVAILABLE_RETRY_NS
        return say.refused(part.application, Reason.UNAVAILABLE, max(wait, 1), 0)

    def spend(self, part: Part) -> None:
        """The request passes: charge what the stage let it have."""
        cost, epoch = part.application.cost, part.verdict.epoch if part.verdict else None
        assert epoch is not None, "only what a stage lets pass is spent"
        beyond = part.held.spend_beyond(cost, epoch)
        self._reports.spend(part.held, epoch, cost, beyond)
