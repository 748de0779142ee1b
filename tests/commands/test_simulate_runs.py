"""Several runs of one call: seeds spread over scenarios, and over processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from apportion.commands.simulate_call import Spread
from apportion.simulations import library
from apportion.simulations.measures_period import OF_RATES
from apportion.simulations.nodes import parsed
from apportion.simulations.traffic import streams_of
from apportion.simulations.world import SECOND
from tests.commands.test_simulate_files import SHORT, run


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    """Two scenarios' files, as arguments."""
    (tmp_path / "short.yaml").write_text(SHORT)
    (tmp_path / "other.yaml").write_text(SHORT.replace("60%", "70%"))
    return ["--scenario", str(tmp_path / "short.yaml"), "--scenario", str(tmp_path / "other.yaml")]


def runs_of(*arguments: str) -> list[dict[str, Any]]:
    """What `--json` says of each run."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["runs"]
    return found


def test_in_processes_of_their_own_runs_come_to_the_same(two: list[str]) -> None:
    """Figures and order are those of one process."""
    alone = runs_of(*two, "--seeds", "2")
    assert [(each["scenario"], each["seed"]) for each in alone] == [
        ("short", 1),
        ("short", 2),
        ("other", 1),
        ("other", 2),
    ]
    assert runs_of(*two, "--seeds", "2", "--jobs", "2") == alone


def test_in_turn_each_seed_has_the_next_scenario(two: list[str]) -> None:
    """Three seeds are three runs, not six."""
    found = runs_of(*two, "--seeds", "3", "--seed", "7", "--in-turn")
    assert [(each["scenario"], each["seed"]) for each in found] == [("short", 7), ("other", 8), ("short", 9)]


def test_fifty_seeds_in_turn_reach_every_scenario_and_none_has_more_than_60_000_requests() -> None:
    """What `make sim` runs: the load of each shape is a multiple of the limit at most 1.0, but what a step says."""
    chosen = [library.load(name) for name in library.names()]
    assert {scenario.name for scenario, _ in Spread(1, 50, in_turn=True).runs(chosen)} == set(library.names())
    for each in chosen:
        asked = sum(
            stream.units_per_second / stream.flow.cost * stream.flow.shape.parts(each.edges, second * SECOND, 1).sum()
            for stream in streams_of(each.flows, parsed(each.rules))
            for second in range(-(-(stream.flow.until_ns or each.seconds * SECOND) // SECOND))
        )
        assert asked <= 60_000, each.name


def test_the_eight_workloads_are_those_of_the_figures() -> None:
    """Fifty edges, 1,000/s, the default burst; hotspots with three dwell times each."""
    folder = Path(library.__file__).parent / "scenarios" / "full"
    found = [library.load_file(path) for path in sorted(folder.glob("*.yaml"))]
    assert [each.name[0] for each in found] == list("abcdddeeefgh")
    for each in found:
        assert each.one is not None
        assert (each.edges, each.one.rate, each.one.burst, each.one.enforce) == (50, "1000/s", None, "lease")
        assert "utilisation" in {expectation.measure for expectation in each.expectations}


QUOTA = """edges: 2
seconds: 12
limit: {quota: 40/5s, anchor: calendar}
enforce: lease
demand: [{load: 150%, keys: 2}]
"""


def test_figures_that_a_quota_does_not_have_are_null(two: list[str], tmp_path: Path) -> None:
    """In JSON every field is there: those by label and second are null of a quota, and `period` of a rate."""
    (tmp_path / "quota.yaml").write_text(QUOTA)
    runs = runs_of(*two, "--scenario", str(tmp_path / "quota.yaml"), "--seed", "1")
    rate, _, quota = [each["rules"][0] for each in runs]
    assert rate.keys() == quota.keys()
    assert rate["period"] is None
    assert {name for name, value in quota.items() if value is None} == set(OF_RATES)
    assert (quota["period"]["allowance"], quota["period"]["overshoot_period"], quota["bound"]) == (40, 0, 0)


def test_a_quota_is_compared_with_one_central_counter(tmp_path: Path) -> None:
    """The table has figures by period, the page a picture of each run, and what only rates have is a dash."""
    (tmp_path / "quota.yaml").write_text(QUOTA)
    html = tmp_path / "a.html"
    result = run("--scenario", str(tmp_path / "quota.yaml"), "--seed", "1", "--compare", "enforce", "--html", str(html))
    assert result.exit_code == 0, result.output
    assert "over by" in result.output and "period" in result.output
    assert "What others do: `central counter`." in result.output
    for name in ("region", "lease", "central counter"):
        assert f"({name}, 40 in a period, calendar, for each of 2 keys)" in html.read_text()


def test_a_log_is_not_replayed_under_a_quota(tmp_path: Path) -> None:
    """A clear error, before anything is read."""
    (tmp_path / "quota.yaml").write_text(QUOTA)
    result = run("--scenario", str(tmp_path / "quota.yaml"), "--replay", str(tmp_path / "none.csv"))
    assert result.exit_code != 0
    assert "--replay needs a world with a rate, and quota has a quota: name another" in result.output
