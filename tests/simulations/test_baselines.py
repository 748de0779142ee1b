"""What others do, at four edges under 100/s with a burst of 25."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from apportion.core.request import Application
from apportion.simulations.baselines import Baseline, baseline_series, rows_of
from apportion.simulations.rows import Answered, Crossed
from apportion.simulations.scenario_file import parse_scenario
from apportion.simulations.traffic import rule_named
from apportion.simulations.world import SECOND, Arrival
from tests.simulations.written import rules

FOUR = ["edge-0", "edge-1", "edge-2", "edge-3"]

STEP_NS = SECOND // 100
"""As long as 100/s take for a unit."""


def request(at_ns: int, edge: int, cost: int = 1, key: str = "k") -> Arrival:
    """A request for a key."""
    return at_ns, edge, (Application(rule_named(rules(), "search"), (key,), cost),)


def spent(traffic: Sequence[Arrival], baseline: Baseline, edges: int = 4) -> dict[tuple[int, str], int]:
    """What was admitted by second and edge."""
    found: Counter[tuple[int, str]] = Counter()
    for row in rows_of(traffic, FOUR[:edges], baseline):
        if isinstance(row, Answered) and row.charged:
            found[row.at_ns // SECOND, row.edge] += row.cost
    return dict(found)


def everywhere(seconds: int, edges: int = 4) -> list[Arrival]:
    """A request at each edge as often as a unit drains, 100 each second."""
    return [request(step * STEP_NS, edge) for step in range(seconds * 100) for edge in range(edges)]


def test_an_even_part_each() -> None:
    """25/s and a burst of 6: the first second 6 and what drains in 0.99 s, then 25; nobody has another's part."""
    assert spent(everywhere(2), Baseline.EVEN) == {
        **{(0, edge): 6 + 24 for edge in FOUR},
        **{(1, edge): 25 for edge in FOUR},
    }
    alone = [request(step * STEP_NS, 2) for step in range(200)]
    assert spent(alone, Baseline.EVEN) == {(0, "edge-2"): 30, (1, "edge-2"): 25}


def test_counting_locally_is_over_by_as_many_times_as_there_are_edges() -> None:
    """Each has the whole limit until it hears of the others: all of 400 in each second, of which 100 may be."""
    traffic = everywhere(3)
    assert spent(traffic, Baseline.LATER) == {
        **{(0, edge): 100 for edge in FOUR},
        **{(second, edge): 99 for second in (1, 2) for edge in FOUR},
    }


def test_counting_locally_hears_once_a_second() -> None:
    """Each edge has 25 at once; from the first second's end on they know that it is spent, and what has drained."""
    at_once = [request(900_000_000, edge, 25) for edge in range(4)]
    later = [request(999_000_000, 1, 16), *(request(SECOND, edge, 1) for edge in range(4))]
    assert spent([*at_once, *later], Baseline.LATER) == {(0, edge): 25 for edge in FOUR}
    drained = [request(1_100_000_000, edge, 10) for edge in range(4)]
    assert spent([*at_once, *drained], Baseline.LATER) == {(at, edge): 25 - 15 * at for at in (0, 1) for edge in FOUR}


def test_one_edge_that_hears_of_itself_is_a_bucket() -> None:
    """With nobody else there is nothing to hear: 20 at 0.5 s have drained at 1 s, and 25 may be at once."""
    few = [request(SECOND // 2, 0, 20), request(SECOND, 0, 25), request(SECOND, 0, 1)]
    assert spent(few, Baseline.LATER, 1) == {(0, "edge-0"): 20, (1, "edge-0"): 25}
    mixed = [request(at * STEP_NS * 3, 0, 1 + at % 7) for at in range(200)]
    assert spent(mixed, Baseline.LATER, 1) == spent(mixed, Baseline.CENTRAL, 1)


def test_one_central_bucket_is_exact() -> None:
    """125 of the first second, 100 of each other, less the 0.01 s after the last request; each request crosses."""
    traffic = everywhere(3)
    rows = list(rows_of(traffic, FOUR, Baseline.CENTRAL))
    by_second = Counter(row.at_ns // SECOND for row in rows if isinstance(row, Answered) and row.charged)
    assert by_second == {0: 25 + 99, 1: 100, 2: 100}
    assert sum(isinstance(row, Crossed) for row in rows) == len(traffic)


@pytest.mark.parametrize("baseline", Baseline)
def test_a_key_that_was_forgotten_comes_as_a_new_one(baseline: Baseline) -> None:
    """What it had is full again, no more: two keys that come each 15 s, one beside all the requests of the other."""
    busy = [request(at * SECOND // 2, 0, 20, "busy") for at in range(61)]
    rare = [request(at * 15 * SECOND, edge, 25, "rare") for at in range(3) for edge in (0, 1)]
    rows = rows_of(sorted([*busy, *rare], key=lambda each: each[0]), FOUR, baseline)
    given = [row.charged for row in rows if isinstance(row, Answered) and row.key == ("rare",)]
    assert (
        given == {Baseline.EVEN: [False] * 6, Baseline.LATER: [True] * 6, Baseline.CENTRAL: [True, False] * 3}[baseline]
    )


def test_what_all_were_over_by_is_cut_when_they_hear_of_it_and_drains_from_then_on() -> None:
    """100 spent at once are 25 at the end of the second, and 0 a quarter of one later, whoever asks meanwhile."""
    at_once = [request(900_000_000, edge, 25) for edge in range(4)]
    for asked_ns, fits in ((SECOND, 0), (1_100_000_000, 10), (1_250_000_000, 25), (3_600 * SECOND, 25)):
        later = [request(asked_ns, 2, 1) for _ in range(25)]
        found = spent([*at_once, *later], Baseline.LATER)
        assert found.get((asked_ns // SECOND, "edge-2"), 0) == fits


@pytest.mark.parametrize("baseline, each", [(Baseline.EVEN, 6), (Baseline.LATER, 25), (Baseline.CENTRAL, 25)])
def test_each_key_has_the_limit(baseline: Baseline, each: int) -> None:
    """What one has spent is no other's."""
    assert spent([request(0, 0, each, "a"), request(0, 0, each, "b")], baseline) == {(0, "edge-0"): 2 * each}


def test_a_refusal_says_why() -> None:
    """It is over the limit, and charges nothing under any label."""
    rows = list(rows_of([request(0, 0, 26)], FOUR, Baseline.CENTRAL))
    (answer,) = [row for row in rows if isinstance(row, Answered)]
    assert (answer.allowed, answer.charged, answer.epoch, answer.reason) == (False, False, None, "over_limit")


@pytest.mark.parametrize(
    "baseline, over, crossing_share, bound",
    [(Baseline.EVEN, (0, 0), 0, 0), (Baseline.LATER, (300, 375), 0, None), (Baseline.CENTRAL, (0, 0), 1, 0)],
)
def test_the_figures_of_a_baseline(
    baseline: Baseline, over: tuple[int, int], crossing_share: float, bound: int | None
) -> None:
    """Four edges that are asked for eight times the limit: counting locally is over by 300 and three bursts more."""
    text = "edges: 4\nseconds: 6\nlimit: 100/s\nenforce: lease\ndemand: [{shape: uniform, load: 800%}]\n"
    figures = baseline_series(parse_scenario("overload", text), 1, baseline).rules[0].figures
    assert figures.enforce == baseline.value
    assert over[0] <= figures.overshoot_label <= over[1]
    assert (figures.crossing_share, figures.bound) == (crossing_share, bound)
