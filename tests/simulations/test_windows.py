"""The checkers over windows of a log: they find what they find in the whole of it, also late, and nothing else."""

from __future__ import annotations

import pytest

from apportion.simulations.nodes import parsed
from apportion.simulations.recording import Recording
from apportion.simulations.run import DRAINED_S, STARTED_S, world_of
from apportion.simulations.scenario import Scenario
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.series import epoch_of_start
from apportion.simulations.windows import Windows
from apportion.simulations.world import SECOND, Options
from tests.simulations.switched_off import CountsTwice, Deltas, Unsmoothed

OVERLOAD = """
edges: 4
seconds: 95
limit: 100/s
enforce: lease
when_unavailable: [keep_share for 60s, deny]
demand: [{shape: uniform, load: 200%}]
"""

LEADER_KILLED = """
edges: 4
seconds: 72
limit: 400/s
enforce: lease
demand: [{shape: uniform, load: 10%, until: 55s}, {shape: uniform, load: 300%, from: 55s}]
faults: [{at: 65s, kill: leader, for: 5s}]
"""
PARTITIONED = OVERLOAD + "faults: [{at: 20s, partition: edge-0, for: 55s}, {at: 40s, partition: edge-1, for: 70s}]\n"
REPEATED = OVERLOAD + "network: {repeat: 30%}\n"
STEPPED = OVERLOAD + "faults: [{at: 70s, step_clock: edge-0, for: 4s}]\n"
LIMITS = OVERLOAD + "faults: [{at: 29s, limit: 60/s}, {at: 61s, limit: 150/s}, {at: 80s, kill: region, for: 4s}]\n"

IDLE_FIRST = """
edges: 4
seconds: 75
limit: 400/s
enforce: lease
burst: 40
demand:
  - {shape: uniform, load: 10%, until: 50s}
  - {shape: uniform, load: 100%, from: 50s, until: 65s}
  - {shape: uniform, load: 1500%, from: 65600ms, until: 68s}
"""


def wrong(scenario: Scenario, options: Options | None = None) -> list[str]:
    """What is wrong with a run, of which never more than a window is kept."""
    recording = Recording()
    world = world_of(scenario, 1, recording, options or Options())
    first = epoch_of_start(recording.log.rows, STARTED_S * SECOND)
    windows, rollup = Windows(parsed(scenario.rules), first), world.region.disk.rollup
    seconds = scenario.seconds + DRAINED_S
    for second in range(seconds):
        world.run(1)
        windows.take(recording.take(first + second), second, rollup)
    recording.ended(world.now_ns, (), world.open_requests())
    return [str(each) for each in windows.finish(seconds, recording.take(first), rollup)]


@pytest.mark.parametrize("text", [LEADER_KILLED, PARTITIONED, REPEATED, STEPPED, LIMITS, IDLE_FIRST])
def test_nothing_is_wrong_with_a_whole_run(text: str) -> None:
    """What a window does not know of (slices of an edge that is cut off for long, labels before it) is no fault."""
    assert wrong(parse_scenario("whole", text)) == []


@pytest.mark.parametrize(
    "text, options, seen",
    [
        (LEADER_KILLED, Options(make_authority=Deltas), "S1"),
        (REPEATED, Options(make_authority=CountsTwice), "S3"),
        (IDLE_FIRST, Options(make_agent=Unsmoothed), "S5"),
    ],
)
def test_without_a_protection_a_window_shows_it(text: str, options: Options, seen: str) -> None:
    """In the third window, or in each."""
    found = wrong(parse_scenario("switched-off", text), options)
    assert any(each.startswith(f"{seen} ") for each in found), found[:3]
