"""Edges and a region that counts quotas of a period, in virtual time: `t` is what the region's clock shows after a
midnight of UTC, and every message goes through the wire's codec.
"""

from __future__ import annotations

from functools import partial

from apportion.core.decision import Decision, Verdict
from apportion.core.match import apply_rules
from apportion.core.messages import AcquireAnswer, Rules
from apportion.core.request import Descriptor
from apportion.core.rule import RuleSet
from apportion.edge.ticket import Ticket
from apportion.region import events as regional
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from apportion.simulations.node import Clock
from tests.faults.rules import load
from tests.faults.world import SECOND, Options, World

MIDNIGHT_NS = 20_000 * 86_400 * SECOND
"""2024-10-04T00:00Z, a Friday."""

WARM_S = 3
"""What edges need to attach."""


class QuotaWorld:
    """A region with these rules and so many edges, at `t`. `repeat`: the part of messages that come twice,
    `lost_answers`: of answers that are lost with their stream.
    """

    def __init__(
        self, rules: str, edges: int = 2, t: float = 1.0, repeat: float = 0.0, lost_answers: float = 0.0
    ) -> None:
        self.rules = Rules(1, (("rules.yaml", rules),))
        options = Options(
            edges=edges,
            allocators=1,
            wire=True,
            repeat=repeat,
            lost_answers=lost_answers,
            delay_ns=5 * MS,
            clock_drift=0,
            make_authority=self._authority,
        )
        self.world = World(4, options)
        self.region = self.world.region
        self._origin_ns = round((t - WARM_S) * SECOND)
        self.region.clock = Clock(MIDNIGHT_NS + self._origin_ns, 0)
        self.answered: list[Decision] = []
        self.answered_ns = 0
        self.shadowed: list[Verdict] = []
        journal = self.world.journal
        journal.decided = self._decided  # type: ignore[method-assign]
        journal.shadowed = lambda now_ns, process, verdict: self.shadowed.append(verdict)  # type: ignore[method-assign]
        self.crossings = 0
        journal.region_sent = self._sent  # type: ignore[method-assign]
        self.world.start()
        self.world.run(WARM_S)

    def _authority(self, _: Rules, __: RuleSet, *rest: object) -> Authority:
        return Authority(self.rules, load(self.rules), *rest)  # type: ignore[arg-type]

    def _decided(self, now_ns: int, process: int, decision: Decision) -> None:
        self.answered.append(decision)
        self.answered_ns = now_ns

    def _sent(self, now_ns: int, authority: Authority, session: int, message: object) -> None:
        self.crossings += isinstance(message, AcquireAnswer)

    @property
    def t_ns(self) -> int:
        """What the region's clock shows, nanoseconds after the midnight."""
        return self.world.now_ns + self._origin_ns

    def until(self, t: float) -> None:
        """Let time pass until the region's clock shows `t`."""
        self.world.run((round(t * SECOND) - self.t_ns) / SECOND)
        assert self.t_ns == round(t * SECOND)

    def call(self, edge: int = 0, cost: int | None = None, peek: bool = False, **dimensions: str) -> Decision:
        """A request of tenant t at an edge, and its decision; what has to cross lets time pass."""
        node = self.world.edges[edge]
        descriptor = Descriptor(dimensions or {"tenant": "t"}, cost)
        applications = apply_rules(node.agent.matchers["api"], [descriptor], whole=False)
        before = len(self.answered)
        answer = node.agent.ask(applications, node.now_ns, peek)
        if isinstance(answer, Decision):
            self.answered_ns = self.world.now_ns
            return answer
        assert isinstance(answer, Ticket)
        node.waiting[answer.number] = (self.world.now_ns, 100 * MS)
        self.world.at(self.world.now_ns, partial(node._flush, node.life))  # as its `ask` does
        while len(self.answered) == before:
            self.world.run(0.001)
        return self.answered[-1]

    def change(self, rules: str) -> None:
        """Let other rules be in force everywhere."""
        self.rules = Rules(self.rules.version + 1, (("rules.yaml", rules),))
        self.region.feed(regional.RulesChanged(self.rules, load(self.rules)))
        self.world.run(0.1)
        assert all(edge.agent.rules == self.rules for edge in self.world.edges)

    def reset_t(self, decision: Decision) -> float:
        """What `t` will be when the latest decision says that the allowance is whole, rounded to a microsecond."""
        assert decision.reset_after is not None
        return round((self.answered_ns + self._origin_ns) / SECOND + decision.reset_after, 6)
