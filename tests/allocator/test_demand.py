"""The demand history: what surely recurs, what is missing, and what it costs to keep."""

import numpy as np
import pytest

from apportion.allocator.demand import DemandHistory

E1, E2 = 11, 22
A, B, C = 0, 1, 2


def report(history: DemandHistory, edge: int, epoch: int, demand: dict[int, int], ran_before: bool = False) -> bool:
    """One report of `edge`: units by quota."""
    quotas = np.array(list(demand), np.int64)
    return history.record(edge, epoch, quotas, np.array(list(demand.values()), np.uint64), ran_before)


def base(history: DemandHistory, edge: int) -> dict[int, int]:
    """Base demand of one edge by quota."""
    cells = history.select((edge,))
    return dict(zip(cells.quotas.tolist(), cells.base.tolist(), strict=True))


def test_base_is_the_least_of_the_last_eight_ticks() -> None:
    """A dip counts for eight ticks, then it is forgotten."""
    history = DemandHistory()
    for epoch in range(8):
        report(history, E1, epoch, {A: 100 if epoch != 3 else 40})
    assert base(history, E1) == {A: 40}
    for epoch in range(8, 12):
        report(history, E1, epoch, {A: 100})
    assert base(history, E1) == {A: 100}


def test_a_new_cell_has_a_past_of_zeros() -> None:
    """What an edge was never asked for before does not surely recur: eight ticks until it is sliced."""
    history = DemandHistory()
    report(history, E1, 0, {B: 5})
    for epoch in range(1, 8):
        report(history, E1, epoch, {A: 100, B: 5})
        assert base(history, E1)[A] == 0
    report(history, E1, 8, {A: 100, B: 5})
    assert base(history, E1) == {A: 100, B: 5}


def test_an_edge_that_ran_before_has_an_unknown_past_not_an_empty_one() -> None:
    """After a cold start of the allocator one report is enough to slice what running edges use."""
    history = DemandHistory()
    report(history, E1, 7, {A: 100}, ran_before=True)
    assert base(history, E1) == {A: 100}
    report(history, E1, 8, {A: 30}, ran_before=True)
    assert base(history, E1) == {A: 30}


def test_a_missing_report_is_not_a_zero() -> None:
    """The ticks without a report repeat the last known one; a late report replaces what was assumed."""
    history = DemandHistory()
    for epoch in range(8):
        report(history, E1, epoch, {A: 100})
    report(history, E1, 11, {A: 100})
    assert base(history, E1) == {A: 100}
    report(history, E1, 9, {A: 70})
    assert base(history, E1) == {A: 70}
    assert history.last_epoch(E1) == 11


def test_a_quota_that_a_report_does_not_name_was_asked_for_nothing() -> None:
    """A report is complete for its edge."""
    history = DemandHistory()
    for epoch in range(8):
        report(history, E1, epoch, {A: 100, B: 10})
    report(history, E1, 8, {B: 10})
    assert base(history, E1) == {A: 0, B: 10}


def test_the_same_report_twice_changes_nothing() -> None:
    """Duplicates are harmless, also late ones."""
    history = DemandHistory()
    for epoch in range(9):
        report(history, E1, epoch, {A: 100 + epoch})
    before = history.select((E1,))
    report(history, E1, 8, {A: 108})
    report(history, E1, 5, {A: 105})
    after = history.select((E1,))
    assert (before.base.tolist(), before.recent.tolist(), before.want.tolist()) == (
        after.base.tolist(),
        after.recent.tolist(),
        after.want.tolist(),
    )


def test_a_report_older_than_the_memory_is_refused() -> None:
    """Eight ticks back nothing is kept that it could change."""
    history = DemandHistory()
    report(history, E1, 20, {A: 1})
    assert report(history, E1, 13, {A: 9})
    assert not report(history, E1, 12, {A: 9})


def test_a_long_silence_repeats_the_last_known_tick() -> None:
    """However many reports are missing, only the last known value stands in for them."""
    history = DemandHistory()
    for epoch in range(8):
        report(history, E1, epoch, {A: epoch})
    report(history, E1, 1_000_000_000, {A: 50})
    assert base(history, E1) == {A: 7}


def test_an_idle_cell_is_dropped_after_eight_ticks() -> None:
    """Cost grows with active cells: what nobody asks for takes no room."""
    history = DemandHistory()
    report(history, E1, 0, {A: 100, B: 1})
    for epoch in range(1, 8):
        report(history, E1, epoch, {B: 1})
    assert history.cells == 2
    report(history, E1, 8, {B: 1})
    assert history.cells == 1
    assert history.uses(3).tolist() == [0, 1, 0]


def test_a_report_of_zeros_makes_no_cells() -> None:
    """A row of nothing is nothing."""
    history = DemandHistory()
    report(history, E1, 0, {A: 0, B: 0})
    assert history.cells == 0
    assert history.last_epoch(E1) == 0


def test_want_leaves_room_for_a_peak_and_for_chance() -> None:
    """The larger of 1.2 x peak and the smoothed demand with twice its Poisson spread."""
    history = DemandHistory()
    report(history, E1, 0, {A: 100, B: 4}, ran_before=True)
    cells = history.select((E1,))
    assert cells.want.tolist() == pytest.approx([120.0, 8.0])
    report(history, E1, 1, {A: 0, B: 0})
    cells = history.select((E1,))
    assert cells.recent.tolist() == [50.0, 2.0]
    assert cells.want.tolist() == pytest.approx([96.0, 2 + 2 * 2**0.5])


