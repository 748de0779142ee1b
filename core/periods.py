"""Calendar periods: which one an instant belongs to, in a zone, and the name a store files it under. Pure.

Periods of one `Calendar` tile time: each begins where the one before it ends, whatever clocks do in the zone. A day, a
week, a month and a period of more than an hour begin at the first instant whose local time is not before their own
beginning, so a day has 23 or 25 hours where clocks change. Shorter ones begin whenever the local clock shows their
beginning: an hour that the clocks repeat is two hours.

Instants are whole seconds since 1970 UTC, as zones change at whole seconds. Nothing here knows the host's zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import Enum
from functools import lru_cache
from zoneinfo import ZoneInfo

HOUR_S = 3600
DAY_S = 86_400
MONTHS_A_YEAR = 12


class Unit(Enum):
    """Units of periods; the value is the word of the rules file."""

    SECOND = "s"
    MINUTE = "min"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def fixed_s(self) -> int | None:
        """Seconds of a unit of fixed length; None for months and years."""
        return _FIXED_S.get(self)

    @property
    def word(self) -> str:
        """The unit in full, for sentences: `minute`."""
        return {Unit.SECOND: "second", Unit.MINUTE: "minute"}.get(self, self.value)


_FIXED_S = {
    Unit.SECOND: 1,
    Unit.MINUTE: 60,
    Unit.HOUR: HOUR_S,
    Unit.DAY: DAY_S,
    Unit.WEEK: 7 * DAY_S,
}

MULTIPLES = {Unit.SECOND: 60, Unit.MINUTE: 60, Unit.HOUR: 24, Unit.DAY: 1, Unit.WEEK: 1, Unit.MONTH: 12, Unit.YEAR: 1}
"""A calendar period is a multiple of its unit that divides this: so many of it make the next unit. Days and weeks do
not make whole months.
"""


@dataclass(frozen=True, slots=True)
class Period:
    """From `start_s` until before `end_s`; `name` is unlike that of any other start, unit or multiple."""

    start_s: int
    end_s: int
    name: str

    def __contains__(self, instant_s: int) -> bool:
        return self.start_s <= instant_s < self.end_s


@dataclass(frozen=True, slots=True)
class Calendar:
    """Periods of `multiple` units by the clock of `zone`. Weeks start on `week_starts_on` (0 is Monday), months and
    years on day `month_starts_on` of a month, or on its last day where it has none so late.
    """

    multiple: int
    unit: Unit
    zone: str = "UTC"
    week_starts_on: int = 0
    month_starts_on: int = 1

    def __post_init__(self) -> None:
        if self.multiple < 1 or MULTIPLES[self.unit] % self.multiple:
            raise ValueError(f"{self.multiple} does not divide {MULTIPLES[self.unit]}")
        if not 0 <= self.week_starts_on < 7 or not 1 <= self.month_starts_on <= 31:
            raise ValueError("a week starts on 0 to 6, a month on 1 to 31")

    def period(self, instant_s: int) -> Period:
        """The period that the instant belongs to."""
        fixed = self.unit.fixed_s
        if fixed is not None and self.multiple * fixed <= HOUR_S:
            start, end = _short(self.multiple * fixed, self.zone, instant_s)
        else:
            start, end = _long(self._floor, self._next, self.zone, instant_s)
        return Period(start, end, period_name(start, self.multiple, self.unit))

    def _floor(self, local: datetime) -> datetime:
        """The latest local beginning that is not after `local`."""
        midnight = local.replace(hour=0, minute=0, second=0)
        match self.unit:
            case Unit.SECOND | Unit.MINUTE | Unit.HOUR:
                return midnight + timedelta(hours=local.hour // self.multiple * self.multiple)
            case Unit.DAY:
                return midnight
            case Unit.WEEK:
                return midnight - timedelta(days=(local.weekday() - self.week_starts_on) % 7)
        months = local.year * MONTHS_A_YEAR + local.month - 1
        if local.day < _first_day(months, self.month_starts_on).day:
            months -= 1
        return self._month(months // self._months * self._months)

    def _next(self, beginning: datetime) -> datetime:
        """The local beginning after the one at `beginning`."""
        match self.unit:
            case Unit.SECOND | Unit.MINUTE | Unit.HOUR:
                return beginning + timedelta(hours=self.multiple)
            case Unit.DAY:
                return beginning + timedelta(days=1)
            case Unit.WEEK:
                return beginning + timedelta(days=7)
        return self._month(beginning.year * MONTHS_A_YEAR + beginning.month - 1 + self._months)

    @property
    def _months(self) -> int:
        return self.multiple * (MONTHS_A_YEAR if self.unit is Unit.YEAR else 1)

    def _month(self, months: int) -> datetime:
        first = _first_day(months, self.month_starts_on)
        return datetime.combine(first, time())


def after(multiple: int, unit: Unit, start_s: int) -> int:
    """The instant `multiple` units after `start_s`: for months and years the same day and time of UTC, or the last day
    of a month that has none so late.
    """
    fixed = unit.fixed_s
    if fixed is not None:
        return start_s + multiple * fixed
    start = datetime.fromtimestamp(start_s, UTC)
    months = start.year * MONTHS_A_YEAR + start.month - 1 + multiple * (MONTHS_A_YEAR if unit is Unit.YEAR else 1)
    day = _first_day(months, start.day)
    return int(start.replace(year=day.year, month=day.month, day=day.day).timestamp())


def period_name(start_s: int, multiple: int, unit: Unit) -> str:
    """`2026-10-25T00Z/hour`, `2026-10-25T00:15Z/15min`: the start in UTC, since a local one repeats where clocks go
    back, with the unit, since a day and a month may start together.
    """
    start = datetime.fromtimestamp(start_s, UTC)
    exact = "%H:%M:%S" if start.second else "%H:%M" if start.minute else "%H"
    return f"{start:%Y-%m-%dT}{start:{exact}}Z/{unit_text(multiple, unit)}"


def unit_text(multiple: int, unit: Unit) -> str:
    """A period as the rules file writes it: `day`, `6hour`."""
    return unit.value if multiple == 1 else f"{multiple}{unit.value}"


def _first_day(months: int, day: int) -> date:
    """Day `day` of month number `months` (counted from year 0), or its last day."""
    year, month = divmod(months, MONTHS_A_YEAR)
    following = date(year + (month == 11), (month + 1) % MONTHS_A_YEAR + 1, 1)
    return date(year, month + 1, min(day, (following - timedelta(days=1)).day))


# --- zones


@lru_cache(maxsize=1024)
def zone_named(name: str) -> tzinfo:
    """The time zone of that name, which there is."""
    return UTC if name == "UTC" else ZoneInfo(name)


def _offset(zone: tzinfo, instant_s: int) -> int:
    """Seconds that the zone's clock is ahead of UTC."""
    offset = datetime.fromtimestamp(instant_s, zone).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def _change(zone: tzinfo, before_s: int, at_s: int) -> int:
    """The first instant after `before_s` with the offset of `at_s`, where the zone's offset changes once between."""
    offset = _offset(zone, at_s)
    while at_s - before_s > 1:
        middle = (before_s + at_s) // 2
        if _offset(zone, middle) == offset:
            at_s = middle
        else:
            before_s = middle
    return at_s


