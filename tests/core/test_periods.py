"""Calendar periods: they tile time in every zone, whatever its clocks do, and each has a name of its own (case C59)."""

import os
import random
import subprocess
import sys
from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest

from apportion.core.periods import MULTIPLES, Calendar, Period, Unit, after

SPECIAL = [
    "UTC",
    "Africa/Cairo",  # midnight does not exist on some days
    "Africa/Casablanca",  # clocks change twice around Ramadan
    "America/Havana",  # midnight repeats
    "America/Nuuk",
    "America/St_Johns",  # half an hour off
    "Antarctica/Troll",  # clocks change by two hours
    "Asia/Beirut",
    "Asia/Gaza",
    "Atlantic/Azores",
    "Australia/Lord_Howe",  # clocks change by half an hour
    "Europe/Dublin",
    "Pacific/Easter",
]
ALL = [(unit, multiple) for unit, most in MULTIPLES.items() for multiple in range(1, most + 1) if most % multiple == 0]


def instant(text: str) -> int:
    """`2026-03-29T10:00` of UTC, as seconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


START, END = instant("2024-01-01T00:00"), instant("2032-01-01T00:00")


def text(instant_s: int) -> str:
    """The other way."""
    return f"{datetime.fromtimestamp(instant_s, UTC):%Y-%m-%dT%H:%M}"


def zones() -> list[str]:
    """Fifty of them, the odd ones first."""
    names = sorted(each for each in available_timezones() if "/" in each and each not in SPECIAL)
    return SPECIAL + random.Random(6).sample(names, 50 - len(SPECIAL))


def changes(zone: str) -> list[int]:
    """The instants at which the zone's clocks change."""
    info, found = ZoneInfo(zone), []

    def offset(at: int) -> timedelta | None:
        return datetime.fromtimestamp(at, info).utcoffset()

    for early, late in pairwise(range(START, END, 7 * 86_400)):
        if offset(early) != offset(late):
            found.append(bisect_left(range(late), True, early + 1, key=lambda at: offset(at) == offset(late)))
    return found


def check_tiles(calendar: Calendar, first: int, rng: random.Random) -> list[Period]:
    """A row of periods from the one of `first` on: each begins where the one before ends, and has all its instants."""
    periods: list[Period] = []
    at = first
    for _ in range(6):
        period = calendar.period(at)
        assert at in period
        for inside in (period.start_s, period.end_s - 1, rng.randrange(period.start_s, period.end_s)):
            assert calendar.period(inside) == period
        assert not periods or periods[-1].end_s == period.start_s
        periods.append(period)
        at = period.end_s
    return periods


@pytest.mark.parametrize("zone", zones())
def test_periods_tile_time(zone: str) -> None:
    """All units and multiples, any first day of week and month, about changes of the clocks and elsewhere: every
    instant belongs to exactly one, and no two have one name.
    """
    rng, turning = random.Random(zone), changes(zone)
    for unit, multiple in ALL:
        calendar = Calendar(multiple, unit, zone, rng.randrange(7), rng.randrange(1, 32))
        found: dict[str, Period] = {}
        for around in [*rng.sample(turning, min(2, len(turning))), rng.randrange(START, END)]:
            for period in check_tiles(calendar, around - rng.randrange(3 * multiple * (unit.fixed_s or 86_400)), rng):
                assert found.setdefault(period.name, period) == period
                assert period.name.endswith(f"Z/{multiple if multiple > 1 else ''}{unit.value}")


@pytest.mark.parametrize("zone", ["Africa/Cairo", "America/Havana", "Australia/Lord_Howe", "Antarctica/Troll"])
def test_hours_tile_the_very_hour_in_which_clocks_change(zone: str) -> None:
    """Every five minutes of the day about each of two changes, in periods of five lengths."""
    for unit, multiple in ((Unit.MINUTE, 15), (Unit.HOUR, 1), (Unit.HOUR, 2), (Unit.HOUR, 6), (Unit.DAY, 1)):
        calendar = Calendar(multiple, unit, zone)
        for change in changes(zone)[:2]:
            for at in range(change - 43_200, change + 43_200, 5 * 60):
                period = calendar.period(at)
                assert at in period
                assert calendar.period(period.end_s).start_s == period.end_s


