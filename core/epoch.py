"""Epochs: labels of one second that the region issues and everybody else follows on a clock of their own.

An epoch number crosses the wire only with the time it still lasts; no absolute instant ever does (design 5.2). Known
skew therefore only shifts when a label may be spent, never how much of it.
"""

from __future__ import annotations

from collections import deque

from apportion.core.limit import EPOCH_NS

OFFSETS_KEPT = 30
"""Offsets remembered; the least of them is the one whose message travelled fastest."""


class EpochClock:
    """Maps the region's epochs on a local monotonic clock. Rolls by itself; never goes back; `now_ns` is that clock.

    `epoch` is None until the first message. `known` is the highest epoch ever seen or reached.
    """

    __slots__ = ("_least", "_offsets", "_provisional", "known")

    def __init__(self) -> None:
        self._provisional = False
        self._offsets: deque[int] = deque(maxlen=OFFSETS_KEPT)
        self._least = 0  # of the offsets, kept beside them as every request asks for it
        self.known: int | None = None

    def begin_provisionally(self, now_ns: int) -> None:
        """Count epochs from 1, since nobody is there to say which they are; the first message replaces the mapping."""
        assert self.known is None, "only before the first message"
        self._offsets.append(now_ns - EPOCH_NS)
        self._least = self._offsets[0]
        self._provisional = True

    def provisional_epoch(self, now_ns: int) -> int | None:
        """The epoch now, while it is this clock's own count; None once there was a message, or nothing at all."""
        return self.now(now_ns) if self._provisional else None

    def observe(self, epoch: int, left_ns: int, now_ns: int) -> int:
        """Learn that `epoch` still lasts `left_ns` at the sender; returns the epoch now, which may have jumped
        forward.
        """
        if self._provisional:
            self._offsets.clear()
            self._provisional = False
        # Start of epoch 0 on the local clock, too late by what the message took to arrive: hence the least of many.
        self._offsets.append(now_ns + left_ns - (epoch + 1) * EPOCH_NS)
        self._least = min(self._offsets)
        current = self.now(now_ns)
        assert current is not None
        self.known = max(current, epoch)
        return self.known

    def now(self, now_ns: int) -> int | None:
        """The epoch at `now_ns`, None before the first message; never less than what was returned before."""
        if not self._offsets:
            return self.known
        by_clock = (now_ns - self._least) // EPOCH_NS
        if self.known is None or by_clock > self.known:
            self.known = by_clock
        return self.known

    def start_ns(self, epoch: int) -> int:
        """Local instant at which `epoch` starts by the mapping; call only after the first message."""
        return self._least + epoch * EPOCH_NS

    def left_ns(self, now_ns: int) -> int:
        """Nanoseconds that the present epoch still lasts by the mapping, between 0 and a second."""
        current = self.now(now_ns)
        assert current is not None
        return min(max(self.start_ns(current + 1) - now_ns, 0), EPOCH_NS)

    def error_ns(self) -> int:
        """Spread of the remembered offsets: the error that the mapping would have had with the worst of them."""
        return max(self._offsets) - min(self._offsets) if self._offsets else 0
