"""What happens to an edge's agent, and what it wants done: the border between its pure core and the shell around it.

Every instant is the edge's own monotonic clock (CLOCK_BOOTTIME where there is one). Commands are performed in order.
"""

from __future__ import annotations

from apportion.core.decision import Decision, Verdict
from apportion.core.messages import FromEdge, ToEdge
from apportion.core.value import value


@value
class Connected:
    """A fresh stream to a region replica is open; nothing was sent on it yet."""


@value
class Received:
    """A message came in on the present stream."""

    message: ToEdge


@value
class Lost:
    """The present stream ended; what was under way on it has an unknown outcome."""


@value
class Polled:
    """Time passed."""


Event = Connected | Received | Lost | Polled


@value
class Send:
    """Send on the present stream."""

    message: FromEdge


@value
class Settled:
    """The request that got this ticket number has its decision."""

    ticket: int
    decision: Decision


@value
class Shadowed:
    """What a shadow rule says that was PENDING in the decision on its request, which did not wait for it."""

    verdict: Verdict


@value
class Reconnect:
    """Give up the present stream, if any, and open another: to the next replica, after the usual pause."""

    reason: str


@value
class Note:
    """Something to log: `event` in the past tense, `level` "info", "warning" or "error"."""

    level: str
    event: str
    fields: tuple[tuple[str, object], ...] = ()


Command = Send | Settled | Shadowed | Reconnect | Note
