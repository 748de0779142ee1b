"""C17: integers of 32, 53, 63 and 64 bits. Parts (a), (b), (d) and the engine's side of (e), in one process."""

from pathlib import Path

import pytest

from apportion import RulesError
from tests.in_process import ManualClock, limiter_of, rule_text

T = {"tenant": "t"}


def test_32_bits_full_of_units_pass_at_once_and_not_one_more(tmp_path: Path) -> None:
    """(a) 4294967295 of 4294967295, then 1."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("wide", "rate: 4294967295/s, burst: 4294967295"))
    everything, one = limiter.decide(T, 4294967295), limiter.decide(T, 1)
    assert (everything.allowed, everything.remaining, one.allowed) == (True, 0, False)


def test_the_largest_cost_does_not_wrap(tmp_path: Path) -> None:
    """(b) 2^64-1 at a limit of 10 is refused and charges nothing; 1 passes and leaves 9."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("ten", "rate: 10/s"))
    largest, one = limiter.decide(T, 2**64 - 1), limiter.decide(T, 1)
    assert (largest.allowed, largest.reason) == (False, "impossible")
    assert (one.allowed, one.remaining) == (True, 9)


def test_a_burst_that_doubles_cannot_hold_is_refused_with_the_maximum(tmp_path: Path) -> None:
    """(d) 2^53+1: a store's script would round it."""
    with pytest.raises(RulesError, match=r"9[_,]?007[_,]?199[_,]?254"):
        limiter_of(tmp_path, ManualClock(), rule_text("wide", f"rate: {2**53 + 1}/s, burst: {2**53 + 1}"))


def test_single_hits_near_the_largest_burst_are_exact(tmp_path: Path) -> None:
    """(d) All but two units at once, then one, one, and no more."""
    most = 9_007_199_254
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("wide", f"rate: 1000/s, burst: {most}"))
    assert [limiter.decide(T, cost).allowed for cost in (most - 2, 1, 1, 1)] == [True, True, True, False]


def test_remaining_above_32_bits_is_told_whole(tmp_path: Path) -> None:
    """(e) At the highest rate there is, with the case's burst. The engine is exact; only RLS's answer saturates."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("wide", "rate: 4294967295/s, burst: 8000000000"))
    assert limiter.decide(T).remaining == 7_999_999_999
