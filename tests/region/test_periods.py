"""Quotas of a period in words: which one, and why it resets when it does; and the audit event of one that closed."""

from datetime import UTC, datetime

import pytest

from apportion.core.key import encode_key, encode_quota, split_quota
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.core.periods import Unit
from apportion.core.rules_file import parse_rules
from apportion.proto.v1 import region_pb2
from apportion.region.periods import closed_notes, length_text, period_state, reset_reason, tell_period
from apportion.region.store import ChargedPeriod, ClosedPeriod
from apportion.region.versions import Lookup

DOMAIN = "d" * 100
"""Longer than a key keeps literally."""

RULES = f"""
version: 1
domain: {DOMAIN}
rules:
  - {{name: daily, match: {{tenant: "*"}}, key: [tenant], enforce: region, when_unavailable: [deny],
     limit: {{quota: 10/day, anchor: calendar, time_zone: Europe/Berlin, audit_periods: true}}}}
  - {{name: own, match: {{user: "*"}}, key: [user], enforce: region, when_unavailable: [deny],
     limit: {{quota: 10/day, anchor: first_use, audit_periods: true}}}}
"""


def at(text: str) -> int:
    """An instant of UTC."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * EPOCH_NS


NOON = at("2026-12-01T12:00")


def charged(used: int, start_ns: int, reset_ns: int) -> ChargedPeriod:
    """What a store says."""
    return ChargedPeriod(True, used, start_ns, 0, reset_ns, 7)


def limit(anchor: PeriodAnchor, unit: Unit = Unit.DAY, multiple: int = 1, zone: str = "UTC") -> PeriodLimit:
    """Ten in a period."""
    return PeriodLimit(10, multiple, unit, anchor, zone)


CASES = [
    (
        limit(PeriodAnchor.CALENDAR, zone="Europe/Berlin"),
        charged(3, at("2026-11-30T23:00"), 11 * 3600 * EPOCH_NS),
        "resets at 2026-12-02T00:00 Europe/Berlin, when the calendar day ends",
    ),
    (
        limit(PeriodAnchor.CALENDAR, Unit.MONTH),
        charged(3, at("2026-12-01T00:00"), 1),
        "resets at 2027-01-01T00:00 UTC, when the calendar month ends",
    ),
    (
        limit(PeriodAnchor.CALENDAR, Unit.HOUR, 6),
        charged(3, NOON, 1),
        "resets at 2026-12-01T18:00 UTC, when the calendar period of 6 hours ends",
    ),
    (
        limit(PeriodAnchor.FIRST_USE),
        charged(3, at("2026-12-01T09:30:12"), 1),
        "resets at 2026-12-02T09:30:12 UTC, 24 hours after the subject's first call at 2026-12-01T09:30:12 UTC",
    ),
    (
        limit(PeriodAnchor.FIRST_USE),
        charged(0, NOON, 0),
        "nothing is used: the subject's next call begins its 24 hours",
    ),
    (
        limit(PeriodAnchor.ROLLING),
        charged(3, at("2026-11-30T12:00"), 20 * EPOCH_NS),
        "as what was used leaves the window of 24 hours; the oldest does at 2026-12-01T12:00:12 UTC",
    ),
    (limit(PeriodAnchor.ROLLING), charged(0, NOON, 0), "nothing was used within the last 24 hours"),
]


@pytest.mark.parametrize("kind, state, words", CASES)
def test_why_it_resets_is_said_for_each_anchor(kind: PeriodLimit, state: ChargedPeriod, words: str) -> None:
    """At noon; the oldest units of a rolling window leave it in 12 s."""
    assert reset_reason(kind, state, 12 * EPOCH_NS, NOON) == words


def test_the_period_is_told_where_one_has_begun() -> None:
    """A calendar always is in one; a first use begins one; a rolling window reaches back from now."""

    def told(kind: PeriodLimit, state: ChargedPeriod) -> tuple[int | None, int | None]:
        message = region_pb2.QuotaState(period=period_state(kind))
        tell_period(kind, state, 0, NOON, message)
        assert (message.used, message.period.length) == (state.used, "day")
        period = message.period
        return (period.start_ns, period.end_ns) if period.HasField("start_ns") else (None, None)

    day = at("2026-12-01T00:00"), at("2026-12-02T00:00")
    assert told(limit(PeriodAnchor.CALENDAR), charged(0, day[0], 1)) == day
    assert told(limit(PeriodAnchor.FIRST_USE), charged(1, NOON, 1)) == (NOON, at("2026-12-02T12:00"))
    assert told(limit(PeriodAnchor.FIRST_USE), charged(0, NOON, 0)) == (None, None)
    assert told(limit(PeriodAnchor.ROLLING), charged(1, at("2026-11-30T12:00"), 1)) == (at("2026-11-30T12:00"), NOON)


def test_lengths_are_words() -> None:
    """A day is 24 hours: its calendar says otherwise, and is another anchor."""
    lengths = [(Unit.DAY, 2, "48 hours"), (Unit.MINUTE, 1, "1 minute"), (Unit.MONTH, 3, "3 months")]
    assert [length_text(limit(PeriodAnchor.FIRST_USE, unit, count)) for unit, count, _ in lengths] == [
        words for _, _, words in lengths
    ]


def test_one_event_tells_of_each_period_that_closed() -> None:
    """By names and not by digests, with the zone where a calendar decided."""
    lookup = Lookup(parse_rules((("rules.yaml", RULES),)))
    start, end = at("2026-11-29T23:00"), at("2026-11-30T23:00")
    closed = [
        ClosedPeriod(encode_quota(DOMAIN, rule, encode_key((key,))), start, end, 7, 10)
        for rule, key in (("daily", "contoso"), ("own", "ann"))
    ]
    notes = closed_notes(lookup, closed)
    assert [note.event for note in notes] == ["period_closed"] * 2
    assert dict(notes[0].fields) == {
        "domain": DOMAIN,
        "rule": "daily",
        "key": "contoso",
        "start": "2026-11-29T23:00:00+00:00",
        "end": "2026-11-30T23:00:00+00:00",
        "used": 7,
        "allowance": 10,
        "zone": "Europe/Berlin",
    }
    assert [dict(note.fields)["zone"] for note in notes] == ["Europe/Berlin", ""]


def test_a_period_of_a_rule_that_is_gone_is_told_too() -> None:
    """As far as its names can be read from the store's key."""
    closed = ClosedPeriod(encode_quota("api", "old", encode_key(("x",))), NOON, NOON + 1, 1, 10)
    (note,) = closed_notes(Lookup(parse_rules((("rules.yaml", RULES),))), [closed])
    fields = dict(note.fields)
    assert (fields["domain"], fields["rule"], fields["key"], fields["zone"]) == ("api", "old", "x", "")


def test_a_store_key_is_split_where_the_quota_begins() -> None:
    """Whatever the names are."""
    for domain in ("api", "", DOMAIN):
        key = encode_key(("a, b", "x" * 100))
        assert split_quota(encode_quota(domain, "r", key)) == (encode_key((domain, "r")), key)
