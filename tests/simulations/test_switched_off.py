"""A protection is switched off, and a checker says so; with the shipped core the same run is whole.

The claim, slices and pool bound to an incarnation, and the hold-back are shown in `tests/faults` (test_faults,
test_scenarios, test_cut_off), by the same checkers.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from apportion.simulations.run import run
from apportion.simulations.scenario import Fault, FaultKind, Scenario
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.world import SECOND, Options
from tests.simulations.switched_off import AdmittedOnly, ByWallClock, CountsTwice, Deltas, NeverDirect, Unsmoothed

OVERLOAD = """
edges: 4
seconds: 25
limit: 400/s
enforce: lease
demand: [{shape: uniform, load: 300%}]
"""

HOG_FIRST = """
edges: 5
seconds: 45
limit: 400/s
enforce: lease
demand:
  - {shape: heavy, share: 100%, load: 400%}
  - {shape: uniform, load: 300%, from: 15s}
"""

LEADER_KILLED = OVERLOAD + "faults: [{at: 12s, kill: leader, for: 5s}]\n"

IDLE_FIRST = """
edges: 4
seconds: 25
limit: 400/s
enforce: lease
burst: 40
demand:
  - {shape: uniform, load: 100%, until: 15s}
  - {shape: uniform, load: 1500%, from: 15600ms}
"""

ALONE = """
edges: 4
allocators: 1
seconds: 25
limit: 400/s
enforce: lease
demand: [{shape: uniform, load: 80%}]
faults: [{at: 15s, kill: leader, for: 2s}]
"""

REPEATED = OVERLOAD + "network: {repeat: 30%}\n"


def scenario(text: str) -> Scenario:
    """The scenario of a text."""
    return parse_scenario("switched-off", text)


def stepped_back(seconds: int) -> Scenario:
    """One clock of four goes back in the middle of a run."""
    step = Fault(15 * SECOND + 200_000_000, FaultKind.STEP_CLOCK, "edge-0", -seconds * SECOND)
    return replace(scenario(OVERLOAD), faults=(step,))


CASES = [
    ("demand as admitted", scenario(HOG_FIRST), Options(make_agent=AdmittedOnly), "L5"),
    ("plans as deltas", scenario(LEADER_KILLED), Options(make_authority=Deltas), "S1"),
    ("grants by wall clock", stepped_back(3), Options(make_agent=ByWallClock), "S1"),
    ("grants by wall clock, its own right", stepped_back(3), Options(make_agent=ByWallClock), "S4"),
    ("slices not smoothed", scenario(IDLE_FIRST), Options(make_agent=Unsmoothed), "S5"),
    ("undivided epochs lent by nobody", scenario(ALONE), Options(make_authority=NeverDirect), "L4"),
    ("reports counted twice", scenario(REPEATED), Options(make_authority=CountsTwice), "S3"),
]


@pytest.mark.parametrize("what, world, options, seen", CASES, ids=[case[0] for case in CASES])
def test_without_a_protection_a_checker_fails(what: str, world: Scenario, options: Options, seen: str) -> None:
    """And it is that protection: with the shipped core nothing is wrong."""
    assert run(world, 1).broken == ()
    broken = run(world, 1, options).broken
    assert any(each.startswith(f"{seen} ") for each in broken), broken[:3]


def test_grants_by_wall_clock_are_safe_while_clocks_are_right() -> None:
    """What fails above is the clock, not the way the grant is written."""
    assert run(scenario(OVERLOAD), 1, Options(make_agent=ByWallClock)).broken == ()
