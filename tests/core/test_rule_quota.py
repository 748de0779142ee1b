"""A quota as it is written and read: every spelling comes back, and no two quotas or periods share a store key."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.key import encode_key, encode_period, encode_quota
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.periods import MULTIPLES, Calendar, Unit, unit_text
from apportion.core.rule_quota import WEEKDAYS
from tests.in_process import rule_of, rule_text

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Africa/Cairo", "Australia/Lord_Howe")
LONGEST = {Unit.SECOND: 31_622_400, Unit.MINUTE: 527_040, Unit.HOUR: 8_784, Unit.DAY: 366, Unit.WEEK: 52}
CALENDARS = [
    (unit, multiple) for unit, most in MULTIPLES.items() for multiple in range(1, most + 1) if most % multiple == 0
]


@st.composite
def limits(draw: st.DrawFn) -> PeriodLimit:
    """Any quota that a rules file can say."""
    anchor = draw(st.sampled_from(PeriodAnchor))
    units = draw(st.integers(0, 2**53 - 1))
    audit = draw(st.booleans())
    if anchor is PeriodAnchor.CALENDAR:
        unit, multiple = draw(st.sampled_from(CALENDARS))
        week = draw(st.integers(0, 6)) if unit is Unit.WEEK else 0
        day = draw(st.integers(1, 31)) if unit in {Unit.MONTH, Unit.YEAR} else 1
        zone = draw(st.sampled_from(ZONES))
        return PeriodLimit(units, multiple, unit, anchor, zone, week, day, audit_periods=audit)
    unit = draw(st.sampled_from([each for each in Unit if each in LONGEST or anchor is PeriodAnchor.FIRST_USE]))
    multiple = draw(st.integers(1, LONGEST.get(unit, 12 if unit is Unit.MONTH else 1)))
    return PeriodLimit(units, multiple, unit, anchor, audit_periods=audit)


def written(limit: PeriodLimit) -> str:
    """The quota as a rules file writes it."""
    text = f"quota: {limit.units}/{limit.period_text}, anchor: {limit.anchor.value}"
    text += f", audit_periods: {str(limit.audit_periods).lower()}"
    if limit.anchor is PeriodAnchor.CALENDAR:
        text += f", time_zone: {limit.zone}"
    if limit.unit is Unit.WEEK and limit.anchor is PeriodAnchor.CALENDAR:
        text += f", week_starts_on: {WEEKDAYS[limit.week_starts_on]}"
    if limit.unit in {Unit.MONTH, Unit.YEAR} and limit.anchor is PeriodAnchor.CALENDAR:
        text += f", month_starts_on: {limit.month_starts_on}"
    return text


@given(limits())
def test_a_quota_that_is_written_is_read_as_it_was(limit: PeriodLimit) -> None:
    """For every unit, multiple, anchor, zone, week and day of the month."""
    assert rule_of(rule_text("r", written(limit)), name="r").limit == limit


def test_zones_are_known_on_a_machine_that_has_no_database_of_them() -> None:
    """As a slim container is: `tzdata` is installed with this package."""
    program = (
        "from apportion.core.periods import Calendar, Unit; from apportion.core.time_zones import zone_problem; "
        "print(zone_problem('Europe/Berlin'), Calendar(1, Unit.DAY, 'Europe/Berlin').period(1774746000).name)"
    )
    bare = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert bare.stdout == "None 2026-03-28T23Z/day\n"


names = st.text(st.sampled_from("ab-2/Zday\x00\x02"), min_size=0, max_size=6)
quotas = st.tuples(names, names, st.lists(names, max_size=2).map(tuple))
calendars = st.tuples(st.sampled_from(CALENDARS), st.sampled_from(ZONES))
instants = st.integers(1_704_067_200, 1_956_528_000)  # 2024 to 2032


@given(st.lists(st.tuples(quotas, calendars, instants), min_size=2, max_size=6))
def test_no_two_of_rule_key_period_and_unit_share_a_store_key(
    many: list[tuple[tuple[str, str, tuple[str, ...]], tuple[tuple[Unit, int], str], int]],
) -> None:
    """Not with periods that start together, nor with names and values that look like parts of a key."""
    found: dict[bytes, object] = {}
    for (domain, rule, key), ((unit, multiple), zone), instant in product_of(many):
        quota = encode_quota(domain, rule, encode_key(key))
        period = Calendar(multiple, unit, zone).period(instant)
        what = (domain, rule, key, period.start_s, unit_text(multiple, unit))
        assert found.setdefault(encode_period(quota, period.name), what) == what
        for values in (key, (*key, period.name)):  # a caller may send what looks like a period
            quota = encode_quota(domain, rule, encode_key(values))
            assert found.setdefault(quota, (domain, rule, values)) == (domain, rule, values)


def product_of(
    many: list[tuple[tuple[str, str, tuple[str, ...]], tuple[tuple[Unit, int], str], int]],
) -> list[tuple[tuple[str, str, tuple[str, ...]], tuple[tuple[Unit, int], str], int]]:
    """Each quota with each calendar at each instant."""
    several, calendars_of, times = zip(*many, strict=True)
    return list(product(several, calendars_of, times))
