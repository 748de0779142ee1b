"""C42 of cases.md: memory follows what is live and stops at a stated bound; who is forgotten gets nothing anew."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.core.decision import Decision
from apportion.core.limit import RateLimit
from apportion.core.messages import (
    Acquire,
    AcquireAnswer,
    GroupAnswer,
    MemberAnswer,
    Outcome,
    Report,
    ReportAck,
    Rules,
    Tick,
    Welcome,
)
from apportion.core.request import Application
from apportion.edge import holdings
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Polled, Received, Send
from apportion.edge.holdings import HOLDINGS_MAX, IDLE_EPOCHS
from apportion.region.buckets import Buckets
from apportion.region.store import Anchor, Charge, Charges
from tests.edge.test_stages import load
from tests.faults.runs import broken, run

S = 1_000_000_000
MS = 1_000_000
FIRST = 50

MODES = {
    "at_each_edge": "limit: {rate: 5/min}, enforce: edge, at_each_edge: 5/min, wrong_costs: noise",
    "slack": "limit: {rate: 100/s}, enforce: edge, slack: 20%, wrong_costs: noise",
    "edge+region": "limit: {rate: 100/s}, enforce: edge+region, when_unavailable: [deny]",
    "lease": "limit: {rate: 100/s}, enforce: lease, when_unavailable: [deny]",
    "region": "limit: {rate: 5/min}, enforce: region, when_unavailable: [deny]",
}


class Edge:
    """An attached edge with one rule by key; the region admits what is asked and acknowledges reports if `kept`."""

    def __init__(self, mode: str, kept: bool = True) -> None:
        text = "version: 1\ndomain: api\nedges_max: 4\nrules:\n"
        rules = Rules(1, (("r", text + f'  - {{name: r, match: {{a: "*"}}, key: [a], {MODES[mode]}}}\n'),))
        self.rule = load(rules).domains["api"].rules[0]
        self.agent = Agent("e1", "here", 7, load)
        self.now_ns = 0
        self.kept = kept
        self.agent.step(Connected(), 0)
        self.agent.step(Received(Welcome(rules, Tick(FIRST, S), 9)), 0)

    @property
    def epoch(self) -> int:
        """The label now."""
        return FIRST + self.now_ns // S

    def ask(self, key: str, cost: int = 1) -> Decision | None:
        """A request; None where it has to cross."""
        answer = self.agent.ask((Application(self.rule, (key,), cost),), self.now_ns)
        return answer if isinstance(answer, Decision) else None

    def exchange(self) -> None:
        """The region's clock is heard, and it answers."""
        tick = Tick(self.epoch, S - self.now_ns % S)
        self._answer(self.agent.step(Received(tick), self.now_ns), tick)

    def _answer(self, commands: list[Any], tick: Tick) -> None:
        for message in [command.message for command in commands if isinstance(command, Send)]:
            if isinstance(message, Report) and self.kept:
                self._answer(self.agent.step(Received(ReportAck(message.number)), self.now_ns), tick)
            elif isinstance(message, Acquire):
                member = MemberAnswer(Outcome.ADMITTED, tick.epoch, 1, 0, 0, True)
                groups = tuple(GroupAnswer(each.count, (member,) * len(each.members)) for each in message.groups)
                following = self.agent.step(Received(AcquireAnswer(message.number, tick, groups)), self.now_ns)
                self._answer(following + self.agent.step(Polled(), self.now_ns), tick)


def test_of_more_keys_than_there_is_room_the_rest_are_refused() -> None:
    """250,000 keys within their minute: 200,000 have their five, of the others nobody is forgotten for them."""
    edge = Edge("at_each_edge")
    refused = 0
    for number in range(250_000):
        decision = edge.ask(f"key-{number}")
        assert decision is not None
        refused += decision.reason == "keys_full"
    assert (edge.agent.holdings, refused) == (HOLDINGS_MAX, 50_000)
    assert HOLDINGS_MAX == 200_000


@pytest.mark.parametrize("mode", MODES)
def test_memory_follows_what_is_live_and_goes_back(mode: str) -> None:
    """20,000 keys over 20 s: never more than those of the last 11 s (of the minute, where a bucket drains so long);
    80 s later none is left.
    """
    edge = Edge(mode)
    most = 0
    for number in range(20_000):
        edge.ask(f"key-{number}")
        edge.now_ns += MS
        if number % 100 == 99:
            edge.exchange()
            most = max(most, edge.agent.holdings)
    live = 20_000 if mode == "at_each_edge" else (IDLE_EPOCHS + 1) * 1000
    assert most <= live
    for _ in range(80):
        edge.now_ns += S
        edge.exchange()
    assert edge.agent.holdings == 0
    reports = edge.agent._reports
    assert not reports._spent and not reports._demand and not reports._pending


