"""Stages of `when_unavailable` at the edge, with instants: what each answers, for how long, and what it counts."""

from __future__ import annotations

import numpy as np
import pytest

from apportion.core.decision import Decision
from apportion.core.messages import Quota, QuotaName, Report, Rules, Slices, Tick, Welcome
from apportion.core.request import Application
from apportion.core.rule import Rule, RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Lost, Polled, Received, Send
from apportion.edge.kept import Kept
from apportion.edge.ticket import Ticket

S = 1_000_000_000
T0 = 1_000 * S
"""The edge attaches, at the start of epoch 50."""

KEPT = "[keep_share for 3s, fair_share for 5s, deny]"


def text_of(enforce: str, stages: str, rate: str = "100/s") -> str:
    """A file with one rule."""
    return (
        "version: 1\ndomain: api\nedges_max: 4\nrules:\n"
        f"  - {{name: r, match: {{a: x}}, key: [a], limit: {{rate: {rate}}}, enforce: {enforce}, "
        f"when_unavailable: {stages}}}\n"
    )


def load(rules: Rules) -> RuleSet:
    """Parse."""
    return parse_rules(rules.texts)


class Edge:
    """An agent whose region was heard at T0 and gave it slices of 30 units for epochs 50 and 51."""

    def __init__(self, enforce: str, stages: str, rate: str = "100/s", slices: int = 30) -> None:
        self.rules = Rules(1, (("r", text_of(enforce, stages, rate)),))
        self.rule: Rule = load(self.rules).domains["api"].rules[0]
        self.agent = Agent("e1", "here", 7, load)
        self.agent.step(Connected(), T0)
        self.heard(0, Welcome(self.rules, Tick(50, S), 1))
        quota = Quota("api", "r", b"\x01x")
        for application in (self.application(),):
            self.agent.ask((application,), T0, peek=True)
        (holding,) = self.agent._holdings
        quota = holding.quota
        if slices:
            for epoch in (50, 51):
                ids, units = np.array([0], np.uint32), np.array([slices], np.uint64)
                self.heard(0, Slices(epoch, 1, 1, (QuotaName(0, quota),), ids, units))

    def heard(self, seconds: float, message: object) -> None:
        """The region says something."""
        self.agent.step(Received(message), self.at(seconds))  # type: ignore[arg-type]

    def at(self, seconds: float) -> int:
        """An instant."""
        return T0 + int(seconds * S)

    def lose(self, seconds: float) -> None:
        """The stream ends."""
        self.agent.step(Lost(), self.at(seconds))

    def application(self, cost: int = 1) -> Application:
        """A request for the rule."""
        return Application(self.rule, ("x",), cost)

    def ask(self, seconds: float, cost: int = 1, peek: bool = False) -> Decision:
        """A decision given at once."""
        answer = self.agent.ask((self.application(cost),), self.at(seconds), peek)
        assert isinstance(answer, Decision)
        return answer

    def admitted(self, seconds: float, number: int = 200) -> int:
        """How many of so many requests at one instant pass."""
        return sum(self.ask(seconds).allowed for _ in range(number))


