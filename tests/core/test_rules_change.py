"""Rules while they change: what holds at once, what waits for its plan."""

from apportion.core.rule import Enforce, Rule
from apportion.core.rules_change import RulesInForce, interim
from apportion.core.rules_file import parse_rules


def rules(*lines: str) -> str:
    """A file of these rules."""
    return "version: 1\ndomain: api\nrules:\n" + "".join(f"  - {line}\n" for line in lines)


def lease(name: str, rate: str, enforce: str = "lease") -> str:
    """A rule by its name."""
    limit = rate if rate.startswith("{") else f"{{rate: {rate}}}"
    return (
        f"{{name: {name}, match: {{{name}: '*'}}, key: [{name}], limit: {limit}, enforce: {enforce}, "
        "when_unavailable: [deny]}"
    )


def in_force(base: str, newest: str, keep_removed: bool = False) -> RulesInForce:
    """Version 1 divides, version 2 has come."""
    change = RulesInForce(1, parse_rules([("a.yaml", base)]), keep_removed)
    assert change.adopt(2, parse_rules([("a.yaml", newest)]))
    return change


def rule(change: RulesInForce, name: str) -> Rule | None:
    """What decides now."""
    return change.effective.rule("api", name)


def units(change: RulesInForce, name: str) -> object:
    """The limit's units of what decides now."""
    found = rule(change, name)
    return getattr(found.limit, "units", "unlimited") if found else None


def test_a_number_of_an_undivided_quota_holds_at_once() -> None:
    """`region`: 10/s to 20/s is 20 right away, and nothing waits."""
    change = in_force(rules(lease("a", "10/s", "region")), rules(lease("a", "20/s", "region")))
    assert (units(change, "a"), change.complete) == (20, True)


def test_a_number_of_a_divided_quota_waits_for_its_plan() -> None:
    """Slices of the former number are in many hands until a plan names the version."""
    change = in_force(rules(lease("a", "100/s")), rules(lease("a", "40/s")))
    assert (units(change, "a"), change.complete) == (100, False)
    assert not change.follow(1)
    assert change.follow(2)
    assert (units(change, "a"), change.complete) == (40, True)


def test_zero_unlimited_and_removed_hold_at_once() -> None:
    """Nobody may spend from a rule of 0, and nobody counts what has no limit."""
    change = in_force(
        rules(lease("a", "100/s"), lease("b", "100/s"), lease("c", "100/s")),
        rules(lease("a", "0/s"), lease("b", "{unlimited: true}")),
    )
    assert (units(change, "a"), units(change, "b"), rule(change, "c")) == (0, "unlimited", None)
    assert change.complete


def test_leaving_zero_or_unlimited_holds_at_once() -> None:
    """There are no slices of the former rule, so nothing has to be waited for (C19f)."""
    change = in_force(
        rules(lease("a", "0/s"), lease("b", "{unlimited: true}")), rules(lease("a", "50/s"), lease("b", "50/s"))
    )
    assert (units(change, "a"), units(change, "b"), change.complete) == (50, 50, True)


def test_a_change_of_enforce_waits_for_its_plan() -> None:
    """Everybody turns in the same epoch."""
    change = in_force(rules(lease("a", "10/s", "region")), rules(lease("a", "100/s")))
    found = rule(change, "a")
    assert found is not None
    assert (found.enforce, units(change, "a"), change.complete) == (Enforce.REGION, 10, False)
    assert change.follow(2)
    assert change.complete


def test_unrelated_edits_and_another_order_make_nothing_wait() -> None:
    """Only what a rule says counts, not where it stands."""
    one, two = lease("a", "100/s"), lease("b", "100/s")
    change = in_force(rules(one, two), rules(two, one, lease("c", "30/s")))
    assert change.complete


def test_a_region_still_answers_for_a_rule_that_is_gone() -> None:
    """Requests that left before their edge heard of it are decided as ever, until the next plan."""
    change = in_force(rules(lease("a", "10/s", "region"), lease("b", "10/s")), rules(lease("b", "10/s")), True)
    assert units(change, "a") == 10
    assert change.follow(2)
    assert rule(change, "a") is None


def test_versions_only_rise() -> None:
    """An old version changes nothing, and a plan of one that was never heard of is not followed."""
    base = parse_rules([("a.yaml", rules(lease("a", "100/s")))])
    change = RulesInForce(3, base)
    assert not change.adopt(3, base)
    assert not change.follow(4)
    assert interim(base, base) is base


def test_of_two_changes_in_a_row_the_plan_of_the_first_is_followed() -> None:
    """100 to 60 to 30 before a plan: 60 holds in the epoch that was divided by 60."""
    change = in_force(rules(lease("a", "100/s")), rules(lease("a", "60/s")))
    assert change.adopt(3, parse_rules([("a.yaml", rules(lease("a", "30/s")))]))
    assert units(change, "a") == 100
    assert change.follow(2)
    assert units(change, "a") == 60
    assert change.follow(3)
    assert (units(change, "a"), change.complete) == (30, True)
