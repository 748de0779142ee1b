"""The figures of small logs, worked out by hand: one rule of 100/s with a burst of 25, two edges."""

from __future__ import annotations

import pytest

from apportion.simulations.rows import Returned, Row
from tests.simulations.written import admitted, by_second, crossed, figures, issued, offered, refused


def test_nothing_happened() -> None:
    """What may be divided by is nothing: all that might be admitted was, and nothing moved or was lost."""
    none = figures([], 3)
    assert (none.utilisation, none.utilisation_p5, none.jain) == (1.0, 1.0, 1.0)
    assert (none.churn, none.crossing_share, none.stranded_share, none.refused_with_room) == (0, 0, 0, 0)
    assert (none.overshoot_label, none.overshoot_true_second, none.denied) == (0, 0, {})


def test_utilisation_is_of_what_might_be_admitted() -> None:
    """Of 50, 200, 100 and 0 asked, 50 + 100 + 100 might be; 50 + 80 + 100 were. By second: 1, 0.8, 1, 1."""
    rows = by_second([50, 200, 100, 0], [50, 80, 100, 0])
    found = figures(rows, 4)
    assert (found.offered, found.admitted) == (350, 230)
    assert found.utilisation == 230 / 250
    assert found.utilisation_p5 == pytest.approx(0.83)  # 15 % of the way from the lowest to the next
    judged = figures(rows, 4, warm_up=1)
    assert judged.utilisation == 180 / 200
    assert judged.utilisation_p5 == pytest.approx(0.82)


def test_several_keys_each_have_the_limit() -> None:
    """150 of one and 50 of another: 100 + 50 might be. Nobody's share is less, since each key has its own."""
    rows: list[Row] = [
        offered(0.5, 150, key="a"),
        admitted(0.5, 90, key="a"),
        offered(0.5, 50, 1, "b"),
        admitted(0.5, 50, 1, "b"),
    ]
    assert figures(rows, 1).utilisation == 140 / 150
    below: list[Row] = [offered(0.5, 10), admitted(0.5, 10), *by_second([90], [90])]
    apart: list[Row] = [offered(0.5, 80, 1, "b"), admitted(0.5, 80, 1, "b")]
    assert figures([*below, *apart], 1).jain == 1.0


def test_a_request_after_the_end_is_in_labels_only() -> None:
    """The last second's label goes on to be spent; who asks after the end is not asked about."""
    rows: list[Row] = [*by_second([100], [100]), offered(1.01, 30), admitted(1.01, 30, epoch=0), crossed(1.02)]
    found = figures(rows, 1)
    assert (found.offered, found.admitted, found.crossings_per_second) == (100, 100, 0)
    assert found.overshoot_label == 5


@pytest.mark.parametrize(
    "given, changes, ticks",
    [
        ([100, 40, 94, 95, 96, 100, 99], (1,), 2),  # seconds 1 and 2
        ([100, 97, 40, 94, 95, 96, 100], (1,), 3),  # it dips a second after the change, which is what counts
        ([100, 97, 99, 100, 40, 94, 97], (1,), 2),  # later than that, the seconds of the dip itself
        ([100, 40, 95, 40, 95, 95, 100], (1,), 3),  # 95, 40 is not held
        ([100, 40, 97, 94, 99, 99, 100], (1,), 1),  # 97, 94 is, by its mean; 94 alone is another dip
        ([100, 40, 96, 40, 94, 99, 100], (1, 3), 2),  # the second change is no relapse of the first
        ([100, 40, 94, 94, 94, 99, 100], (1, 3), 4),  # nor is it the end of what goes on
        ([100, 99, 98, 97, 99, 94, 94], (3,), 2),  # until the end it never is back
        ([100, 40, 40, 97, 99, 97, 98], (4,), 0),  # before the change nothing counts, and after it nothing is lost
    ],
)
def test_ticks_until_the_rule_is_back(given: list[int], changes: tuple[int, ...], ticks: int) -> None:
    """Of 100 asked in each of seven seconds: the longest dip below 95 % that follows a change."""
    assert figures(by_second([100] * 7, given), 7, 0, changes).ticks_to_95_percent == ticks


def test_changes_in_the_warm_up_are_not_judged() -> None:
    """The three ticks of the first are no figure; the one of the second is."""
    rows = by_second([100] * 7, [100, 40, 40, 40, 100, 40, 100])
    assert figures(rows, 7, 2, (1, 5)).ticks_to_95_percent == 1
    assert figures(rows, 7, 2, (1,)).ticks_to_95_percent == 0


