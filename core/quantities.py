"""Numbers, rates and durations as the rules file writes them: `5_000_000`, `10/s`, `10/5min`, `100ms`.

Text in, integers out, and back again for messages. A ValueError's text is a sentence for a person: what was found and
what is right. Units are whole, time is nanoseconds. Where the text stood is the caller's business.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from apportion.core.limit import BACKLOG_MAX, EPOCH_NS

PERIODS_NS = {
    "s": EPOCH_NS,
    "min": 60 * EPOCH_NS,
    "hour": 3600 * EPOCH_NS,
    "day": 86_400 * EPOCH_NS,
    "week": 7 * 86_400 * EPOCH_NS,
}
"""Words for periods of a fixed length; only these can be the period of a rate."""

CALENDAR_PERIODS = ("month", "year")
"""Words for periods whose length the calendar decides; a quota may have them."""

DURATIONS_NS = {
    "ms": 1_000_000,
    "s": EPOCH_NS,
    "m": 60 * EPOCH_NS,
    "h": 3600 * EPOCH_NS,
    "d": 86_400 * EPOCH_NS,
}

PERIOD_NS_MAX = 366 * 86_400 * EPOCH_NS
"""A longer period would leave less than one unit of burst exact, and nobody would live to see it kept."""

QUOTA_PERIODS_NS = {**PERIODS_NS, "month": 30 * PERIODS_NS["day"], "year": 365 * PERIODS_NS["day"]}
"""Words for periods of a quota; those of the calendar with about their length, to compare."""

ALLOWANCE_MAX = BACKLOG_MAX - 1
"""The largest allowance, since a store's scripts count in doubles."""

UNITS_PER_SECOND_MAX = (BACKLOG_MAX - 1) // 1_000_000
"""9,007,199,254: the largest rate whose burst can be a whole second's worth and stay exact (design 4.2)."""

NUMBER_MAX = 2**64 - 1
"""The largest number the wire can carry."""

SHOWN_MAX = 60
"""Characters of a found text that a message repeats; the rest helps nobody."""

_COUNT = re.compile(r"[0-9]+(?:_[0-9]+)*")
_PERIOD = re.compile(r"([0-9_]*)([^0-9_\s]+)")
_DURATION = re.compile(r"([0-9_]+)([a-z]+)")
_DECIMAL = re.compile(r"[-+]?[0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?")
_NEGATIVE = re.compile(r"-[0-9_]+")

