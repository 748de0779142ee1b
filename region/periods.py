"""Quotas of a period for people: which period one is in, why it resets when it does, and which periods closed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from apportion.core.key import encode_key, key_text, split_quota
from apportion.core.limit import EPOCH_NS, PeriodAnchor, PeriodLimit
from apportion.core.messages import Quota
from apportion.core.periods import Unit, zone_named
from apportion.proto.v1 import region_pb2
from apportion.region.events import Note
from apportion.region.store import ChargedPeriod, ClosedPeriod
from apportion.region.versions import Lookup


def period_state(limit: PeriodLimit) -> region_pb2.PeriodState:
    """Which periods a quota has, as a message; which one it is in, `tell_period` adds."""
    zone = limit.zone if limit.anchor is PeriodAnchor.CALENDAR else ""
    return region_pb2.PeriodState(anchor=limit.anchor.value, length=limit.period_text, zone=zone)


def tell_period(
    limit: PeriodLimit, charged: ChargedPeriod, oldest_ns: int, now_ns: int, state: region_pb2.QuotaState
) -> None:
    """Add what is used, in which period, and when and why it resets. `oldest_ns`: until the oldest units leave a window
    that rolls.
    """
    state.used = charged.used
    state.resets_after_ns = charged.reset_ns
    state.reset_reason = reset_reason(limit, charged, oldest_ns, now_ns)
    if limit.anchor is not PeriodAnchor.CALENDAR and not charged.used:
        return
    state.period.start_ns = charged.start_ns
    state.period.end_ns = _end_ns(limit, charged.start_ns, now_ns)


def reset_reason(limit: PeriodLimit, charged: ChargedPeriod, oldest_ns: int, now_ns: int) -> str:
    """Why it resets when it does; instants by the store's clock."""
    length = length_text(limit)
    end_ns = _end_ns(limit, charged.start_ns, now_ns)
    match limit.anchor:
        case PeriodAnchor.CALENDAR:
            return f"resets at {instant_text(end_ns, limit.zone)}, when the calendar {_calendar_text(limit)} ends"
        case PeriodAnchor.FIRST_USE if charged.used:
            began = instant_text(charged.start_ns // EPOCH_NS * EPOCH_NS)
            return f"resets at {instant_text(end_ns)}, {length} after the subject's first call at {began}"
        case PeriodAnchor.FIRST_USE:
            return f"nothing is used: the subject's next call begins its {length}"
        case PeriodAnchor.ROLLING if charged.used:
            oldest = instant_text(now_ns + oldest_ns)
            return f"as what was used leaves the window of {length}; the oldest does at {oldest}"
    return f"nothing was used within the last {length}"


def length_text(limit: PeriodLimit) -> str:
    """The length of a period in words: `24 hours`, `1 month`."""
    multiple, unit = limit.multiple, limit.unit
    if unit is Unit.DAY:
        multiple, unit = 24 * multiple, Unit.HOUR
    return f"{multiple} {unit.word}{'s' if multiple > 1 else ''}"


def instant_text(at_ns: int, zone: str = "UTC") -> str:
    """An instant by the clock of a zone, rounded up to a second: `2026-12-02T00:00 Europe/Berlin`."""
    at = datetime.fromtimestamp(-(-at_ns // EPOCH_NS), zone_named(zone))
    shown = at.replace(tzinfo=None).isoformat(timespec="seconds" if at.second else "minutes")
    return f"{shown} {zone}"


def closed_notes(rules: Lookup, closed: Sequence[ClosedPeriod]) -> list[Note]:
    """The audit events of periods that have ended. The zone is that of the rules in force now; "" where no calendar
    says when periods begin, or there is no such rule any more.
    """
    names = {encode_key(name): name for name in rules.rules} if closed else {}
    return [_closed_note(rules, names, each) for each in closed]


def _closed_note(rules: Lookup, names: dict[bytes, tuple[str, str]], closed: ClosedPeriod) -> Note:
    name, key = split_quota(closed.store_key)
    domain, rule = names.get(name) or key_text(name).rsplit(", ", 1)
    limited = rules.find(Quota(domain, rule, key))
    limit = limited[1] if limited is not None else None
    zone = limit.zone if isinstance(limit, PeriodLimit) and limit.anchor is PeriodAnchor.CALENDAR else ""
    fields = (
        ("domain", domain),
        ("rule", rule),
        ("key", key_text(key)),
        ("start", _utc(closed.start_ns)),
        ("end", _utc(closed.end_ns)),
        ("used", closed.used),
        ("allowance", closed.allowance),
        ("zone", zone),
    )
    return Note("info", "period_closed", fields)


def _end_ns(limit: PeriodLimit, start_ns: int, now_ns: int) -> int:
    match limit.anchor:
        case PeriodAnchor.CALENDAR:
            return limit.calendar.period(start_ns // EPOCH_NS).end_s * EPOCH_NS
        case PeriodAnchor.FIRST_USE:
            return limit.ends_ns(start_ns)
    return now_ns


def _calendar_text(limit: PeriodLimit) -> str:
    return limit.unit.word if limit.multiple == 1 else f"period of {length_text(limit)}"


def _utc(at_ns: int) -> str:
    return datetime.fromtimestamp(at_ns / EPOCH_NS, UTC).isoformat(timespec="seconds")
