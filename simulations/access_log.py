"""Lines of an access log as requests: nginx's and Apache's combined format, or CSV with a header. Pure.

A line that cannot be read raises LineError, whatever is in it; what a reader does then is `log_reader`'s.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import NamedTuple

from apportion.core.errors import InputError
from apportion.core.request import COST_MAX
from apportion.core.rules_vocabulary import nearest

SECOND = 1_000_000_000

COMBINED = ("address", "user", "time", "method", "path", "status", "bytes", "referer", "agent")
"""What a line of the combined format has; `path` is without the query. The common format lacks the last two."""

ADDRESSES = ("address", "client", "client_ip", "ip", "remote_addr")
"""Columns of a CSV file that are taken for the client's address, the first of them that it has."""

GOOD_LINES = (
    '`203.0.113.7 - - [10/Oct/2026:13:55:36 +0000] "GET /search?q=1 HTTP/1.1" 200 2326` (nginx, Apache), or a CSV file '
    "whose first line is `time,location,key,cost` (all but `time` may be missing) and the others like "
    "`2026-10-10T13:55:36.123Z,paris,contoso,1`"
)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LINE = re.compile(
    r"(\S+) (\S+) (.*?) ?\[([^\]]{20,30})\] "
    r'"((?:[^"\\]|\\.)*)" ([0-9]{3}) ([0-9]+|-)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'
)
_CLOCK = re.compile(
    r"([0-9]{1,2})/([A-Z][a-z]{2})/([0-9]{4}):([0-9]{2}):([0-9]{2}):([0-9]{2}) ([+-])([0-9]{2})([0-9]{2})"
)
_NUMBER = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,9}))?")
_SINCE_1970 = datetime(1970, 1, 1, tzinfo=UTC)


class LineError(ValueError):
    """A line is not one of a log; says what was found and what is meant."""


class Entry(NamedTuple):
    """One request: nanoseconds since 1970 (`whole`: the log says whole seconds only), where, which key, what cost.

    `location`: what it is divided over locations by, None where the log has nothing to divide by.
    """

    at_ns: int
    whole: bool
    location: str | None
    key: str
    cost: int


class Format(NamedTuple):
    """How the lines of one log are read. `by_column`: `location` is a location's name, else an address to be hashed."""

    name: str
    parse: Callable[[str], Entry]
    by_column: bool
    has_header: bool


def format_of(first: str, location_from: str | None, key_from: str | None) -> Format:
    """The format of a log by its first line. InputError: a column that is asked for, or `time`, is not there."""
    columns = _header(first)
    if columns is None:
        for flag, name in (("--location-from", location_from), ("--key-from", key_from)):
            if name is not None and name not in COMBINED:
                raise InputError(f"{flag}: found {name!r}, {nearest(name, COMBINED)}")
        return Format("combined", _combined(location_from, key_from), location_from is not None, has_header=False)
    if "time" not in columns:
        raise InputError(f"the header {first.strip()[:200]!r} has no column `time`, which is needed; name it so")
    for flag, name in (("--location-from", location_from), ("--key-from", key_from)):
        if name is not None and name not in columns:
            raise InputError(f"{flag}: found {name!r}, {nearest(name, tuple(columns))}")
    place = location_from or ("location" if "location" in columns else None)
    address = next((name for name in ADDRESSES if name in columns), None)
    parse = _rows(columns, place or address, key_from or ("key" if "key" in columns else None))
    return Format("CSV", parse, place is not None, has_header=True)


def _header(line: str) -> list[str] | None:
    """The columns of a CSV header, or None when the line is none."""
    if "[" in line or '"' in line or not re.search("[a-zA-Z]", line):
        return None
    columns = [name.strip().lower() for name in line.removeprefix("\ufeff").split(",")]
    return (
        columns if "time" in columns or (len(columns) > 1 and all(re.fullmatch(r"\w+", n) for n in columns)) else None
    )


# --- the combined format


