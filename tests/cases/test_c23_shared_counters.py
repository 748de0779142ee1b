"""C23: two rules never share a counter unknowingly. Part (a), in one process; an hour stands in for a day."""

from pathlib import Path

from tests.in_process import ManualClock, limiter_of, rule_text


def test_three_rules_that_meet_in_one_request_count_each_for_itself(tmp_path: Path) -> None:
    """(a) Any method 1000/min, this method 10/min and 250/hour: of 12 calls exactly 10 pass, 990 and 240 remain."""
    limiter = limiter_of(
        tmp_path,
        ManualClock(),
        rule_text("any-method", "rate: 1000/min, burst: 1000"),
        rule_text("method-hour", "rate: 250/hour, burst: 250", match="tenant method"),
        rule_text("method-minute", "rate: 10/min, burst: 10", match="tenant method"),
    )
    request = {"tenant": "t", "method": "m"}
    assert [limiter.decide(request).allowed for _ in range(12)] == [True] * 10 + [False] * 2
    remaining = {v.rule.name: v.remaining for v in limiter.decide(request, 0).verdicts}
    assert remaining == {"any-method": 990, "method-hour": 240, "method-minute": 0}
