"""The scenarios of `tests/scenarios`: what is worst for each mode, and what once failed.

None exceeds what is printed, and each term that can be reached is reached to 80 %: no bound is loose without need.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from apportion.simulations.library import load_file
from apportion.simulations.measures import RuleFigures
from apportion.simulations.run import run
from tests.checkout import ROOT

TEXTS = sorted((ROOT / "tests" / "scenarios").glob("*.yaml"))

REACHED = 0.8
"""Of each term, in the worst run."""


@cache
def outcome(path: Path) -> tuple[RuleFigures, tuple[str, ...]]:
    """The figures of the only rule, and what was broken."""
    found = run(load_file(path), 1)
    (figures,) = found.rules
    return figures, found.broken


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_nothing_is_broken(path: Path) -> None:
    """No bound is exceeded, and what the text expects holds."""
    _, broken = outcome(path)
    assert broken == ()


def reached(name: str) -> RuleFigures:
    """The figures of a text by name."""
    return outcome(ROOT / "tests" / "scenarios" / f"{name}.yaml")[0]


@pytest.mark.parametrize(
    "name, bound",
    [
        ("edge-at-each-edge", 5 * (40 + 25) - 100),
        ("edge-slack", 40 + 7 * 55),
        ("keep-share", 400),
        ("fair-share", 10 * 40),
        ("fair-share-region", 16 * 12 + 50),
    ],
)
def test_a_printed_bound_is_reached(name: str, bound: int) -> None:
    """By label, over the entitlement."""
    figures = reached(name)
    assert figures.bound == bound
    assert REACHED * bound <= figures.overshoot_label <= bound


def test_the_slack_itself_is_reached() -> None:
    """10 % of 400/s once each edge has a slice."""
    assert REACHED * 40 <= reached("edge-slack-planned").overshoot_label <= 40


def test_the_burst_of_an_epoch_that_turns_direct_is_reached() -> None:
    """In a true second, and only there: by label nothing is over."""
    figures = reached("lease-turns-direct")
    assert (figures.bound, figures.overshoot_label) == (0, 0)
    assert REACHED * figures.burst <= figures.overshoot_true_second <= figures.burst


@pytest.mark.parametrize(
    "name, term",
    [
        ("lease-early-clock", 0.49 * 800),  # e x Q: all of the limit moves to an edge whose clock is so far ahead
        ("lease-chunk-under-way", 5_000 + 600),  # one answer to the one edge; what the other is answered and lent
        ("lease-deep-slices", 20 * 19 + 20 - 100),  # slices and pool, each as deep as it is large, less the burst
    ],
)
def test_a_term_of_a_true_second_is_reached(name: str, term: float) -> None:
    """Beyond rate and burst, and only there: by label nothing is over."""
    figures = reached(name)
    assert (figures.bound, figures.overshoot_label) == (0, 0)
    assert REACHED * term <= figures.overshoot_true_second <= term


def test_the_clocks_of_an_edge_rule_with_slack_are_reached() -> None:
    """10 % of 800/s by label, and e x Q(1 + slack) beside it."""
    clocks = 0.49 * 880
    assert 80 + REACHED * clocks <= reached("edge-slack-early-clock").overshoot_true_second <= 80 + clocks


@pytest.mark.parametrize("name", ["region", "edge-region"])
def test_a_true_second_of_the_region_has_rate_and_burst(name: str) -> None:
    """Nothing is added there: what is entitled is all of it, and is reached."""
    figures = reached(name)
    assert (figures.bound, figures.overshoot_label) == (0, 0)
    assert figures.overshoot_true_second <= 0.02 * figures.limit_per_second
