"""Shadow rules at the edge: counted as if they were enforced, after all others, and never waited for (design 4). Pure.

Each is taken through the same checks as an enforced rule, as a request of its own that is made where the enforced rules
let the request pass. So what it counts is what it would count; what it says decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from apportion.core.decision import Decision, Verdict
from apportion.core.request import Application
from apportion.edge import verdicts as say
from apportion.edge.lanes import Lanes
from apportion.edge.requests import Requests
from apportion.edge.ticket import Ticket


class Shadows:
    """Asks shadow rules, once the enforced rules of the request have decided."""

    def __init__(self, requests: Requests, lanes: Lanes, numbers: count[int]) -> None:
        self._requests = requests
        self._lanes = lanes
        self._numbers = numbers

    def complete(
        self,
        applications: Sequence[Application],
        decision: Decision,
        peek: bool,
        attached: bool,
        epoch: int,
        now_ns: int,
    ) -> Decision:
        """`decision` of the enforced rules among `applications`, with what the shadow rules say in their places."""
        said = iter(decision.verdicts)
        counted = decision.allowed and not peek
        ask = self._ask if counted else self._look
        verdicts = tuple(
            ask(application, attached, epoch, now_ns) if application.rule.shadow else next(said)
            for application in applications
        )
        return Decision(decision.allowed, verdicts)

    def _look(self, application: Application, attached: bool, epoch: int, now_ns: int) -> Verdict:
        """What is known here of a request that charges nothing: nobody asks the region for it."""
        (part,) = self._requests.check((application,), epoch, now_ns)
        return part.verdict or self._requests.known(part, epoch, now_ns)

    def _ask(self, application: Application, attached: bool, epoch: int, now_ns: int) -> Verdict:
        """Charge the rule as if it were enforced; where it must cross, it is PENDING."""
        (part,) = parts = self._requests.check((application,), epoch, now_ns)
        if part.crosses and not attached and not part.refused:
            part.verdict = say.unanswered(application)
        if part.refused:
            return self._requests.refuse(parts, False, epoch, now_ns).verdicts[0]
        self._requests.reserve(parts, epoch, now_ns)
        if not part.crosses:
            return self._requests.admit(parts, False, epoch, now_ns).verdicts[0]
        deadline = now_ns + application.rule.deadline_ns
        self._lanes.add(Ticket(next(self._numbers), parts, False, epoch, deadline, shadow=True))
        return say.pending(application)
