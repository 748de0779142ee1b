"""Decisions as values: which rule decides, and what is said where nothing is known."""

import pytest

from apportion.core.decision import Decision, Reason, Scope, Verdict
from apportion.core.limit import RateLimit
from tests.in_process import SECOND, rule_of, rule_text

WIDE = rule_of(rule_text("wide", "rate: 100/s, burst: 100"), name="wide")
NARROW = rule_of(rule_text("narrow", "rate: 10/s, burst: 10"), name="narrow")
FREE = rule_of(rule_text("free", "unlimited: true"), name="free")
KEY = ("a",)


def over(rule: str, wait_ns: int | None, reason: Reason = Reason.OVER_LIMIT) -> Verdict:
    """A refusal by one of the rules."""
    return Verdict({"wide": WIDE, "narrow": NARROW}[rule], KEY, 1, False, retry_after_ns=wait_ns, reason=reason)


def test_on_admission_the_rule_with_the_least_remaining_of_its_limit_decides() -> None:
    """2 of 10 is less than 30 of 100; the number of units alone does not matter."""
    wide = Verdict(WIDE, KEY, 1, True, charged=True, remaining=30)
    narrow = Verdict(NARROW, KEY, 1, True, charged=True, remaining=4)
    assert Decision(True, (narrow, wide)).rule == "wide"
    assert Decision(True, (wide, narrow)).remaining == 30


def test_a_rule_that_knows_its_remaining_decides_before_one_that_does_not() -> None:
    """An unlimited one included."""
    unknown = Verdict(NARROW, KEY, 1, True)
    free = Verdict(FREE, KEY, 1, True)
    known = Verdict(WIDE, KEY, 1, True, remaining=100)
    assert Decision(True, (unknown, free, known)).rule == "wide"


def test_on_refusal_the_longest_wait_decides_and_impossible_before_all() -> None:
    """A rule that admits never decides a refusal."""
    admits = Verdict(WIDE, KEY, 1, True, remaining=0)
    assert Decision(False, (over("wide", 5), over("narrow", 7))).rule == "narrow"
    impossible = Decision(False, (over("wide", None, Reason.IMPOSSIBLE), over("narrow", 7), admits))
    assert (impossible.rule, impossible.reason, impossible.retry_after) == ("wide", "impossible", None)
    assert Decision(False, (admits, over("narrow", 7))).rule == "narrow"


def test_times_are_in_seconds_and_the_limit_is_the_deciding_rules() -> None:
    """1.5 s from 1,500,000,000 ns."""
    decision = Decision(
        False,
        (
            Verdict(
                NARROW,
                KEY,
                1,
                False,
                remaining=0,
                scope=Scope.REGION,
                retry_after_ns=SECOND * 3 // 2,
                reset_after_ns=2 * SECOND,
                reason=Reason.OVER_LIMIT,
            ),
        ),
    )
    assert (decision.retry_after, decision.reset_after, decision.remaining_scope) == (1.5, 2.0, "region")
    assert decision.limit == RateLimit(10, SECOND, 10)


def test_a_decision_without_rules_is_allowed_and_knows_nothing() -> None:
    """No rule, limit or remaining; and no wait."""
    decision = Decision(True, ())
    assert (decision.rule, decision.limit, decision.remaining, decision.remaining_scope) == (None, None, None, None)
    assert (decision.retry_after, decision.reset_after, decision.reason, decision.degraded) == (0.0, None, None, False)


def test_any_degraded_rule_makes_the_decision_degraded() -> None:
    """Also one that does not decide."""
    degraded = Verdict(WIDE, KEY, 1, True, remaining=90, degraded=True)
    assert Decision(True, (Verdict(NARROW, KEY, 1, True, remaining=0), degraded)).degraded


@pytest.mark.parametrize("allowed", [True, False])
def test_a_decision_is_as_true_as_it_is_allowed(allowed: bool) -> None:
    """`if limiter.decide(...)` reads as it should."""
    verdicts = (Verdict(WIDE, KEY, 1, True, remaining=1),) if allowed else (over("wide", 1),)
    assert bool(Decision(allowed, verdicts)) is allowed


def test_a_decision_shows_what_a_person_debugging_wants() -> None:
    """Rule, remaining, wait and reason."""
    assert repr(Decision(False, (over("narrow", SECOND),))) == (
        "Decision(allowed=False, rule='narrow', remaining=None, retry_after=1.0, reason='over_limit', degraded=False)"
    )
