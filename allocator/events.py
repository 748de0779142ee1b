"""What happens to an allocator, and what it wants done: the border between its pure core and the shell around it.

`link` numbers one connection to one region replica and is never used again for another. Instants are nanoseconds of one
monotonic clock. Commands are performed in the order given.
"""

from __future__ import annotations

from collections.abc import Mapping

from apportion.core.allocator_messages import FromAllocator, ToAllocator
from apportion.core.value import value


@value
class Connected:
    """A link is open; nothing was said on it yet."""

    link: int


@value
class Received:
    """A message came in on a link."""

    link: int
    message: ToAllocator


@value
class Lost:
    """A link is gone, for whatever reason; what was sent on it may or may not have arrived."""

    link: int


@value
class Polled:
    """Time passed."""


Input = Connected | Received | Lost | Polled


@value
class Send:
    """Send on that link."""

    link: int
    message: FromAllocator


@value
class Event:
    """Something to log: its name in the past tense, level "debug", "info", "warning" or "error", and its fields."""

    name: str
    fields: Mapping[str, object]
    level: str = "info"


Command = Send | Event
