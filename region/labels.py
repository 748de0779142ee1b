"""Counters of direct labels: what was lent of a divided quota in an epoch that no plan has it in. Pure, in memory."""

from __future__ import annotations

from apportion.core.limit import RateLimit

LABELS_KEPT = 8
"""Epochs of direct label counters kept; an older label is in the past for good, since store time never goes back."""


class Labels:
    """Units lent by label and store key."""

    __slots__ = ("_labels",)

    def __init__(self) -> None:
        self._labels: dict[int, dict[bytes, int]] = {}

    def __len__(self) -> int:
        return len(self._labels)

    def kept(self, epoch: int) -> bool:
        """Whether the counters of this label are here still."""
        return not self._labels or epoch > max(self._labels) - LABELS_KEPT

    def room(self, key: bytes, limit: RateLimit, epoch: int) -> int:
        """Units of the label that are left to lend."""
        used = self._labels.get(epoch, {}).get(key, 0)
        return max(0, limit.units_in_epoch(epoch) - used)

    def charge(self, key: bytes, epoch: int, units: int) -> None:
        """Count units lent under the label."""
        counters = self._labels.get(epoch)
        if counters is None:
            counters = self._labels[epoch] = {}
            for old in [label for label in self._labels if label <= epoch - LABELS_KEPT]:
                del self._labels[old]
        counters[key] = counters.get(key, 0) + units
