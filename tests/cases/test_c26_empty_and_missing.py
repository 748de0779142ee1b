"""C26: the empty value is a value with a count of its own; an absent one matches nothing (core part)."""

from __future__ import annotations

from apportion.core.engine import Engine
from apportion.core.match import Matcher, apply_rules
from apportion.core.request import Descriptor
from apportion.core.rule import Domain
from apportion.core.rules_file import parse_rules

RULES = """
version: 1
domain: api
rules:
  - name: any-key
    match: {api_key: "*"}
    key: [api_key]
    limit: {rate: 1/min, burst: 1}
    enforce: region
    when_unavailable: [deny]
  - name: vip
    match: {api_key: vip}
    key: [api_key]
    limit: {rate: 5/min, burst: 5}
    enforce: region
    when_unavailable: [deny]
"""


def domain() -> Domain:
    """The case's rules."""
    return parse_rules([("rules.yaml", RULES)]).domains["api"]


def test_the_empty_value_has_its_own_count() -> None:
    """Twice "": OK, OVER; twice "x": OK, OVER; neither sees the other."""
    engine = Engine(domain())
    answers = [engine.decide({"api_key": value}, 1, 0).allowed for value in ("", "", "x", "x")]
    assert answers == [True, False, True, False]


def test_the_more_specific_value_has_its_own_rule() -> None:
    """vip has five, not one."""
    engine = Engine(domain())
    answers = [engine.decide({"api_key": "vip"}, 1, 0) for _ in range(6)]
    assert [answer.allowed for answer in answers] == [True] * 5 + [False]
    assert answers[5].rule == "vip"


def test_an_absent_value_is_allowed_with_no_limit_reported() -> None:
    """No rule applies, which can be seen."""
    answer = Engine(domain()).decide({"other": "x"}, 1, 0)
    assert (answer.allowed, answer.rule, answer.limit, answer.verdicts) == (True, None, None, ())


def test_a_request_without_descriptors_meets_no_rule() -> None:
    """The front door refuses it; here it is nothing."""
    assert apply_rules(Matcher(domain()), [], whole=True) == ()
    assert apply_rules(Matcher(domain()), [Descriptor({})], whole=True) == ()
