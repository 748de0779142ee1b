"""Reading a `limit` that is a quota: an allowance, its period, and when periods begin (design 4.2). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from apportion.core.document import Scalar
from apportion.core.limit import PeriodAnchor, PeriodLimit
from apportion.core.periods import HOUR_S, MULTIPLES, Unit, unit_text
from apportion.core.quantities import parse_quota, shown
from apportion.core.rule import Enforce
from apportion.core.rule_fields import Section
from apportion.core.rules_vocabulary import HOW_TO_CHOOSE_ANCHOR, unknown
from apportion.core.time_zones import zone_problem

FROM_TENANT = "from_tenant"
"""In the place of a zone or a day of the month: what `tenants` say, else the file."""

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

CALENDAR_FIELDS = ("time_zone", "week_starts_on", "month_starts_on")
"""What says when calendar periods begin."""

QUOTA_FIELDS = ("anchor", *CALENDAR_FIELDS, "audit_periods")
"""What belongs to a quota and to no other limit."""

_FIXED_INSTEAD = {Unit.MONTH: "30day", Unit.YEAR: "365day"}
"""What a rolling period can be in the place of one whose length the calendar decides."""


@dataclass(frozen=True, slots=True)
class _Begins:
    """When periods begin, as the fields say it."""

    zone: str = "UTC"
    week_starts_on: int = 0
    month_starts_on: int = 1
    zone_from_tenant: bool = False
    month_from_tenant: bool = False


def read_quota(limit: Section, enforce: Enforce | None, zone: str) -> PeriodLimit | None:
    """The limit that `quota` and the fields beside it describe, or None when it was reported. `zone`: the file's."""
    before = len(limit.problems)
    quota = limit.parsed("quota", "an allowance such as 1_000/day", parse_quota)
    for other in ("rate", "burst"):
        if limit.has(other):
            limit.refuse(other, f"contradicts `quota`: an allowance may be used at any pace; leave `{other}` out")
    if quota is None:
        return None
    units, multiple, word = quota
    unit = Unit(word)
    anchor = _read_anchor(limit, multiple, unit)
    _check_enforce(limit, enforce, anchor)
    begins = _read_begins(limit, anchor, unit, zone)
    audit_periods = limit.boolean("audit_periods") or False
    if len(limit.problems) > before or anchor is None:
        return None
    return PeriodLimit(
        units,
        multiple,
        unit,
        anchor,
        begins.zone,
        begins.week_starts_on,
        begins.month_starts_on,
        begins.zone_from_tenant,
        begins.month_from_tenant,
        audit_periods,
    )


def _read_anchor(limit: Section, multiple: int, unit: Unit) -> PeriodAnchor | None:
    """When periods begin; only where they are short is there a default, as nobody has to know then."""
    fixed = unit.fixed_s
    if not limit.has("anchor"):
        if fixed is None or multiple * fixed >= HOUR_S:
            limit.refuse("anchor", HOW_TO_CHOOSE_ANCHOR)
            return None
        anchor = PeriodAnchor.CALENDAR
    else:
        word = limit.text("anchor", "`calendar`, `first_use` or `rolling`")
        known = {each.value: each for each in PeriodAnchor}
        if word is None:
            return None
        if word not in known:
            limit.refuse("anchor", unknown(word, tuple(known)))
            return None
        anchor = known[word]
    if anchor is PeriodAnchor.ROLLING and fixed is None:
        limit.refuse(
            "anchor",
            f"found `rolling` with a {unit.value}, which has no fixed length; write {_FIXED_INSTEAD[unit]}, or another "
            "anchor",
        )
        return None
    if anchor is PeriodAnchor.CALENDAR and MULTIPLES[unit] % multiple:
        most = MULTIPLES[unit]
        known_multiples = ", ".join(unit_text(each, unit) for each in range(1, most + 1) if most % each == 0)
        limit.refuse(
            "quota",
            f"found the period `{unit_text(multiple, unit)}`, which does not divide the next unit of the calendar; "
            f"write {known_multiples}, or `anchor: first_use` or `rolling`",
        )
        return None
    return anchor


def _check_enforce(limit: Section, enforce: Enforce | None, anchor: PeriodAnchor | None) -> None:
    if enforce in {Enforce.EDGE, Enforce.EDGE_REGION}:
        limit.refuse(
            "quota",
            f"is counted exactly, and `enforce: {enforce.value}` is for rates; write `region`, or `lease` where no "
            "request should cross",
        )
    elif enforce is Enforce.LEASE and anchor is not None and anchor is not PeriodAnchor.CALENDAR:
        limit.refuse(
            "anchor",
            f"found `{anchor.value}` with `enforce: lease`, which lends from calendar periods only; write `region`",
        )


def _read_begins(limit: Section, anchor: PeriodAnchor | None, unit: Unit, zone: str) -> _Begins:
    """The fields of the calendar, each only where it means something."""
    if anchor is None:
        return _Begins()
    if anchor is not PeriodAnchor.CALENDAR:
        for field in CALENDAR_FIELDS:
            if limit.has(field):
                limit.refuse(field, f"belongs to `anchor: calendar`; with `{anchor.value}` no clock decides")
        return _Begins()
    if limit.has("week_starts_on") and unit is not Unit.WEEK:
        limit.refuse("week_starts_on", "belongs to a quota per week")
    if limit.has("month_starts_on") and unit not in {Unit.MONTH, Unit.YEAR}:
        limit.refuse("month_starts_on", "belongs to a quota per month or year")
    own_zone, zone_from_tenant = _read_zone(limit)
    day, month_from_tenant = _read_month_day(limit)
    return _Begins(own_zone or zone, _read_weekday(limit), day, zone_from_tenant, month_from_tenant)


def _read_zone(limit: Section) -> tuple[str | None, bool]:
    zone = limit.text("time_zone", f"a time zone such as Europe/Berlin, or {FROM_TENANT},")
    if zone is None or zone == FROM_TENANT:
        return None, zone is not None
    if wrong := zone_problem(zone):
        limit.refuse("time_zone", wrong)
    return zone, False


def _read_weekday(limit: Section) -> int:
    word = limit.text("week_starts_on", "a day such as monday")
    if word is None:
        return 0
    if word.lower() not in WEEKDAYS:
        limit.refuse("week_starts_on", unknown(word, WEEKDAYS))
        return 0
    return WEEKDAYS.index(word.lower())


def _read_month_day(limit: Section) -> tuple[int, bool]:
    node = limit.node("month_starts_on")
    if not isinstance(node, Scalar) or node.text.isdecimal():
        return limit.count("month_starts_on", 1, 31) or 1, False
    if node.text != FROM_TENANT:
        limit.refuse("month_starts_on", f"found {shown(node.text)}, a day from 1 to 31, or {FROM_TENANT}, is meant")
    return 1, node.text == FROM_TENANT
