"""Rules, a clock that a test moves, and limiters and engines made of them; for tests of decisions in one process."""

from pathlib import Path

from apportion.core.engine import Engine
from apportion.core.rule import Domain, Rule, RuleSet
from apportion.core.rules_file import parse_rules
from apportion.edge.limiter import Limiter

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

T0 = 5 * SECOND
"""When a test begins: not 0, which a clock never shows."""


class ManualClock:
    """Shows what a test says."""

    def __init__(self, now_ns: int = T0) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns


def rule_text(name: str, limit: str, match: str = "tenant", key: str | None = None, more: str = "") -> str:
    """An entry of a rules file: any value of each dimension of `match`; `limit` as in the file, `{...}` left out."""
    anything = ", ".join(f'{dimension}: "*"' for dimension in match.split())
    keys = ", ".join((match if key is None else key).split())
    enforce = "" if "unlimited" in limit else ", enforce: region, when_unavailable: [deny]"
    return f"  - {{name: {name}, match: {{{anything}}}, key: [{keys}], limit: {{{limit}}}{enforce}{more}}}\n"


def rules_text(*entries: str, domain: str = "api") -> str:
    """A rules file."""
    return f"version: 1\ndomain: {domain}\nrules:\n" + "".join(entries)


def rule_set(*entries: str) -> RuleSet:
    """The rules of one domain."""
    return parse_rules([("rules.yaml", rules_text(*entries))])


def domain_of(*entries: str) -> Domain:
    """The only domain of these rules."""
    return rule_set(*entries).domains["api"]


def rule_of(*entries: str, name: str) -> Rule:
    """One of these rules."""
    rule = rule_set(*entries).rule("api", name)
    assert rule is not None
    return rule


def engine_of(*entries: str, keys_max: int = 1000, memo_max: int = 100) -> Engine:
    """An engine of these rules."""
    return Engine(domain_of(*entries), keys_max, memo_max=memo_max)


def limiter_of(folder: Path, clock: ManualClock, *entries: str) -> Limiter:
    """A limiter by a file of these rules in `folder`, as a user makes it."""
    path = folder / "rules.yaml"
    path.write_text(rules_text(*entries))
    return Limiter.from_rules(path, clock)
