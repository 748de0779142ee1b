"""What an operator lays over the rules: a lower number or shadow, for a rule or some keys of it, on top of plans."""

from __future__ import annotations

import pytest

from apportion.allocator.planning import Limits
from apportion.core.errors import RulesError
from apportion.core.key import encode_key
from apportion.core.limit import RateLimit
from apportion.core.match import Matcher, apply_rules
from apportion.core.messages import Quota
from apportion.core.overrides import ALL_RULES, TEXT, Override, Rate, decode, encode
from apportion.core.request import Application, Descriptor
from apportion.core.rule import Domain, Enforce, Rule, RuleSet
from apportion.core.rules_change import interim
from apportion.core.rules_file import parse_rules
from tests.in_process import SECOND

MINUTE = 60 * SECOND

HEAD = """
version: 1
domain: api
edges_max: 4
plans: {gold: {calls: {rate: 100/s}}, free: {calls: {rate: 2/s}}}
tenants: {contoso: gold, fabrikam: gold}
unlisted_tenants: free
rules:
"""
RULES = (
    HEAD
    + """
  - {name: calls, match: {tenant: "*", api: "*"}, key: [tenant, api], limit: {from_plan: calls}, enforce: lease,
     when_unavailable: [deny]}
  - {name: pay, match: {api: pay}, key: [api], limit: {rate: 10/min}, enforce: region, when_unavailable: [deny]}
  - {name: free-for-all, match: {api: free}, key: [api], limit: {unlimited: true}}
  - {name: shed, match: {ip: "*"}, key: [ip], limit: {rate: 50/s}, enforce: edge, at_each_edge: 40/s,
     wrong_costs: noise}
"""
)


def over(
    rule: str, rate: str | None = None, shadow: bool = False, domain: str = "api", until_ns: int = 1, **key: str
) -> Override:
    """An override; a rate is `UNITS/s` or `UNITS/min`."""
    number, _, period = (rate or "").partition("/")
    limit = Rate(int(number), {"s": SECOND, "min": MINUTE}[period]) if rate else None
    return Override(domain, rule, tuple(sorted(key.items())), limit, shadow, until_ns, "why", "who")


def under(*overrides: Override, rules: str = RULES) -> RuleSet:
    """The rules with these laid over them."""
    return parse_rules([("rules.yaml", rules), (TEXT, encode(overrides))])


def rule_for(ruleset: RuleSet, name: str, *key: str) -> Rule:
    """What a rule is for a key, the same for those who know only the encoded key."""
    rule = ruleset.rule("api", name)
    assert rule is not None
    found = rule.for_key(key)
    assert rule.for_encoded_key(encode_key(key)) is found
    return found


def limit_for(ruleset: RuleSet, name: str, *key: str) -> RateLimit:
    """The limit that counts."""
    limit = rule_for(ruleset, name, *key).limit
    assert isinstance(limit, RateLimit)
    return limit


def test_a_number_lowers_the_keys_that_have_the_values_and_no_others() -> None:
    """Some values of the key are enough; each quota gets the number, and keeps its burst as far as it may."""
    ruleset = under(over("calls", "30/s", tenant="contoso"))
    assert limit_for(ruleset, "calls", "contoso", "search") == RateLimit(30, SECOND, 25)
    assert limit_for(ruleset, "calls", "contoso", "mail") == RateLimit(30, SECOND, 25)
    assert limit_for(ruleset, "calls", "fabrikam", "search") == RateLimit(100, SECOND, 25)
    assert rule_for(ruleset, "calls", "fabrikam", "search") == rule_for(
        parse_rules([("rules.yaml", RULES)]), "calls", "fabrikam", "search"
    )


def test_an_override_never_raises() -> None:
    """quota = min(plan, operator): what the plan gives stands where it is less."""
    ruleset = under(over("calls", "50/s"))
    assert limit_for(ruleset, "calls", "contoso", "x").units == 50
    assert limit_for(ruleset, "calls", "nobody", "x").units == 2


def test_of_several_that_hit_a_key_the_least_counts() -> None:
    """By rule, by part of the key, by the whole key, of all rules."""
    laid = (
        over("calls", "80/s"),
        over("calls", "60/s", tenant="contoso"),
        over("calls", "40/s", tenant="contoso", api="search"),
        over(ALL_RULES, "90/s", domain="", tenant="contoso"),
        over(ALL_RULES, "20/s", domain="", tenant="fabrikam"),
    )
    for order in (laid, laid[::-1]):
        ruleset = under(*order)
        assert limit_for(ruleset, "calls", "contoso", "search").units == 40
        assert limit_for(ruleset, "calls", "contoso", "mail").units == 60
        assert limit_for(ruleset, "calls", "fabrikam", "mail").units == 20
        assert limit_for(ruleset, "pay", "pay").units == 10


