"""Limits: default bursts, ticks, what an epoch is worth, and values that cannot be built."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.limit import BACKLOG_MAX, EPOCH_NS, RateLimit, burst_max, ceil_div, default_burst, tick_ns

SECOND, MINUTE, HOUR, DAY = EPOCH_NS, 60 * EPOCH_NS, 3600 * EPOCH_NS, 86_400 * EPOCH_NS


@pytest.mark.parametrize(
    "units, period_ns, burst",
    [
        (10_000, SECOND, 2_500),
        (200, SECOND, 50),
        (10, SECOND, 10),
        (1, MINUTE, 1),
        (20, SECOND, 20),
        (100, SECOND, 25),
        (9, MINUTE, 9),
        (1000, HOUR, 20),
        (0, SECOND, 0),
    ],
)
def test_default_burst(units: int, period_ns: int, burst: int) -> None:
    """A quarter second's worth, at least min(n, 20) (design 4.1)."""
    assert default_burst(units, period_ns) == burst


@pytest.mark.parametrize(
    "period_ns, tick, ticks",
    [
        (SECOND, 1_000, 1_000_000),
        (MINUTE, 1_000, 60_000_000),
        (HOUR, 1_000_000, 3_600_000),
        (DAY, 1_000_000, 86_400_000),
    ],
)
def test_a_tick_is_a_microsecond_up_to_a_minute_and_a_millisecond_above(period_ns: int, tick: int, ticks: int) -> None:
    """So that stores that count in doubles are exact."""
    assert tick_ns(period_ns) == tick
    assert RateLimit(1, period_ns, 1).period_ticks == ticks


def test_the_largest_burst_keeps_the_backlog_below_2_to_the_53() -> None:
    """One unit more is refused, with the maximum in the text."""
    assert burst_max(SECOND) == 9_007_199_254
    assert burst_max(SECOND) * 1_000_000 < BACKLOG_MAX <= (burst_max(SECOND) + 1) * 1_000_000
    RateLimit(1, SECOND, burst_max(SECOND))
    with pytest.raises(ValueError, match="9007199254"):
        RateLimit(1, SECOND, burst_max(SECOND) + 1)


@pytest.mark.parametrize(
    "units, period_ns, burst",
    [(-1, SECOND, 1), (1, SECOND, -1), (1, 0, 1), (1, -SECOND, 1), (1, 1_500, 1), (0, SECOND, 1), (1, SECOND, 0)],
)
def test_values_that_cannot_be_computed_exactly_are_refused(units: int, period_ns: int, burst: int) -> None:
    """Negative, no period, a part of a tick, and a rate of 0 with a burst or a burst of 0 with a rate."""
    with pytest.raises(ValueError):  # noqa: PT011 - the texts are for us, not for a user
        RateLimit(units, period_ns, burst)


def test_a_third_of_a_unit_an_epoch_is_one_every_third_epoch() -> None:
    """The fraction is carried to the next epoch, none is lost."""
    assert [RateLimit(20, MINUTE, 20).units_in_epoch(epoch) for epoch in range(6)] == [0, 0, 1, 0, 0, 1]
    assert [RateLimit(25, 10 * SECOND, 20).units_in_epoch(epoch) for epoch in range(4)] == [2, 3, 2, 3]


@given(
    st.integers(0, 10**9),
    st.sampled_from([SECOND, 7 * SECOND, MINUTE, HOUR]),
    st.integers(0, 2**32),
    st.integers(0, 200),
)
def test_epochs_sum_to_the_rate(units: int, period_ns: int, first: int, count: int) -> None:
    """Any run of epochs gives what the rate gives in that time, within one unit; the first k give floor(k x rate)."""
    limit = RateLimit(units, period_ns, min(units, 20))
    total = sum(limit.units_in_epoch(epoch) for epoch in range(first, first + count))
    exact = count * units * EPOCH_NS
    assert abs(total * period_ns - exact) < period_ns
    assert sum(limit.units_in_epoch(epoch) for epoch in range(count)) == exact // period_ns


@pytest.mark.parametrize(
    "units, period_ns, divided", [(20, SECOND, True), (19, SECOND, False), (1200, MINUTE, True), (1199, MINUTE, False)]
)
def test_quotas_of_20_units_a_second_and_more_can_be_divided(units: int, period_ns: int, divided: bool) -> None:
    """By their rate, however it is written."""
    assert RateLimit(units, period_ns, 1).can_be_divided is divided


def test_drain_time_is_rounded_up() -> None:
    """A full backlog of 1 at 3/s is gone after 333333333.33 ns; one of a rate of 0 has nothing to drain."""
    assert RateLimit(3, SECOND, 1).drain_ns == 333_333_334
    assert RateLimit(0, SECOND, 0).drain_ns == 0


@given(st.integers(-(2**80), 2**80), st.integers(1, 2**80))
def test_ceil_div_is_exact_for_ints_of_any_size(dividend: int, divisor: int) -> None:
    """The smallest whole number that is not less than the quotient."""
    quotient = ceil_div(dividend, divisor)
    assert quotient * divisor >= dividend > (quotient - 1) * divisor