def test_jain_compares_with_max_min_shares() -> None:
    """75 and 25 of equal shares: (1.5 + 0.5)^2 / 2 (1.5^2 + 0.5^2) = 0.8. 20 and 80 where one asks for 20 only: 1."""
    unfair: list[Row] = [offered(0.5, 100), offered(0.5, 100, 1), admitted(0.5, 75), admitted(0.5, 25, 1)]
    fair: list[Row] = [offered(1.5, 20), offered(1.5, 180, 1), admitted(1.5, 20), admitted(1.5, 80, 1)]
    easy: list[Row] = [offered(2.5, 90), offered(2.5, 5, 1), admitted(2.5, 90)]  # nothing to share out
    assert figures([*unfair, *fair, *easy], 3).jain == pytest.approx(0.9)
    assert figures([*unfair, *fair, *easy], 3, warm_up=1).jain == pytest.approx(1.0)


def test_churn_is_what_plans_move() -> None:
    """30 of 100 go from one edge to the other, then none: 0.15. What is lent is no plan; a missing epoch no move."""
    first: list[Row] = [issued(5, 60), issued(5, 40, 1), issued(6, 30), issued(6, 70, 1), issued(6, 9, lent=True)]
    assert figures([*first, issued(7, 30), issued(7, 70, 1)], 9).churn == pytest.approx(0.15)
    assert figures([*first, issued(7, 30), issued(7, 70, 1)], 9, warm_up=1).churn == 0
    assert figures([*first, issued(8, 99), issued(8, 1, 1)], 9).churn == pytest.approx(0.3)


def test_crossings() -> None:
    """Three and one in two seconds, of six and four requests whatever they cost; of the second alone, one of four."""
    rows: list[Row] = [crossed(second) for second in (0.1, 0.2, 0.9, 1.1)]
    rows += [offered(0.5, 30)] * 6 + [offered(1.5, 10)] * 4
    found = figures(rows, 2)
    assert (found.crossings_per_second, found.crossing_share) == (2, 0.4)
    judged = figures(rows, 2, warm_up=1)
    assert (judged.crossings_per_second, judged.crossing_share) == (1, 0.25)


def test_stranded_is_what_lies_at_edges() -> None:
    """100 given and 60 spent there, then 50 and a loan of 50, all spent: 0.4 and 0, by epoch."""
    lent: list[Row] = [issued(1, 50), issued(1, 50, lent=True), admitted(1.5, 100)]
    assert figures([issued(0, 100), admitted(0.5, 60), *lent], 2).stranded_share == pytest.approx(0.2)
    assert figures([issued(0, 100), admitted(0.5, 60), *lent], 2, warm_up=1).stranded_share == 0


def test_what_came_back_or_was_never_given_is_not_stranded() -> None:
    """Of 100, 40 went back and 40 were lent to the other edge: all is spent. A stage spends of no slice."""
    given = issued(0, 100)
    back = Returned(0, "search", given.quota, 0, 40)
    spent: list[Row] = [admitted(0.5, 60), admitted(0.5, 40, 1)]
    assert figures([given, back, issued(0, 40, 1, lent=True), *spent], 1).stranded_share == 0
    alone = admitted(0.5, 50, 1, degraded=True)
    found = figures([given, admitted(0.5, 50), alone], 1)
    assert (found.stranded_share, found.degraded) == (0.5, 50)


@pytest.mark.parametrize(
    "given, no, at_edge, part",
    [(60, 40, True, 0.4), (60, 90, True, 40 / 150), (100, 100, True, 0), (60, 40, False, 0)],
)
def test_refused_though_there_was_room(given: int, no: int, at_edge: bool, part: float) -> None:
    """No more than the second had left; what the region refused is no edge's mistake."""
    rows: list[Row] = [offered(0.5, given + no), admitted(0.5, given), refused(0.6, no, at_edge=at_edge)]
    assert figures(rows, 1).refused_with_room == part
    assert figures(rows, 2, warm_up=1).refused_with_room == 0


def test_denied_by_reason() -> None:
    """Cost, not requests; all of the run; who was admitted is none of them."""
    rows: list[Row] = [
        refused(0.1, 3),
        refused(0.2, 4),
        refused(0.3, 5, "unavailable", at_edge=False),
        admitted(0.5, 9),
    ]
    assert figures(rows, 1, warm_up=1).denied == {"over_limit": 7, "unavailable": 5}
