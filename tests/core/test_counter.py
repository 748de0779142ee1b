"""What is counted of a period quota: a count of one period, a ring of a rolling window's parts."""

import random

from apportion.core.counter import PARTS, Count, Ring

SECOND = 1_000_000_000
LENGTH = PARTS * SECOND
"""A window whose parts are seconds."""


def test_a_count_waits_for_the_end_of_its_period() -> None:
    """7 of 10 used in a period of 60 s: 3 fit now, 4 at the end, 11 never."""
    count = Count(0, 60 * SECOND)
    count.charge(7)
    assert [count.wait_ns(10, cost, 20 * SECOND) for cost in (3, 4, 11)] == [0, 40 * SECOND, None]
    assert (count.reset_ns(20 * SECOND), count.reset_ns(61 * SECOND), count.over_ns) == (40 * SECOND, 0, 60 * SECOND)


def test_what_is_given_back_never_makes_less_than_nothing_used() -> None:
    """3 of 7, then 9 of 4."""
    count = Count(0, SECOND)
    count.charge(7)
    count.give_back(3)
    assert count.used == 4
    count.give_back(9)
    assert count.used == 0


def test_a_lowered_allowance_waits_however_much_was_used() -> None:
    """8 used, 5 allowed: one more fits at the end."""
    count = Count(0, SECOND, 8)
    assert count.wait_ns(5, 1, 0) == SECOND
    ring = Ring(LENGTH, 0)
    ring.charge(8)
    assert ring.wait_ns(5, 1, 0) == (PARTS + 1) * SECOND


def test_a_ring_counts_the_oldest_part_whole() -> None:
    """A unit of the last nanosecond of a part leaves with the part, more than a window after it; not before."""
    ring = Ring(LENGTH, SECOND - 1)
    ring.charge(4)
    assert ring.begin(LENGTH + SECOND - 1) == 4
    assert ring.begin(LENGTH + SECOND) == 0


def test_a_ring_waits_until_enough_parts_have_left() -> None:
    """1 unit in second 0, 8 in second 59 of 10 in two minutes: two more fit when the first has left."""
    ring = Ring(LENGTH, 0)
    ring.charge(1)
    ring.begin(59 * SECOND)
    ring.charge(8)
    now_ns = 60 * SECOND
    ring.begin(now_ns)
    first, second = (PARTS + 1) * SECOND, (59 + PARTS + 1) * SECOND
    assert [ring.wait_ns(10, cost, now_ns) for cost in (1, 2, 3, 10, 11)] == [
        0,
        first - now_ns,
        second - now_ns,
        second - now_ns,
        None,
    ]
    assert ring.over_ns == second
    assert ring.reset_ns(now_ns) == second - now_ns
    assert ring.begin(first) == 8
    assert ring.begin(second) == 0
    assert (ring.over_ns, ring.reset_ns(second)) == (0, 0)


def test_a_ring_that_is_asked_about_an_earlier_time_answers_as_of_the_latest() -> None:
    """It never forgets by going back."""
    ring = Ring(LENGTH, 50 * SECOND)
    ring.charge(3)
    assert ring.begin(20 * SECOND) == 3
    ring.charge(2)
    assert ring.begin(50 * SECOND) == 5


def test_a_ring_equals_a_log_that_is_read_part_by_part() -> None:
    """Over 50 walks of uneven steps."""
    for seed in range(50):
        rng = random.Random(seed)
        ring, now_ns = Ring(LENGTH, 0), 0
        log: list[tuple[int, int]] = []
        for _ in range(100):
            now_ns += rng.choice((0, rng.randrange(SECOND), rng.randrange(LENGTH // 4), LENGTH))
            expected = sum(units for at, units in log if at // SECOND >= now_ns // SECOND - PARTS)
            assert ring.begin(now_ns) == expected
            assert ring.used == sum(units for _, units in ring.parts)
            units = rng.randrange(4)
            ring.charge(units)
            log.append((now_ns, units))
            wait_ns = ring.wait_ns(ring.used, 1, now_ns)
            if ring.used:
                assert wait_ns is not None
                assert ring.reset_ns(now_ns) >= wait_ns > 0
