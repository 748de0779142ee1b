"""What is folded second by second says the same as what is kept."""

import numpy as np
import pytest

from apportion.simulations import library
from apportion.simulations.fold import Fold
from apportion.simulations.nodes import parsed
from apportion.simulations.recording import Recording
from apportion.simulations.run import DRAINED_S, STARTED_S, changes_of, run, world_of
from apportion.simulations.series import epoch_of_start, series_of
from apportion.simulations.world import SECOND, Options


@pytest.mark.parametrize("name", ["limit-change", "everyone-under", "edge-partition"])
def test_a_folded_run_has_the_figures_and_series_of_the_whole_log(name: str) -> None:
    """Every figure and every second: limits that change, every label over, edges that spend by their stages."""
    scenario = library.load(name)
    recording = Recording()
    world = world_of(scenario, 3, recording, Options())
    first = epoch_of_start(recording.log.rows, STARTED_S * SECOND)
    fold = Fold(parsed(scenario.rules), scenario.edges, STARTED_S * SECOND, first)
    for second in range(scenario.seconds + DRAINED_S):
        world.run(1)
        fold.take(recording.take(first + second), second)
    figures, folded = fold.finish(scenario.seconds, scenario.warm_up, changes_of(scenario))
    outcome = run(scenario, 3)
    assert figures == outcome.rules
    assert fold.requests == outcome.requests
    (one,), (other,) = folded, series_of(outcome).rules
    assert one.over == other.over
    assert len(one.over) == (30 if name == "everyone-under" else 0)
    for series in ("offered", "admitted", "limit", "issued", "admitted_by_edge"):
        np.testing.assert_array_equal(getattr(one, series), getattr(other, series))
