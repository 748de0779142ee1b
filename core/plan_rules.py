"""`limit: {from_plan: NAME}`: an entry read once for each plan, and the rules of all plans made one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from apportion.core.candidates import moved
from apportion.core.document import MappingNode, Node, Problem, Scalar, kind_of
from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.quantities import shown
from apportion.core.rule import Rule
from apportion.core.rule_fields import Section
from apportion.core.rules_vocabulary import RULE, RULE_LATER, nearest
from apportion.core.tenancy import REFUSE, TENANT, ByPlan, Homes, Tenancy

NOTHING = RateLimit(0, EPOCH_NS, 0)
"""The limit of a tenant on no plan, and of a rule that nobody has asked for which plan: it refuses everything."""

Read = Callable[[Section], Rule | None]


def from_plan(item: MappingNode) -> Node | None:
    """What `limit.from_plan` of an entry says; None where it says nothing of plans."""
    limit = next((value for key, value in item.entries if key.text == "limit"), None)
    if not isinstance(limit, MappingNode):
        return None
    return next((value for key, value in limit.entries if key.text == "from_plan"), None)


def read_for_plans(
    own: Section, item: MappingNode, plans: Mapping[str, Mapping[str, Node]], refuse_unlisted: bool, read: Read
) -> list[Rule]:
    """The rule of `item` on each plan, by `read`; none when anything was reported."""
    name = _limit_name(own, item, plans)
    if name is None:
        return []
    rules: list[Rule] = []
    reports: dict[str, list[Problem]] = {}
    for plan, limits in plans.items():
        reports[plan] = []
        section = Section(own.file, own.path, _with_limit(item, limits[name]), RULE, RULE_LATER, reports[plan])
        rule = read(section)
        if rule is not None:
            rules.append(replace(rule, plan=plan))
    own.problems.extend(_together(reports))
    if len(rules) < len(plans):
        return []
    if TENANT not in rules[0].key:
        own.refuse("key", f"has no {shown(TENANT)}, so nobody knows whose plan it is; add it to `key` (and to `match`)")
        return []
    if refuse_unlisted:
        rules.append(replace(rules[0], limit=NOTHING, cost_max=0, plan=REFUSE))
    return rules


def made_one(rules: Sequence[Rule], tenancy: Tenancy | None, limit_names: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules of a domain, those of one name and several plans made one that gives each of them by its key."""
    by_name: dict[str, dict[str, Rule]] = {}
    for rule in rules:
        homes = Homes(tenancy, rule.key.index(TENANT)) if rule.by_tenant and tenancy is not None else None
        by_name.setdefault(rule.name, {})[rule.plan] = replace(rule, homes=homes)
    whole = []
    for name, on in by_name.items():
        if "" in on:
            whole.append(on[""])
            continue
        assert tenancy is not None, "a rule that takes its limit from plans is read where there are some"
        first = next(iter(on.values()))
        by_key = ByPlan(on, limit_names[name], tenancy, first.key.index(TENANT))
        whole.append(replace(first, limit=NOTHING, cost_max=0, plan="", by_key=by_key))
    return tuple(whole)


def missing_tenants(rules: Sequence[Rule], tenants: bool) -> list[Problem]:
    """The rules of a domain whose periods begin by the tenant's calendar, and that cannot know the tenant."""
    problems = []
    for rule in rules:
        if not rule.by_tenant:
            continue
        if TENANT not in rule.key:
            text = (
                f"`from_tenant` needs {shown(TENANT)} in `key` (and in `match`), or nobody knows whose calendar it is"
            )
            problems.append(Problem(rule.place, text))
        elif not tenants:
            problems.append(
                Problem(rule.place, "`from_tenant` needs `tenants` in a file of the domain, and there are none")
            )
    return problems


def _limit_name(own: Section, item: MappingNode, plans: Mapping[str, Mapping[str, Node]]) -> str | None:
    """The name of the limit that every plan has; reports one that is no name, or that a plan lacks."""
    limit = next(value for key, value in item.entries if key.text == "limit")
    value = from_plan(item)
    assert isinstance(limit, MappingNode)
    if not isinstance(value, Scalar) or value.nothing:
        own.refuse(
            "limit", f"`from_plan`: found {kind_of(value) if value else 'nothing'}, the name of a limit is meant"
        )
        return None
    if len(limit.entries) > 1:
        others = ", ".join(f"`{key.text}`" for key, _ in limit.entries if key.text != "from_plan")
        own.refuse(
            "limit",
            f"`from_plan` contradicts {others}: the plan says the limit and all that goes with it; write it there, or "
            "leave `from_plan` out",
        )
        return None
    if not plans:
        own.refuse("limit", "`from_plan` needs `plans` in a file of the domain, and there are none")
        return None
    lacking = [plan for plan, limits in plans.items() if value.text not in limits]
    if len(lacking) == len(plans):
        names = tuple(sorted({name for limits in plans.values() for name in limits}))
        own.refuse("limit", f"`from_plan`: found {shown(value.text)}, {nearest(value.text, names)}")
        return None
    if lacking:
        own.refuse(
            "limit",
            f"`from_plan`: the plan {shown(lacking[0])} has no {shown(value.text)}, and none is neither zero nor "
            "unlimited; "
            "write {rate: 0/s} or {unlimited: true} there",
        )
        return None
    return value.text


def _with_limit(item: MappingNode, limit: Node) -> MappingNode:
    """The entry with a plan's limit in the place of `from_plan`."""
    return MappingNode(
        tuple((key, moved(limit, key.line) if key.text == "limit" else value) for key, value in item.entries), item.line
    )


def _together(reports: Mapping[str, list[Problem]]) -> list[Problem]:
    """What is wrong on every plan once, and what is wrong on some with their names."""
    everywhere = [each for each in next(iter(reports.values())) if all(each in found for found in reports.values())]
    some = [
        Problem(each.place, f"on the plan {shown(plan)}: {each.text}")
        for plan, found in reports.items()
        for each in found
        if each not in everywhere
    ]
    return everywhere + some
