"""C40 of cases.md: slow is neither allowed nor denied, but answered in time by what the rule says, and marked."""

from __future__ import annotations

import pytest

from apportion.core.decision import Decision
from apportion.core.messages import Acquire, AcquireAnswer, GroupAnswer, MemberAnswer, Outcome, Rules, Tick, Welcome
from apportion.core.request import Application
from apportion.edge.agent import Agent
from apportion.edge.events import Command, Connected, Polled, Received, Send, Settled
from apportion.edge.ticket import Ticket
from tests.edge.test_stages import T0, Edge, S, load, text_of

DEADLINE_S = 0.1


CROSSING = ["region", "edge+region", "lease"]
"""The modes that ask; an `edge` rule never does."""


def frozen(enforce: str, stages: str) -> tuple[Edge, list[Decision], list[float], Acquire]:
    """100 calls in the half second in which the region says nothing: answers, how long each took, what was asked."""
    edge = Edge(enforce, stages, slices=0)
    edge.heard(1.05, Tick(51, S * 95 // 100))
    asked: dict[int, float] = {}
    decisions: list[Decision] = []
    took: list[float] = []
    crossing: list[Acquire] = []

    def perform(commands: list[Command], now: float) -> None:
        for command in commands:
            if isinstance(command, Settled):
                decisions.append(command.decision)
                took.append(now - asked[command.ticket])
            elif isinstance(command, Send) and isinstance(command.message, Acquire):
                crossing.append(command.message)

    for at in range(120):
        now = 1.2 + at * 0.005
        if at < 100:
            answer = edge.agent.ask((edge.application(),), edge.at(now))
            assert isinstance(answer, Ticket)
            asked[answer.number] = now
        perform(edge.agent.step(Polled(), edge.at(now)), now)
    return edge, decisions, took, crossing[0]


@pytest.mark.parametrize("enforce", CROSSING)
@pytest.mark.parametrize("stages", ["[allow for 1m, deny]", "[deny]", "[fair_share]"])
def test_every_call_is_answered_by_its_deadline(enforce: str, stages: str) -> None:
    """Whatever the stage."""
    _, decisions, took, _ = frozen(enforce, stages)
    assert len(decisions) == 100
    assert max(took) <= DEADLINE_S + 0.0051  # at the poll that is due
    assert all(decision.degraded for decision in decisions)


@pytest.mark.parametrize("enforce", CROSSING)
def test_allow_passes_marked_deny_refuses_with_its_own_reason_and_a_share_is_bounded(enforce: str) -> None:
    """All of it is one label, so the share of 25 is there once."""
    _, allowed, _, _ = frozen(enforce, "[allow for 1m, deny]")
    assert all(decision.allowed for decision in allowed)
    _, denied, _, _ = frozen(enforce, "[deny]")
    assert {(decision.allowed, decision.reason) for decision in denied} == {(False, "unavailable")}
    _, shared, _, _ = frozen(enforce, "[fair_share]")
    assert sum(decision.allowed for decision in shared) == 25


def test_an_edge_with_units_in_hand_answers_from_them_at_once() -> None:
    """Of a slice of 30 the depth of 7, and none degraded, with no word of the region; the others ask it for more."""
    edge = Edge("lease", "[deny]")
    answers = [edge.agent.ask((edge.application(),), edge.at(0.5)) for _ in range(100)]
    given = [answer for answer in answers if isinstance(answer, Decision)]
    assert [(decision.allowed, decision.degraded) for decision in given] == [(True, False)] * 7
    assert len(answers) - len(given) == 93  # they wait for the region, until their deadline


def test_a_rule_of_the_edge_alone_notices_nothing() -> None:
    """With slack: its share at once, then refusals of its own, and nobody waits."""
    rules = text_of("edge", "").replace("when_unavailable: ", "slack: 0%, wrong_costs: noise")
    agent = Agent("e1", "here", 7, load)
    agent.step(Connected(), T0)
    agent.step(Received(Welcome(Rules(1, (("r", rules),)), Tick(50, S), 1)), T0)
    rule = agent.matchers["api"].match({"a": "x"}, whole=True)[0]
    answers = [agent.ask((Application(rule, ("x",), 1),), T0 + S * 6 // 5 + at * S // 100) for at in range(100)]
    assert all(isinstance(answer, Decision) and not answer.degraded for answer in answers)


@pytest.mark.parametrize("enforce", CROSSING)
def test_each_answer_is_counted_by_its_stage(enforce: str) -> None:
    """What passed and what did not, apart."""
    edge, _, _, _ = frozen(enforce, "[fair_share]")
    assert edge.agent.fallbacks.counts == {("api", "r", "fair_share", True): 25, ("api", "r", "fair_share", False): 75}


@pytest.mark.parametrize("enforce", CROSSING)
def test_a_late_answer_of_the_region_charges_nobody_twice(enforce: str) -> None:
    """It was given for a call that has its answer: nothing is spent for it here, and no other call gets it."""
    edge, decisions, _, asked = frozen(enforce, "[deny]")
    member = MemberAnswer(Outcome.ADMITTED, 51, 99, 0, backlog=0)
    admitted = tuple(GroupAnswer(group.count, (member,)) for group in asked.groups)
    before = len(decisions)
    edge.heard(1.85, AcquireAnswer(asked.number, Tick(51, S * 15 // 100), admitted))
    assert len(decisions) == before
    assert not edge.agent._reports._spent
