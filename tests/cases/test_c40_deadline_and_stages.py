"""C40 of cases.md: slow is neither allowed nor denied, but answered in time by what the rule says, and marked."""

from __future__ import annotations

from apportion.core.decision import Decision
from apportion.core.messages import Acquire, AcquireAnswer, GroupAnswer, MemberAnswer, Outcome, Tick
from apportion.edge.events import Command, Polled, Send, Settled
from apportion.edge.ticket import Ticket
from tests.edge.test_stages import Edge, S

DEADLINE_S = 0.1


def frozen(stages: str) -> tuple[Edge, list[Decision], list[float], Acquire]:
    """100 calls in the half second in which the region says nothing: answers, how long each took, what was asked."""
    edge = Edge("region", stages, slices=0)
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


def test_every_call_is_answered_by_its_deadline() -> None:
    """Whatever the stage."""
    for stages in ("[allow for 1m, deny]", "[deny]", "[fair_share]"):
        _, decisions, took, _ = frozen(stages)
        assert len(decisions) == 100
        assert max(took) <= DEADLINE_S + 0.0051  # at the poll that is due
        assert all(decision.degraded for decision in decisions)


def test_allow_passes_marked_deny_refuses_with_its_own_reason_and_a_share_is_bounded() -> None:
    """Two labels are met, so the share of 25 is there twice."""
    _, allowed, _, _ = frozen("[allow for 1m, deny]")
    assert all(decision.allowed for decision in allowed)
    _, denied, _, _ = frozen("[deny]")
    assert {(decision.allowed, decision.reason) for decision in denied} == {(False, "unavailable")}
    _, shared, _, _ = frozen("[fair_share]")
    assert sum(decision.allowed for decision in shared) == 25


def test_each_answer_is_counted_by_its_stage() -> None:
    """What passed and what did not, apart."""
    edge, _, _, _ = frozen("[fair_share]")
    assert edge.agent.fallbacks.counts == {("api", "r", "fair_share", True): 25, ("api", "r", "fair_share", False): 75}


def test_a_late_answer_of_the_region_charges_nobody_twice() -> None:
    """It was given for a call that has its answer: nothing is spent for it here, and no other call gets it."""
    edge, decisions, _, asked = frozen("[deny]")
    member = MemberAnswer(Outcome.ADMITTED, 51, 99, 0, backlog=0)
    admitted = tuple(GroupAnswer(group.count, (member,)) for group in asked.groups)
    before = len(decisions)
    edge.heard(1.85, AcquireAnswer(asked.number, Tick(51, S * 15 // 100), admitted))
    assert len(decisions) == before
    assert not edge.agent._reports._spent
