"""By how much a small log is over 100/s with a burst of 25, by label and in a true second, worked out by hand."""

from __future__ import annotations

from apportion.simulations.rows import Row
from tests.simulations.written import admitted, by_second, figures, ruled, rules, texts, unlimited


def test_overshoot_by_label() -> None:
    """A burst may be had once: 125 and 100 are within the limit, 125 and 101 are not. Nothing is left out."""
    assert figures([admitted(0.5, 125), admitted(1.5, 100)], 2).overshoot_label == 0
    assert figures([admitted(0.5, 125), admitted(1.5, 101)], 2, warm_up=2).overshoot_label == 1
    assert figures([admitted(0.5, 125), admitted(2.5, 125)], 3).overshoot_label == 0
    assert figures([admitted(0.5, 70), admitted(1.0, 70, 1, epoch=0)], 2).overshoot_label == 15


def test_overshoot_is_the_worst_keys() -> None:
    """Each key has its meter: 130 and 128 are over by 5 and 3."""
    rows: list[Row] = [admitted(0.5, 130, key="a"), admitted(0.5, 128, key="b"), admitted(0.5, 100, key="c")]
    assert figures(rows, 1).overshoot_label == 5


def test_overshoot_in_a_true_second() -> None:
    """130 within 0.9 s, whatever their labels; a second apart they are in no one second. Each key has its own."""
    first = admitted(0.5, 100)
    assert figures([first, admitted(1.4, 30)], 2, warm_up=2).overshoot_true_second == 5
    assert figures([admitted(1.6, 1), first, admitted(1.4, 30)], 2).overshoot_true_second == 5
    assert figures([first, admitted(1.5, 30)], 2).overshoot_true_second == 0
    other = [admitted(1.4, 125, key="other"), admitted(3.5, 128, key="other"), admitted(3.6, 126, key="third")]
    assert figures([first, *other[:1]], 2).overshoot_true_second == 0
    assert figures([*other, first], 4).overshoot_true_second == 3


def test_a_part_of_a_unit_over_is_a_unit() -> None:
    """1/min entitles to 1 and a sixtieth in a second: the second unit is over, by label and by second."""
    slow = rules("1/min", "region", "1")
    found = figures([admitted(0.5, 1), admitted(0.6, 1)], 1, of=slow)
    assert (found.overshoot_label, found.overshoot_true_second) == (1, 1)
    third = rules("80/min", "region", "1")  # 4/3 + 1
    assert [figures([admitted(0.5, cost)], 1, of=third).overshoot_true_second for cost in (2, 3, 4)] == [0, 1, 2]


def test_without_a_limit_nothing_is_over() -> None:
    """From the epoch on in which the limit went, by label and by second; all that was asked might be admitted."""
    found = figures([ruled(2, unlimited()), *by_second([0, 0, 1_000], [0, 0, 900])], 3)
    assert (found.overshoot_label, found.overshoot_true_second, found.utilisation) == (0, 0, 0.9)


def test_a_lower_limit_judges_when_it_is_enforced() -> None:
    """50/s, burst 20, from epoch 2 on: what might be admitted falls at once, the bound two epochs later."""
    changed = ruled(2, texts("50/s"))  # the run begins then
    lower = figures([changed, *by_second([100], [50])], 1)
    assert lower.utilisation == 1.0
    assert figures([changed, admitted(4.5, 100)], 6).overshoot_label == 0
    assert figures([changed, admitted(5.5, 100)], 6).overshoot_label == 100 - 50 - 20