def test_reports_stop_at_their_cap_while_the_store_is_away() -> None:
    """Nothing is acknowledged for 150 s: 120 reports are kept, the others counted as given up; then all are gone."""
    edge = Edge("region", kept=False)
    for number in range(1500):
        edge.ask(f"key-{number}")
        edge.now_ns += 100 * MS
        edge.exchange()
    assert len(edge.agent._reports._pending) == 120
    assert edge.agent.reports_given_up == 150 - 120
    edge.kept = True
    edge.now_ns += S
    edge.exchange()
    assert not edge.agent._reports._pending


ASKS = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 5), st.integers(1, 6)), max_size=80)
"""Milliseconds of pause, one of six keys, cost."""


def over_the_entitlement(events: list[tuple[int, int]], limit: RateLimit) -> bool:
    """Whether any interval from one event to another holds more than rate x w + burst; instants and costs."""
    for first, (start, _) in enumerate(events):
        units = 0
        for at, cost in events[first:]:
            units += cost
            if (units - limit.burst) * limit.period_ns > limit.units * (at - start + limit.tick_ns):
                return True
    return False


@given(ASKS)
@settings(max_examples=60)
def test_no_interval_of_an_edge_s_own_rate_holds_more_though_keys_go(
    asks: list[tuple[int, int, int]],
) -> None:
    """Room for three of six keys, forgotten as soon as they are idle: 5/min and its burst hold all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdings, "HOLDINGS_MAX", 3)
        patch.setattr(holdings, "IDLE_EPOCHS", 1)
        edge = Edge("at_each_edge")
        admitted: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for pause_ms, key, cost in asks:
            edge.now_ns += pause_ms * 50 * MS
            edge.exchange()
            decision = edge.ask(str(key), cost)
            if decision is not None and decision.allowed:
                admitted[str(key)].append((edge.now_ns, cost))
            assert edge.agent.holdings <= 3
        assert isinstance(edge.rule.limit, RateLimit)
        assert not any(over_the_entitlement(events, edge.rule.limit) for events in admitted.values())


@pytest.mark.parametrize("mode, most", [("slack", 30), ("edge+region", 125)])
@given(ASKS)
@settings(max_examples=40)
def test_no_label_passes_more_than_its_threshold_though_keys_go(
    mode: str, most: int, asks: list[tuple[int, int, int]]
) -> None:
    """ceil(100 x 1.2 / 4) = 30 units of a label by a share; Q + burst = 125 that may cross."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holdings, "HOLDINGS_MAX", 3)
        patch.setattr(holdings, "IDLE_EPOCHS", 1)
        edge = Edge(mode)
        passed: dict[tuple[int, int], int] = defaultdict(int)
        for pause_ms, key, cost in asks:
            edge.now_ns += pause_ms * MS
            edge.exchange()
            for _ in range(20):
                decision = edge.ask(str(key), cost)
                if decision is None or decision.allowed:
                    passed[edge.epoch, key] += cost
            edge.exchange()
            assert edge.agent.holdings <= 3
        assert max(passed.values(), default=0) <= most


@given(ASKS)
@settings(max_examples=60)
def test_no_interval_at_the_region_holds_more_though_buckets_go(asks: list[tuple[int, int, int]]) -> None:
    """Room for three of six buckets: 5/min and its burst of 5 hold all the same."""
    limit = RateLimit(5, 60 * S, 5)
    buckets, now_ns = Buckets(buckets_max=3), 0
    admitted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pause_ms, key, cost in asks:
        now_ns += pause_ms * 50 * MS
        group = Charges(1, (Charge(str(key).encode(), limit, cost),))
        (answer,) = buckets.decide((group,), Anchor(1, 0), now_ns)
        if answer.admitted:
            admitted[key].append((now_ns, cost))
        assert len(buckets) <= 3
    assert not any(over_the_entitlement(events, limit) for events in admitted.values())


@pytest.mark.parametrize("seed", range(12))
def test_no_promise_of_any_mode_hangs_on_what_an_edge_remembers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault world with edges that forget a quota as soon as its last use can have been reported."""
    monkeypatch.setattr(holdings, "IDLE_EPOCHS", 3)
    assert broken(run(seed)) == {}
