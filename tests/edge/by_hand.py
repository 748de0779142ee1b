"""An agent whose region is played by hand: what it says is collected. No transport, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import numpy as np

from apportion.core.decision import Decision
from apportion.core.key import encode_key
from apportion.core.limit import EPOCH_NS
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    GroupAnswer,
    Lent,
    MemberAnswer,
    Outcome,
    Quota,
    QuotaName,
    Rules,
    Slices,
    Tick,
    Welcome,
)
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Event, Lost, Note, Polled, Received, Reconnect, Send, Settled
from apportion.edge.ticket import Ticket

MS = 1_000_000
T0 = 50 * EPOCH_NS
"""The edge's clock when its stream opens; epoch 7 begins at that instant."""

EPOCH = 7
TEXT = """
version: 1
domain: api
rules:
  - {name: exact, match: {e: "*"}, key: [e], limit: {rate: 10/s}, enforce: region, when_unavailable: [deny]}
  - {name: free, match: {n: "*"}, key: [n], limit: {unlimited: true}, enforce: region, when_unavailable: [deny]}
  - {name: lease, match: {l: "*"}, key: [l], limit: {rate: 100/s, burst: 50}, enforce: lease, when_unavailable: [deny]}
  - {name: small, match: {s: "*"}, key: [s], limit: {rate: 5/s}, enforce: lease, when_unavailable: [deny]}
  - {name: daily, match: {d: "*"}, key: [d], limit: {quota: 10/day, anchor: calendar}, enforce: region,
     when_unavailable: [deny]}
  - {name: leased, match: {c: "*"}, key: [c], limit: {quota: 1000/day, anchor: calendar}, enforce: lease,
     when_unavailable: [deny]}
  - {name: zero, match: {z: "*"}, key: [z], limit: {rate: 0/s}, enforce: region, when_unavailable: [deny]}
"""
RULES = Rules(1, (("rules.yaml", TEXT),))

Said = TypeVar("Said")


@cache
def load(rules: Rules) -> RuleSet:
    """What the shell gives the agent."""
    return parse_rules(rules.texts)


def rule(name: str) -> Rule:
    """One rule of TEXT."""
    found = load(RULES).rule("api", name)
    assert found is not None
    return found


def needs(name: str, cost: int = 1, key: str = "k") -> Application:
    """A request's need of one rule."""
    return Application(rule(name), (key,), cost)


def quota(name: str, key: str = "k") -> Quota:
    """The quota of `needs`."""
    return Quota("api", name, encode_key((key,)))


def member(
    outcome: Outcome = Outcome.ADMITTED,
    remaining: int = 0,
    wait_ns: int | None = 0,
    backlog: int | None = None,
    store: bool = True,
    epoch: int = EPOCH,
    reset_ns: int | None = None,
) -> MemberAnswer:
    """The region's word on one member."""
    return MemberAnswer(outcome, epoch, remaining, wait_ns, backlog, store, reset_ns)


def over(wait_ms: int, backlog: int | None = None, store: bool = True) -> MemberAnswer:
    """A refusal."""
    return member(Outcome.OVER_LIMIT, 0, wait_ms * MS, backlog, store)


@dataclass
class ByHand:
    """One agent. `now_ns` is its clock; `said` what it sent and was not looked at yet, by `sent`."""

    agent: Agent = field(default_factory=lambda: Agent("edge-1", "here", 11, load))
    now_ns: int = T0
    commands: list[Any] = field(default_factory=list)

    def step(self, event: Event) -> None:
        """Let something happen."""
        self.commands += self.agent.step(event, self.now_ns)

    def poll(self, after_ms: float = 0) -> None:
        """Let time pass."""
        self.now_ns += int(after_ms * MS)
        self.step(Polled())

    def attach(self, left_ms: int = 1000, epoch: int = EPOCH) -> None:
        """Open a stream and be welcomed."""
        self.step(Connected())
        self.hear(Welcome(RULES, Tick(epoch, left_ms * MS), replica=900))

    def hear(self, message: Any) -> None:
        """A message of the region."""
        self.step(Received(message))

    def lose(self) -> None:
        """The stream ends."""
        self.step(Lost())

    def slices(self, epoch: int = EPOCH, **units: int) -> None:
        """Slices by rule name, of the key "k"."""
        names = tuple(QuotaName(at, quota(name)) for at, name in enumerate(units))
        ids = np.arange(len(units), dtype=np.uint32)
        self.hear(Slices(epoch, 1, 1, names, ids, np.array(list(units.values()), np.uint64)))

    def ask(self, *applications: Application, peek: bool = False) -> Decision:
        """A request that is answered at once."""
        answer = self.agent.ask(applications, self.now_ns, peek)
        assert isinstance(answer, Decision)
        return answer

    def waits(self, *applications: Application, peek: bool = False, depart: bool = True) -> int:
        """A request that has to wait; its ticket's number."""
        answer = self.agent.ask(applications, self.now_ns, peek)
        assert isinstance(answer, Ticket)
        if depart:
            self.poll()
        return answer.number

    def answer(self, *groups: GroupAnswer, number: int | None = None, lent: tuple[Lent, ...] = ()) -> None:
        """Answer the latest crossing."""
        if number is None:
            number = self.last(Acquire).number
        self.hear(AcquireAnswer(number, self.tick(), groups, lent))

    def tick(self) -> Tick:
        """What the region's clock shows, with no delay."""
        passed = self.now_ns - T0
        return Tick(EPOCH + passed // EPOCH_NS, EPOCH_NS - passed % EPOCH_NS)

    def said(self, kind: type[Said]) -> list[Said]:
        """Every message of that kind sent so far."""
        return [each.message for each in self.commands if isinstance(each, Send) and isinstance(each.message, kind)]

    def last(self, kind: type[Said]) -> Said:
        """The latest of them."""
        return self.said(kind)[-1]

    def decisions(self) -> dict[int, Decision]:
        """Decisions of requests that waited, by ticket; each at most once."""
        settled = [each for each in self.commands if isinstance(each, Settled)]
        assert len({each.ticket for each in settled}) == len(settled), "a request is answered once"
        return {each.ticket: each.decision for each in settled}

    def notes(self) -> list[str]:
        """Events logged."""
        return [each.event for each in self.commands if isinstance(each, Note)]

    def reconnects(self) -> int:
        """How often another stream was asked for."""
        return sum(isinstance(each, Reconnect) for each in self.commands)


def attached(left_ms: int = 1000) -> ByHand:
    """An agent that was just welcomed, in epoch 7."""
    by_hand = ByHand()
    by_hand.attach(left_ms)
    return by_hand
