"""The epoch clock: follows the region's labels on a local clock, never back."""

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.epoch import EpochClock
from apportion.core.limit import EPOCH_NS

T0 = 7 * EPOCH_NS
MILLISECOND = 1_000_000


def test_before_the_first_message_no_epoch_is_known() -> None:
    """None, and no error."""
    clock = EpochClock()
    assert (clock.now(T0), clock.known, clock.error_ns()) == (None, None, 0)


def test_it_rolls_by_itself() -> None:
    """Epoch 41 lasts 300 ms more: 42 begins then, 43 a second later, with no further message."""
    clock = EpochClock()
    assert clock.observe(41, 300 * MILLISECOND, T0) == 41
    instants = (299_999_999, 300_000_000, 1_299_999_999, 1_300_000_000)
    assert [clock.now(T0 + instant) for instant in instants] == [41, 42, 42, 43]
    assert clock.left_ns(T0 + 1_300_000_000) == EPOCH_NS


def test_the_message_that_travelled_fastest_sets_the_border() -> None:
    """A late message moves nothing; an early one moves the border forward in time, to where it really is."""
    clock = EpochClock()
    clock.observe(10, 500 * MILLISECOND, T0 + 80 * MILLISECOND)
    assert clock.start_ns(11) == T0 + 580 * MILLISECOND
    clock.observe(11, 500 * MILLISECOND, T0 + 1_005 * MILLISECOND)
    assert clock.start_ns(12) == T0 + 1_505 * MILLISECOND
    clock.observe(12, 500 * MILLISECOND, T0 + 2_200 * MILLISECOND)
    assert clock.start_ns(13) == T0 + 2_505 * MILLISECOND
    assert clock.error_ns() == 195 * MILLISECOND


def test_the_fastest_of_the_last_30_counts_no_older_one() -> None:
    """A drifting clock is followed: the offset of the first message is forgotten with the 31st."""
    clock = EpochClock()
    clock.observe(0, EPOCH_NS, T0)
    for epoch in range(1, 30):
        clock.observe(epoch, EPOCH_NS, T0 + epoch * EPOCH_NS + 50 * MILLISECOND)
    assert clock.start_ns(0) == T0
    clock.observe(30, EPOCH_NS, T0 + 30 * EPOCH_NS + 50 * MILLISECOND)
    assert clock.start_ns(0) == T0 + 50 * MILLISECOND


def test_it_jumps_forward_when_a_message_names_a_later_epoch() -> None:
    """The region skipped labels after it lost its store."""
    clock = EpochClock()
    clock.observe(5, EPOCH_NS, T0)
    assert clock.observe(9, EPOCH_NS, T0 + 10 * MILLISECOND) == 9
    assert clock.now(T0 + 20 * MILLISECOND) == 9


def test_it_never_goes_back_whatever_a_message_or_the_clock_says() -> None:
    """An older label, an older instant."""
    clock = EpochClock()
    clock.observe(9, EPOCH_NS, T0)
    assert clock.observe(3, EPOCH_NS, T0 + MILLISECOND) == 9
    assert clock.now(T0 - 5 * EPOCH_NS) == 9
    assert clock.left_ns(T0 - 5 * EPOCH_NS) == EPOCH_NS


steps = st.integers(-3 * EPOCH_NS, 3 * EPOCH_NS)
messages = st.none() | st.tuples(st.integers(0, 50), st.integers(0, EPOCH_NS))


@given(st.lists(st.tuples(steps, messages), max_size=80))
def test_for_any_messages_and_any_clock_it_never_goes_back(ops: list[tuple[int, tuple[int, int] | None]]) -> None:
    """And never says less than a message just did, nor that more than a second is left."""
    clock, now_ns, before = EpochClock(), 100 * EPOCH_NS, -(10**9)
    for step, message in ops:
        now_ns += step
        current = clock.now(now_ns) if message is None else clock.observe(*message, now_ns)
        if current is None:
            continue
        assert current >= before
        assert message is None or current >= message[0]
        assert 0 <= clock.left_ns(now_ns) <= EPOCH_NS
        before = current
