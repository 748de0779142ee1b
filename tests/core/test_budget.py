"""A holder's budget of one label: never above its part, smoothed, carried over a border and never refilled by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apportion.core.budget import DEPTH_MIN, Budget
from apportion.core.limit import EPOCH_NS

T0 = 3 * EPOCH_NS


def begun(part: int, burst: int, quota_units: int, now_ns: int = T0, epoch: int = 1) -> Budget:
    """A budget at the start of its first epoch."""
    budget = Budget(now_ns)
    budget.begin(epoch, part, burst, quota_units, now_ns)
    return budget


def test_a_new_holder_starts_with_nothing_and_fills_evenly() -> None:
    """100 of 200 units with burst 50: a depth of 25, one unit each 10 ms."""
    budget = begun(100, 50, 200)
    assert [budget.available(T0 + ms * 1_000_000) for ms in (0, 9, 10, 100, 250, 900)] == [0, 0, 1, 10, 25, 25]


@pytest.mark.parametrize(
    "part, burst, quota_units, depth", [(100, 50, 200, 25), (8, 50, 200, DEPTH_MIN), (3, 50, 200, 3), (0, 50, 200, 0)]
)
def test_the_depth_is_the_parts_share_of_the_burst_at_least_5_at_most_the_part(
    part: int, burst: int, quota_units: int, depth: int
) -> None:
    """A shallower one would refuse even traffic that comes in pairs."""
    assert begun(part, burst, quota_units).depth == depth


def test_the_label_is_bounded_whatever_the_level_says() -> None:
    """100 units an epoch: after all are spent nothing is left, however long one waits."""
    budget = begun(100, 100, 100)
    now_ns, spent = T0, 0
    for _ in range(300):
        now_ns += 10_000_000
        units = budget.available(now_ns)
        budget.take(units)
        spent += units
    assert (spent, budget.available(now_ns + EPOCH_NS)) == (100, 0)


def test_the_level_is_carried_over_a_border_not_refilled() -> None:
    """All that had filled was spent: the next label begins empty too, though its units are whole."""
    budget = begun(100, 100, 100)
    budget.take(budget.available(T0 + EPOCH_NS // 2))
    budget.take(budget.available(T0 + EPOCH_NS))
    budget.begin(2, 100, 100, 100, T0 + EPOCH_NS)
    assert (budget.units, budget.available(T0 + EPOCH_NS)) == (100, 0)


def test_a_level_above_the_new_depth_is_clipped() -> None:
    """A part that shrinks from 100 to 20 takes at most its own depth over the border."""
    budget = begun(100, 100, 100)
    budget.begin(2, 20, 100, 100, T0 + EPOCH_NS)
    assert budget.available(T0 + EPOCH_NS) == 20


def test_what_a_label_had_left_is_void_after_it() -> None:
    """Units are the new part's only."""
    budget = begun(100, 100, 100)
    budget.begin(2, 7, 100, 100, T0 + EPOCH_NS)
    assert budget.units == 7


def test_a_take_that_was_not_used_is_put_back_under_its_own_label_only() -> None:
    """Under a label that has passed it would be a unit of the next."""
    budget = begun(100, 100, 100)
    budget.available(T0 + EPOCH_NS)
    budget.take(30)
    budget.put_back(1, 10)
    assert budget.units == 80
    budget.begin(2, 100, 100, 100, T0 + EPOCH_NS)
    budget.put_back(1, 20)
    assert budget.units == 100


