"""Which rules may not be counted in a store that keeps nothing over a restart of the region (design 4.2)."""

from __future__ import annotations

from apportion.core.bounds_period import refuse_unkept
from apportion.core.last_good import Texts
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.region.memory_store import MemoryStore
from apportion.region.store import Store


def parse_kept(texts: Texts, store: Store) -> RuleSet:
    """The rules of these texts, if they may be counted in `store`. RulesError names each that may not."""
    ruleset = parse_rules(texts)
    check_kept(ruleset, store)
    return ruleset


def check_kept(ruleset: RuleSet, store: Store) -> None:
    """RulesError names each rule that may not be counted in `store`, which keeps nothing, and the fix."""
    if isinstance(store, MemoryStore):
        refuse_unkept(ruleset.rules, "in the store `memory:`")
