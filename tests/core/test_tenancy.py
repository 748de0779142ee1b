"""Plans and tenants: a rule whose limit comes from a plan is, for each quota, the rule with the limit of that plan."""

from pathlib import Path

import numpy as np
import pytest

from apportion.allocator.planning import Limits
from apportion.core.decision import Reason
from apportion.core.engine import Engine
from apportion.core.errors import RulesError
from apportion.core.key import decode_key, encode_key
from apportion.core.limit import RateLimit, Unlimited
from apportion.core.match import Matcher, apply_rules
from apportion.core.messages import Quota
from apportion.core.request import Descriptor
from apportion.core.rule import Domain, Rule
from apportion.core.rules_change import interim
from apportion.core.rules_file import parse_rules
from apportion.core.tenancy import REFUSE, ByPlan
from apportion.region.quotas import QuotaTable
from apportion.region.versions import Lookup
from apportion.rules_path import load_rules, read_rule_texts, signature
from tests.checkout import ROOT
from tests.in_process import SECOND, T0

GOOD = (ROOT / "tests" / "config" / "good" / "plans.yaml").read_text()
RULES = parse_rules([("plans.yaml", GOOD)])


def domain(unlisted: str = REFUSE) -> Domain:
    """The good file, with another word for the tenants it does not list."""
    return parse_rules([("plans.yaml", GOOD.replace("tenants: refuse", f"tenants: {unlisted}"))]).domains["api"]


def request(tenant: str) -> dict[str, str]:
    """A search of a tenant."""
    return {"tenant": tenant, "api": "search"}


def rule_for(tenant: str | None) -> Rule:
    """What `tenant-requests` is for a tenant."""
    rule = RULES.rule("api", "tenant-requests")
    assert rule is not None
    return rule.for_key(("search", tenant))


def test_the_limit_is_that_of_the_tenants_plan() -> None:
    """By the place of the tenant in the key, which is not the first; divided or not by the plan's own limit."""
    assert rule_for("contoso").limit == rule_for("fabrikam").limit == RateLimit(10_000, SECOND, 2_500)
    assert (rule_for("contoso").plan, rule_for("contoso").divided) == ("gold", True)
    assert rule_for("northwind").limit == RateLimit(0, SECOND, 0)
    assert isinstance(rule_for("1").limit, Unlimited)


def test_a_tenant_that_is_not_listed_is_refused_where_the_file_says_so() -> None:
    """Also one whose name is so long that its key has only a digest of it."""
    for tenant in ("nobody", None):
        assert (rule_for(tenant).unlisted, rule_for(tenant).limit) == (True, RateLimit(0, SECOND, 0))


def test_a_rule_that_nobody_asked_for_its_plan_refuses() -> None:
    """So that forgetting to ask is never generous."""
    rule = RULES.rule("api", "tenant-requests")
    assert rule is not None
    assert rule.limit == RateLimit(0, SECOND, 0)
    assert sorted(each.plan for each in rule.on_plans) == ["blocked", "free", "gold", "inside", "refuse"]


def test_the_engine_counts_each_tenant_by_its_plan() -> None:
    """Free 10, gold 2,500 at once; blocked and unlisted none, for reasons of their own; unlimited is not counted."""
    engine = Engine(domain("free"))
    for tenant, most in (("someone", 10), ("contoso", 2_500)):
        decided = [engine.decide(request(tenant), None, T0).allowed for _ in range(most + 2)]
        assert decided == [True] * most + [False] * 2
    assert engine.decide(request("northwind"), None, T0).reason == "impossible"
    assert engine.decide(request("1"), 10**9, T0).rule is None
    refused = Engine(domain()).decide(request("someone"), None, T0)
    assert (refused.allowed, refused.reason, refused.retry_after) == (False, "unlisted", None)


def test_a_candidate_tries_one_limit_on_all_plans() -> None:
    """It does not care for plans: 8,000 a second for everybody."""
    candidate = RULES.rule("api", "tenant-requests-8000")
    assert candidate is not None
    assert (candidate.shadow, candidate.by_key, candidate.limit) == (True, None, RateLimit(8_000, SECOND, 2_000))