@pytest.mark.parametrize(
    "zone, at, start, end",
    [
        ("Europe/Paris", "2026-03-29T10:00", "2026-03-28T23:00", "2026-03-29T22:00"),  # 23 h
        ("Europe/Paris", "2026-10-25T10:00", "2026-10-24T22:00", "2026-10-25T23:00"),  # 25 h
        ("America/New_York", "2026-03-08T12:00", "2026-03-08T05:00", "2026-03-09T04:00"),
        ("Africa/Cairo", "2026-04-24T05:00", "2026-04-23T22:00", "2026-04-24T21:00"),  # from 01:00 on
        ("Africa/Cairo", "2026-10-29T05:00", "2026-10-28T21:00", "2026-10-29T22:00"),  # 25 h
        ("UTC", "2026-10-25T10:00", "2026-10-25T00:00", "2026-10-26T00:00"),
    ],
)
def test_days_of_23_and_25_hours(zone: str, at: str, start: str, end: str) -> None:
    """C59, value by value; the name has the start in UTC."""
    period = Calendar(1, Unit.DAY, zone).period(instant(at))
    assert (text(period.start_s), text(period.end_s)) == (start, end)
    assert period.name == f"{start.removesuffix(':00')}Z/day"


def test_an_hour_that_repeats_is_two_hours() -> None:
    """In Berlin on 2026-10-25 02:30 comes twice: the names differ, where a local stamp would not."""
    calendar = Calendar(1, Unit.HOUR, "Europe/Berlin")
    names = [calendar.period(instant(f"2026-10-25T0{hour}:30")).name for hour in (0, 1)]
    assert names == ["2026-10-25T00Z/hour", "2026-10-25T01Z/hour"]


@pytest.mark.parametrize(
    "calendar, at, start, end",
    [
        (Calendar(1, Unit.MONTH, month_starts_on=31), "2027-02-28T12:00", "2027-02-28T00:00", "2027-03-31T00:00"),
        (Calendar(1, Unit.MONTH, month_starts_on=31), "2027-02-27T12:00", "2027-01-31T00:00", "2027-02-28T00:00"),
        (
            Calendar(1, Unit.MONTH, "Europe/Berlin", month_starts_on=17),
            "2026-12-01T00:00",
            "2026-11-16T23:00",
            "2026-12-16T23:00",
        ),
        (Calendar(3, Unit.MONTH), "2026-12-01T00:00", "2026-10-01T00:00", "2027-01-01T00:00"),
        (Calendar(1, Unit.YEAR), "2028-02-29T12:00", "2028-01-01T00:00", "2029-01-01T00:00"),  # 366 days
        (Calendar(1, Unit.WEEK), "2026-12-01T12:00", "2026-11-30T00:00", "2026-12-07T00:00"),  # from Monday
        (Calendar(1, Unit.WEEK, week_starts_on=6), "2026-12-01T12:00", "2026-11-29T00:00", "2026-12-06T00:00"),
        (Calendar(6, Unit.HOUR), "2026-12-01T12:00", "2026-12-01T12:00", "2026-12-01T18:00"),
        (Calendar(15, Unit.MINUTE), "2026-12-01T12:44", "2026-12-01T12:30", "2026-12-01T12:45"),
    ],
)
def test_weeks_months_and_multiples(calendar: Calendar, at: str, start: str, end: str) -> None:
    """First days of weeks and months, clamped where a month has none so late."""
    period = calendar.period(instant(at))
    assert (text(period.start_s), text(period.end_s)) == (start, end)


@pytest.mark.parametrize(
    "multiple, unit, start, end",
    [
        (1, Unit.MONTH, "2027-01-31T10:30", "2027-02-28T10:30"),
        (1, Unit.YEAR, "2028-02-29T10:30", "2029-02-28T10:30"),
        (2, Unit.WEEK, "2026-12-01T10:30", "2026-12-15T10:30"),
        (90, Unit.SECOND, "2026-12-01T10:30", "2026-12-01T10:31"),
    ],
)
def test_what_a_first_use_begins_ends_so_much_later(multiple: int, unit: Unit, start: str, end: str) -> None:
    """Months and years on the same day of UTC, or the last one (seconds are not shown)."""
    assert text(after(multiple, unit, instant(start))) == end


def test_what_does_not_divide_the_next_unit_is_no_calendar_period() -> None:
    """7 minutes make no hours, 2 days no months."""
    for multiple, unit in ((7, Unit.MINUTE), (5, Unit.HOUR), (2, Unit.DAY), (5, Unit.MONTH), (0, Unit.DAY)):
        with pytest.raises(ValueError, match="does not divide"):
            Calendar(multiple, unit)


HOST = """
from apportion.core.periods import Calendar, Unit
for zone in ("UTC", "Europe/Paris", "America/New_York"):
    for unit in Unit:
        for at in (1774738799, 1774738800, 1772946000, 1792969199):
            print(Calendar(1, unit, zone).period(at))
"""


def test_the_zone_of_the_host_changes_nothing() -> None:
    """Two nodes, one of them set to New York: the same periods to the second."""
    said = [
        subprocess.run(
            [sys.executable, "-c", HOST], env={**os.environ, "TZ": host}, capture_output=True, check=True
        ).stdout
        for host in ("UTC", "America/New_York")
    ]
    assert said[0] == said[1]
    assert said[0].count(b"\n") == 3 * 7 * 4
