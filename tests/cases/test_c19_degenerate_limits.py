"""C19: zero, unlimited, enormous and tiny limits, in one process. Parts (a) to (e)."""

from pathlib import Path

import pytest

from tests.in_process import ManualClock, limiter_of, rule_text

T = {"tenant": "t"}


def test_a_limit_of_zero_refuses_all_and_stores_nothing(tmp_path: Path) -> None:
    """(a) Three times, no wait promised."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("blocked", "rate: 0/s"))
    assert limiter._only is not None
    for _ in range(3):
        refused = limiter.decide(T)
        assert (refused.allowed, refused.reason, refused.retry_after) == (False, "impossible", None)
    assert limiter._only.keys == 0


def test_unlimited_admits_all_and_counts_nothing(tmp_path: Path) -> None:
    """(b) A thousand, and no counter."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("free", "unlimited: true"))
    assert limiter._only is not None
    assert all(limiter.decide(T).allowed for _ in range(1000))
    assert limiter._only.keys == 0


def test_beside_an_unlimited_rule_the_finite_one_decides(tmp_path: Path) -> None:
    """(c) 5 of 7."""
    limiter = limiter_of(
        tmp_path,
        ManualClock(),
        rule_text("free", "unlimited: true"),
        rule_text("five", "rate: 5/s", match="tenant api"),
    )
    request = {"tenant": "t", "api": "a"}
    assert [limiter.decide(request).allowed for _ in range(7)] == [True] * 5 + [False] * 2


def test_an_enormous_limit_admits(tmp_path: Path) -> None:
    """(d) 2,000,000,000/s: all of 1000."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("wide", "rate: 2000000000/s"))
    assert all(limiter.decide(T).allowed for _ in range(1000))


@pytest.mark.parametrize("rate", range(1, 10))
def test_a_tiny_limit_admits_its_first_call(tmp_path: Path, rate: int) -> None:
    """(e) 1 to 9 per minute with the default burst: never a burst of 0."""
    assert limiter_of(tmp_path, ManualClock(), rule_text("tiny", f"rate: {rate}/min")).decide(T).allowed