def test_an_application_has_the_rule_of_the_plan() -> None:
    """For one descriptor and for several."""
    matcher = Matcher(RULES.domains["api"])
    one = apply_rules(matcher, [Descriptor(request("contoso"))], whole=True)
    two = apply_rules(matcher, [Descriptor(request("contoso")), Descriptor(request("nobody"))], whole=True)
    assert [(each.rule.name, each.rule.plan) for each in one] == [
        ("tenant-requests", "gold"), ("tenant-requests-8000", ""),
    ]  # fmt: skip
    assert sorted(each.rule.plan for each in two if each.rule.name == "tenant-requests") == ["gold", "refuse"]


@pytest.mark.parametrize("values", [("search", "contoso"), ("", ""), ("ä" * 32, "\ud800"), ()])
def test_a_key_is_decoded_to_its_values(values: tuple[str, ...]) -> None:
    """Whatever they are, as long as they stand in it literally."""
    assert decode_key(encode_key(values)) == values


@pytest.mark.parametrize("key", [b"\x00", b"\x00\x05abc", b"\x02\x01a", b"\x00\x01\xff", b"\x00\x01a\x00"])
def test_what_is_no_key_is_none(key: bytes) -> None:
    """A peer may send anything."""
    assert decode_key(key) is None
    assert QuotaTable(Lookup(RULES)).find(Quota("api", "tenant-requests", key), 1) is None


def test_region_and_allocator_know_the_plan_from_the_key() -> None:
    """A digest of a long value poses as no tenant."""
    table, limits = QuotaTable(Lookup(RULES)), Limits(RULES)
    found = {}
    for tenant in ("contoso", "someone", "northwind", "x" * 65):
        quota = Quota("api", "tenant-requests", encode_key(("search", tenant)))
        known = table.find(quota, 1)
        found[tenant] = (known.limit.units if known else None, limits.divides(quota))
    assert found == {"contoso": (10_000, True), "someone": (0, False), "northwind": (0, False), "x" * 65: (0, False)}
    limits.set(3, Quota("api", "tenant-requests", encode_key(("search", "contoso"))))
    assert limits.units(np.array([3]), 7).tolist() == [10_000]


TABLE = "tenant,plan,time_zone,month_starts_on\ncontoso,gold,Europe/Berlin,17\nfabrikam,free,,\n"
HEAD = "version: 1\ndomain: api\nplans: {free: {r: {rate: 10/s}}, gold: {r: {rate: 90/s}}}\nunlisted_tenants: refuse\n"
TENANTS = "tenants: {from: tenants.csv}\n"
ONE = (
    'rules: [{name: r, match: {tenant: "*"}, key: [tenant], limit: {from_plan: r}, enforce: region, '
    "when_unavailable: [deny]}]\n"
)


def test_tenants_come_from_a_table_beside_the_rules_file(tmp_path: Path) -> None:
    """And go where the rules go, so that edges and allocators know them."""
    (tmp_path / "rules.yaml").write_text(HEAD + TENANTS + ONE)
    (tmp_path / "tenants.csv").write_text(TABLE)
    assert [name for name, _ in read_rule_texts(tmp_path / "rules.yaml")] == ["rules.yaml", "tenants.csv"]
    for path in (tmp_path / "rules.yaml", tmp_path):
        rule = load_rules(path).rule("api", "r")
        assert rule is not None and isinstance(rule.by_key, ByPlan)
        assert [rule.for_key((tenant,)).plan for tenant in ("contoso", "fabrikam", "x")] == ["gold", "free", REFUSE]
        contoso = rule.by_key.tenancy.tenants["contoso"]
        assert (contoso.time_zone, contoso.month_starts_on) == ("Europe/Berlin", 17)


