"""The simulated edges beside something simpler that they must equal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from apportion.core.bucket import Bucket
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.request import Application
from apportion.edge.alone import Alone
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Answered, Offered
from apportion.simulations.run import Outcome, run
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.traffic import rule_named

RATE = 200

NEAR = "network: {latency: 1ms, spread: 80%, jitter: 0%, clock_drift: 0}\n"
"""As near as messages can be: less than a millisecond."""


def scenario(edges: int, enforce: str, load: str, more: str = "") -> Scenario:
    """`200/s` at so many edges that are next to the region."""
    text = (
        f"edges: {edges}\nseconds: 12\nlimit: {RATE}/s\nenforce: {enforce}\n{more}{NEAR}"
        f"demand: [{{shape: zipf, load: {load}}}]\n"
    )
    return parse_scenario("differential", text)


def answered_at_once(outcome: Outcome) -> list[tuple[Offered, Answered]]:
    """Each request with its answer, where nothing crosses."""
    rows = outcome.recording.log
    return [(came, said) for came, said in pairwise(rows) if isinstance(came, Offered) and isinstance(said, Answered)]


@pytest.mark.parametrize("load", ["70%", "130%", "400%"])
def test_one_edge_alone_is_a_local_bucket(load: str) -> None:
    """N = 1: each request has the answer of one bucket, to the bit."""
    outcome = run(scenario(1, "edge", load), 1)
    bucket = Bucket(RateLimit(RATE, EPOCH_NS, RATE // 4), 0)
    found = answered_at_once(outcome)
    assert len(found) == outcome.requests
    for came, said in found:
        allowed = bucket.admits(1, came.at_ns)
        if allowed:
            bucket.charge(1)
        assert said.allowed is allowed


def test_the_edge_of_the_simulator_is_the_engine_of_an_edge_alone() -> None:
    """The agent, in the simulator, and the engine of `--alone`, asked the same at the same instants, say the same."""
    world = scenario(1, "edge", "150%")
    now_ns = 0
    alone = Alone(parsed(world.rules), lambda: now_ns)
    rule = rule_named(parsed(world.rules), "search")
    for came, said in answered_at_once(run(world, 2)):
        now_ns = came.at_ns
        decision = alone.decide((Application(rule, came.key, came.cost),), peek=False)
        assert decision.allowed is said.allowed


@pytest.mark.parametrize("enforce", ["region", "edge+region", "lease"])
@pytest.mark.parametrize("load", ["60%", "250%"])
def test_edges_without_delay_are_one_central_bucket(enforce: str, load: str) -> None:
    """Eight edges next to the region, of a lease all of it in the pool, since nobody divides: in each second they admit
    what one bucket does, to ties: an answer is some milliseconds late, and a chunk may lie at another edge.
    """
    world = replace(scenario(8, enforce, load), allocators=0)
    outcome = run(world, 1)
    bucket, central, edges = Bucket(RateLimit(RATE, EPOCH_NS, RATE // 4), 0), np.zeros(20), np.zeros(20)
    for row in outcome.recording.log:
        if isinstance(row, Offered) and bucket.admits(1, row.at_ns):
            bucket.charge(1)
            central[row.at_ns // EPOCH_NS] += 1
        if isinstance(row, Answered) and row.allowed:
            edges[row.at_ns // EPOCH_NS] += 1
    apart = np.abs(np.cumsum(central) - np.cumsum(edges))
    assert outcome.broken == ()
    assert central.sum() > 1000
    # A label never has more than its Q_k, so a lease does without the burst that a bucket which begins full has once.
    assert apart.max() <= (RATE // 4 if enforce == "lease" and load == "250%" else 0) + 3
