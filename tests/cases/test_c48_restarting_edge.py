"""C48 of cases.md, bucket form: an edge that dies and starts again all the time gets no fresh allowance."""

from __future__ import annotations

from functools import partial

import pytest

from apportion.core.decision import Decision
from apportion.core.limit import RateLimit
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.edge.agent import Agent
from apportion.edge.kept import Kept
from tests.edge.test_stages import T0, S, load, text_of
from tests.faults.rules import rule
from tests.faults.runs import meter
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World


def test_ten_restarts_in_a_minute_admit_what_one_process_would() -> None:
    """`1000/min` with full demand: 1000 and the burst at most, whatever the edge lost or was about to report."""
    world = World(48, Options(edges=1))
    world.start()
    every(world, 0, 60, "crash", 0, until_s=58)
    for at in range(10):
        world.after(4 + 5 * at, partial(world.restart, world.edges[0], 0.05))
    world.run(60)
    admitted = sum(world.sums.spent["crash", ("k",)].values())
    assert 900 <= admitted <= 1000 + 250
    assert meter(world, "crash").worst == 0


@pytest.mark.parametrize("name, rate", [("slow", 12), ("both", 160), ("part", 96)])
def test_restarts_gain_nothing_where_the_region_decides(name: str, rate: int) -> None:
    """`region` and `edge+region`: with twice the demand the entitlement is met, never exceeded."""
    world = restarting(name, rate)
    limit = rule(name).limit
    assert isinstance(limit, RateLimit)
    assert meter(world, name).worst == 0
    assert sum(world.sums.spent[name, ("k",)].values()) >= 0.75 * limit.units * 15 * SECOND / limit.period_ns


@pytest.mark.parametrize("name, label_units", [("each", 20 + 20), ("spread", 176)])
def test_an_edge_that_decides_alone_counts_once_more_for_each_life(name: str, label_units: int) -> None:
    """What the printed bound says of `edge`: a label that met two lives has at most what two edges would have."""
    labels = restarting(name, 200).sums.spent[name, ("k",)]
    assert max(labels.values()) <= 2 * label_units
    assert sorted(labels.values())[len(labels) // 2] <= label_units


def restarting(name: str, rate: int) -> World:
    """15 s of one edge that is killed each 1.5 s, and back 50 ms later."""
    world = World(48, Options(edges=1))
    world.start()
    every(world, 0, rate, name, 0, until_s=15)
    for at in range(9):
        world.after(1.3 + 1.5 * at, partial(world.restart, world.edges[0], 0.05))
    world.run(16)
    return world


def test_restarts_while_the_region_is_away_have_no_share_each() -> None:
    """A share is not there in a process's first second, so a crash loop of half a second has none at all."""
    rules = Rules(1, (("r", text_of("region", "[fair_share]")),))
    kept = Kept("e1", rules, (), silent_ns=S)
    asked = Application(load(rules).domains["api"].rules[0], ("x",), 1)

    def admitted(agent: Agent, at_ns: int) -> int:
        answers = [agent.ask((asked,), at_ns) for _ in range(50)]
        return sum(answer.allowed for answer in answers if isinstance(answer, Decision))

    def booted(at_ns: int) -> Agent:
        agent = Agent("e1", "here", at_ns, load)
        agent.boot(kept, load(rules), at_ns)
        return agent

    for start_ns in range(T0, T0 + 10 * S, S // 2):
        agent = booted(start_ns)
        assert [admitted(agent, start_ns + part * S // 10) for part in range(5)] == [0] * 5
    assert admitted(booted(T0), T0 + S) == 25
