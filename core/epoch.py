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

    __slots__ = ("_ends_ns", "_least", "_offsets", "_provisional", "known")

    def __init__(self) -> None:
        self._provisional = False
        self._offsets: deque[int] = deque(maxlen=OFFSETS_KEPT)
        self._least = 0  # of the offsets
        self._ends_ns = 0  # local instant at which `known` ends, kept beside them as every request asks for it
        self.known: int | None = None

    def begin_provisionally(self, now_ns: int) -> None:
        """Count epochs from 1, since nobody is there to say which they are; the first message replaces the mapping."""
        assert self.known is None, "only before the first message"
        self._least = now_ns - EPOCH_NS
        self._offsets.append(self._least)
        self._provisional = True
        self._reach(1)

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
        offset = now_ns + left_ns - (epoch + 1) * EPOCH_NS
        forgotten = self._offsets[0] if len(self._offsets) == OFFSETS_KEPT else None
        self._offsets.append(offset)
        if len(self._offsets) == 1 or offset < self._least:
            self._least = offset
        elif forgotten == self._least:
            self._least = min(self._offsets)
        self._reach(epoch if self.known is None else max(epoch, self.known))
        current = self.now(now_ns)
        assert current is not None
        return current

    def now(self, now_ns: int) -> int | None:
        """The epoch at `now_ns`, None before the first message; never less than what was returned before."""
        if now_ns >= self._ends_ns and self._offsets:
            self._reach((now_ns - self._least) // EPOCH_NS)
        return self.known

    def start_ns(self, epoch: int) -> int:
        """Local instant at which `epoch` starts by the mapping; call only after the first message."""
        return self._least + epoch * EPOCH_NS

    def left_ns(self, now_ns: int) -> int:
        """Nanoseconds that the present epoch still lasts by the mapping, between 0 and a second."""
        if now_ns >= self._ends_ns:
            self.now(now_ns)
        return min(self._ends_ns - now_ns, EPOCH_NS)

    def error_ns(self) -> int:
        """Spread of the remembered offsets: the error that the mapping would have had with the worst of them."""
        return max(self._offsets) - min(self._offsets) if self._offsets else 0

    def _reach(self, epoch: int) -> None:
        self.known = epoch
        self._ends_ns = self.start_ns(epoch + 1)
