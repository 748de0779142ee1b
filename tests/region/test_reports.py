"""Numbers of reports already added: a set, kept as ranges."""

from hypothesis import given
from hypothesis import strategies as st

from apportion.region.reports import RANGES_MAX, REPORTS_KEPT_NS, Numbers, Reports


@given(st.lists(st.integers(0, 30)))
def test_it_is_a_set(numbers: list[int]) -> None:
    """Each number is new once, in whatever order; ranges neither touch nor overlap."""
    kept, seen = Numbers(), set[int]()
    for number in numbers:
        assert kept.add(number) == (number not in seen)
        seen.add(number)
    firsts, lasts = kept.ranges[::2], kept.ranges[1::2]
    assert [n for first, last in zip(firsts, lasts, strict=True) for n in range(first, last + 1)] == sorted(seen)
    assert all(last + 1 < first for last, first in zip(lasts, firsts[1:], strict=False))


def test_numbers_in_a_row_take_one_range() -> None:
    """An hour of reports is as small as one."""
    numbers = Numbers()
    for number in range(3600):
        numbers.add(number)
    assert numbers.ranges == [0, 3599]


def test_with_too_many_gaps_the_lowest_counts_as_seen() -> None:
    """Bounded, and in the safe direction: nothing is added twice."""
    numbers = Numbers()
    for number in range(0, 4 * RANGES_MAX, 2):
        numbers.add(number)
    assert len(numbers.ranges) == 2 * RANGES_MAX
    assert not numbers.add(1)
    assert numbers.add(4 * RANGES_MAX - 3)


def test_a_source_is_forgotten_some_time_after_its_last_report() -> None:
    """Not while it reports, and never within the hour that is promised."""
    reports = Reports()
    reports.add(1, 1, 0)
    reports.add(2, 1, 0)
    reports.add(1, 2, REPORTS_KEPT_NS)
    assert not reports.add(2, 1, REPORTS_KEPT_NS)
    reports.add(1, 3, 2 * REPORTS_KEPT_NS + 1)
    assert len(reports) == 1
    assert not reports.add(1, 1, 2 * REPORTS_KEPT_NS + 1)
