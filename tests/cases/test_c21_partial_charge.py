"""C21: one rule over its limit, and the others charged all the same. In one process."""

from pathlib import Path
from threading import Thread

from apportion import Decision, Limiter
from tests.in_process import ManualClock, limiter_of, rule_text

GROUP = {"group": "g"}
BOTH = {"group": "g", "special": "s"}


def limiter(folder: Path) -> Limiter:
    """group 10/min, special 3/min."""
    return limiter_of(
        folder,
        ManualClock(),
        rule_text("group", "rate: 10/min, burst: 10", match="group"),
        rule_text("special", "rate: 3/min, burst: 3", match="special"),
    )


def test_a_refused_request_leaves_the_wider_limit_whole(tmp_path: Path) -> None:
    """Three of five with both pass; the statuses of the others say special over, group OK with 7; then 7 of 8 pass."""
    limits = limiter(tmp_path)
    decisions = [limits.decide(BOTH) for _ in range(5)]
    assert [decision.allowed for decision in decisions] == [True, True, True, False, False]
    for refused in decisions[3:]:
        assert [(v.rule.name, v.allowed, v.remaining) for v in refused.verdicts] == [
            ("group", True, 7),
            ("special", False, 0),
        ]
    assert [limits.decide(GROUP).allowed for _ in range(8)] == [True] * 7 + [False]


def test_in_parallel_the_totals_are_the_same(tmp_path: Path) -> None:
    """Five threads at once."""
    limits = limiter(tmp_path)
    decisions: list[Decision] = []
    threads = [Thread(target=lambda: decisions.append(limits.decide(BOTH))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(decision.allowed for decision in decisions) == 3
    assert [limits.decide(GROUP).allowed for _ in range(8)] == [True] * 7 + [False]
