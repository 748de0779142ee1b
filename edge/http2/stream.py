"""One request and its answer on a connection."""

from __future__ import annotations

from typing import Any

from apportion.edge.http2.frames import WINDOW
from apportion.edge.http2.headers import Head


class Stream:
    """A stream that is open. `call` is for whoever answers it."""

    __slots__ = (
        "body",
        "call",
        "ended",
        "finished",
        "gone",
        "head",
        "held",
        "id",
        "started",
        "touched",
        "trailers",
        "unsent",
        "window_in",
        "window_out",
    )

    def __init__(self, stream_id: int, head: Head, window_out: int) -> None:
        self.id = stream_id
        self.head = head
        self.body = bytearray()
        """What came and was not taken."""
        self.ended = False
        """The peer sent all it will."""
        self.gone = False
        """It was reset, or its connection ended: nobody waits for an answer."""
        self.call: Any = None
        self.held = 0
        """Bytes of `body` that the connection counts as held."""
        self.touched = False
        """Something came that its answerer has not seen."""
        self.window_in = WINDOW
        self.window_out = window_out
        self.started = False
        """Headers were sent."""
        self.finished = False
        """All of the answer is known."""
        self.unsent = bytearray()
        """What the peer's windows hold back."""
        self.trailers: bytes | None = None
        """What is sent last, where something is held back before it."""
