"""Space-Saving keeps its guarantee for whatever is counted, with any number of counters."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.space_saving import SpaceSaving

STREAMS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), max_size=120)


@given(STREAMS, st.integers(1, 8))
def test_counts_are_above_the_truth_by_at_most_their_error_and_that_by_at_most_a_counters_part(
    stream: list[tuple[int, int]], counters: int
) -> None:
    """units - error <= true <= units, and error <= N / m."""
    truth, summary = Counter[int](), SpaceSaving[int](counters)
    for key, units in stream:
        truth[key] += units
        summary.add(key, units)
        total = sum(truth.values())
        assert summary.total == total
        for counted in summary.heaviest(counters):
            assert counted.units - counted.error <= truth[counted.key] <= counted.units
            assert counted.error * counters <= total


@given(STREAMS, st.integers(1, 8))
def test_every_key_with_more_than_a_counters_part_is_kept(stream: list[tuple[int, int]], counters: int) -> None:
    """true > N / m has a counter, and there are never more counters than that."""
    truth, summary = Counter[int](), SpaceSaving[int](counters)
    for key, units in stream:
        truth[key] += units
        summary.add(key, units)
    kept = [counted.key for counted in summary.heaviest(100)]
    assert len(kept) == len(set(kept)) <= counters
    assert {key for key, units in truth.items() if units * counters > summary.total} <= set(kept)


def test_with_a_counter_for_each_key_it_counts_exactly() -> None:
    """The heaviest first, no more than were asked for."""
    summary = SpaceSaving[str](3)
    for key, units in (("a", 1), ("b", 5), ("c", 2), ("a", 3), ("b", 1)):
        summary.add(key, units)
    assert [(each.key, each.units, each.error) for each in summary.heaviest(2)] == [("b", 6, 0), ("a", 4, 0)]


def test_a_new_key_takes_the_lightest_counter_with_what_that_had() -> None:
    """What the former key had is the new one's error."""
    summary = SpaceSaving[str](2)
    for key, units in (("a", 4), ("b", 3), ("b", 2), ("c", 1)):
        summary.add(key, units)
    assert [(each.key, each.units, each.error) for each in summary.heaviest(2)] == [("b", 5, 0), ("c", 5, 4)]
