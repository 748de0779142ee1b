"""Numbers, rates and durations: what each text is worth, and what is said about the others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.quantities import (
    duration_text,
    parse_count,
    parse_duration,
    parse_rate,
    period_text,
    shown,
)

SECOND = 1_000_000_000


@pytest.mark.parametrize("text,number", [("0", 0), ("10", 10), ("5_000_000", 5_000_000), (str(2**64 - 1), 2**64 - 1)])
def test_a_count_is_a_whole_number(text: str, number: int) -> None:
    """Underscores group digits, as in the design's example."""
    assert parse_count(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "-1", "+1", "1.0", "1e3", "0x1F", "010", "1__0", "_1", "1_", " 1", "1 ", "1\n", "٣", "²", "ten", f"{2**64}"],
)  # fmt: skip
def test_what_is_no_count_is_refused(text: str) -> None:
    """Nothing is guessed: other scripts' digits, signs, exponents and octal are errors."""
    with pytest.raises(ValueError, match=r"^found `.*`"):
        parse_count(text)


@pytest.mark.parametrize(
    "text,units,period_ns",
    [
        ("10000/s", 10_000, SECOND),
        ("10/5min", 10, 300 * SECOND),
        ("1_000/hour", 1_000, 3_600 * SECOND),
        ("20/day", 20, 86_400 * SECOND),
        ("7/week", 7, 604_800 * SECOND),
        ("10/90s", 10, 90 * SECOND),
        ("1/2week", 1, 1_209_600 * SECOND),
        ("1/366day", 1, 31_622_400 * SECOND),
        ("0/s", 0, SECOND),
        ("2000000000/s", 2_000_000_000, SECOND),
    ],
)
def test_a_rate_is_units_per_period(text: str, units: int, period_ns: int) -> None:
    """A number, a slash, and a unit in words or a multiple of one."""
    assert parse_rate(text) == (units, period_ns)


@pytest.mark.parametrize(
    "text,said",
    [
        ("10", "without a unit; write a number per period, such as 10/s"),
        ("10/", "ends where the unit should stand"),
        ("/s", "found ``, a whole number is meant"),
        ("10/m", "could be `min` (a minute) or `month`; write 10/min or 10/month"),
        ("10/minutes", "did you mean `min`?"),
        ("10/Second", "did you mean `s`?"),
        ("10/fortnight", "known units are s, min, hour, day, week, month, year"),
        ("10/month", "a month has none; an allowance per month is `quota: 10/month` with an `anchor`"),
        ("10/s/s", "found the unit `s/s`"),
        ("10/ s", "found the period ` s`"),
        ("10/5", "write a unit, or a multiple of one"),
        ("10/0min", "has no length"),
    ],
)
def test_what_is_no_rate_is_refused_with_the_fix(text: str, said: str) -> None:
    """The text of the error is written for the person who wrote the file."""
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_rate(text)


@pytest.mark.parametrize(
    "text,duration_ns",
    [("100ms", 10**8), ("5s", 5 * SECOND), ("3m", 180 * SECOND), ("1h", 3_600 * SECOND), ("2d", 172_800 * SECOND)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, duration_ns: int) -> None:
    """Units of durations are letters: ms, s, m, h, d."""
    assert parse_duration(text) == duration_ns


@pytest.mark.parametrize("text", ["", "5", "s", "0s", "-5s", "1.5s", "5 s", "5min", "5S", "1h30m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A duration without a unit, without length or with a unit of a rate is an error."""
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@given(st.integers(0, 10**6), st.integers(1, 100), st.sampled_from(["s", "min", "hour"]))
def test_a_rate_that_is_written_reads_as_itself(units: int, multiple: int, word: str) -> None:
    """`period_text` is the way back."""
    _, period_ns = parse_rate(f"{units}/{multiple}{word}")
    assert parse_rate(f"{units}/{period_text(period_ns)}") == (units, period_ns)


@given(st.integers(1, 10**9), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_a_duration_that_is_written_reads_as_itself(number: int, unit: str) -> None:
    """`duration_text` is the way back."""
    duration_ns = parse_duration(f"{number}{unit}")
    assert parse_duration(duration_text(duration_ns)) == duration_ns


def test_a_message_repeats_a_text_printably_and_in_bearable_length() -> None:
    """A file of an attacker does not write the terminal's title."""
    assert shown("a\x1b[2J\n") == "`a\\x1b[2J\\n`"
    assert shown("a" * 100) == "`" + "a" * 57 + "...`"
