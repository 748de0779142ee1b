"""C16: a cost of zero is a peek; a cost left out is the rule's default. In one process."""

from pathlib import Path

from tests.in_process import ManualClock, limiter_of, rule_text

TWO = rule_text("two", "rate: 2/min, burst: 2")
T = {"tenant": "t"}


def test_a_cost_left_out_is_one(tmp_path: Path) -> None:
    """(a) Two pass, the third does not."""
    limiter = limiter_of(tmp_path, ManualClock(), TWO)
    assert [(d.allowed, d.remaining) for d in (limiter.decide(T) for _ in range(3))] == [
        (True, 1),
        (True, 0),
        (False, 0),
    ]


def test_a_cost_of_zero_looks_and_charges_nothing(tmp_path: Path) -> None:
    """(b) Also at an exhausted limit, where 0 fits in 0 (D1); a peek makes no key."""
    limiter = limiter_of(tmp_path, ManualClock(), TWO)
    assert limiter._only is not None
    seen = []
    for cost in (0, 0, 2, 0):
        decision = limiter.decide(T, cost)
        seen.append((decision.allowed, decision.remaining, decision.verdicts[0].charged, limiter._only.keys))
    assert seen == [(True, 2, False, 0), (True, 2, False, 0), (True, 0, True, 1), (True, 0, False, 1)]