def test_what_is_given_up_is_no_longer_held_and_its_level_goes_with_it() -> None:
    """Of 100 with a depth of 25, full at half of the epoch, 60 go: what is kept has a depth of 10, so 15 of them could
    have been spent at once; the other 45 are of the 50 that would have come.
    """
    budget = begun(100, 25, 100)
    assert budget.available(T0 + EPOCH_NS // 2) == 25
    assert budget.give_up(60, T0 + EPOCH_NS // 2) == 15
    assert (budget.units, budget.part, budget.depth, budget.given_up) == (40, 40, 10, 60)
    assert (budget.available(T0 + EPOCH_NS // 2), budget.rate) == (10, 10)
    with pytest.raises(AssertionError):
        budget.give_up(41, T0 + EPOCH_NS // 2)


def test_what_others_gave_up_fills_here_by_the_end_of_the_epoch() -> None:
    """5 units are joined half-way by 60 with a level of 15: 16 are there at once, 45 more by the end, 9 in a tenth."""
    budget = begun(5, 25, 100)
    assert budget.available(T0 + EPOCH_NS // 2) == 2
    budget.add(60, 15, T0 + EPOCH_NS // 2)
    assert (budget.units, budget.depth) == (65, 16)
    assert budget.available(T0 + EPOCH_NS // 2) == 16
    budget.take(16)
    assert budget.rate == 5 + 90
    assert budget.available(T0 + EPOCH_NS * 6 // 10) == 9


def test_units_that_move_fill_as_fast_in_all_as_they_would_have_where_they_were() -> None:
    """Whatever moves and when: at the end as much has filled as without, to less than a unit for each."""
    for at in range(1, 9):
        for units in (1, 17, 40, 55):
            now_ns = T0 + at * EPOCH_NS // 10
            edge, pool = begun(60, 100, 100), begun(40, 100, 100)
            ready = edge.give_up(units, now_ns)
            pool.add(units, ready, now_ns)
            filled = sum(each.rate * (10 - at) / 10 + each.level / EPOCH_NS for each in (edge, pool))
            assert 98 < filled <= 100


def test_units_that_a_full_level_had_no_room_for_are_lost() -> None:
    """Of 100 with a depth of 25, unused for 8 tenths of an epoch: 25 are there and 20 come."""
    assert begun(100, 25, 100).lost(T0 + EPOCH_NS * 8 // 10) == 55


def test_the_depth_reaches_the_largest_cost_asked_for_in_this_epoch_and_the_next() -> None:
    """At most the part; then it is what the limit's burst says."""
    budget = begun(40, 25, 100)
    budget.deepen(30)
    assert budget.depth == 30
    budget.begin(2, 20, 25, 100, T0 + EPOCH_NS)
    assert budget.depth == 20
    budget.begin(3, 40, 25, 100, T0 + 2 * EPOCH_NS)
    assert budget.depth == 10


def test_a_label_is_given_once() -> None:
    """A second part for the same label would be a second allowance."""
    with pytest.raises(AssertionError):
        begun(100, 100, 100).begin(1, 100, 100, 100, T0)


def test_spending_more_than_it_holds_is_a_fault_of_the_caller() -> None:
    """The assertion is on whatever level said."""
    with pytest.raises(AssertionError):
        begun(5, 5, 5).take(6)


def test_a_clock_that_steps_back_fills_nothing_twice() -> None:
    """To and fro between two instants gives what the later one gives."""
    budget = begun(100, 100, 100)
    for _ in range(5):
        budget.available(T0 + EPOCH_NS // 10)
        budget.available(T0)
    assert budget.available(T0 + EPOCH_NS // 10) == 10


steps = st.integers(-EPOCH_NS // 2, EPOCH_NS // 2)
actions = st.sampled_from(["take", "begin", "add", "put back", "give up"])


@given(st.lists(st.tuples(steps, actions, st.integers(0, 200)), max_size=80))
def test_no_label_ever_spends_more_than_its_part(ops: list[tuple[int, str, int]]) -> None:
    """Part and additions less what was given up; and a border never raises the level above what it was."""
    budget, now_ns, epoch = begun(50, 25, 100), T0, 1
    right, held = 50, 0  # of the present label: what may be spent, and what is taken and may be put back
    for step, action, number in ops:
        now_ns += step
        if action == "take":
            units = min(number, budget.available(now_ns))
            budget.take(units)
            right, held = right - units, units
        elif action == "begin":
            epoch += 1
            before = budget.level
            budget.begin(epoch, number, 25, 100, now_ns)
            right, held = number, 0
            assert budget.level <= max(before, budget.depth * EPOCH_NS)
        elif action == "add":
            budget.add(number, number // 2, now_ns)
            right += number
        elif action == "put back":
            budget.put_back(epoch, held)
            right, held = right + held, 0
        else:
            given = min(number, right)
            assert budget.give_up(given, now_ns) <= given
            right -= given
        assert right >= 0
        assert budget.units == right
        assert budget.available(now_ns) <= right
        assert 0 <= budget.level <= budget.depth * EPOCH_NS