# What people write instead; a near miss of one of these is a near miss of the word it stands for.
_PERIOD_SYNONYMS = {
    **dict.fromkeys(("sec", "secs", "second", "seconds", "ms"), "s"),
    **dict.fromkeys(("mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("h", "hr", "hrs", "hours"), "hour"),
    **dict.fromkeys(("d", "days"), "day"),
    **dict.fromkeys(("w", "weeks"), "week"),
    **dict.fromkeys(("mon", "months"), "month"),
    **dict.fromkeys(("y", "yr", "years"), "year"),
}


def shown(text: str) -> str:
    """A text as a message repeats it: in backquotes, printable, cut to a bearable length."""
    cut = text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + "..."
    return "`" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "`"


def parse_count(text: str) -> int:
    """A whole number of at least 0; underscores may group its digits. At most NUMBER_MAX."""
    if _NEGATIVE.fullmatch(text):
        raise ValueError(f"found {shown(text)}, which is negative; a whole number of at least 0 is meant")
    if _DECIMAL.fullmatch(text) and text not in {".", "-.", "+."}:
        raise ValueError(f"found {shown(text)}, which is not whole; units are whole numbers, such as 10")
    if not _COUNT.fullmatch(text):
        raise ValueError(f"found {shown(text)}, a whole number is meant, such as 10 or 5_000_000")
    digits = text.replace("_", "")
    if len(digits) > 1 and digits[0] == "0":
        raise ValueError(f"found {shown(text)}; a number with a 0 in front may be octal, write it without")
    if len(digits) > len(str(NUMBER_MAX)) or int(digits) > NUMBER_MAX:
        raise ValueError(f"found {shown(text)}, the largest number is {NUMBER_MAX}")
    return int(digits)


def parse_rate(text: str) -> tuple[int, int]:
    """`10/s`, `10/5min`: whole units, and the length of the period in nanoseconds."""
    amount, slash, period = text.partition("/")
    if not slash:
        # `10`, `-5`, `10.5`: say what is wrong with the number itself, then that the period is missing.
        parse_count(text)
        raise ValueError(
            f"found {shown(text)} without a unit; write a number per period, such as {text}/s or {text}/5min"
        )
    units = parse_count(amount)
    if not period:
        raise ValueError(f"found {shown(text)}, which ends where the unit should stand, such as {amount}/s")
    multiple, word = _parse_period(amount, period)
    if word in CALENDAR_PERIODS:
        raise ValueError(
            f"found the unit `{word}`: a rate needs a period of fixed length ({', '.join(PERIODS_NS)}), and a {word} "
            f"has none; an allowance per {word} is `quota: {text}` with an `anchor`"
        )
    period_ns = multiple * PERIODS_NS[word]
    if period_ns > PERIOD_NS_MAX:
        raise ValueError(f"found the period {shown(period)}, the longest is {PERIOD_NS_MAX // PERIODS_NS['day']}day")
    if units * EPOCH_NS > UNITS_PER_SECOND_MAX * period_ns:
        raise ValueError(f"found {shown(text)}, the highest rate is {UNITS_PER_SECOND_MAX} units a second")
    return units, period_ns


def parse_quota(text: str) -> tuple[int, int, str]:
    """`1_000_000/day`, `50/6hour`: whole units, and a multiple of a unit of time, which may be a month or a year."""
    amount, slash, period = text.partition("/")
    if not slash:
        parse_count(text)
        raise ValueError(f"found {shown(text)} without a unit; write an allowance per period, such as {text}/day")
    units = parse_count(amount)
    if units > ALLOWANCE_MAX:
        raise ValueError(f"found {shown(text)}, the largest allowance is {ALLOWANCE_MAX}")
    if not period:
        raise ValueError(f"found {shown(text)}, which ends where the unit should stand, such as {amount}/day")
    multiple, word = _parse_period(amount, period)
    if multiple * QUOTA_PERIODS_NS[word] > PERIOD_NS_MAX:
        raise ValueError(f"found the period {shown(period)}, the longest is a year")
    return units, multiple, word


def _parse_period(amount: str, period: str) -> tuple[int, str]:
    """A multiple, at least 1, and the word of a unit."""
    parts = _PERIOD.fullmatch(period)
    if not parts:
        raise ValueError(f"found the period {shown(period)}; write a unit, or a multiple of one: s, min, hour, 5min")
    multiple_text, word = parts.groups()
    if word == "m":
        raise ValueError(
            f"found the unit `m`, which could be `min` (a minute) or `month`; write {amount}/{multiple_text}min "
            f"or {amount}/{multiple_text}month"
        )
    if word not in QUOTA_PERIODS_NS:
        raise ValueError(f"found the unit {shown(word)}, {_nearest_period(word)}")
    multiple = parse_count(multiple_text) if multiple_text else 1
    if multiple == 0:
        raise ValueError(f"found the period {shown(period)}, which has no length; write at least 1{word}")
    return multiple, word


def _nearest_period(word: str) -> str:
    units = (*PERIODS_NS, *CALENDAR_PERIODS)
    close = get_close_matches(word.lower(), (*units, *_PERIOD_SYNONYMS), n=1)
    known = f"known units are {', '.join(units)}"
    if not close:
        return known
    return f"did you mean `{_PERIOD_SYNONYMS.get(close[0], close[0])}`? {known}"


def parse_duration(text: str) -> int:
    """`100ms`, `5s`, `3m`, `1h`, `2d`: nanoseconds, above 0."""
    parts = _DURATION.fullmatch(text)
    if not parts or parts.group(2) not in DURATIONS_NS:
        raise ValueError(
            f"found {shown(text)}, a duration is meant: a whole number and one of ms, s, m, h, d, such as 100ms"
        )
    duration_ns = parse_count(parts.group(1)) * DURATIONS_NS[parts.group(2)]
    if duration_ns == 0:
        raise ValueError(f"found {shown(text)}, a duration is longer than nothing")
    return duration_ns


def parse_percent(text: str) -> int:
    """A percentage such as `10%` or `2.5%`, in hundredths of a percent. ValueError says what is wrong."""
    whole, _, rest = text.removesuffix("%").partition(".")
    digits = whole + rest
    if not text.endswith("%") or not whole or not digits.isdecimal() or not digits.isascii() or len(rest) > 2:
        raise ValueError(f"found {shown(text)}, a percentage with at most two decimals is meant, such as 10% or 2.5%")
    if len(whole) > 9 or (text.removesuffix("%").endswith(".")):
        raise ValueError(f"found {shown(text)}, which is no percentage that anybody means; write one such as 10%")
    return int(whole) * 100 + int(rest.ljust(2, "0"))


def period_text(period_ns: int) -> str:
    """A period as the rules file writes it: `s`, `5min`, `week`."""
    for word, length_ns in reversed(PERIODS_NS.items()):
        if period_ns % length_ns == 0:
            multiple = period_ns // length_ns
            return word if multiple == 1 else f"{multiple}{word}"
    return f"{period_ns}ns"


def duration_text(duration_ns: int) -> str:
    """A duration as the rules file writes it, in the largest unit that is whole: `100ms`, `2m`."""
    for word, length_ns in reversed(DURATIONS_NS.items()):
        if duration_ns % length_ns == 0:
            return f"{duration_ns // length_ns}{word}"
    return f"{duration_ns}ns"
