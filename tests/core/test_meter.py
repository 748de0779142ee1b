"""The meter of overshoot by label (design 4.1), in exact ticks."""

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.meter import Meter

MINUTE = 60 * EPOCH_NS


def record(limit: RateLimit, divided: bool, admitted: list[tuple[int, int]]) -> tuple[list[int], Meter]:
    """Over in each of these (epoch, admitted), and the meter."""
    meter = Meter(limit, divided)
    return [meter.record(epoch, units) for epoch, units in admitted], meter


def test_one_a_minute_with_burst_5_entitles_to_five_at_once() -> None:
    """The sixth in the same epoch is 59/60 over, rounded up to 1; Q_k is 1/60, never 0."""
    limit = RateLimit(1, MINUTE, 5)
    assert record(limit, False, [(0, 5)])[0] == [0]
    assert record(limit, False, [(0, 6)])[0] == [1]
    assert record(limit, False, [(0, 5), (1, 1)])[0] == [0, 1]


def test_one_a_minute_gives_the_next_unit_after_a_minute() -> None:
    """One per 60 epochs behind a burst of 5 is never over; one per 59 is."""
    limit = RateLimit(1, MINUTE, 5)
    assert record(limit, False, [(0, 5), *((60 * k, 1) for k in range(1, 20))])[1].worst == 0
    overs, meter = record(limit, False, [(0, 5), *((58 * k, 1) for k in range(1, 20))])
    assert (max(overs), meter.worst) == (1, 1)


def test_epochs_that_were_passed_over_drain_and_credit_no_more_than_the_burst() -> None:
    """A gap of an hour gives the burst back, not sixty units."""
    limit = RateLimit(1, MINUTE, 5)
    assert record(limit, False, [(0, 5), (3600, 5)])[0] == [0, 0]
    assert record(limit, False, [(0, 5), (3600, 7)])[0] == [0, 2]


def test_overshoot_is_forgiven_once_counted() -> None:
    """X is clipped to the burst before the next epoch: 10 over in one epoch is not 10 over in each that follows."""
    overs, meter = record(RateLimit(10, EPOCH_NS, 10), False, [(0, 30), (1, 10), (2, 11)])
    assert (overs, meter.worst) == ([10, 0, 1], 10)


def test_a_divided_quota_has_whole_units_with_the_fraction_carried() -> None:
    """25 per 10 s with burst 1: quotas 2, 3, 2, 3; one label above its quota shows, though the burst covers it."""
    limit = RateLimit(25, 10 * EPOCH_NS, 1)
    overs, meter = record(limit, True, [(0, 2), (1, 3), (2, 2), (3, 3)])
    assert (overs, meter.above_quota) == ([0, 0, 0, 0], 0)
    overs, meter = record(limit, True, [(0, 3), (1, 2)])
    assert (overs, meter.above_quota) == ([0, 0], 1)


def test_every_epoch_of_an_undivided_quota_is_worth_the_same() -> None:
    """90 a minute is 1.5 in each: 22 at once in an odd epoch are half a unit over; divided, that epoch is worth 2."""
    limit = RateLimit(90, MINUTE, 20)
    assert record(limit, False, [(1, 22)])[0] == [1]
    assert record(limit, True, [(1, 22)])[0] == [0]


def test_before_the_first_epoch_nothing_is_known_of_labels() -> None:
    """None, which is not 0; and an idle label is below its quota."""
    meter = Meter(RateLimit(100, EPOCH_NS, 25), True)
    assert (meter.above_quota, meter.worst) == (None, 0)
    meter.record(7, 0)
    assert meter.above_quota == -100


def test_the_first_epoch_may_have_any_number() -> None:
    """Nothing before it counts."""
    assert record(RateLimit(100, EPOCH_NS, 25), True, [(10**12, 125)])[0] == [0]
    assert record(RateLimit(100, EPOCH_NS, 25), True, [(10**12, 126)])[0] == [1]
