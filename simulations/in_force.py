"""Which rules and which limit an epoch is judged by: the largest that was in force during it (design 4.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Rules
from apportion.core.rule import Rule, RuleSet
from apportion.simulations.nodes import parsed
from apportion.simulations.rows import Row, Ruled

ENFORCED_EPOCHS = 2
"""A change is enforced on every edge within two seconds (design 8): so long the former limit may still be in force."""


class InForce:
    """The rules and limits by epoch."""

    def __init__(self, rules: RuleSet, rows: Iterable[Row]) -> None:
        self._changes: dict[str, list[tuple[int, Rule]]] = {rule.name: [(-1, rule)] for rule in rules.rules}
        self._instants = [0]
        for row in rows:
            if isinstance(row, Ruled):
                self.add(row)

    def add(self, row: Ruled) -> None:
        """The next change."""
        self._instants.append(row.at_ns)
        for rule in parsed(Rules(row.version, row.texts)).rules:
            self._changes.setdefault(rule.name, []).append((row.epoch, rule))

    def rules(self, name: str, epoch: int, key: tuple[str, ...]) -> list[Rule]:
        """The rules of that name, with the limit of `key`, that were in force during `epoch`; oldest first."""
        changes = self._changes.get(name, [])
        ends = [start + ENFORCED_EPOCHS for start, _ in changes[1:]]
        found = zip(changes, [*ends, epoch], strict=True) if changes else ()
        return [rule.for_key(key) for (start, rule), end in found if start <= epoch <= end]

    def limit(self, name: str, epoch: int, key: tuple[str, ...]) -> RateLimit | None:
        """The largest rate and the largest burst that `key` had during `epoch`; None: it had no limit, or no rule."""
        found = [rule.limit for rule in self.rules(name, epoch, key)]
        limits = [limit for limit in found if isinstance(limit, RateLimit)]
        if len(limits) < len(found) or not limits:
            return None
        largest = max(limits, key=lambda limit: limit.per_second)
        return replace(largest, burst=max(limit.burst for limit in limits))

    def per_second(self, name: str, at_ns: int, key: tuple[str, ...] | None = None) -> float:
        """Units a second at an instant of virtual time of the limit of `key`, or of keys that have none of their own;
        inf: no limit.
        """
        changes = self._changes.get(name)
        if not changes:
            return float("inf")
        rule = changes[min(bisect_right(self._instants, at_ns), len(changes)) - 1][1]
        return per_second(rule if key is None else rule.for_key(key))

    @property
    def changing(self) -> bool:
        """Whether any rules but the first were ever in force."""
        return len(self._instants) > 1

    def largest_within(self, name: str, from_ns: int, until_ns: int, key: tuple[str, ...]) -> float:
        """Rate and burst of `key` together, the largest of each that were in force between two instants, for one
        second.
        """
        changes = self._changes[name]
        first = bisect_right(self._instants, from_ns - ENFORCED_EPOCHS * EPOCH_NS) - 1
        last = bisect_right(self._instants, until_ns)
        found = [rule.for_key(key).limit for _, rule in changes[max(first, 0) : last] or changes[-1:]]
        limits = [limit for limit in found if isinstance(limit, RateLimit)]
        if len(limits) < len(found):
            return float("inf")
        return max(limit.per_second for limit in limits) + max(limit.burst for limit in limits)


def per_second(rule: Rule) -> float:
    """Units a second of the rule's limit, inf where it has none."""
    return rule.limit.per_second if isinstance(rule.limit, RateLimit) else float("inf")
