"""What an edge may admit or let pass by itself, in units (design 4.1)."""

from __future__ import annotations

import pytest

from apportion.core.limit import RateLimit
from apportion.core.quantities import parse_percent
from apportion.core.threshold import passing_units, share_units, slack_text, with_slack

SECOND = 1_000_000_000
THOUSAND = RateLimit(1000, SECOND, 250)


def test_a_share_is_an_even_part_of_the_limit_with_slack_rounded_up() -> None:
    """1000/s and 10 % over 40 edges are 27.5."""
    assert share_units(THOUSAND, 1000, 40) == 28
    assert share_units(RateLimit(60_000, 60 * SECOND, 250), 1000, 40) == 28
    assert share_units(THOUSAND, 0, 40) == 25


def test_all_slices_together_are_rounded_down() -> None:
    """1000 and 2.5 %; 999 and 0.05 % are 999.4995."""
    assert with_slack(1000, 250) == 1025
    assert with_slack(999, 5) == 999


@pytest.mark.parametrize(
    "part, edges, cost_max, units",
    [
        (None, 8, 1, 1250),  # no slice: Q + burst
        (400, 8, 1, 800),  # (1 + slack) x slice
        (800, 8, 1, 1250),  # at most Q + burst
        (0, 8, 1, 250),  # (1 + slack) x Q / edges
        (0, 100, 1, 100),  # Q / 10
        (0, 100, 180, 180),  # the largest cost
    ],
)
def test_what_passes_to_the_region(part: int | None, edges: int, cost_max: int, units: int) -> None:
    """Each term of the threshold of `edge+region`, with a slack of 100 %."""
    assert passing_units(THOUSAND, 10_000, edges, cost_max, part) == units


def test_a_small_limit_lets_all_of_it_pass() -> None:
    """1/min with a burst of 1: its epoch is a 60th, rounded up; 100/s lets 20 pass at least."""
    assert passing_units(RateLimit(1, 60 * SECOND, 1), 10_000, 40, 1, 0) == 2
    assert passing_units(RateLimit(100, SECOND, 25), 0, 100, 1, 0) == 20


@pytest.mark.parametrize("text, value", [("10%", 1000), ("2.5%", 250), ("0.05%", 5), ("0%", 0), ("100%", 10_000)])
def test_a_slack_is_read_and_written_exactly(text: str, value: int) -> None:
    """Hundredths of a percent."""
    assert parse_percent(text) == value
    assert slack_text(value) == text


@pytest.mark.parametrize("text", ["10", "-1%", "1.234%", "%", "ten%", "1.%", "٣%", "1e3%"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    """Never a guess."""
    with pytest.raises(ValueError, match="percentage"):
        parse_percent(text)
