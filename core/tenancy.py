"""Which plan each tenant is on, and what a rule is for it: the rule itself, with the limit of that plan. Pure.

A rule whose limit comes from a plan is one rule for matching and one for each plan for deciding: `Rule.for_key` gives
the one that counts, wherever a quota is made: engine, edge, region, allocator. All are checked when the file is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from apportion.core.limit import PeriodLimit

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
class Homes:
    """Where tenants live, for rules whose periods begin by the tenant's own calendar. `at`: where the tenant stands in
    the rule's key.
    """

    tenancy: Tenancy
    at: int
    _made: dict[tuple[int, str, int], tuple[Rule, Rule]] = field(default_factory=dict, repr=False)

    def rule(self, rule: Rule, key: Sequence[str | None]) -> Rule:
        """`rule` by the calendar of the key's tenant; the same object each time."""
        limit, name = rule.limit, key[self.at]
        tenant = self.tenancy.tenants.get(name) if name is not None else None
        if tenant is None or not isinstance(limit, PeriodLimit):
            return rule
        zone = tenant.time_zone if limit.zone_from_tenant else None
        day = tenant.month_starts_on if limit.month_from_tenant else None
        home = (id(rule), zone or limit.zone, day or limit.month_starts_on)
        if home not in self._made:
            # `rule` is kept with it, so that its id is nobody else's.
            at_home = replace(
                limit,
                zone=home[1],
                month_starts_on=home[2],
                zone_from_tenant=limit.zone_from_tenant and zone is None,
                month_from_tenant=limit.month_from_tenant and day is None,
            )
            self._made[home] = (rule, rule if at_home == limit else replace(rule, limit=at_home))
        return self._made[home][1]


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
