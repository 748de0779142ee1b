"""An access log as traffic: in order, from instant 0, over the edges, and what a small one comes to."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from apportion.core.errors import InputError
from apportion.simulations import library
from apportion.simulations.access_log import Entry
from apportion.simulations.baselines import Baseline
from apportion.simulations.log_reader import LogReader
from apportion.simulations.nodes import parsed
from apportion.simulations.replay import (
    ORDERED_LINES_MAX,
    Cleared,
    Replayed,
    arrivals_of,
    in_order,
    replay,
    replay_baseline,
)
from apportion.simulations.scenario import RULE, Scenario
from apportion.simulations.traffic import rule_named
from apportion.simulations.world import Arrival

SECOND = 1_000_000_000


def world(limit: str = "100/s", enforce: str = "region", edges: int = 3) -> Scenario:
    """A world to replay in."""
    scenario = library.load("uniform")
    assert scenario.one is not None
    return replace(scenario.under(replace(scenario.one, rate=limit, enforce=enforce), edges), expectations=())


def written(folder: Path, text: str) -> LogReader:
    """A reader of that text."""
    (folder / "access.log").write_text(text)
    return LogReader(folder / "access.log")


def arrivals(folder: Path, text: str, edges: int = 3) -> tuple[list[Arrival], Cleared]:
    """The requests of a log."""
    cleared = Cleared()
    rule = rule_named(parsed(world(edges=edges).rules), RULE)
    return list(arrivals_of(written(folder, text), rule, edges, 1, cleared)), cleared


def replayed(folder: Path, text: str, scenario: Scenario) -> Replayed:
    """What a log comes to."""
    return replay(scenario, written(folder, text), 1, lambda share: None)


def test_times_begin_at_zero_and_gaps_are_cut(tmp_path: Path) -> None:
    """T0 is the second of the first line; a gap of three hours over the turn of a year is one of 60 s."""
    text = "time\n2026-12-31T23:00:00.25Z\n2026-12-31T23:00:59.75Z\n2027-01-01T02:00:00.00Z\n"
    found, cleared = arrivals(tmp_path, text)
    assert [at for at, _, _ in found] == [SECOND // 4, 59 * SECOND + 3 * SECOND // 4, 119 * SECOND + 3 * SECOND // 4]
    assert (cleared.gaps, cleared.cut_ns) == (1, (3 * 3600 - 60) * SECOND + SECOND // 4 - 60 * SECOND)


def test_whole_seconds_are_spread_over_their_second(tmp_path: Path) -> None:
    """In the order of time, the same for the same seed; no burst at its beginning."""
    text = "time\n" + "1798761600\n" * 1000
    found = [at for at, _, _ in arrivals(tmp_path, text)[0]]
    assert found == sorted(found) == [at for at, _, _ in arrivals(tmp_path, text)[0]]
    assert found[0] >= 0 and found[-1] < SECOND
    assert 450 < sum(at < SECOND // 2 for at in found) < 550


def test_lines_out_of_place_are_put_in_order() -> None:
    """As far as the buffer reaches; a line beyond it comes late, at the instant that was reached, and is counted."""
    entries = [Entry(at * SECOND, False, None, "", 1) for at in [1, 3, 2, *range(5, 5 + ORDERED_LINES_MAX), 4]]
    cleared = Cleared()
    found = [at // SECOND for at, _ in in_order(iter(entries), Random(1), cleared)]
    assert found == [1, 2, 3, *range(4, 5 + ORDERED_LINES_MAX)]
    assert cleared.late == 0
    entries.append(Entry(0, False, None, "", 1))
    found = [at // SECOND for at, _ in in_order(iter(entries), Random(1), cleared)]
    assert found == sorted(found)
    assert cleared.late == 1


def test_each_location_of_a_column_is_an_edge(tmp_path: Path) -> None:
    """In the order in which they are first seen; when there are no edges left they are shared."""
    text = "time,location\n" + "".join(
        f"{1798761600 + at}.0,{name}\n" for at, name in enumerate(["paris", "oslo", "paris", "rome"])
    )
    found, cleared = arrivals(tmp_path, text)
    assert [edge for _, edge, _ in found] == [0, 1, 0, 2]
    assert (cleared.locations, cleared.crowded) == ({"paris": 0, "oslo": 1, "rome": 2}, False)
    found, cleared = arrivals(tmp_path, text, edges=2)
    assert [edge for _, edge, _ in found[:3]] == [0, 1, 0]
    assert cleared.crowded


def test_an_address_is_always_at_the_same_edge(tmp_path: Path) -> None:
    """By a hash, which spreads many of them."""
    text = "time,ip\n" + "".join(f"{1798761600 + at}.0,10.0.0.{at % 200}\n" for at in range(400))
    edges = [edge for _, edge, _ in arrivals(tmp_path, text)[0]]
    assert edges[:200] == edges[200:]
    assert set(edges) == {0, 1, 2}


def test_key_and_cost_are_those_of_the_line(tmp_path: Path) -> None:
    """A key of its own limit each."""
    ((_, _, (asked,)), *_), _ = arrivals(tmp_path, "time,key,cost\n1798761600.0,contoso,7\n")
    assert (asked.key, asked.cost) == (("contoso",), 7)


def test_a_small_log_comes_to_what_its_limit_says(tmp_path: Path) -> None:
    """100 requests in each of ten seconds under 50/s with a burst of 20: all of the first 20, then 50 a second."""
    times = "".join(f"{1798761600 + at // 100}.{at % 100:02}\n" for at in range(1000))
    found = replayed(tmp_path, "time\n" + times + "oops\n", world("50/s"))
    (figures,) = found.outcome.rules
    assert found.outcome.requests == figures.offered == 1000
    assert 515 <= figures.admitted <= 520
    assert 480 <= figures.denied["over_limit"] <= 485
    assert (figures.overshoot_label, figures.bound, found.outcome.broken) == (0, 0, ())
    assert list(found.outcome.recording.log) == []
    (series,) = found.series.rules
    assert series.offered.tolist() == [100.0] * 10
    assert found.notes == (
        "access.log: 1,000 lines replayed, 1 skipped.",
        "line 1002: has the time 'oops'; 2026-10-10T13:55:36.123Z, or seconds since 1970, is meant",
    )


def test_each_key_has_its_own_limit(tmp_path: Path) -> None:
    """What may be admitted is the sum over keys of min(offered, limit): one quiet key leaves room that no other has."""
    lines = "".join(
        f"{1798761600 + at // 100}.{at % 100:02},{'quiet' if at % 100 < 10 else 'loud'}\n" for at in range(3000)
    )
    found = replayed(tmp_path, "time,key\n" + lines, world("50/s"))
    (series,) = found.series.rules
    assert series.limit.tolist() == [60.0] * 30
    assert series.keys == 2
    assert 0.99 <= found.outcome.rules[0].utilisation <= 1.01


def test_baselines_of_a_log_are_asked_what_the_world_is(tmp_path: Path) -> None:
    """The same requests each second, also across an idle minute; one bucket admits what the limit says: 100 of 150 and
    the burst of 25, then 10, then 100 of 150.
    """
    times = [(at // 150, at % 150 / 150) for at in range(300)] + [(40, at / 10) for at in range(10)]
    lines = "".join(f"{1798761600 + second + part:.3f},{'ab'[second % 2]}\n" for second, part in times)
    text = f"time,location\n{lines}"
    world_series = replayed(tmp_path, text, world()).series
    for baseline in Baseline:
        found = replay_baseline(world(), written(tmp_path, text), 1, baseline, lambda share: None)
        (one,), (other,) = found.rules, world_series.rules
        assert one.offered.tolist() == other.offered.tolist() == [150, 150, *[0] * 38, 10]
        assert one.limit.tolist() == [100.0] * 41
        assert (found.name, found.seconds, one.figures.enforce) == ("access.log, seed 1", 41, baseline.value)
    (central,) = replay_baseline(world(), written(tmp_path, text), 1, Baseline.CENTRAL, lambda share: None).rules
    assert central.admitted.tolist() == [124, 100, *[0] * 38, 10]
    assert (central.figures.crossing_share, central.figures.bound) == (1.0, 0)


def test_a_world_of_several_rules_is_refused(tmp_path: Path) -> None:
    """A line says nothing of which rules it meets."""
    with pytest.raises(InputError, match="give --limit and --enforce"):
        replayed(tmp_path, "time\n1798761600\n", replace(world(), one=None))
