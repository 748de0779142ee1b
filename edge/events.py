"""What happens to an edge's agent, and what it wants done: the border between its pure core and the shell around it.

Every instant is the edge's own monotonic clock (CLOCK_BOOTTIME where there is one). Commands are performed in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from apportion.core.decision import Decision, Verdict
from apportion.core.messages import FromEdge, ToEdge


@dataclass(frozen=True, slots=True)
class Connected:
    """A fresh stream to a region replica is open; nothing was sent on it yet."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message came in on the present stream."""

    message: ToEdge


@dataclass(frozen=True, slots=True)
class Lost:
    """The present stream ended; what was under way on it has an unknown outcome."""


@dataclass(frozen=True, slots=True)
class Polled:
    """Time passed."""


Event = Connected | Received | Lost | Polled


@dataclass(frozen=True, slots=True)
class Send:
    """Send on the present stream."""

    message: FromEdge


@dataclass(frozen=True, slots=True)
class Settled:
    """The request that got this ticket number has its decision."""

    ticket: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class Shadowed:
    """What a shadow rule says that was PENDING in the decision on its request, which did not wait for it."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Give up the present stream, if any, and open another: to the next replica, after the usual pause."""

    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something to log: `event` in the past tense, `level` "info", "warning" or "error"."""

    level: str
    event: str
    fields: tuple[tuple[str, object], ...] = ()


Command = Send | Settled | Shadowed | Reconnect | Note
