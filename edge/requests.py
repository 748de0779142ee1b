"""What happens to a request at the edge but for crossing: its rules are checked, units reserved, committed or released.

All rules are checked before any is charged; a refused or peeked request charges nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apportion.core.decision import Decision, Reason, Verdict, never
from apportion.core.epoch import EpochClock
from apportion.core.limit import RateLimit
from apportion.core.request import Application
from apportion.edge import verdicts as say
from apportion.edge.fallback import Fallbacks
from apportion.edge.holding import Holding
from apportion.edge.holdings import Holdings
from apportion.edge.part import Part
from apportion.edge.reporting import Reports


class Requests:
    """Takes requests through the edge's holdings, and counts what they demand and spend."""

    def __init__(self, clock: EpochClock, holdings: Holdings, reports: Reports, fallbacks: Fallbacks) -> None:
        self._clock = clock
        self._holdings = holdings
        self._reports = reports
        self._fallbacks = fallbacks

    def at_once(self, applications: Sequence[Application], epoch: int, now_ns: int) -> Decision | None:
        """Decide a request that all rules let pass by what is held here, as most are. None, and nothing has happened,
        where it takes more than that: `check` then looks at every case.
        """
        if len(applications) == 1:  # asked by taking
            holding = self._at_once(applications[0], epoch)
            verdict = None if holding is None else self._draw(applications[0], holding, epoch, now_ns)
            return None if verdict is None else Decision(True, (verdict,))
        held = []
        for application in applications:
            holding = self._at_once(application, epoch)
            if holding is None or not holding.can_take(application.cost, epoch, now_ns):
                return None
            held.append((application, holding))
        verdicts = [self._draw(application, holding, epoch, now_ns) for application, holding in held]
        return Decision(True, tuple([verdict for verdict in verdicts if verdict is not None]))

    def _at_once(self, application: Application, epoch: int) -> Holding | None:
        """What decides an application by itself where it has enough; None where more has to be looked at."""
        if 0 < application.cost <= application.rule.cost_at_once:
            return self._holdings.find(application, epoch)
        return None

    def _draw(self, application: Application, holding: Holding, epoch: int, now_ns: int) -> Verdict | None:
        """Take what one rule needs from what is held here, commit it, and say so; None where it is not there."""
        cost = application.cost
        left = holding.draw(cost, epoch, now_ns)
        if left < 0:
            return None
        self._reports.admit(epoch, holding, cost)
        reset_ns = holding.reset_ns(self._clock.left_ns(now_ns), now_ns)
        return Verdict(application.rule, application.key, cost, True, True, left, say.EDGE, 0, reset_ns, None, epoch)

    def check(self, applications: Sequence[Application], epoch: int, now_ns: int) -> list[Part]:
        """Check each rule by what is known here; a part without a verdict passes, or crosses."""
        return [self._check(application, epoch, now_ns) for application in applications]

    def unchecked(self, applications: Sequence[Application], epoch: int) -> list[Part]:
        """The parts of a request that nobody checks any more: every limited rule is left to its stage."""
        parts = []
        for application in applications:
            rule = application.rule
            if isinstance(rule.limit, RateLimit):
                holding = self._holdings.find(application, epoch)
                parts.append(Part(application, holding, crosses=True))
            else:
                parts.append(Part(application, None))
        return parts

    def reserve(self, parts: Sequence[Part], epoch: int, now_ns: int) -> None:
        """Take the units of every part that needs no crossing; they were checked at this very instant."""
        for part in parts:
            cost, holding = part.application.cost, part.holding
            if cost and holding is not None and (not part.crosses or holding.threshold is not None):
                part.taken = holding.take(cost, epoch, now_ns)
                assert part.taken is not None, "checked at this very instant"

    def finish(self, parts: Sequence[Part], peek: bool, epoch: int, now_ns: int) -> Decision:
        """Commit or release a request of which every part has been decided."""
        for part in parts:
            if part.verdict is not None and not part.verdict.allowed:
                return self.refuse(parts, peek, epoch, now_ns)
        return self.admit(parts, peek, epoch, now_ns)

    def admit(self, parts: Sequence[Part], peek: bool, epoch: int, now_ns: int) -> Decision:
        """Commit: every rule let the request pass."""
        verdicts: list[Verdict] = []
        degraded = False
        for part in parts:
            holding, taken, verdict = part.holding, part.taken, part.verdict
            if holding is not None and not peek and part.application.cost:
                self._reports.demand(epoch, holding, part.application.cost)
                if part.fallen:
                    self._fallbacks.spend(part)
            if taken is not None and not part.crosses:
                self._reports.spend(part.held, taken.epoch, taken.units)
            if verdict is None and holding is None:
                verdict = say.passed(part.application, charged=not peek and part.application.cost > 0)
            elif verdict is None:
                verdict = say.from_slice(part, epoch, self._clock.left_ns(now_ns), now_ns)
            elif verdict.degraded:
                degraded = True
            verdicts.append(verdict)
        if degraded:
            self._count_degraded(verdicts)
        return Decision(True, tuple(verdicts))

    def refuse(self, parts: Sequence[Part], peek: bool, epoch: int, now_ns: int) -> Decision:
        """Release: at least one rule refused; what was reserved goes back."""
        refused = [part for part in parts if part.refused]
        assert refused
        if not peek:
            self._count_refused(refused, epoch)
        verdicts: list[Verdict] = []
        left_ns = self._clock.left_ns(now_ns)
        for part in parts:
            if part.taken is not None:
                part.held.put_back(part.taken)
            verdict = part.verdict
            if verdict is None:
                verdict = say.known(part, epoch, left_ns, now_ns)
            elif part.fallen:  # its share would have let it pass: nothing is spent of it
                verdict = replace(verdict, charged=False, epoch=None)
            verdicts.append(verdict)
        self._count_degraded(verdicts)
        return Decision(False, tuple(verdicts))

    def known(self, part: Part, epoch: int, now_ns: int) -> Verdict:
        """What is known here of a rule that is not asked."""
        return say.known(part, epoch, self._clock.left_ns(now_ns), now_ns)

    def _check(self, application: Application, epoch: int, now_ns: int) -> Part:
        rule, cost = application.rule, application.cost
        if not isinstance(rule.limit, RateLimit):
            return Part(application, None)
        if rule.cost_max is not None and cost > rule.cost_max:
            return Part(application, None, say.refused(application, never(rule), None))
        holding = self._holdings.find(application, epoch)
        if holding is None:
            return Part(application, None, say.refused(application, Reason.KEYS_FULL, say.UNAVAILABLE_RETRY_NS))
        if rule.divided:
            holding.offer(cost, now_ns)
            if holding.can_take(cost, epoch, now_ns):
                return Part(application, holding)
        if rule.local:
            return self._check_alone(application, holding, epoch, now_ns)
        wait = holding.refusal_ns(cost, self._clock.left_ns(now_ns), now_ns) if cost else None
        if wait is None and not holding.passes(cost, epoch, now_ns):
            part = self._check_alone(application, holding, epoch, now_ns)
            part.over_threshold = True
            return part
        if wait is None:
            return Part(application, holding, None, True)
        remaining = holding.in_hand(epoch, now_ns) if rule.divided else holding.region_remaining(now_ns)
        return Part(application, holding, say.refused(application, say.OVER_LIMIT, wait, remaining))

    def _check_alone(self, application: Application, holding: Holding, epoch: int, now_ns: int) -> Part:
        """What the edge's threshold says, without anybody else."""
        threshold, cost = holding.threshold, application.cost
        assert threshold is not None
        if threshold.admits(cost, epoch, now_ns):
            return Part(application, holding)
        wait = threshold.wait_ns(cost, epoch, self._clock.left_ns(now_ns), now_ns)
        remaining = threshold.room(epoch, now_ns)
        return Part(application, holding, say.refused(application, say.OVER_LIMIT, wait, remaining))

    def _count_degraded(self, verdicts: Sequence[Verdict]) -> None:
        """Which rules were answered without the authority."""
        degraded = [verdict.rule for verdict in verdicts if verdict.degraded and not verdict.shadow]
        if degraded:
            self._reports.degrade((rule.domain, rule.name) for rule in degraded)

    def _count_demand(self, parts: Sequence[Part], epoch: int) -> None:
        """Demand is offered cost that no other rule refused (algorithms 1.2)."""
        for part in parts:
            if part.holding is not None and part.application.cost:
                self._reports.demand(epoch, part.holding, part.application.cost)

    def _count_refused(self, refused: Sequence[Part], epoch: int) -> None:
        """What each rule refused, for whoever asks which keys are the heaviest. A sole refuser still counts its own
        demand, and what a threshold alone refused: whether the region had room is for its own sum to say.
        """
        for part in refused:
            if part.application.cost and not part.application.rule.shadow:
                self._reports.refuse(part.application)
        if len(refused) == 1:
            self._count_demand(refused, epoch)
            (sole,) = refused
            if sole.over_threshold and sole.application.cost:
                self._reports.refuse_above(epoch, sole.held, sole.application.cost)
