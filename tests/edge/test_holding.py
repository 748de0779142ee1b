"""One quota at one edge: units in hand, what the region said of it, and demand for borrowing ahead."""

from apportion.core.limit import EPOCH_NS, RateLimit
from apportion.core.messages import Outcome
from apportion.edge.holding import Holding
from apportion.edge.ids import Ids
from apportion.edge.taken import Taken
from tests.edge.by_hand import MS, T0, member, over, quota, rule

FULL = 50 * 1_000_000
"""Backlog of a full bucket of `lease`: 100/s, burst 50, a period of a million ticks."""


def holding() -> Holding:
    """A fresh holding of the rule `lease`."""
    return holding_of("lease")


def holding_of(name: str) -> Holding:
    """One of another rule, with the limit of `lease`."""
    limit = rule("lease").limit
    assert isinstance(limit, RateLimit)
    return Holding(Ids(), rule(name), limit, quota(name))


def test_a_slice_fills_evenly_up_to_its_depth() -> None:
    """40 units, depth 20: nothing at the epoch's start, 4 after 100 ms, never more than 20 at once."""
    held = holding()
    held.begin(7, 40, T0)
    assert [held.in_hand(7, T0 + at * MS) for at in (0, 100, 500, 900)] == [0, 4, 20, 20]


def test_a_slice_is_given_once() -> None:
    """Beginning the same epoch again adds nothing."""
    held = holding()
    held.begin(7, 40, T0)
    taken = held.take(20, 7, T0 + 500 * MS)
    held.begin(7, 40, T0)
    assert taken == Taken(7, 20, borrowed=False)
    assert held.in_hand(7, T0 + 500 * MS) == 0


def test_a_slice_is_no_right_in_another_epoch() -> None:
    """Neither before nor after its own."""
    held = holding()
    held.begin(7, 40, T0)
    now = T0 + 900 * MS
    assert (held.in_hand(6, now), held.in_hand(8, now), held.take(1, 8, now)) == (0, 0, None)


def test_a_level_is_carried_over_the_border_and_clipped() -> None:
    """20 in hand at the end; the next slice of 8 has depth 5, so 5 at once at its start."""
    held = holding()
    held.begin(7, 40, T0)
    held.begin(8, 8, T0 + EPOCH_NS)
    assert held.in_hand(8, T0 + EPOCH_NS) == 5


def test_the_budget_binds_however_full_the_level() -> None:
    """A slice of 8 is worth 8 in all, at whatever pace."""
    held = holding()
    held.begin(7, 8, T0)
    spent = 0
    for at in range(1000):
        spent += held.take(1, 7, T0 + at * MS) is not None
    assert spent == 8 - 1  # the last one's time comes with the end of the epoch


def test_what_was_taken_can_be_put_back_under_its_label_only() -> None:
    """Within the epoch the units are there again; after it they are void."""
    held = holding()
    held.begin(7, 40, T0)
    now = T0 + 500 * MS
    taken = held.take(20, 7, now)
    assert taken is not None
    held.put_back(taken)
    assert held.in_hand(7, now) == 20
    taken = held.take(20, 7, now)
    assert taken is not None
    held.begin(8, 40, T0 + EPOCH_NS)
    level = held.in_hand(8, T0 + EPOCH_NS)
    held.put_back(taken)
    assert held.in_hand(8, T0 + EPOCH_NS) == level


def test_units_lent_are_whole_at_once_and_void_with_their_epoch() -> None:
    """Lent 4: 4 in hand; what a later label brings replaces them, what an earlier one brings is nothing."""
    held = holding()
    held.lend(7, 4)
    assert (held.in_hand(7, T0), held.in_hand(8, T0)) == (4, 0)
    assert held.take(3, 7, T0) == Taken(7, 3, borrowed=True)
    held.lend(7, 2)
    assert held.in_hand(7, T0) == 3
    held.lend(8, 1)
    held.lend(7, 50)
    assert (held.in_hand(7, T0), held.in_hand(8, T0)) == (0, 1)