@pytest.mark.parametrize("enforce", ["lease", "edge+region"])
def test_keep_share_then_fair_share_then_deny_to_the_second(enforce: str) -> None:
    """3 s of the last slice an epoch, 5 s of floor(100 / 4), then nothing, counted from the last word of the region."""
    edge = Edge(enforce, KEPT)
    edge.heard(1.5, Tick(51, S // 2))
    edge.lose(1.6)
    admitted = {second: edge.admitted(second + 0.4) for second in range(2, 12)}
    assert admitted == {2: 30, 3: 30, 4: 30, 5: 25, 6: 25, 7: 25, 8: 25, 9: 25, 10: 0, 11: 0}
    assert edge.ask(4.49).degraded and edge.ask(9.49).degraded and not edge.ask(9.51).allowed


def test_the_first_stage_counts_from_the_last_epoch_message() -> None:
    """Not from the moment at which the stream was lost."""
    edge = Edge("region", "[allow for 2s, deny]")
    edge.heard(1.0, Tick(51, S))
    edge.lose(2.4)
    assert edge.ask(2.999).allowed
    assert not edge.ask(3.0).allowed


def test_fair_share_of_a_region_rule_is_whole_units_of_each_epoch() -> None:
    """floor(Q / edges_max), anew in each epoch, however the units are asked for."""
    edge = Edge("region", "[fair_share]", slices=0)
    edge.lose(1.2)
    assert [edge.ask(1.2, 20).allowed, edge.ask(1.3, 6).allowed, edge.ask(1.4, 5).allowed] == [True, False, True]
    assert edge.ask(2.0, 25).allowed
    assert not edge.ask(2.1).allowed


def test_fair_share_of_a_small_quota_is_nothing() -> None:
    """Less than a unit for each edge."""
    edge = Edge("region", "[fair_share]", rate="3/s", slices=0)
    edge.lose(1.2)
    assert edge.admitted(1.5) == 0


def test_keep_share_of_an_undivided_lease_is_nothing() -> None:
    """There are no slices to keep."""
    edge = Edge("lease", "[keep_share for 10s, deny]", rate="15/s", slices=0)
    edge.lose(1.2)
    assert edge.admitted(1.5) == 0


@pytest.mark.parametrize("enforce", ["lease", "region", "edge+region"])
def test_allow_lets_everything_pass_and_counts_it(enforce: str) -> None:
    """Marked degraded and charged; a cost that can never pass stays impossible, and a threshold still sheds."""
    edge = Edge(enforce, "[allow for 1m, deny]", slices=0)
    edge.lose(1.2)
    decision = edge.ask(1.5, 20)
    assert decision.allowed and decision.degraded
    assert decision.verdicts[0].charged and decision.verdicts[0].epoch == 51
    assert edge.admitted(1.5) == (105 if enforce == "edge+region" else 200)
    assert edge.ask(1.5, 10_000).reason == "impossible"


@pytest.mark.parametrize("enforce", ["lease", "region", "edge+region"])
def test_deny_refuses_with_a_reason_of_its_own(enforce: str) -> None:
    """Not over the limit, but unavailable; degraded all the same."""
    edge = Edge(enforce, "[deny]", slices=0)
    edge.lose(1.2)
    decision = edge.ask(1.5)
    assert (decision.allowed, decision.degraded, decision.reason, decision.retry_after) == (
        False,
        True,
        "unavailable",
        1.0,
    )


def test_a_missed_deadline_is_answered_by_the_stage() -> None:
    """The region is attached and says nothing in time."""
    edge = Edge("region", "[fair_share]", slices=0)
    ticket = edge.agent.ask((edge.application(),), edge.at(1.2))
    assert isinstance(ticket, Ticket)
    edge.agent.step(Polled(), edge.at(1.2))
    edge.heard(1.29, Tick(51, S * 71 // 100))
    (settled,) = [c for c in edge.agent.step(Polled(), edge.at(1.31)) if not isinstance(c, Send)]
    assert settled.decision.allowed and settled.decision.degraded  # type: ignore[union-attr]


def test_what_is_spent_of_a_real_slice_counts_against_the_share() -> None:
    """An epoch with a slice never gives more than the larger of both."""
    edge = Edge("lease", "[keep_share]")
    edge.lose(1.5)
    first = edge.ask(1.6)
    assert first.allowed and not first.degraded
    assert edge.admitted(1.7) + edge.admitted(1.9) == 29


def test_a_peek_spends_nothing() -> None:
    """It says what a request would meet."""
    edge = Edge("region", "[fair_share]", slices=0)
    edge.lose(1.2)
    for _ in range(50):
        assert edge.ask(1.3, 25, peek=True).allowed
    assert edge.ask(1.3, 25).allowed
    assert not edge.ask(1.3, 1, peek=True).allowed


def test_a_refused_request_spends_no_share() -> None:
    """All rules are checked before any is charged."""
    edge = Edge("region", "[fair_share]", slices=0)
    edge.lose(1.2)
    text = edge.rules.texts[0][1].replace("name: r,", "name: q,").replace("[fair_share]", "[deny]")
    other = parse_rules([("q", text)]).domains["api"].rules[0]
    applications = (Application(other, ("x",), 1), edge.application())
    decision = edge.agent.ask(applications, edge.at(1.3))
    assert isinstance(decision, Decision) and not decision.allowed
    assert edge.admitted(1.3) == 25


def test_who_waits_as_told_is_admitted() -> None:
    """The share of the next epoch has it."""
    edge = Edge("region", "[fair_share]", slices=0)
    edge.lose(1.2)
    edge.admitted(1.3)
    refused = edge.ask(1.4, 3)
    assert refused.retry_after == pytest.approx(0.6)
    assert edge.ask(1.4 + (refused.retry_after or 0), 3).allowed


def test_degraded_spending_is_reported_by_label() -> None:
    """Once the region is back: units by the label of the epoch, and how many of them no slice covered."""
    edge = Edge("lease", "[keep_share]", slices=30)
    edge.lose(1.6)
    edge.admitted(2.4)
    edge.admitted(3.4)
    edge.agent.step(Connected(), edge.at(4.1))
    commands = edge.agent.step(Received(Welcome(edge.rules, Tick(54, S * 9 // 10), 1)), edge.at(4.1))
    reports = [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Report)]
    rows = [
        row
        for report in reports
        for row in zip(report.spent_epoch.tolist(), report.spent.tolist(), report.spent_degraded.tolist(), strict=True)
    ]
    assert rows == [(52, 30, 30), (53, 30, 30)]
    assert sum(report.degraded for report in reports) == 401  # one is the peek that waited in vain


def test_no_share_in_the_first_second_of_a_process() -> None:
    """C48: a process that dies and starts again all the time would otherwise have a whole share each time."""
    edge = Edge("region", "[fair_share]", slices=0)
    edge.lose(0.2)
    assert edge.admitted(0.5) == 0
    assert edge.admitted(1.0) == 25


def test_an_edge_boots_with_what_was_kept() -> None:
    """Ready at once, its stages go on where they were, its share is the last slice; labels are those of the region."""
    rules = Rules(3, (("r", text_of("lease", KEPT)),))
    former = Edge("lease", KEPT)
    quota = next(iter(former.agent._holdings)).quota
    agent = Agent("e1", "here", 8, load)
    agent.boot(Kept("e1", rules, ((quota, 30),), 1 * S), load(rules), T0)
    assert agent.ready
    assert not agent.attached
    rule = load(rules).domains["api"].rules[0]

    def admitted(seconds: float) -> int:
        answers = [agent.ask((Application(rule, ("x",), 1),), T0 + int(seconds * S)) for _ in range(100)]
        return sum(answer.allowed for answer in answers if isinstance(answer, Decision))

    assert [admitted(second + 0.5) for second in range(9)] == [0, 30, 25, 25, 25, 25, 25, 0, 0]
    agent.step(Connected(), T0 + 9 * S + S // 2)
    commands = agent.step(Received(Welcome(rules, Tick(900, S), 1)), T0 + 9 * S + S // 2)
    (report,) = [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Report)]
    assert report.spent_epoch.tolist() == [892, 893, 894, 895, 896, 897]


def test_a_fault_of_our_own_is_answered_by_the_stages() -> None:
    """Each rule by its own: allow lets pass, and all is marked."""
    edge = Edge("region", "[allow]", slices=0)
    decision = edge.agent.fall_back((edge.application(),), edge.at(1.2))
    assert decision.allowed and decision.degraded
