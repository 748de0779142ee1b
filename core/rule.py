"""A rule as the rest of the program sees it: parsed, checked, frozen. How it is written is `rules_file`'s business."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from apportion.core.key import decode_key
from apportion.core.limit import Limit, RateLimit
from apportion.core.tenancy import REFUSE, ByKey
from apportion.core.threshold import share_units, with_slack

REQUESTS = "requests"
"""The measure that a rule counts unless it says so; a cost that is one number is of this."""


class Enforce(Enum):
    """Where a rule is decided (design 4.1). The value is the word of the rules file."""

    EDGE = "edge"
    EDGE_REGION = "edge+region"
    LEASE = "lease"
    REGION = "region"


class Fallback(Enum):
    """One stage of `when_unavailable`. The value is the word of the rules file."""

    KEEP_SHARE = "keep_share"  # the last slice, without slack or burst
    FAIR_SHARE = "fair_share"  # floor(Q / edges_max)
    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Stage:
    """`fallback` for `duration_ns`; the last stage has None and holds until the region answers again."""

    fallback: Fallback
    duration_ns: int | None = None


class WrongCosts(Enum):
    """What it costs when a rule is exceeded for a few seconds (design 4). The value is the word of the rules file."""

    NOISE = "noise"
    OVERLOAD = "overload"
    MONEY = "money"


class PatternKind(Enum):
    """How a pattern fits a value."""

    EXACT = "exact"
    PREFIX = "prefix"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Fits a value that equals `text` (EXACT), starts with it (PREFIX), or is present at all, "" included (ANY)."""

    kind: PatternKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: file, line counted from 1, and the path of keys within the file."""

    file: str
    line: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f": {self.path}" if self.path else "")


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the rules file. `match` maps each dimension, in sorted order, to the patterns any of which must fit.

    `key` names dimensions of `match`; `deadline_ns` bounds a crossing; `cost_max` is the largest cost that can ever be
    admitted (for an unlimited rule: None). `exact`: a descriptor of Envoy's RLS must have exactly the rule's
    dimensions. `slack` in hundredths of a percent, for `edge` and `edge+region`; `at_each_edge` what each edge admits
    of a key, with the limit's burst; `edges_max` is that of the rule's domain. `shadow`: counted as if enforced, but it
    refuses nobody. `counts`: the measure of a request that its costs are in. `plan`: the one that the limit is of,
    and what an operator laid over it (`overrides.py`); where `by_key` is set, the limit is of none yet and refuses
    everything: `for_key` gives the rule that counts.

    What follows from these, worked out once as every request asks for it. `divided`: the quotas of this rule are
    divided over edges; all others are decided in the region's store. `planned`: a leader divides them, as grants of
    the limit itself (`divided`), of the limit with slack (`edge`), or only to set each edge's threshold
    (`edge+region`). `local`: an edge decides alone, for ever: nothing of the rule crosses. `cost_at_once`: up to
    this cost an edge admits a request by what it holds alone, units or a threshold of its own, if that is enough; 0:
    there is more to look at.
    """

    domain: str
    name: str
    match: tuple[tuple[str, tuple[Pattern, ...]], ...]
    key: tuple[str, ...]
    limit: Limit
    enforce: Enforce
    when_unavailable: tuple[Stage, ...]
    deadline_ns: int
    cost_default: int
    cost_max: int | None
    exact: bool
    place: Place = field(compare=False)
    shadow: bool = False
    slack: int | None = None
    at_each_edge: RateLimit | None = None
    wrong_costs: WrongCosts | None = None
    edges_max: int | None = None
    counts: str = REQUESTS
    plan: str = ""
    by_key: ByKey | None = field(default=None, compare=False, repr=False)
    divided: bool = field(init=False, compare=False, repr=False)
    planned: bool = field(init=False, compare=False, repr=False)
    local: bool = field(init=False, compare=False, repr=False)
    cost_at_once: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        divisible = isinstance(self.limit, RateLimit) and self.limit.can_be_divided
        object.__setattr__(self, "divided", divisible and self.enforce is Enforce.LEASE)
        object.__setattr__(self, "planned", self._planned(divisible))
        object.__setattr__(self, "local", self.enforce is Enforce.EDGE)
        object.__setattr__(self, "cost_at_once", self._cost_at_once())

    def _planned(self, divisible: bool) -> bool:
        if self.enforce is Enforce.EDGE:
            return self.slack is not None and isinstance(self.limit, RateLimit) and self.limit.units > 0
        return divisible and self.enforce is not Enforce.REGION

    def _cost_at_once(self) -> int:
        held = self.divided or (self.local and isinstance(self.limit, RateLimit))
        return self.cost_max or 0 if held and not self.shadow else 0

    def for_key(self, key: Sequence[str | None]) -> Rule:
        """The rule that counts for a quota with these values of the key: this one, or as it is on the tenant's plan.

        None is a value that is not known because it is longer than VALUE_LITERAL_MAX (`key.py`).
        """
        return self if self.by_key is None else self.by_key.rule(key)

    def for_encoded_key(self, key: bytes) -> Rule | None:
        """`for_key` of an encoded key; None when it is no key of this rule."""
        if self.by_key is None:
            return self
        values = decode_key(key)
        return self.by_key.rule(values) if values is not None and len(values) == len(self.key) else None

    @property
    def on_plans(self) -> tuple[Rule, ...]:
        """The rule as it is on each plan; itself where its limit is of none."""
        return (self,) if self.by_key is None else tuple(self.by_key.rules.values())

    @property
    def unlisted(self) -> bool:
        """Whether this is the rule for tenants on no plan, which are refused."""
        return self.plan == REFUSE

    @property
    def dimensions(self) -> frozenset[str]:
        """The dimension names of `match`."""
        return frozenset(name for name, _ in self.match)

    @property
    def local_limit(self) -> Limit:
        """What one edge without a region holds a key to: what it admits at each edge, else the whole limit."""
        if self.at_each_edge is None or not isinstance(self.limit, RateLimit) or not self.limit.units:
            return self.limit
        return self.at_each_edge

    def planned_units(self, epoch: int) -> int:
        """What a plan of `epoch` gives away in all of a quota of this rule, which is one that is planned."""
        assert isinstance(self.limit, RateLimit) and self.planned
        units = self.limit.units_in_epoch(epoch)
        return with_slack(units, self.slack or 0) if self.local else units

    def share(self) -> int:
        """What an edge without a slice admits of one label of an `edge` quota with slack."""
        assert isinstance(self.limit, RateLimit) and self.slack is not None and self.edges_max is not None
        return share_units(self.limit, self.slack, self.edges_max)


@dataclass(frozen=True, slots=True)
class Domain:
    """All rules of one `domain`, in no meaningful order. `edges_max` is None where no rule needs it."""

    name: str
    rules: tuple[Rule, ...]
    edges_max: int | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Everything that was loaded: domains by name, and a digest of the texts that gave them (hex, 64 characters)."""

    domains: dict[str, Domain]
    digest: str

    @property
    def edges_max(self) -> int | None:
        """How many edges may attach: the smallest of the domains', since each bound counts on its own; None = not
        said.
        """
        return min((d.edges_max for d in self.domains.values() if d.edges_max is not None), default=None)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of every domain."""
        return tuple(rule for domain in self.domains.values() for rule in domain.rules)

    def rule(self, domain: str, name: str) -> Rule | None:
        """The rule of that name, or None."""
        found = self.domains.get(domain)
        return next((rule for rule in found.rules if rule.name == name), None) if found else None
