"""Checkers of liveness and fairness: a short log in which all is well, and one that falls short of what each is for.

Two edges of 100/s, burst 25. What they ask and are admitted is written by second.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from apportion.simulations.checkers_quality import shortcomings
from apportion.simulations.in_force import InForce
from apportion.simulations.log import Log
from apportion.simulations.measures import figures_of
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Row
from apportion.simulations.rule_log import logs_of
from apportion.simulations.run import changes_of
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.world import SECOND
from tests.simulations.written import BEGUN_NS, EDGES, admitted, crossed, issued, offered

SECONDS = 30


def found(demand: str, rows: Sequence[Row], more: str = "") -> set[str]:
    """What a run of this demand fell short of, if its log is `rows`."""
    text = f"edges: 2\nseconds: {SECONDS}\nlimit: 100/s\nenforce: lease\ndemand: [{{{demand}}}]\n{more}"
    scenario = parse_scenario("written", text)
    rules, log = parsed(scenario.rules), Log.of(rows)
    limits = InForce(rules, log.rows)
    logs = logs_of(log, rules, limits, EDGES, SECONDS, BEGUN_NS)
    figures = [figures_of(each, scenario.warm_up, changes_of(scenario), rules.edges_max) for each in logs.values()]
    return {each.property for each in shortcomings(scenario, figures, logs, log, limits)}


def served(asked: tuple[int, int], *given: tuple[int, int]) -> list[Row]:
    """So much asked at the two edges in each second, and of it admitted what `given` says, its last from there on."""
    rows: list[Row] = []
    for second in range(SECONDS):
        for edge, cost in enumerate(asked):
            rows += [
                offered(second + 0.5, cost, edge),
                admitted(second + 0.5, given[min(second, len(given) - 1)][edge], edge),
            ]
    return rows


@pytest.mark.parametrize("given, seen", [((40, 40), set()), ((40, 38), {"L1"})])
def test_what_fits_is_admitted(given: tuple[int, int], seen: set[str]) -> None:
    """L1: 78 of 80 a second are too few where the limit is 100."""
    assert found("shape: uniform, load: 80%", served((40, 40), given)) == seen


@pytest.mark.parametrize("given, seen", [((49, 48), set()), ((48, 47), {"L1"})])
def test_in_overload_the_limit_is_used(given: tuple[int, int], seen: set[str]) -> None:
    """L1: 97 of 100, not 95."""
    assert found("shape: uniform, load: 150%", served((75, 75), given)) == seen


@pytest.mark.parametrize("seconds, seen", [(3, set()), (4, {"L2"})])
def test_after_a_move_the_limit_is_used_again(seconds: int, seen: set[str]) -> None:
    """L2: within 3 s, though each of them misses a tenth."""
    moved = [(80, 20)] * 20 + [(70, 20)] * seconds + [(80, 20)]
    assert found("shape: hotspot, load: 100%, dwell: 20s, share: 80%", served((80, 20), *moved)) == seen


@pytest.mark.parametrize("given, seen", [((39, 38), set()), ((38, 37), {"L4"})])
def test_while_only_allocators_fail_what_fits_is_admitted(given: tuple[int, int], seen: set[str]) -> None:
    """L4: 77 of 80, not 75. Of an edge that fails nothing is asked."""
    demand, rows = "shape: uniform, load: 80%", served((40, 40), given)
    assert found(demand, rows, "faults: [{at: 12s, kill: leader, for: 2s}]") == seen
    assert found(demand, rows, "faults: [{at: 12s, kill: edge-0, for: 2s}]") == set()


@pytest.mark.parametrize(
    "given, seen", [((60, 40), set()), ((68, 32), {"F2"}), ((75, 25), {"F2", "L5"}), ((50, 50), set())]
)
def test_each_edge_has_its_share(given: tuple[int, int], seen: set[str]) -> None:
    """Both ask for all, so the shares are 50. Jain's index of 1.36 and 0.64 of it is 0.89 (F2); half is stuck (L5)."""
    assert found("shape: uniform, load: 200%", served((100, 100), given)) == seen


@pytest.mark.parametrize("moved, seen", [(10, set()), (11, {"F5"})])
def test_slices_stay_while_demand_stays(moved: int, seen: set[str]) -> None:
    """F5: each second the plan moves so many of 100 units to the other edge, and back."""
    rows = served((40, 40), (40, 40))
    for epoch in range(SECONDS):
        rows += [issued(epoch, 40 + moved * (epoch % 2), 0), issued(epoch, 40 + moved * (1 - epoch % 2), 1)]
    assert found("shape: uniform, load: 80%", rows) == seen


@pytest.mark.parametrize("count, seen", [(52, set()), (53, {"L7"})])
def test_an_edge_has_one_crossing_under_way(count: int, seen: set[str]) -> None:
    """L7: the nearest edge is 10 ms away, so 50 come back in a second, and one at each end may be under way."""
    rows = served((40, 40), (40, 40)) + [crossed(5 + at / count) for at in range(count)]
    assert found("shape: uniform, load: 80%", rows) == seen


def test_what_chance_alone_may_move_is_not_judged() -> None:
    """Messages are lost, or it is far to the region: then nothing of it is due."""
    demand, rows = "shape: uniform, load: 80%", served((40, 40), (30, 10))
    assert found(demand, rows) == {"L1", "L5"}
    assert found(demand, rows, "network: {latency: 80ms}") == found(demand, rows, "network: {spikes: 1%}") == set()


assert BEGUN_NS % SECOND == 0, "so that a second of the run is one of the log"