def test_cells_are_laid_out_by_quota_and_edge() -> None:
    """Each quota's cells stand together, and each edge finds its own again."""
    history = DemandHistory()
    report(history, E1, 0, {C: 30, A: 10}, ran_before=True)
    report(history, E2, 0, {A: 11, B: 21}, ran_before=True)
    cells = history.select((E1, E2))
    assert cells.quotas.tolist() == [A, B, C]
    assert cells.starts.tolist() == [0, 2, 3, 4]
    assert cells.base.tolist() == [10, 11, 21, 30]
    assert cells.edges == (E1, E2)
    assert [cells.base[place].tolist() for place in cells.places] == [[10, 30], [11, 21]]
    assert [quotas.tolist() for quotas in cells.edge_quotas] == [[A, C], [A, B]]


def test_only_the_edges_asked_for_are_selected() -> None:
    """An edge that is left out takes its quotas with it."""
    history = DemandHistory()
    report(history, E1, 0, {A: 10})
    report(history, E2, 0, {B: 10})
    assert history.select((E2,)).quotas.tolist() == [B]
    assert history.select(()).quotas.tolist() == []


def test_cells_beyond_the_bound_are_refused_and_counted() -> None:
    """A flood of keys costs its own slices, not the allocator's memory or the cells there are."""
    history = DemandHistory(cells_max=2)
    report(history, E1, 0, {A: 10})
    report(history, E2, 0, {A: 10, B: 10, C: 10}, ran_before=True)
    assert (history.cells, history.refused) == (2, 2)
    assert base(history, E2) == {A: 10}
    history.forget(E1)
    report(history, E2, 1, {A: 10, B: 10, C: 10})
    assert (history.cells, history.refused) == (2, 3)


def test_a_quota_named_twice_in_one_report_makes_one_cell() -> None:
    """A peer that breaks the protocol breaks nothing here."""
    history = DemandHistory()
    history.record(E1, 0, np.array([A, A], np.int64), np.array([3, 4], np.uint64), ran_before=True)
    assert history.cells == 1
    assert base(history, E1) == {A: 4}


def test_an_absurd_demand_counts_as_the_largest() -> None:
    """2^64 - 1 is no reason to overflow."""
    history = DemandHistory()
    report(history, E1, 0, {A: 2**64 - 1}, ran_before=True)
    report(history, E1, 1, {A: 2**64 - 1})
    assert base(history, E1) == {A: 2**53 - 1}


def test_quotas_that_are_not_divided_any_more_lose_their_cells() -> None:
    """New rules may stop dividing a quota."""
    history = DemandHistory()
    report(history, E1, 0, {A: 1, B: 2}, ran_before=True)
    history.keep_quotas(np.array([False, True]))
    assert base(history, E1) == {B: 2}
    report(history, E1, 1, {B: 2})
    assert base(history, E1) == {B: 2}


def test_two_histories_with_the_same_reports_are_the_same() -> None:
    """A standby that takes over goes on as the leader would have."""
    leader, standby = DemandHistory(), DemandHistory()
    for history in (leader, standby):
        for epoch in range(12):
            report(history, E1, epoch, {A: 10 * epoch, B: 5})
            report(history, E2, epoch, {B: epoch % 3})
    ours, theirs = leader.select((E1, E2)), standby.select((E1, E2))
    assert (ours.base.tolist(), ours.want.tolist()) == (theirs.base.tolist(), theirs.want.tolist())


# --- what an edge kept of an epoch that is not over -------------------------------------------------------------------


def test_what_an_edge_kept_early_lowers_its_base_until_it_has_reported() -> None:
    """Quotas 0 and 1 at 40 in all 8 ticks; in epoch 9 the edge keeps 3 of the former, half again of what it will use.
    Its report says 38 after all.
    """
    history, quotas, units = DemandHistory(), np.array([0, 1]), np.array([40, 40], np.uint64)
    history.record(1, 7, quotas, units, ran_before=True)
    history.foresee(1, 9, np.array([0]), np.array([3], np.uint64))
    history.foresee(1, 9, np.array([5]), np.array([7], np.uint64))
    assert base(history, 1) == {0: 2, 1: 40}
    history.record(1, 8, quotas, units, ran_before=False)
    assert base(history, 1) == {0: 2, 1: 40}
    history.record(1, 9, quotas, np.array([38, 40], np.uint64), ran_before=False)
    assert base(history, 1) == {0: 38, 1: 40}


def test_an_edge_that_kept_much_wants_no_more_for_it() -> None:
    """Base demand only falls; of an edge or quota never heard of nothing is foreseen."""
    history = DemandHistory()
    history.foresee(1, 9, np.array([0]), np.array([3], np.uint64))
    history.record(1, 8, np.array([0]), np.array([40], np.uint64), ran_before=True)
    history.foresee(1, 9, np.array([0]), np.array([90], np.uint64))
    assert base(history, 1) == {0: 40}
