"""Which plan each tenant is on, and what a rule is for it: the rule itself, with the limit of that plan. Pure.

A rule whose limit comes from a plan is one rule for matching and one for each plan for deciding: `Rule.for_key` gives
the one that counts, wherever a quota is made: engine, edge, region, allocator. All are checked when the file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apportion.core.rule import Rule

TENANT = "tenant"
"""The dimension whose value is looked up among `tenants`."""

REFUSE = "refuse"
"""In the place of a plan, for tenants that are on none."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """What the file says of one tenant. Where it says no zone or day of the month, those of the domain count."""

    plan: str
    time_zone: str | None = None
    month_starts_on: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tenancy:
    """The tenants of a domain by name, and the plan of all others, which may be REFUSE."""

    tenants: Mapping[str, Tenant]
    unlisted: str

    def plan_of(self, tenant: str | None) -> str:
        """The plan of a tenant; None is one whose name is not known, because it is longer than any listed one."""
        found = self.tenants.get(tenant) if tenant is not None else None
        return found.plan if found is not None else self.unlisted


@dataclass(frozen=True, slots=True, eq=False)
class ByKey:
    """A rule that is another for some keys. `rules`: all that it can be, each with a `plan` of its own."""

    rules: Mapping[Any, Rule]

    def rule(self, key: Sequence[str | None]) -> Rule:
        """The rule for a key with these values."""
        raise NotImplementedError

    def content(self) -> object:
        """What `rule` goes by, to be compared: which of `rules` counts for which key."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class ByPlan(ByKey):
    """A rule as it is on each plan, REFUSE included where there may be such tenants. `at`: where the tenant stands in
    the rule's key; `limit` the name that plans have the rule's limit under.
    """

    limit: str
    tenancy: Tenancy
    at: int

    def rule(self, key: Sequence[str | None]) -> Rule:
        return self.rules[self.tenancy.plan_of(key[self.at])]

    def content(self) -> object:
        return self.tenancy.unlisted, {name: tenant.plan for name, tenant in self.tenancy.tenants.items()}
