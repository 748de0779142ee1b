"""`counts`: a rule counts one measure of a request, and what a request does not name costs the rule's default."""

from pathlib import Path

import pytest

from apportion.core.errors import InputError
from apportion.core.match import Matcher, apply_rules
from apportion.core.request import Cost, Descriptor, units_asked
from tests.in_process import T0, ManualClock, domain_of, engine_of, limiter_of, rule_of, rule_text

CALLS = rule_text("calls", "rate: 10/s, burst: 10")
TOKENS = rule_text("tokens", "rate: 1000/s, burst: 1000", more=", counts: tokens, cost: {default: 7}")
A = {"tenant": "a"}


@pytest.mark.parametrize(
    "cost, calls, tokens",
    [
        (None, 1, 7),
        (3, 3, 7),
        (0, 0, 0),
        ({"requests": 2, "tokens": 350}, 2, 350),
        ({"tokens": 350}, 1, 350),
        ({"requests": 0}, 0, 7),
        ({"tokens": 0}, 1, 0),
        ({"images": 5}, 1, 7),
        ({}, 1, 7),
    ],
)
def test_what_each_rule_is_asked(cost: Cost, calls: int, tokens: int) -> None:
    """One number is of requests, 0 a peek at all; a measure that nobody counts costs nothing."""
    rules = (rule_of(CALLS, TOKENS, name="calls"), rule_of(CALLS, TOKENS, name="tokens"))
    assert [units_asked(rule, cost) for rule in rules] == [calls, tokens]
    applied = apply_rules(Matcher(domain_of(CALLS, TOKENS)), [Descriptor(A, cost)], whole=True)
    assert [application.cost for application in applied] == [calls, tokens]


@pytest.mark.parametrize("cost", [None, 3, 1])
def test_the_engine_counts_each_by_its_own(cost: int | None) -> None:
    """By number or by none, again and again: also after the first request, when the key is known."""
    engine = engine_of(CALLS, TOKENS)
    for number in range(1, 4):
        left = {v.rule.name: v.remaining for v in engine.decide(A, cost, T0).verdicts}
        assert left == {"calls": 10 - (cost or 1) * number, "tokens": 1000 - 7 * number}


def test_several_descriptors_are_charged_with_the_sum_of_each_measure() -> None:
    """One rule and key hit twice."""
    applied = apply_rules(
        Matcher(domain_of(CALLS, TOKENS)), [Descriptor(A, {"tokens": 10}), Descriptor(A, {"tokens": 20})], whole=True
    )
    assert [(each.rule.name, each.cost) for each in applied] == [("calls", 2), ("tokens", 30)]


@pytest.mark.parametrize(
    "cost, sentence",
    [
        ({"tokens": -1}, "cost['tokens'] -1 (int) is below 0"),
        ({"tokens": 1.5}, "cost['tokens'] is a whole number of units, not 1.5 (float)"),
        ({"tokens": True}, "cost['tokens'] is a whole number of units, not True (bool)"),
        ({3: 1}, "cost names the measure 3 (int)"),
        ({"": 1}, "cost names the measure '' (str)"),
        ({f"m{number}": 1 for number in range(17)}, "cost names 17 measures, the most is 16"),
    ],
)
def test_wrong_costs_are_the_callers_error(tmp_path: Path, cost: Cost, sentence: str) -> None:
    """It names what is wrong, and charges nothing."""
    limiter = limiter_of(tmp_path, ManualClock(), CALLS)
    with pytest.raises(InputError) as error:
        limiter.decide(A, cost)
    assert sentence in str(error.value)
    assert limiter.decide(A, 0).remaining == 10
