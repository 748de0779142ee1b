"""Pictures of runs: what is in them, and what is said where nothing can be drawn."""

import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from apportion.core.errors import InputError
from apportion.simulations import library
from apportion.simulations.pictures import (
    PANELS_MAX,
    checked_format,
    named,
    picture,
    require_drawable,
    step_s,
    stepped,
)
from apportion.simulations.run import run
from apportion.simulations.scenario import Fault, FaultKind
from apportion.simulations.series import RunSeries, series_of

SECOND = 1_000_000_000


@cache
def short(name: str, enforce: str | None = None) -> RunSeries:
    """The first seconds of a scenario, as it is or under another mode."""
    scenario = library.load(name)
    if enforce is not None:
        assert scenario.one is not None
        scenario = scenario.under(replace(scenario.one, enforce=enforce))
    return series_of(run(replace(scenario, seconds=24, warm_up=5, expectations=()), 1))


def test_the_same_run_is_the_same_picture() -> None:
    """Byte for byte, as PNG and as SVG."""
    one = [short("limit-change")]
    for kind, begins in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        assert picture(one, kind) == picture(one, kind)
        assert picture(one, kind).startswith(begins)


def test_a_picture_says_what_was_run_and_what_happened() -> None:
    """Name, mode, limit, bound beside what was seen, faults by name, units on the axes, a legend."""
    text = picture([short("limit-change")], "svg").decode()
    for words in (
        "limit-change, seed 1  (lease, 400/s)",
        "bound 0, seen 0, utilisation",
        "limit 200/s",
        "units a second",
        "time, s",
        "slice and loans, units an epoch",
        "limit + burst + bound",
    ):
        assert words in text, words


def test_each_label_over_is_marked() -> None:
    """24 seconds of edges that count alone: 24 marks and the worst of them in words; what has no room is said."""
    (rule,) = short("everyone-under").rules
    assert [each.at_s for each in rule.over] == [at + 0.5 for at in range(24)]
    worst = max(each.units for each in rule.over)
    assert worst == rule.figures.overshoot_label
    text = picture([short("everyone-under")], "svg").decode()
    assert f"seen {worst:,} at " in text
    assert "(24 labels over)" in text
    assert "admitted, units a second" in text
    assert len(re.findall("<use [^>]*#c0006f", text)) == 24 + 1  # and one in the legend


def test_runs_of_one_world_have_the_same_axes() -> None:
    """Two modes side by side: each tick of the axis of rates is there twice."""
    runs = [short("limit-change"), short("limit-change", "region")]
    text = picture(runs, "svg").decode()
    assert "(lease, 400/s)" in text
    assert "(region, 400/s)" in text
    alone = picture(runs[:1], "svg").decode()
    assert text.count(">600</text>") == 2 * alone.count(">600</text>") == 2


def test_a_series_of_a_day_is_drawn_by_means() -> None:
    """At most 1,200 steps, whose means keep the sum; the last may be shorter."""
    day = np.arange(86_400, dtype=np.float64)
    step = step_s(len(day))
    assert step == 72
    assert stepped(day, step).shape == (1_200,)
    assert stepped(day, step)[0] == 35.5
    assert stepped(np.ones((100, 3)), 72).tolist() == [[1.0] * 3, [1.0] * 3]


def test_faults_at_one_time_share_a_name() -> None:
    """The first two of each kind, and how many more."""
    faults = [Fault(SECOND, FaultKind.KILL, f"edge-{at}") for at in range(5)]
    assert named(faults) == "kill edge-0, edge-1 +3"
    assert named([Fault(0, FaultKind.STEP_CLOCK, "region"), *faults[:1]]) == "step clock region\nkill edge-0"


def test_formats_are_those_of_the_names() -> None:
    """Another one is an error with both names."""
    assert (checked_format(Path("a.PNG")), checked_format(Path("b.svg"))) == ("png", "svg")
    with pytest.raises(InputError, match=r"--plot a\.jpg: pictures are written as \.png or \.svg"):
        checked_format(Path("a.jpg"))


def test_without_matplotlib_the_fix_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is run."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pictures need matplotlib: pip install 'apportion\[pictures\]'"):
        require_drawable(1)


def test_too_many_runs_are_refused() -> None:
    """With how many there may be."""
    require_drawable(PANELS_MAX)
    with pytest.raises(InputError, match="65 runs and rules are too many for a picture, 64 are the most"):
        require_drawable(PANELS_MAX + 1)
