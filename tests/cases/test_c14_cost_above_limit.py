"""C14: a cost above the limit, in one process. Part (a)."""

from pathlib import Path

from tests.in_process import ManualClock, limiter_of, rule_text


def test_a_cost_above_the_limit_is_refused_uncharged_and_without_a_promise(tmp_path: Path) -> None:
    """(a) 10/min: 5 passes, 100 never can, 5 passes and leaves 0."""
    limiter = limiter_of(tmp_path, ManualClock(), rule_text("calls", "rate: 10/min, burst: 10"))
    five, hundred, five_again = (limiter.decide({"tenant": "t"}, cost) for cost in (5, 100, 5))
    assert (five.allowed, five.remaining) == (True, 5)
    assert (hundred.allowed, hundred.reason, hundred.retry_after) == (False, "impossible", None)
    assert (five_again.allowed, five_again.remaining) == (True, 0)