@pytest.mark.parametrize(
    "table, problem",
    [
        ("", "tenants.csv:1: is empty; the first line is tenant,plan"),
        ("tenant,plam\n", "tenants.csv:1: found the column `plam`, which there is none of; did you mean `plan`?"),
        (
            "tenant\ncontoso\n",
            "tenants.csv:1: the first line names the columns; `plan` is there 0 times, once is right",
        ),
        ("tenant,plan\na,gold\na,free\n", "tenants.csv:3: the tenant `a` is at tenants.csv:2 already"),
        ("tenant,plan\na,gold,x\n", "tenants.csv:2: has 3 values, the header names 2: tenant,plan"),
        ("tenant,plan\na,golt\n", "tenants.csv:2: found the plan `golt`, which there is none of; did you mean `gold`?"),
        ("tenant,plan\na,\n", "tenants.csv:2: has no plan; name the one that the tenant is on"),
        ("tenant,plan\n,gold\n", "tenants.csv:2: a tenant's name has 1 to 64 bytes, found 0"),
        ('tenant,plan\n"a,gold\n', "tenants.csv:2: not valid CSV: unexpected end of data"),
        ("tenant,plan,month_starts_on\na,gold,0\n", "tenants.csv:2: month_starts_on: found `0`, a number from 1 to 31"),
        ("tenant,plan,time_zone\na,gold,Mars\n", "tenants.csv:2: time_zone: unknown: `Mars`"),
    ],
)
def test_a_table_is_read_strictly(table: str, problem: str) -> None:
    """Each problem with its line, and only that one."""
    with pytest.raises(RulesError) as refused:
        parse_rules([("rules.yaml", HEAD + TENANTS + ONE), ("tenants.csv", table)])
    (found,) = refused.value.problems
    assert str(found).startswith(problem)


def test_plans_of_one_domain_may_stand_in_several_files() -> None:
    """Each once: a second plan or tenant of a name is an error that names the first."""
    other = "version: 1\ndomain: api\ntenants: {contoso: gold}\nrules: [{name: x, match: {a: b}, key: [], limit: "
    other += "{unlimited: true}}]\n"
    rules = parse_rules([("a.yaml", other), ("b.yaml", HEAD + ONE)])
    rule = rules.rule("api", "r")
    assert rule is not None and rule.for_key(("contoso",)).plan == "gold"
    with pytest.raises(RulesError) as refused:
        parse_rules([("a.yaml", other), ("b.yaml", HEAD + "tenants: {contoso: free}\n" + ONE)])
    (found,) = refused.value.problems
    assert str(found) == "b.yaml:5: tenants.contoso: the tenant `contoso` is at a.yaml:3: tenants.contoso already"


def test_an_unlisted_tenant_has_its_own_reason() -> None:
    """It is not called too dear."""
    assert Reason.UNLISTED.value == "unlisted"


def test_a_table_that_changes_is_noticed(tmp_path: Path) -> None:
    """Also where the rules file that names it does not change."""
    (tmp_path / "rules.yaml").write_text(HEAD + TENANTS + ONE)
    (tmp_path / "tenants.csv").write_text(TABLE)
    before = signature(tmp_path / "rules.yaml")
    (tmp_path / "tenants.csv").write_text(TABLE + "northwind,gold,,\n")
    assert signature(tmp_path / "rules.yaml") != before


def test_while_rules_change_each_tenant_waits_as_its_own_limit_would() -> None:
    """From divided to undivided with the next plan, an undivided number at once, what does not change not at all."""
    moved = GOOD.replace("fabrikam: gold", "fabrikam: free").replace(
        "free: {requests: {rate: 10/s}}", "free: {requests: {rate: 5/s}}"
    )
    old, new = (
        parse_rules([("a.yaml", GOOD.replace("refuse", "free"))]),
        parse_rules([("a.yaml", moved.replace("refuse", "free"))]),
    )
    both = interim(old, new)
    rules = [found for each in (old, new, both) if (found := each.rule("api", "tenant-requests")) is not None]
    limits = {
        tenant: [
            limit.units if isinstance(limit := rule.for_key(("search", tenant)).limit, RateLimit) else None
            for rule in rules
        ]
        for tenant in ("contoso", "fabrikam", "someone", "1")
    }
    assert limits == {
        "contoso": [10_000, 10_000, 10_000],
        "fabrikam": [10_000, 5, 10_000],
        "someone": [10, 5, 5],
        "1": [None, None, None],
    }
    assert interim(new, new) is new
