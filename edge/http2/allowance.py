"""How much a peer may send that carries no request: pings, settings, resets, empty frames. Each costs it nothing."""

from __future__ import annotations

from apportion.edge.http2.frames import Code, ConnectionFault

BURST = 2_000.0
"""Such frames at once, beyond what requests earn."""

PER_SECOND = 100.0

PER_REQUEST = 2.0
"""Such frames that come with a request: windows grow, a request is cancelled."""


class Allowance:
    """A bucket of such frames. Time is in seconds and an argument."""

    def __init__(self) -> None:
        self._level = 0.0
        self._at = 0.0

    def spend(self, now: float, frames: float = 1.0) -> None:
        """One more, or as bad as several. ConnectionFault where it is too many."""
        self._level = max(self._level - (now - self._at) * PER_SECOND, 0.0) + frames
        self._at = now
        if self._level > BURST:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "too many frames that carry no request")

    def earn(self) -> None:
        """A request came."""
        self._level -= PER_REQUEST
        if self._level < 0.0:
            self._level = 0.0
