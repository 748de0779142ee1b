"""What an edge keeps of many quotas: how long, under which ids, and how much of what callers send."""

from __future__ import annotations

import sys

from apportion.core.epoch import EpochClock
from apportion.core.messages import Report, Rules, Tick, Welcome
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.agent import Agent
from apportion.edge.events import Connected, Lost, Polled, Received, Send
from apportion.edge.holding import Holding
from apportion.edge.holdings import IDLE_EPOCHS, Holdings

S = 1_000_000_000
T0 = 1_000 * S

TEXT = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: each, match: {a: "*"}, key: [a], limit: {rate: 60/min, burst: 30}, enforce: edge, at_each_edge: 60/min,
     wrong_costs: noise}
"""
RULES = Rules(1, (("rules.yaml", TEXT),))


RULE = parse_rules(RULES.texts).domains["api"].rules[0]
"""A unit drains in a second, a full bucket in 30."""


def holdings() -> Holdings:
    """None yet; epoch 0 began at T0."""
    clock = EpochClock()
    clock.observe(0, S, T0)
    return Holdings(clock)


def found(table: Holdings, key: str, epoch: int) -> Holding:
    """The holding of a key, used in that epoch."""
    holding = table.find(Application(RULE, (key,), 1), epoch)
    assert holding is not None
    return holding


def test_it_is_forgotten_when_unused_for_ten_epochs_and_drained() -> None:
    """A bucket that is not empty stays, however long it was not asked for, and is looked at each ten epochs."""
    table = holdings()
    found(table, "drained", 1)
    live = found(table, "live", 1)
    assert live.take(30, 1, T0 + S) is not None
    table.forget_idle(IDLE_EPOCHS, T0 + IDLE_EPOCHS * S)
    assert len(table) == 2
    table.forget_idle(IDLE_EPOCHS + 1, T0 + (IDLE_EPOCHS + 1) * S)
    assert list(table) == [live]
    for epoch in range(IDLE_EPOCHS + 2, 31):
        table.forget_idle(epoch, T0 + epoch * S)
    assert list(table) == [live]
    table.forget_idle(31, T0 + 31 * S)
    assert list(table) == []


def test_a_number_is_given_again_when_nothing_has_it_any_more() -> None:
    """Not while a report still names the holding that was forgotten."""
    table = holdings()
    kept = found(table, "kept", 1)
    assert found(table, "dropped", 1).id == 1
    table.forget_idle(20, T0 + 20 * S)
    assert len(table) == 0
    assert {found(table, "one", 20).id, found(table, "two", 20).id} == {1, 2}
    assert kept.id == 0
    del kept
    assert found(table, "three", 20).id == 0


def test_long_values_are_not_kept() -> None:
    """A million characters cost what a digest does, and different ones are different quotas."""
    table = holdings()
    long = "x" * 1_000_000
    one, other = found(table, long + "1", 1), found(table, long + "2", 1)
    assert one is not other
    assert found(table, long + "1", 1) is one
    assert sum(sys.getsizeof(part) for key in table._by_key for part in key) < 1_000
    assert one.quota.key != other.quota.key


def test_what_was_spent_in_an_outage_is_reported_for_the_key_that_spent_it() -> None:
    """Two keys, one after the other was forgotten, with no region to tell: each has its own name in the report."""
    agent = Agent("e1", "here", 7, lambda rules: parse_rules(rules.texts))
    agent.step(Connected(), T0)
    agent.step(Received(Welcome(RULES, Tick(50, S), 1)), T0)
    agent.step(Lost(), T0 + 1)
    for at_s, key, cost in ((1, "first", 3), (40, "second", 5)):
        agent.ask((Application(agent._ruling.domains["api"].rules[0], (key,), cost),), T0 + at_s * S)
        for second in range(at_s, at_s + 39):
            agent.step(Polled(), T0 + second * S + 1)
    assert agent.holdings == 0
    agent.step(Connected(), T0 + 80 * S)
    commands = agent.step(Received(Welcome(RULES, Tick(130, S), 1)), T0 + 80 * S)
    (report,) = [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, Report)]
    names = {name.id: name.quota.key for name in report.names}
    spent = zip(report.spent_ids.tolist(), report.spent_epoch.tolist(), report.spent.tolist(), strict=True)
    assert [(names[identity], epoch, units) for identity, epoch, units in spent] == [
        (b"\0\5first", 51, 3),
        (b"\0\6second", 90, 5),
    ]