@pytest.mark.parametrize("name, key", [("calls", ("contoso", "x")), ("pay", ("pay",)), ("shed", ("1.2.3.4",))])
def test_a_rate_of_0_admits_no_cost_whatever_the_mode(name: str, key: tuple[str, ...]) -> None:
    """The edge knows by itself: no cost is possible, so nothing crosses."""
    rule = rule_for(under(over(name, "0/s")), name, *key)
    assert (rule.limit, rule.cost_max, rule.divided, rule.planned) == (RateLimit(0, SECOND, 0), 0, False, False)


def test_a_rule_without_a_limit_can_be_blocked() -> None:
    """Nothing else can be laid over it: there is nothing that counts."""
    assert limit_for(under(over("free-for-all", "0/s")), "free-for-all", "free") == RateLimit(0, SECOND, 0)


def test_a_lower_number_reaches_what_each_edge_may_and_the_largest_cost() -> None:
    """No edge alone passes the number; a cost above the burst is impossible."""
    rule = rule_for(under(over("shed", "6/min")), "shed", "1.2.3.4")
    assert (rule.limit, rule.at_each_edge) == (RateLimit(6, MINUTE, 20), RateLimit(6, MINUTE, 20))
    ruleset = under(over("calls", "21/s"))
    rule = rule_for(ruleset, "calls", "contoso", "x")
    assert (rule.limit, rule.divided, rule.cost_max) == (RateLimit(21, SECOND, 21), True, 21)


def test_shadow_decides_another_way_and_matches_as_before() -> None:
    """A specific rule under shadow still sets the general one aside: break-glass must not have another rule refuse."""
    rules = """
version: 1
domain: api
rules:
  - {name: all, match: {tenant: "*"}, key: [tenant], limit: {rate: 1/s}, enforce: region, when_unavailable: [deny]}
  - {name: big, match: {tenant: contoso}, key: [tenant], limit: {rate: 9/s}, enforce: region, when_unavailable: [deny]}
"""
    ruleset = under(over("big", shadow=True), rules=rules)
    assert [(each.rule.name, each.rule.shadow) for each in met(ruleset.domains["api"], tenant="contoso")] == [
        ("big", True)
    ]
    everything = under(over(ALL_RULES, shadow=True, domain=""), rules=rules)
    assert [each.rule.shadow for each in met(everything.domains["api"], tenant="x")] == [True]
    assert limit_for(everything, "all", "x").units == 1


def met(domain: Domain, **dimensions: str) -> tuple[Application, ...]:
    """What a request comes down to."""
    return apply_rules(Matcher(domain), (Descriptor(dimensions),), whole=False)


def test_overrides_of_rules_or_dimensions_that_are_gone_are_passed_over() -> None:
    """The rules file may change under them."""
    ruleset = under(over("gone", "0/s"), over("pay", "0/s", tenant="x"), over("pay", "0/s", domain="other"))
    assert limit_for(ruleset, "pay", "pay").units == 10


def test_the_text_is_read_back_and_a_damaged_one_is_refused_by_name() -> None:
    """As a rules file is: nobody goes by half of it."""
    laid = (over("pay", "0/s"), over(ALL_RULES, shadow=True, domain="", until_ns=7), over("calls", "5/min", tenant="ß"))
    assert decode(encode(laid)) == laid
    for text in ("", "{", "[1]", '[{"rule": "pay"}]', encode(laid).replace('"units": 0', '"units": -1')):
        with pytest.raises(RulesError, match="/overrides:1: the overrides cannot be read"):
            parse_rules([("rules.yaml", RULES), (TEXT, text)])


def test_the_digest_is_of_files_and_overrides() -> None:
    """So each change of either is a version of its own."""
    digests = {parse_rules([("rules.yaml", RULES)]).digest, under(over("pay", "0/s")).digest, under().digest}
    assert len(digests) == 3


def test_what_divides_a_quota_waits_for_its_plan_and_a_block_does_not() -> None:
    """As for rules files (design 8), key by key; also where only the keys of the overrides differ."""
    base = under(over("calls", "30/s", tenant="contoso"))
    newest = under(over("calls", "30/s", tenant="fabrikam"), over("calls", "0/s", tenant="contoso", api="x"))
    between = interim(base, newest)
    assert between is not newest
    assert limit_for(between, "calls", "contoso", "search").units == 30
    assert limit_for(between, "calls", "fabrikam", "search").units == 100
    assert limit_for(between, "calls", "contoso", "x").units == 0


def test_the_allocator_divides_by_the_lower_number() -> None:
    """Under the id of the quota, whatever else the rule gives to other keys; a block is not divided."""
    limits = Limits(under(over("calls", "30/s", tenant="contoso"), over("calls", "0/s", tenant="fabrikam")))
    quotas = [Quota("api", "calls", encode_key(key)) for key in (("contoso", "x"), ("fabrikam", "x"), ("nobody", "x"))]
    assert [limits.divides(quota) for quota in quotas] == [True, False, False]


def test_enforce_stays() -> None:
    """A lease below what is worth dividing is decided in the store, as a rules file with that number would have it."""
    rule = rule_for(under(over("calls", "19/s")), "calls", "contoso", "x")
    assert (rule.enforce, rule.divided, rule.limit) == (Enforce.LEASE, False, RateLimit(19, SECOND, 25))
