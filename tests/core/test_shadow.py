"""Shadow rules in the engine and in matching: counted as if enforced, and nothing is otherwise than without them."""

import pytest

from apportion.core.bounds import bound_of
from apportion.core.engine import Engine
from apportion.core.match import Matcher
from apportion.core.match_reasons import crossings, reasons
from apportion.core.rule import Enforce
from apportion.core.rules_file import parse_rules
from tests.in_process import SECOND, T0, domain_of, engine_of, rule_of, rule_text

ENFORCED = rule_text("enforced", "rate: 10/s, burst: 5")
SHADOW = rule_text("tried", "rate: 1/s, burst: 2", key="", more=", shadow: true")
A = {"tenant": "a"}


def test_a_request_of_shadow_rules_alone_passes_and_is_counted() -> None:
    """Two fit, the third would be refused; nothing decides."""
    engine = engine_of(SHADOW)
    decisions = [engine.decide(A, None, T0) for _ in range(3)]
    assert [(d.allowed, d.rule, d.would_deny) for d in decisions] == [
        (True, None, ()), (True, None, ()), (True, None, ("tried",)),
    ]  # fmt: skip


def test_what_an_enforced_rule_refuses_is_not_counted() -> None:
    """As if it were enforced: a refused request charges nothing."""
    engine = engine_of(rule_text("none", "rate: 0/s"), SHADOW)
    decisions = [engine.decide(A, None, T0) for _ in range(4)]
    assert [(d.allowed, d.rule, d.would_deny) for d in decisions] == [(False, "none", ())] * 4
    assert [v.remaining for v in decisions[-1].verdicts if v.shadow] == [2]


def test_shadow_rules_do_not_change_what_another_counts() -> None:
    """Each predicts being enforced by itself: one that would refuse leaves the other to count."""
    other = rule_text("wider", "rate: 1/s, burst: 4", key="", more=", shadow: true")
    engine = engine_of(ENFORCED, SHADOW, other)
    decisions = [engine.decide(A, None, T0) for _ in range(6)]
    assert [d.allowed for d in decisions] == [True] * 5 + [False]
    assert [d.would_deny for d in decisions] == [(), (), ("tried",), ("tried",), ("tried", "wider"), ("tried", "wider")]


def test_shadow_keys_take_no_room_from_others() -> None:
    """The table of enforced rules has room for two keys; those of a shadow rule are kept elsewhere."""
    engine = engine_of(
        ENFORCED, rule_text("by-api", "rate: 1/s", match="tenant api", more=", shadow: true"), keys_max=2
    )
    for number in range(5):
        assert engine.decide({"tenant": "a", "api": f"{number}"}, 0 if number else None, T0).allowed
    assert engine.decide({"tenant": "b", "api": "x"}, None, T0).allowed
    assert engine.keys_full == 0


def test_a_peek_charges_no_shadow_rule() -> None:
    """Whatever the cost."""
    engine = engine_of(SHADOW)
    for _ in range(3):
        assert engine.decide(A, 1, T0, peek=True).would_deny == ()


def test_it_drains_as_if_enforced() -> None:
    """A second later one unit has come back."""
    engine = engine_of(SHADOW)
    for _ in range(3):
        engine.decide(A, None, T0)
    later = T0 + SECOND
    assert [engine.decide(A, None, later).would_deny for _ in range(2)] == [(), ("tried",)]


HEAD = "version: 1\ndomain: api\nrules:\n"


@pytest.mark.parametrize("specific_is_shadow", [True, False])
def test_a_shadow_rule_sets_no_enforced_rule_aside(specific_is_shadow: bool) -> None:
    """A more specific one that is enforced sets a shadow aside, as it will once that is enforced."""
    wide = f"match: {{path: '/*'}}, key: [path], shadow: {str(not specific_is_shadow).lower()}"
    narrow = f"match: {{path: '/a*'}}, key: [path], shadow: {str(specific_is_shadow).lower()}"
    text = HEAD + "".join(
        f"  - {{name: {name}, {fields}, limit: {{rate: 1/s}}, enforce: region, when_unavailable: [deny]}}\n"
        for name, fields in (("narrow", narrow), ("wide", wide))
    )
    domain = parse_rules([("rules.yaml", text)]).domains["api"]
    expected = ["narrow", "wide"] if specific_is_shadow else ["narrow"]
    assert [rule.name for rule in Matcher(domain).match({"path": "/ab"}, whole=True)] == expected
    assert [reason.rule.name for reason in reasons(domain, {"path": "/ab"}, whole=True) if reason.applies] == expected
    assert not list(crossings(domain, 10))


def test_a_candidate_is_its_target_but_for_what_it_says() -> None:
    """It inherits match, key, enforce and all else, and is a shadow; several may try the same requests."""
    target = (
        '  - {name: t, match: {tenant: "*"}, key: [tenant], limit: {rate: 10/s}, enforce: lease, deadline: 50ms, '
        "when_unavailable: [deny], cost: {default: 2}}\n"
    )
    candidates = "".join(
        f"  - {{name: c{rate}, candidate_for: t, limit: {{rate: {rate}/s}}{more}}}\n"
        for rate, more in ((8, ""), (6, ", deadline: 20ms"))
    )
    rules = parse_rules([("a.yaml", HEAD + candidates), ("b.yaml", HEAD + target)])
    eight, six = rules.rule("api", "c8"), rules.rule("api", "c6")
    assert eight is not None and six is not None
    assert (eight.shadow, eight.key, eight.enforce, eight.deadline_ns, eight.cost_default) == (
        True, ("tenant",), Enforce.LEASE, 50_000_000, 2,
    )  # fmt: skip
    assert (six.deadline_ns, six.place.file, six.place.line) == (20_000_000, "a.yaml", 5)
    engine = Engine(rules.domains["api"])
    decisions = [engine.decide(A, None, T0) for _ in range(5)]
    assert [d.allowed for d in decisions] == [True] * 5
    assert [d.would_deny for d in decisions] == [(), (), (), ("c6",), ("c6", "c8")]


def test_the_bound_says_that_it_is_a_shadow() -> None:
    """With the number that it would have."""
    bound = bound_of(rule_of(SHADOW, name="tried"))
    assert bound.units == 0
    assert bound.sentence.startswith(
        "Shadow: refuses nobody, counted as if enforced. Then: By label: over by at most 0"
    )
    assert not domain_of(ENFORCED).rules[0].shadow
