"""Which limit an epoch is judged by: the largest that was in force during it (design 4.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.rule import RuleSet
from apportion.simulations.recording import Row, Ruled

ENFORCED_EPOCHS = 2
"""A change is enforced on every edge within two seconds (design 8): so long the former limit may still be in force."""


class InForce:
    """The limits of every rule by epoch."""

    def __init__(self, rules: RuleSet, rows: Iterable[Row]) -> None:
        everything = [rule for domain in rules.domains.values() for rule in domain.rules]
        self._changes: dict[str, list[tuple[int, RateLimit]]] = {
            rule.name: [(-1, rule.limit)] for rule in everything if isinstance(rule.limit, RateLimit)
        }
        self._instants = [0]
        for row in rows:
            if isinstance(row, Ruled):
                self._instants.append(row.at_ns)
                for name, units, period_ns, burst in row.limits:
                    self._changes.setdefault(name, []).append((row.epoch, RateLimit(units, period_ns, burst)))

    def limit(self, rule: str, epoch: int) -> RateLimit:
        """The largest rate and the largest burst of the rule that were in force during `epoch`."""
        changes = self._changes[rule]
        ends = [start + ENFORCED_EPOCHS for start, _ in changes[1:]]
        found = [limit for (start, limit), end in zip(changes, [*ends, epoch], strict=True) if start <= epoch <= end]
        largest = max(found, key=lambda limit: limit.per_second)
        return replace(largest, burst=max(limit.burst for limit in found))

    def per_second(self, rule: str, at_ns: int) -> float:
        """Units a second of the rule's limit at an instant of virtual time; inf where it has none."""
        changes = self._changes.get(rule)
        if changes is None:
            return float("inf")
        return changes[min(bisect_right(self._instants, at_ns), len(changes)) - 1][1].per_second

    def largest_within(self, rule: str, from_ns: int, until_ns: int) -> float:
        """Rate and burst together, the largest of each that were in force between two instants, for one second."""
        changes = self._changes[rule]
        first = bisect_right(self._instants, from_ns - ENFORCED_EPOCHS * EPOCH_NS) - 1
        last = bisect_right(self._instants, until_ns)
        found = [limit for _, limit in changes[max(first, 0) : last]] or [changes[-1][1]]
        return max(limit.per_second for limit in found) + max(limit.burst for limit in found)