def _combined(location_from: str | None, key_from: str | None) -> Callable[[str], Entry]:
    place = location_from or "address"

    def parse(line: str) -> Entry:
        parts = _LINE.match(line)
        if parts is None:
            raise LineError("is not of the combined format")
        at_ns = clock_ns(parts[4])
        return Entry(at_ns, True, _field(parts, place), _field(parts, key_from) if key_from else "", 1)

    return parse


def _field(parts: re.Match[str], name: str) -> str:
    match name:
        case "address":
            return parts[1]
        case "user":
            return parts[3]
        case "time":
            return parts[4]
        case "method":
            return parts[5].partition(" ")[0]
        case "path":
            return parts[5].partition(" ")[2].rpartition(" ")[0].partition("?")[0]
        case "status":
            return parts[6]
        case "bytes":
            return parts[7]
        case "referer":
            return parts[8] or ""
        case _:
            return parts[9] or ""


@lru_cache(4096)
def clock_ns(text: str) -> int:
    """`10/Oct/2026:13:55:36 -0700` as nanoseconds since 1970. LineError: it is no such time."""
    parts = _CLOCK.fullmatch(text)
    if parts is None or parts[2] not in _MONTHS:
        raise LineError(f"has the time {text[:40]!r}; 10/Oct/2026:13:55:36 +0000 is meant")
    try:
        east = timedelta(hours=int(parts[8]), minutes=int(parts[9]))
        zone = timezone(-east if parts[7] == "-" else east)
        numbers = (
            int(parts[3]),
            _MONTHS.index(parts[2]) + 1,
            int(parts[1]),
            int(parts[4]),
            int(parts[5]),
            int(parts[6]),
        )
        return _since_1970_ns(datetime(*numbers, tzinfo=zone))
    except ValueError as error:
        raise LineError(f"has the time {text[:40]!r}: {error}") from None


# --- CSV


def _rows(columns: Sequence[str], place: str | None, key: str | None) -> Callable[[str], Entry]:
    def column(name: str | None) -> int | None:
        return columns.index(name) if name is not None and name in columns else None

    time_at, place_at, key_at, cost_at = column("time"), column(place), column(key), column("cost")
    assert time_at is not None

    def parse(line: str) -> Entry:
        try:
            (cells,) = csv.reader([line])
        except (csv.Error, ValueError):
            raise LineError("is not a line of CSV") from None
        if len(cells) != len(columns):
            raise LineError(f"has {len(cells)} columns, the header has {len(columns)}")
        at_ns, whole = time_ns(cells[time_at].strip())
        location = cells[place_at].strip() if place_at is not None else None
        name = cells[key_at].strip() if key_at is not None else ""
        return Entry(at_ns, whole, location, name, _cost(cells[cost_at].strip()) if cost_at is not None else 1)

    return parse


def time_ns(text: str) -> tuple[int, bool]:
    """A time as nanoseconds since 1970, and whether it says whole seconds only. LineError: it is none.

    Seconds, milliseconds, microseconds or nanoseconds since 1970 (told apart by their size), ISO 8601 (UTC unless it
    says), or as in the combined format.
    """
    number = _NUMBER.fullmatch(text)
    if number is not None:
        units = int(number[1])
        unit_ns = next(SECOND // 1000**step for step in range(4) if step == 3 or units < 10 ** (11 + 3 * step))
        fraction = int((number[2] or "0").ljust(9, "0")) * unit_ns // SECOND
        return units * unit_ns + fraction, unit_ns == SECOND and number[2] is None
    if "/" in text:
        return clock_ns(text), True
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return _since_1970_ns(found), "." not in text and "," not in text
    except (ValueError, OverflowError):
        raise LineError(
            f"has the time {text[:40]!r}; 2026-10-10T13:55:36.123Z, or seconds since 1970, is meant"
        ) from None


def _cost(text: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text) or int(text) > COST_MAX:
        raise LineError(f"has the cost {text[:40]!r}; a whole number up to {COST_MAX} is meant")
    return int(text)


def _since_1970_ns(when: datetime) -> int:
    return (when - _SINCE_1970) // timedelta(microseconds=1) * 1000
