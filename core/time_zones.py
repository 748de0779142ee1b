"""Whether a text names a time zone. Pure but for the database of zones: the machine's, else that of `tzdata`."""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import available_timezones

from apportion.core.quantities import shown
from apportion.core.rules_vocabulary import unknown

_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,3}")


_OF_HOST = "localtime"
"""Where systems have it among the zones, it is whatever zone this host is in."""


def zone_problem(zone: str) -> str | None:
    """Why a text is no time zone; None when it is one."""
    if not _ZONE.fullmatch(zone):
        return f"found {shown(zone)}, a time zone such as UTC or Europe/Berlin is meant"
    if zone == _OF_HOST:
        return f"found `{zone}`, another zone on another host; name the one that is meant, such as Europe/Berlin"
    known = _time_zones()
    return unknown(zone, known) if zone not in known else None


@cache
def _time_zones() -> tuple[str, ...]:
    """The names there are."""
    return tuple(sorted(available_timezones()))
