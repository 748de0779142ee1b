"""The exact integer bucket, held to fractions and to values worked out by hand."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.bucket import Bucket, retry_after_ns
from apportion.core.limit import RateLimit
from tests.contract.exact import ExactBucket, costs, durations, limits

SECOND = 1_000_000_000
T0 = 1_800_000_000 * SECOND
TEN_A_MINUTE = RateLimit(10, 60 * SECOND, 10)


@given(st.data())
def test_equals_fractions_to_the_bit(data: st.DataObject) -> None:
    """Whatever is asked whenever, also by a clock that steps back, backlog and answers are those of exact fractions."""
    limit = data.draw(limits())
    bucket, exact, now = Bucket(limit, T0), ExactBucket(limit, T0), T0
    for _ in range(data.draw(st.integers(1, 12))):
        now += data.draw(durations(limit)) * data.draw(st.sampled_from((1, 1, 1, -1)))
        cost = data.draw(costs(limit))
        admitted = bucket.admits(cost, now)
        assert admitted == (exact.take(cost, 1, now) == 1)
        if admitted:
            bucket.charge(cost)
        assert Fraction(bucket.backlog, limit.period_ticks) == exact.used
        assert bucket.remaining() == int(limit.burst - exact.used)


@given(st.data())
def test_a_caller_that_waits_as_told_is_admitted_and_one_tick_earlier_is_not(data: st.DataObject) -> None:
    """`retry_after_ns` is the least wait in whole ticks."""
    limit = data.draw(limits())
    bucket = Bucket(limit, T0)
    bucket.charge(data.draw(st.integers(1, limit.burst)))
    cost = data.draw(st.integers(1, limit.burst))
    wait = bucket.retry_after_ns(cost)
    assert wait is not None
    if wait:
        assert not Bucket(limit, T0, bucket.backlog).admits(cost, T0 + wait - limit.tick_ns)
    assert bucket.admits(cost, T0 + wait)


@given(st.data())
def test_a_bucket_that_waits_for_its_reset_is_full(data: st.DataObject) -> None:
    """`reset_after_ns` is the least wait until the whole burst fits."""
    limit = data.draw(limits())
    bucket = Bucket(limit, T0, data.draw(st.integers(1, limit.burst * limit.period_ticks)))
    reset = bucket.reset_after_ns()
    assert Bucket(limit, T0, bucket.backlog).drain(T0 + reset - limit.tick_ns) > 0
    assert bucket.drain(T0 + reset) == 0


def test_a_burst_passes_at_once_and_then_a_unit_each_six_seconds() -> None:
    """10/min: ten now, the eleventh after 6 s and not a microsecond earlier."""
    bucket = Bucket(TEN_A_MINUTE, T0)
    assert bucket.admits(10, T0)
    bucket.charge(10)
    assert (bucket.remaining(), bucket.backlog) == (0, 600_000_000)
    assert bucket.retry_after_ns(1) == 6 * SECOND
    assert bucket.reset_after_ns() == 60 * SECOND
    assert not bucket.admits(1, T0 + 6 * SECOND - 1)
    assert bucket.admits(1, T0 + 6 * SECOND)


def test_a_fraction_of_a_unit_is_never_lost() -> None:
    """3 in 10 s asked each second: in 100 s exactly 30 pass after the burst, none lost to rounding."""
    bucket = Bucket(RateLimit(3, 10 * SECOND, 2), T0)
    bucket.charge(2)
    admitted = 0
    for second in range(1, 101):
        if bucket.admits(1, T0 + second * SECOND):
            bucket.charge(1)
            admitted += 1
    assert admitted == 30
    assert bucket.backlog == bucket.capacity


def test_what_can_never_fit_promises_nothing() -> None:
    """A cost above the burst, and any cost at a rate of zero."""
    assert Bucket(TEN_A_MINUTE, T0).retry_after_ns(11) is None
    assert retry_after_ns(RateLimit(0, SECOND, 0), 0, 1) is None


def test_a_refund_never_makes_more_than_full() -> None:
    """Taking back more than stands leaves an empty backlog."""
    bucket = Bucket(TEN_A_MINUTE, T0)
    bucket.charge(2)
    bucket.refund(5)
    assert bucket.backlog == 0
