"""C23: two rules never share a counter unknowingly. In one process; in (a) an hour stands in for a day."""

from pathlib import Path

from tests.in_process import SECOND, ManualClock, limiter_of, rule_text


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


def test_requests_and_tokens_of_one_tenant_have_separate_state(tmp_path: Path) -> None:
    """(b) in rate form, 500 requests and 200,000 tokens a minute: after 100 requests and 150,000 tokens in minute 0,
    one request of 150,000 tokens at t = 61 passes; right after it another does not, for its tokens alone.
    """
    clock = ManualClock()
    limiter = limiter_of(
        tmp_path,
        clock,
        rule_text("tenant-requests", "rate: 500/min, burst: 500"),
        rule_text("tenant-tokens", "rate: 200000/min, burst: 200000", more=", counts: tokens"),
    )
    start_ns = clock.now_ns
    for number in range(100):
        clock.now_ns = start_ns + number * SECOND // 2
        assert limiter.decide({"tenant": "t"}, cost={"requests": 1, "tokens": 1_500})
    clock.now_ns = start_ns + 61 * SECOND
    assert limiter.decide({"tenant": "t"}, cost={"requests": 1, "tokens": 150_000})
    refused = limiter.decide({"tenant": "t"}, cost={"requests": 1, "tokens": 150_000})
    assert (refused.allowed, refused.rule) == (False, "tenant-tokens")
    assert {v.rule.name: v.remaining for v in refused.verdicts} == {"tenant-requests": 499, "tenant-tokens": 50_000}
