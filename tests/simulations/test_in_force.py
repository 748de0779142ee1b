"""Which limit an epoch is judged by while limits change: 100/s with a burst of 25, then another from epoch 5 on."""

from __future__ import annotations

import pytest

from apportion.simulations.in_force import InForce
from apportion.simulations.world import SECOND
from tests.simulations.written import ruled, rules, texts, unlimited

K = ("k",)


def limit(limits: InForce, epoch: int) -> tuple[float, int] | None:
    """Rate and burst of an epoch."""
    found = limits.limit("search", epoch, K)
    return None if found is None else (found.per_second, found.burst)


def test_one_limit_is_in_force_in_each_epoch() -> None:
    """Also in the first; a rule that nobody wrote has none."""
    limits = InForce(rules(), [])
    assert [limit(limits, epoch) for epoch in (0, 1, 1_000_000)] == [(100, 25)] * 3
    assert limits.limit("other", 5, K) is None
    assert limits.per_second("other", 0) == float("inf")
    assert not limits.changing


@pytest.mark.parametrize(
    "rate, burst, by_epoch",
    [
        ("50/s", None, {4: (100, 25), 5: (100, 25), 7: (100, 25), 8: (50, 20), 9: (50, 20)}),
        ("200/s", None, {4: (100, 25), 5: (200, 50), 7: (200, 50), 8: (200, 50)}),
        ("50/s", "40", {4: (100, 25), 5: (100, 40), 7: (100, 40), 8: (50, 40)}),
    ],
)
def test_the_largest_in_force(rate: str, burst: str | None, by_epoch: dict[int, tuple[float, int]]) -> None:
    """The former limit may be for two epochs after the change, and then no more; rate and burst each by itself."""
    limits = InForce(rules(), [ruled(5, texts(rate, burst=burst))])
    assert {epoch: limit(limits, epoch) for epoch in by_epoch} == by_epoch
    assert limits.changing


def test_two_changes_within_two_epochs() -> None:
    """100/s, 60/s from epoch 5, 80/s from 6: each for two epochs after the next one."""
    limits = InForce(rules(), [ruled(5, texts("60/s")), ruled(6, texts("80/s"))])
    assert [each.limit for each in limits.rules("search", 6, K)] == [
        rule.limit for rate in ("100/s", "60/s", "80/s") for rule in rules(rate).domains["simulated"].rules
    ]
    assert [limit(limits, epoch) for epoch in (7, 8, 9)] == [(100, 25), (80, 20), (80, 20)]


def test_where_there_was_no_limit_none_is_exceeded() -> None:
    """Until two epochs after there is one."""
    limits = InForce(rules(), [ruled(5, unlimited()), ruled(8, texts("50/s"))])
    assert [limit(limits, epoch) for epoch in (4, 5, 10, 11)] == [(100, 25), None, None, (50, 20)]


def test_the_limit_of_an_instant() -> None:
    """From the change on the new one: nobody who admits as much as it says is idle. None is infinite."""
    limits = InForce(rules(), [ruled(5, texts("90/min")), ruled(6, unlimited())])
    assert [limits.per_second("search", at_ns) for at_ns in (0, 5 * SECOND - 1)] == [100, 100]
    assert [limits.per_second("search", at_ns) for at_ns in (5 * SECOND, 6 * SECOND - 1)] == [1.5, 1.5]
    assert limits.per_second("search", 6 * SECOND) == float("inf")


def test_the_largest_within_a_second() -> None:
    """Rate and burst together: 125, and 50 + 40 once the former has been gone for two seconds."""
    limits = InForce(rules(), [ruled(5, texts("50/s", burst="40"))])
    ends = [(-1, 0), (3.5, 4.5), (4, 5), (6.999, 7.999), (7, 8), (9, 10)]
    found = [limits.largest_within("search", int(start * SECOND), int(end * SECOND), K) for start, end in ends]
    assert found == [125, 125, 140, 140, 90, 90]
    without = InForce(rules(), [ruled(5, unlimited())])
    assert without.largest_within("search", 5 * SECOND, 6 * SECOND, K) == float("inf")
