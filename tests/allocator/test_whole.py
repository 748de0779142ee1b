"""The division of quotas that have no pool: four phases, exact sums, floors (algorithms 1.3)."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.allocator.demand import DemandHistory
from apportion.allocator.planning import Attached, Limits, make_plan
from apportion.allocator.whole import divide_whole, for_all, pick
from apportion.core.messages import Quota
from apportion.core.rules_file import parse_rules

TEXT = """
version: 1
domain: api
edges_max: 10
rules:
  - {name: alone, match: {a: x}, key: [], limit: {rate: 1000/s}, enforce: edge, slack: 10%, wrong_costs: noise}
  - {name: both, match: {b: x}, key: [], limit: {rate: 100/s}, enforce: edge+region, when_unavailable: [deny]}
  - {name: each, match: {c: x}, key: [], limit: {rate: 100/s}, enforce: edge, at_each_edge: 10/s, wrong_costs: noise}
  - {name: few, match: {d: x}, key: [], limit: {rate: 19/s}, enforce: edge+region, when_unavailable: [deny]}
  - {name: lease, match: {e: x}, key: [], limit: {rate: 100/s}, enforce: lease, when_unavailable: [deny]}
"""


def one(units: int, base: list[int], want: list[float], floored: bool = False) -> list[int]:
    """One quota divided over these cells."""
    starts = np.array([0, len(base)])
    slices = divide_whole(np.array([units]), starts, np.array(base), np.array(want), floored)
    return [int(each) for each in slices]


def test_base_demand_comes_before_its_spread_and_the_rest_is_half_by_demand_half_even() -> None:
    """100 units: what surely recurs first, then room, then the surplus."""
    assert one(100, [60, 20, 0], [90.0, 30.0, 0.0]) == [70, 30, 0]  # 80, and 20 for room of 30 and 10
    assert one(100, [10, 10], [20.0, 20.0]) == [50, 50]
    assert one(100, [30, 10], [30.0, 10.0]) == [68, 32]  # 60 are left: 30 as 3 to 1, 30 evenly


def test_in_overload_it_is_max_min_on_base_demand() -> None:
    """The greedy ones share what the small one leaves, which has what it wants and not only its base (design 5.9)."""
    assert one(100, [500, 500, 10], [600.0, 600.0, 12.0]) == [44, 44, 12]


def test_a_floor_is_given_to_all_even_in_overload() -> None:
    """A 20th of the even part, at least 1."""
    assert one(400, [400, 400, 0, 0], [480.0, 480.0, 0.0, 0.0], floored=True) == [195, 195, 5, 5]
    assert one(20, [20, 0], [24.0, 0.0], floored=True) == [19, 1]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**53 - 1), st.lists(st.integers(0, 2**50), min_size=1, max_size=8)),
        min_size=1,
        max_size=6,
    ),
    st.booleans(),
)
def test_every_unit_is_given_once_whatever_is_asked(rows: list[tuple[int, list[int]]], floored: bool) -> None:
    """Sums are exact, nothing is negative, and a floor is kept where there is enough for one."""
    units = np.array([each for each, _ in rows], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(cells) for _, cells in rows])])
    base = np.array([cell for _, cells in rows for cell in cells], np.int64)
    slices = divide_whole(units, starts, base, base.astype(np.float64), floored)
    assert [int(part.sum()) for part in np.split(slices, starts[1:-1])] == units.tolist()
    for (total, cells), part in zip(rows, np.split(slices, starts[1:-1]), strict=True):
        assert part.min() >= (1 if floored and total >= len(cells) else 0)


def planned() -> dict[int, dict[str, int]]:
    """What edges 1 to 3 and replica 9 get of one epoch; 1 and 2 ask for every rule, 3 for nothing."""
    limits, history = Limits(parse_rules([("r", TEXT)])), DemandHistory()
    names = ["alone", "both", "lease"]
    for identity, name in enumerate(names):
        limits.set(identity, Quota("api", name, b""))
    ids = np.arange(3)
    history.record(1, 5, ids, np.array([900, 90, 90], np.uint64), True)
    history.record(2, 5, ids, np.array([300, 30, 30], np.uint64), True)
    history.record(3, 5, ids[:0], np.array([], np.uint64), True)
    attached = Attached({1: 9, 2: 9, 3: 9}, (9,))
    plan = make_plan(1, 7, 1, limits, history.select((1, 2, 3)), attached, (1, 2, 3)).plan
    return {
        column.holder: {
            names[quota]: units for quota, units in zip(column.ids.tolist(), column.units.tolist(), strict=True)
        }
        for column in plan.columns
    }


def test_a_plan_gives_each_quota_away_as_its_rule_is_enforced() -> None:
    """Slack and floors for `edge`, all of Q to those that ask for `edge+region`, a pool for a lease."""
    plan = planned()
    assert sum(column.get("alone", 0) for column in plan.values()) == 1100
    assert plan[3] == {"alone": 19}  # a 20th of 1100 / 3
    assert plan[1]["both"] + plan[2]["both"] == 100
    assert plan[9] == {"lease": 5}
    assert plan[1]["lease"] + plan[2]["lease"] == 95


def test_only_what_a_plan_is_of_use_to_is_divided() -> None:
    """Neither what each edge admits by itself nor a quota too small for slices."""
    limits = Limits(parse_rules([("r", TEXT)]))
    divided = [name for name in ("alone", "both", "each", "few", "lease") if limits.divides(Quota("api", name, b""))]
    assert divided == ["alone", "both", "lease"]


def test_some_rows_of_the_cells_are_the_same_cells() -> None:
    """Picked or spread out, a cell keeps its edge and demand."""
    history = DemandHistory()
    history.record(1, 5, np.array([0, 1, 2]), np.array([10, 20, 30], np.uint64), True)
    history.record(2, 5, np.array([2]), np.array([7], np.uint64), True)
    cells = pick(history.select((1, 2)), np.array([False, True, True]))
    assert (cells.quotas.tolist(), cells.starts.tolist(), cells.base.tolist()) == ([1, 2], [0, 1, 3], [20, 30, 7])
    assert [places.tolist() for places in cells.places] == [[0, 1], [2]]
    whole = for_all(cells, (2, 3))
    assert whole.edges == (1, 2, 3)
    assert whole.base.tolist() == [20, 0, 0, 30, 7, 0]
