"""Which rules this replica decides by, label by label, and which version each edge decides by. Pure.

A plan is judged by the rules of the version that it names. What the region decides itself follows the plan of the
present epoch; in an epoch that nobody divided, the newest version holds at once.
"""

from __future__ import annotations

from apportion.core.limit import Finite, Unlimited
from apportion.core.messages import Quota
from apportion.core.rule import Rule, RuleSet
from apportion.core.rules_change import RulesInForce
from apportion.region.store import ROLLUP_EPOCHS_KEPT

Limited = tuple[Rule, Finite]


class Lookup:
    """The rules of one rule set, by domain and name."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = {(rule.domain, rule.name): rule for rule in rules.rules}

    def find(self, quota: Quota) -> Limited | None:
        """The rule of a quota and its limit; None when nothing limits it."""
        rule = self.rules.get((quota.domain, quota.rule))
        rule = rule.for_encoded_key(quota.key) if rule is not None else None
        if rule is None or isinstance(rule.limit, Unlimited):
            return None
        return rule, rule.limit


class Versions:
    """`effective` is what decides now; `history` what did, each from its epoch on, oldest first."""

    def __init__(self, version: int, ruleset: RuleSet) -> None:
        self._in_force = RulesInForce(version, ruleset, keep_removed=True)
        self._lookups: dict[int, Lookup] = {}
        self.effective = Lookup(ruleset)
        self.history: list[tuple[int, Lookup]] = [(0, self.effective)]

    @property
    def base(self) -> int:
        """The version by which quotas are divided now."""
        return self._in_force.base

    @property
    def newest(self) -> int:
        """The latest version."""
        return self._in_force.newest

    def lookup(self, version: int) -> Lookup | None:
        """The rules that a plan which names `version` is judged by; None for a version that no plan may name now."""
        ruleset = self._in_force.ruleset(version)
        if ruleset is None:
            return None
        if version not in self._lookups:
            self._lookups = {each: found for each, found in self._lookups.items() if each >= self.base}
            self._lookups[version] = Lookup(ruleset)
        return self._lookups[version]

    def adopt(self, version: int, ruleset: RuleSet, epoch: int) -> bool:
        """Take a newer version in `epoch`; False when it is none."""
        if not self._in_force.adopt(version, ruleset):
            return False
        self._settle(epoch)
        return True

    def follow(self, version: int, epoch: int) -> bool:
        """The present epoch, `epoch`, is decided by `version`; False when that changes nothing."""
        if not self._in_force.follow(version):
            return False
        self._settle(epoch)
        return True

    def segments(self, quota: Quota) -> list[tuple[int, Limited | None]]:
        """What limited a quota, each from its epoch on, oldest first; a part that changed nothing is left out."""
        found: list[tuple[int, Limited | None]] = []
        for epoch, lookup in self.history:
            limited = lookup.find(quota)
            if not found or _differs(found[-1][1], limited):
                found.append((epoch, limited))
        return found

    def _settle(self, epoch: int) -> None:
        self.effective = Lookup(self._in_force.effective)
        self.history.append((epoch, self.effective))
        while len(self.history) > 1 and self.history[1][0] < epoch - ROLLUP_EPOCHS_KEPT:
            del self.history[0]


def _differs(one: Limited | None, other: Limited | None) -> bool:
    if one is None or other is None:
        return one is not other
    return one[1] != other[1] or one[0].divided is not other[0].divided
