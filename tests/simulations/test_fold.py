"""What is folded second by second says the same as what is kept."""

from collections.abc import Iterator

import numpy as np
import pytest

from apportion.simulations import library
from apportion.simulations.fold import Fold
from apportion.simulations.nodes import parsed
from apportion.simulations.recording import Row
from apportion.simulations.run import STARTED_S, changes_of, run
from apportion.simulations.series import epoch_of_start, series_of
from apportion.simulations.world import SECOND


def by_second(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows of each second of traffic, those before it with the first."""
    found: list[Row] = []
    second = 0
    for row in rows:
        at_ns = getattr(row, "at_ns", 0)
        while at_ns // SECOND - STARTED_S > second:
            yield found
            found, second = [], second + 1
        found.append(row)
    yield found


@pytest.mark.parametrize("name", ["limit-change", "everyone-under", "edge-partition"])
def test_a_folded_run_has_the_figures_and_series_of_the_whole_log(name: str) -> None:
    """Every figure and every second: limits that change, every label over, edges that spend by their stages."""
    scenario = library.load(name)
    outcome = run(scenario, 3)
    rows = outcome.recording.rows
    fold = Fold(parsed(scenario.rules), scenario.edges, STARTED_S * SECOND, epoch_of_start(rows, STARTED_S * SECOND))
    for second, some in enumerate(by_second(rows)):
        fold.take(some, second)
    figures, folded = fold.finish(scenario.seconds, scenario.warm_up, changes_of(scenario))
    assert figures == outcome.rules
    assert fold.requests == outcome.requests
    (one,), (other,) = folded, series_of(outcome).rules
    assert one.over == other.over
    assert len(one.over) == (30 if name == "everyone-under" else 0)
    for series in ("offered", "admitted", "limit", "issued", "admitted_by_edge"):
        np.testing.assert_array_equal(getattr(one, series), getattr(other, series))
