"""The rules that an edge decides by, and how it goes from one version to the next (design 8, "Plan change"). Pure.

Rules that a region sends hold at once, but for what waits until the first plan that names their version is current.
Only then, and only if it could read all of it, the edge acknowledges the version. Files that it cannot read keep their
last good text: a writer of another version stops nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from apportion.core.last_good import Texts, merge
from apportion.core.match import Matcher
from apportion.core.messages import Rules, RulesAck
from apportion.core.rule import Domain, RuleSet
from apportion.core.rules_change import RulesInForce
from apportion.edge.events import Note

Load = Callable[[Rules], RuleSet]

PLANS_KEPT = 4
"""Plans whose version is remembered: that of the present epoch and what may come before its time."""


class Ruling:
    """`rules` is what the region sent last, None before the first; `matchers` what decides, by domain."""

    def __init__(self, load: Load) -> None:
        self.rules: Rules | None = None
        self.matchers: dict[str, Matcher] = {}
        self._load = load
        self._good: Texts = ()
        self._whole = True
        self._in_force: RulesInForce | None = None
        self._plans: dict[int, int] = {}
        self._acknowledged = 0

    @property
    def version(self) -> int:
        """The version that the region sent last; 0 before the first."""
        return self.rules.version if self.rules is not None else 0

    @property
    def domains(self) -> dict[str, Domain]:
        """What decides now, as it is written; nothing before the first rules."""
        return self._in_force.effective.domains if self._in_force is not None else {}

    def begin(self, rules: Rules, ruleset: RuleSet) -> None:
        """Go by rules that were kept from before, until a region is heard."""
        self.rules, self._good = rules, rules.texts
        self._in_force = RulesInForce(rules.version, ruleset)
        self._match()

    def take(self, rules: Rules) -> list[Note]:
        """Go by `rules` from now on. RulesError: there is nothing in them that can be read, and nothing at hand."""
        known = self._in_force
        if self.rules is not None and known is not None and rules.texts == self.rules.texts:
            if rules.version != self.rules.version:  # another store, or there and back: the texts are what counts
                newest = known.ruleset(known.newest)
                assert newest is not None
                self._in_force, self.rules = RulesInForce(rules.version, newest), rules
                self._match()
            return []
        merged = merge(self._good, rules.texts, lambda texts: self._load(Rules(rules.version, texts)))
        self._good, self._whole = merged.texts, not merged.rejected
        boot_copy = known is not None and known.newest == 0
        if known is None or boot_copy or not known.adopt(rules.version, merged.ruleset):
            self._in_force = RulesInForce(rules.version, merged.ruleset)
        self.rules = rules
        self._match()
        if self._whole:
            return [Note("info", "rules_adopted", (("rules_version", rules.version),))]
        fields = (("rules_version", rules.version), ("files", merged.rejected), ("reason", merged.reason))
        return [Note("error", "rules_refused", fields)]

    def accepts(self, version: int) -> bool:
        """Whether slices of a plan that names `version` can be understood: by these rules, or by former ones."""
        return self.rules is not None and version <= self.rules.version

    def plan_named(self, epoch: int, version: int) -> None:
        """The plan of `epoch` names `version`."""
        self._plans.setdefault(epoch, version)
        for old in sorted(self._plans)[:-PLANS_KEPT]:
            del self._plans[old]

    def reach(self, epoch: int) -> None:
        """It is `epoch` now: what waited for its plan takes effect."""
        named = [version for each, version in self._plans.items() if each <= epoch]
        if named and self._in_force is not None and self._in_force.follow(max(named)):
            self._match()

    def new_stream(self) -> None:
        """Nothing was acknowledged on it yet."""
        self._acknowledged = 0
        self._plans.clear()

    def acknowledgement(self) -> RulesAck | None:
        """What to tell the region, once: the version that decides every request from now on."""
        known = self._in_force
        if known is None or not self._whole or not known.complete or self._acknowledged == known.newest:
            return None
        self._acknowledged = known.newest
        return RulesAck(known.newest)

    def _match(self) -> None:
        assert self._in_force is not None
        domains = self._in_force.effective.domains
        self.matchers = {name: Matcher(domain) for name, domain in domains.items()}