def test_lent_units_put_back_are_there_again() -> None:
    """Void only when another label's units came meanwhile."""
    held = holding()
    held.lend(7, 4)
    taken = held.take(3, 7, T0)
    assert taken is not None
    held.put_back(taken)
    assert held.in_hand(7, T0) == 4
    taken = held.take(4, 7, T0)
    assert taken is not None
    held.lend(8, 1)
    held.put_back(taken)
    assert held.in_hand(8, T0) == 1


def test_the_backlog_rules_out_each_cost_for_its_own_time() -> None:
    """Full: 1 unit fits after 10 ms, 10 after 100, 50 after 500; one above the burst is not the backlog's business."""
    held = holding_of("exact")
    held.learn(member(backlog=FULL), 1, T0, T0)
    assert [held.refusal_ns(cost, EPOCH_NS, T0) for cost in (1, 10, 50)] == [10 * MS, 100 * MS, 500 * MS]
    assert held.refusal_ns(51, EPOCH_NS, T0) is None
    assert held.refusal_ns(1, EPOCH_NS, T0 + 10 * MS) is None


def test_waits_are_ruled_out_from_the_question_and_told_from_the_answer() -> None:
    """Asked at T0, answered 30 ms later: at 40 ms, 10 units are refused, told 130; at 100 they may pass."""
    held = holding()
    held.learn(member(Outcome.OVER_LIMIT, wait_ns=100 * MS, backlog=FULL), 10, T0, T0 + 30 * MS)
    assert held.refusal_ns(10, EPOCH_NS, T0 + 40 * MS) == 90 * MS
    assert held.refusal_ns(10, EPOCH_NS, T0 + 100 * MS) is None


def test_a_refusal_holds_for_its_cost_and_larger_ones() -> None:
    """A pool that has no 10 units may have 9; when it has 11 it did not say, so that is told for the next epoch."""
    held = holding()
    held.learn(over(250, store=False), 10, T0, T0)
    waits = [held.refusal_ns(cost, 400 * MS, T0) for cost in (9, 10, 11)]
    assert waits == [None, 250 * MS, 400 * MS + 220 * MS]


def test_a_backlog_says_nothing_of_a_label() -> None:
    """A divided quota that is lent directly has a bucket and a label, which may be spent before the bucket is."""
    held = holding()
    held.learn(member(backlog=FULL), 1, T0, T0)
    assert held.refusal_ns(1, EPOCH_NS, T0) is None


def test_remaining_grows_with_time_up_to_the_burst() -> None:
    """Unknown at first; empty at the answer, 10 units after 100 ms, 50 at most."""
    held = holding()
    assert held.region_remaining(T0) is None
    held.learn(member(backlog=FULL), 1, T0, T0)
    assert [held.region_remaining(T0 + at * MS) for at in (0, 100, 5000)] == [0, 10, 50]


def test_a_clock_that_steps_back_gives_nothing() -> None:
    """Neither units nor room."""
    held = holding()
    held.begin(7, 40, T0)
    assert held.in_hand(7, T0 + 100 * MS) == 4
    assert held.in_hand(7, T0 - 500 * MS) == 4
    held.learn(member(backlog=FULL), 1, T0, T0)
    assert held.region_remaining(T0 - EPOCH_NS) == 0


def test_what_is_asked_ahead_is_the_demand_of_the_last_50_ms() -> None:
    """Of 30 units 25 ms ago and 10 now: all 40 while they are in the window, then a share of the past, then nothing."""
    held = holding()
    held.offer(30, T0 + 20 * MS)
    held.offer(10, T0 + 45 * MS)
    assert held.ahead(EPOCH_NS, T0 + 45 * MS) == 40
    assert held.ahead(EPOCH_NS, T0 + 75 * MS) == 20
    assert held.ahead(EPOCH_NS, T0 + 160 * MS) == 0


def test_no_more_is_asked_ahead_than_the_epoch_can_use() -> None:
    """10 ms are left: a fifth of 50 ms of demand."""
    held = holding()
    held.offer(40, T0)
    assert held.ahead(10 * MS, T0) == 8


def test_a_holding_is_idle_once_its_hold_is_over() -> None:
    """Forgetting it earlier would let a request cross that the region told to wait."""
    held = holding()
    held.used = 7
    held.learn(over(900, store=False), 1, T0, T0)
    assert not held.idle(8, T0 + 899 * MS)
    assert held.idle(8, T0 + 900 * MS)