def _short(length: int, name: str, instant_s: int) -> tuple[int, int]:
    """The period of at most an hour: it begins wherever the local clock shows a multiple of `length`, or passes over
    one.
    """
    zone = zone_named(name)
    offset = _offset(zone, instant_s)
    start = (instant_s + offset) // length * length - offset
    before = _offset(zone, start)
    if before != offset:
        change = _change(zone, start, instant_s)
        start = change if _begins(length, change, before, offset) else (change - 1 + before) // length * length - before
    end = (instant_s + offset) // length * length + length - offset
    later = _offset(zone, end)
    if later != offset:
        change = _change(zone, instant_s, end)
        end = change if _begins(length, change, offset, later) else (change + later) // length * length + length - later
    return start, end


def _begins(length: int, change_s: int, before: int, after: int) -> bool:
    """Whether a period begins where the clock jumps from `before` to `after` ahead of UTC."""
    if (change_s + after) % length == 0:
        return True
    return after > before and (change_s + after) // length > (change_s + before - 1) // length


def _long(
    floor: Callable[[datetime], datetime], following: Callable[[datetime], datetime], name: str, instant_s: int
) -> tuple[int, int]:
    """The period between two local beginnings, each at the first instant that is not before it."""
    zone = zone_named(name)
    beginning = floor(datetime.fromtimestamp(instant_s, zone).replace(tzinfo=None))
    start, end = _first_instant(zone, beginning), _first_instant(zone, following(beginning))
    while end <= instant_s:  # the clock was set back to before a beginning that has been
        beginning = following(beginning)
        start, end = end, _first_instant(zone, following(beginning))
    return start, end


def _first_instant(zone: tzinfo, local: datetime) -> int:
    """The first instant at which the zone's clock shows `local` or later."""
    earlier = int(local.replace(tzinfo=zone, fold=0).timestamp())
    later = int(local.replace(tzinfo=zone, fold=1).timestamp())
    if later < earlier:  # no clock shows it: it was jumped over
        return _change(zone, later - 1, earlier)
    return earlier
