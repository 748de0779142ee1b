"""What the log says of a store that fails: each failure at first, then a line now and then that counts. Pure.

In an outage every report of every edge fails again each second; one line for each would fill the disk, which may be
what the store has run out of.
"""

from __future__ import annotations

AGAIN_NS = 10_000_000_000
"""Between two lines of one operation that goes on failing for the same reason."""


class Trouble:
    """Failures by operation: when the last line was, its reason, and how many failures came after it untold."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str, int]] = {}

    def tell(self, operation: str, reason: str, now_ns: int) -> int | None:
        """Count a failure. Returns how many a line is to tell of, this one included; None: no line now.

        Another reason, and the first failure in AGAIN_NS, are told at once.
        """
        at, known, untold = self._told.get(operation, (now_ns - AGAIN_NS, reason, 0))
        if reason == known and now_ns - at < AGAIN_NS:
            self._told[operation] = at, known, untold + 1
            return None
        self._told[operation] = now_ns, reason, 0
        return untold + 1
