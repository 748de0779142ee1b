"""What an edge counts of its decisions: plain integers for each rule, whatever the door. Pure.

There is one entry for each rule and none for a key: who chooses the values of keys chooses no memory here.
"""

from __future__ import annotations

from bisect import bisect_left

from apportion.core.decision import Decision, Reason, Scope, Verdict

RULES_MAX = 10_000
"""Rules counted; when a further one comes all are forgotten, which whoever reads counters takes for a restart."""

SECONDS_BOUNDS = (25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 1.0)
"""Upper bounds of the histogram of decision times: local ones take tens of microseconds, crossings milliseconds."""

ANOTHER_RULE = "another_rule"
"""The reason of units that a rule would have let pass in a request that another rule refused."""

_NS = 1_000_000_000
_BOUNDS_NS = [round(bound * _NS) for bound in SECONDS_BOUNDS]


class RuleCounts:
    """Units of one rule since the start: offered = admitted + all of `denied` and `would_deny`. `degraded` counts
    requests. `would_deny`: what a shadow rule would have refused.
    """

    __slots__ = ("admitted", "degraded", "denied", "offered", "would_deny")

    def __init__(self) -> None:
        self.offered = 0
        self.admitted = 0
        self.degraded = 0
        self.denied: dict[tuple[Reason | None, Scope], int] = {}
        self.would_deny: dict[tuple[Reason | None, Scope], int] = {}


class Counts:
    """Counts of one edge. `rules` is by domain and name of the rule; `seconds` has one place more than its bounds."""

    __slots__ = ("abandoned", "failed", "nanoseconds", "peeks", "rules", "seconds")

    def __init__(self) -> None:
        self.rules: dict[tuple[str, str], RuleCounts] = {}
        self.peeks = 0
        self.failed = 0
        self.abandoned = 0
        self.seconds = [0] * (len(_BOUNDS_NS) + 1)
        self.nanoseconds = 0

    def decided(self, decision: Decision, peek: bool, took_ns: int) -> None:
        """Count a decision that took `took_ns` from the question on; of a peek only that it was one, and its time."""
        self.seconds[bisect_left(_BOUNDS_NS, took_ns)] += 1
        self.nanoseconds += took_ns
        if peek:
            self.peeks += 1
            return
        for verdict in decision.verdicts:
            if verdict.reason is not Reason.PENDING:
                self._count(verdict, decision.allowed)

    def shadowed(self, verdict: Verdict) -> None:
        """Count what a shadow rule says that was pending in its decision, which let the request pass."""
        self._count(verdict, allowed=True)

    def _count(self, verdict: Verdict, allowed: bool) -> None:
        counts = self.rules.get((verdict.rule.domain, verdict.rule.name))
        if counts is None:
            counts = self._begin(verdict)
        counts.offered += verdict.cost
        if verdict.degraded:
            counts.degraded += 1
        if allowed and (verdict.allowed or not verdict.shadow):
            counts.admitted += verdict.cost
            return
        # Of a request that another rule refused, a shadow rule that would have refused it too says why, as others do.
        refused = counts.would_deny if verdict.shadow and not verdict.allowed else counts.denied
        why = (verdict.reason, verdict.scope)
        refused[why] = refused.get(why, 0) + verdict.cost

    def _begin(self, verdict: Verdict) -> RuleCounts:
        if len(self.rules) >= RULES_MAX:
            self.rules.clear()
        counts = self.rules[verdict.rule.domain, verdict.rule.name] = RuleCounts()
        return counts
