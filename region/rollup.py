"""Units admitted by quota and label, held for a while in memory. Pure, bounded, and exact for the labels it keeps."""

from __future__ import annotations

from collections.abc import Iterable

from apportion.region.store import ROLLUP_EPOCHS_KEPT, RollupRow

ROWS_MAX = 2_000_000
"""Rows held, about 100 bytes each: 3,000 quotas for all 600 labels. Above it the oldest labels go first."""

UNITS_MAX = 2**63 - 1
"""A sum stops here, as a store's 64-bit column does; no limit comes near it, only a forged report."""


class Rollup:
    """Rows of the newest ROLLUP_EPOCHS_KEPT labels. The region checks labels: the newest rules."""

    __slots__ = ("_epochs", "_newest", "_rows_max", "label_last", "label_rows")

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        self._rows_max = rows_max
        self._epochs: dict[int, dict[bytes, int]] = {}
        self._newest: int | None = None
        self.label_last: int | None = None
        self.label_rows: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return bool(self._epochs)

    def label(self, epoch: int) -> dict[bytes, int]:
        """The units of one label by store key, to be added to at once; a label that is too old is added to in vain."""
        if epoch == self.label_last:
            return self.label_rows
        rows = self._epochs.get(epoch)
        if rows is None:
            rows = {}
            if self._newest is None or epoch > self._newest - ROLLUP_EPOCHS_KEPT:
                self._epochs[epoch] = rows
                if epoch != self._newest:  # else all there was has been taken since
                    self._newest = epoch if self._newest is None else max(self._newest, epoch)
                    self._drop(self._newest)
        self.label_last, self.label_rows = epoch, rows
        return rows

    def add(self, rows: Iterable[RollupRow]) -> None:
        """Add the units of `rows`."""
        for row in rows:
            label = self.label(row.epoch)
            label[row.store_key] = min(label.get(row.store_key, 0) + row.units, UNITS_MAX)

    def rows(self, first_epoch: int) -> tuple[RollupRow, ...]:
        """Rows of labels >= `first_epoch`, labels ascending."""
        return tuple(
            RollupRow(key, epoch, units)
            for epoch in sorted(self._epochs)
            if epoch >= first_epoch
            for key, units in self._epochs[epoch].items()
        )

    def take(self) -> tuple[RollupRow, ...]:
        """All rows; none is left."""
        if not self._epochs:
            return ()
        rows = tuple(
            RollupRow(key, epoch, units) for epoch, label in self._epochs.items() for key, units in label.items()
        )
        self._epochs = {}
        self.label_last, self.label_rows = None, {}
        return rows

    def _drop(self, newest: int) -> None:
        """Drop labels that are too old, and the oldest ones while there are too many rows. Once for each new label."""
        count = sum(map(len, self._epochs.values()))
        for epoch in sorted(self._epochs):
            if epoch > newest - ROLLUP_EPOCHS_KEPT and (count <= self._rows_max or epoch == newest):
                break
            count -= len(self._epochs.pop(epoch))
