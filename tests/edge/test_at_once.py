"""Most requests are decided at once, by what is held: the same as if every case had been looked at."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest

from apportion.core.decision import Decision
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    GroupAnswer,
    Lent,
    MemberAnswer,
    Outcome,
    QuotaName,
    Rules,
    Slices,
    Tick,
    Welcome,
)
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Event, Polled, Received, Send
from tests.edge.by_hand import MS, T0, quota

TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: lease, match: {a: "*"}, key: [a], limit: {rate: 60/s, burst: 30}, enforce: lease, when_unavailable: [deny]}
  - {name: each, match: {b: "*"}, key: [b], limit: {rate: 40/s}, enforce: edge, at_each_edge: 40/s, wrong_costs: noise}
  - {name: slack, match: {c: "*"}, key: [c], limit: {rate: 90/s}, enforce: edge, slack: 10%, wrong_costs: noise}
  - {name: region, match: {d: "*"}, key: [d], limit: {rate: 80/s}, enforce: region, when_unavailable: [deny]}
  - {name: shadow, match: {e: "*"}, key: [e], limit: {rate: 30/s}, enforce: lease, when_unavailable: [deny],
     shadow: true}
"""
NAMES = tuple(QuotaName(at, quota(name, "a")) for at, name in enumerate(("lease", "slack", "shadow")))
RULES = Rules(1, (("rules.yaml", TEXT),))


def every_case(rules: Rules) -> RuleSet:
    """The same rules, but that nothing of them is decided at once."""
    parsed = parse_rules(rules.texts)
    for rule in parsed.rules:
        object.__setattr__(rule, "cost_at_once", 0)
    return parsed


def at_once(rules: Rules) -> RuleSet:
    """The rules as they are."""
    return parse_rules(rules.texts)


class Twin:
    """An agent; `said` is all that it decided and sent. Its region admits and lends all it is asked."""

    def __init__(self, load: Callable[[Rules], RuleSet]) -> None:
        self.agent = Agent("edge-1", "here", 11, load)
        self.rules = {rule.name: rule for rule in load(RULES).rules}
        self.said: list[object] = []

    def step(self, event: Event, now_ns: int) -> None:
        """Let something happen."""
        for command in self.agent.step(event, now_ns):
            self.said.append(repr(command))
            if isinstance(command, Send) and isinstance(command.message, Acquire):
                self.step(Received(answer(command.message, now_ns)), now_ns)

    def ask(self, needs: list[tuple[str, str, int]], peek: bool, now_ns: int) -> None:
        """A request of rules, keys and costs."""
        applications = tuple(Application(self.rules[name], (key,), cost) for name, key, cost in needs)
        decision = self.agent.ask(applications, now_ns, peek)
        if isinstance(decision, Decision):
            self.said.append((decision.allowed, decision.verdicts))
        self.step(Polled(), now_ns)


def answer(acquire: Acquire, now_ns: int) -> AcquireAnswer:
    """All is admitted, and lent."""
    epoch, left_ns = epoch_of(now_ns)
    store = MemberAnswer(Outcome.ADMITTED, epoch, 5, 0, 0, store=False)
    groups = tuple(GroupAnswer(group.count, (store,) * len(group.members)) for group in acquire.groups)
    lent = tuple(Lent(identity, epoch, units) for identity, units in acquire.ahead)
    return AcquireAnswer(acquire.number, Tick(epoch, left_ns), groups, lent)


def epoch_of(now_ns: int) -> tuple[int, int]:
    """The region's epoch and what is left of it."""
    passed = now_ns - T0
    return 7 + passed // EPOCH_NS, EPOCH_NS - passed % EPOCH_NS


def happen(twin: Twin, random: Random) -> None:
    """Five seconds of requests, with a plan for each but one."""
    now_ns = T0
    twin.step(Connected(), now_ns)
    twin.step(Received(Welcome(RULES, Tick(*epoch_of(now_ns)), 900)), now_ns)
    told = 7
    while now_ns < T0 + 5 * EPOCH_NS:
        now_ns += random.randrange(8 * MS)
        epoch, left_ns = epoch_of(now_ns)
        if epoch > told:
            told = epoch
            twin.step(Received(Tick(epoch, left_ns)), now_ns)
            if random.random() < 0.8:
                units = np.array([random.randrange(60), random.randrange(99), random.randrange(30)], np.uint64)
                twin.step(Received(Slices(epoch, 1, 1, NAMES, np.arange(3, dtype=np.uint32), units)), now_ns)
        names = random.sample(sorted(twin.rules), random.choice((1, 1, 1, 2, 3)))
        needs = [(name, random.choice("ab"), random.choice((0, 1, 1, 1, 2, 7, 31))) for name in names]
        twin.ask(needs, random.random() < 0.05, now_ns)


@pytest.mark.parametrize("seed", range(20))
def test_deciding_at_once_is_deciding_by_every_case(seed: int) -> None:
    """All modes, shadows, peeks, several rules of a request, slices and loans: what is said and sent is the same."""
    first, second = Twin(at_once), Twin(every_case)
    happen(first, Random(seed))
    happen(second, Random(seed))
    assert first.said == second.said
    assert any(isinstance(each, tuple) and each[0] for each in first.said)
