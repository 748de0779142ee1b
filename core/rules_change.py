"""Rules while they change: what holds at once, and what waits for the first plan that names the new version. Pure.

Numbers of undivided quotas, a rate of 0, new and removed rules hold at once. How a quota is divided, and a change of
`enforce` or between divided and undivided, holds from the epoch whose plan names the version (design 8): until then
units of the former division are still in many hands. Edge and region follow the same plans, so they change together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from apportion.core.limit import Unlimited
from apportion.core.rule import Domain, Rule, RuleSet
from apportion.core.tenancy import ByKey


class RulesInForce:
    """Versions from `base`, which the plan of the present epoch names, to `newest`; `effective` is what decides now.

    `keep_removed`: a rule that is gone or has lost its limit still answers until the next plan. A region does, for the
    requests that are on their way to it; an edge does not.
    """

    __slots__ = ("_keep_removed", "_rulesets", "base", "effective", "newest")

    def __init__(self, version: int, ruleset: RuleSet, keep_removed: bool = False) -> None:
        self.base = self.newest = version
        self.effective = ruleset
        self._rulesets = {version: ruleset}
        self._keep_removed = keep_removed

    @property
    def complete(self) -> bool:
        """Whether every rule is decided by the newest version."""
        return self.effective is self._rulesets[self.newest]

    def ruleset(self, version: int) -> RuleSet | None:
        """The rules of a version that a plan may still name."""
        return self._rulesets.get(version)

    def adopt(self, version: int, ruleset: RuleSet) -> bool:
        """Take a newer version; False when it is none."""
        if version <= self.newest:
            return False
        self._rulesets[version] = ruleset
        self.newest = version
        self._settle()
        return True

    def follow(self, version: int) -> bool:
        """The plan of the present epoch names `version`, which is known here; False when that changes nothing."""
        if version <= self.base or version not in self._rulesets:
            return False
        self.base = version
        for old in [old for old in self._rulesets if old < version]:
            del self._rulesets[old]
        before = self.effective
        self._settle()
        return self.effective is not before

    def _settle(self) -> None:
        self.effective = interim(self._rulesets[self.base], self._rulesets[self.newest], self._keep_removed)


def interim(base: RuleSet, newest: RuleSet, keep_removed: bool = False) -> RuleSet:
    """What holds of `newest` while `base` is what quotas are divided by; `newest` itself where nothing has to wait."""
    if base is newest:
        return newest
    former = {(rule.domain, rule.name): rule for rule in base.rules}
    waiting = False
    domains: dict[str, Domain] = {}
    for domain in newest.domains.values():
        rules = []
        for new in domain.rules:
            old = former.pop((domain.name, new.name), None)
            if old is not None and _keys_wait(old, new):
                waiting = True
                rules.append(replace(new, by_key=_between(old, new, keep_removed)))
                continue
            held = old is not None and (waits(old, new) or (keep_removed and _limit_is_gone(old, new)))
            waiting = waiting or held
            rules.append(replace(old, match=new.match, place=new.place) if held and old is not None else new)
        domains[domain.name] = replace(domain, rules=tuple(rules))
    if keep_removed and former:
        waiting = True
        for (name, _), rule in former.items():
            domain = domains.get(name) or replace(base.domains[name], rules=())
            domains[name] = replace(domain, rules=(*domain.rules, rule))
    return RuleSet(domains, newest.digest) if waiting else newest


def waits(old: Rule, new: Rule) -> bool:
    """Whether the limit and place of decision of `new` take effect only with a plan that names its version."""
    if old.key != new.key or _admits_nothing(new) or _admits_nothing(old) or isinstance(old.limit, Unlimited):
        return False
    if isinstance(new.limit, Unlimited):
        return False
    if old.enforce is not new.enforce or old.divided is not new.divided:
        return True
    return old.divided and old.limit != new.limit


def _admits_nothing(rule: Rule) -> bool:
    return not isinstance(rule.limit, Unlimited) and rule.limit.units == 0


def _limit_is_gone(old: Rule, new: Rule) -> bool:
    return not isinstance(old.limit, Unlimited) and isinstance(new.limit, Unlimited)


@dataclass(frozen=True, slots=True, eq=False)
class Between(ByKey):
    """A rule by key while it changes: for each key what holds of it, as for a rule that is the same for all."""

    old: Rule
    new: Rule
    keep_removed: bool

    def rule(self, key: Sequence[str | None]) -> Rule:
        """The former rule for a key that has to wait, the new one for all others."""
        old, new = self.old.for_key(key), self.new.for_key(key)
        held = waits(old, new) or (self.keep_removed and _limit_is_gone(old, new))
        return old if held else new


def _between(old: Rule, new: Rule, keep_removed: bool) -> Between:
    rules = {(rule is old, on_plan.plan): on_plan for rule in (old, new) for on_plan in rule.on_plans}
    return Between(rules, old, new, keep_removed)


def _keys_wait(old: Rule, new: Rule) -> bool:
    """Whether a rule that is another for some keys, before or after, has keys that may have to wait."""
    by_key = old.by_key is not None or new.by_key is not None
    return by_key and old.key == new.key and _content(old) != _content(new)


def _content(rule: Rule) -> object:
    """All that a rule's limits depend on."""
    limits = {each.plan: (each.limit, each.enforce) for each in rule.on_plans}
    return limits, rule.by_key.content() if rule.by_key is not None else None
