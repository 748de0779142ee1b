"""The global sum of every quota, label by label, beside what its limit entitles to: where a local number must not be
taken for the global one (design 1). Pure.

A label is judged once, when every report of it is due: LABELS_BACK epochs later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apportion.core.key import key_text
from apportion.core.limit import RateLimit
from apportion.core.meter import Meter
from apportion.region.events import Note
from apportion.region.quotas import KnownQuota, QuotaTable
from apportion.region.store import RollupRow

LABELS_BACK = 2
"""A report leaves 0.3 s after its epoch's end at the latest, and then the rollup is written."""

SAID_EVERY = 60
"""Epochs until a quota that stays over its limit is told of again."""

Name = tuple[str, str]

NOTHING: Mapping[bytes, int] = {}


@dataclass(slots=True)
class RuleSum:
    """One rule over all its keys, in units: the worst that one label was over, what label `label` admitted and all did,
    what edges refused although there was room, and how much the latest label that was over was that, `over_label`.
    """

    worst: int = 0
    admitted: int = 0
    label: int = -1
    admitted_ever: int = 0
    refused_with_room: int = 0
    over: int = 0
    over_label: int = -1


class Sums:
    """Judges labels; quotas of a period are only added up, as no second has a part of them. `rules` by domain and name,
    since this replica started.
    """

    def __init__(self, table: QuotaTable) -> None:
        self.rules: dict[Name, RuleSum] = {}
        self.judged = -1
        self._table = table
        self._meters: dict[bytes, Meter] = {}
        self._said: dict[bytes, int] = {}

    def judge(
        self, label: int, rows: Iterable[RollupRow], edges: int, refused: Mapping[bytes, int] = NOTHING
    ) -> list[Note]:
        """Take the sums of `label`, complete now, among `rows`, of so many `edges`; `refused` is what these refused
        without asking, by store key. Returns what is to be said.
        """
        if label <= self.judged:
            return []
        self.judged = label
        notes: list[Note] = []
        admitted = {row.store_key: row.units for row in rows if row.epoch == label}
        for store_key in admitted.keys() | refused.keys():
            known, units = self._table.by_store_key(store_key), admitted.get(store_key, 0)
            if known is None:
                continue
            over = self._add(known, label, units, refused.get(store_key, 0))
            if over and label - self._said.get(store_key, -SAID_EVERY) >= SAID_EVERY:
                self._said[store_key] = label
                notes.append(_passed(known, label, units, over, edges))
        self._forget(label)
        return notes

    def _add(self, known: KnownQuota, label: int, units: int, refused: int) -> int:
        """Add one quota's sum to its rule's; returns by how much it was over."""
        meter = self._meter(known)
        over = meter.record(label, units) if meter is not None else 0
        total = self.rules.setdefault((known.quota.domain, known.quota.rule), RuleSum())
        total.worst = max(total.worst, over)
        if over:
            total.over = max(over, total.over if total.over_label == label else 0)
            total.over_label = label
        if total.label != label:
            total.label, total.admitted = label, 0
        total.admitted += units
        total.admitted_ever += units
        total.refused_with_room += min(refused, meter.room) if meter is not None else 0
        return over

    def _meter(self, known: KnownQuota) -> Meter | None:
        """The quota's meter; a new one from the label on in which its limit is another; None: it is of a period."""
        if not isinstance(known.limit, RateLimit):
            return None
        meter = self._meters.get(known.store_key)
        if meter is None or meter.limit != known.limit or meter.divided is not known.rule.divided:
            meter = self._meters[known.store_key] = Meter(known.limit, known.rule.divided)
        return meter

    def _forget(self, label: int) -> None:
        for store_key in [each for each in self._meters if self._table.by_store_key(each) is None]:
            del self._meters[store_key]
        for store_key in [each for each, said in self._said.items() if label - said >= SAID_EVERY]:
            del self._said[store_key]


def _passed(known: KnownQuota, label: int, admitted: int, over: int, edges: int) -> Note:
    """No edge did anything wrong: each was below its own threshold, and the sum passed the limit."""
    fields = (
        ("domain", known.quota.domain),
        ("rule", known.quota.rule),
        ("key", key_text(known.quota.key)),
        ("epoch", label),
        ("admitted", admitted),
        ("limit", known.rate.units_in_epoch(label)),
        ("over", over),
        ("edges", edges),
    )
    return Note("warning", "limit_passed_globally", fields)
