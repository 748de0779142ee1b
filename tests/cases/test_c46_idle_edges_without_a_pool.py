"""C46 where there is no pool: idle edges of an `edge` rule with slack must not starve the busy one."""

import numpy as np

from apportion.allocator.demand import DemandHistory
from apportion.allocator.whole import divide_whole, for_all

EDGES = tuple(range(1, 11))
E1, E2 = EDGES[0], EDGES[1]
QUOTA = np.array([0])
LIMIT = np.array([220])  # 200 units and 10 % slack


def tick(history: DemandHistory, epoch: int, demand: dict[int, int]) -> None:
    """All ten edges report; those not in `demand` were asked for nothing."""
    for edge in EDGES:
        history.record(edge, epoch, QUOTA, np.array([demand.get(edge, 0)], np.uint64), ran_before=True)


def divided(history: DemandHistory) -> dict[int, int]:
    """Slices by edge."""
    cells = for_all(history.select(EDGES), EDGES)
    slices = divide_whole(LIMIT, cells.starts, cells.base, cells.want, floored=True)
    return {edge: int(slices[place].sum()) for edge, place in zip(cells.edges, cells.places, strict=True)}


def test_from_the_first_report_the_busy_edge_has_its_demand_and_idle_ones_a_floor() -> None:
    """180 of 200 at E1: it has them, with their spread; the floors of nine idle edges are under 10 % of the limit."""
    history = DemandHistory()
    tick(history, 0, {E1: 180})
    slices = divided(history)
    assert slices[E1] >= 180
    assert min(slices.values()) >= 1
    assert sum(slices.values()) == 220
    floors = divided_in_overload()
    assert sum(floors[edge] for edge in EDGES[1:]) <= 20


def divided_in_overload() -> dict[int, int]:
    """E1 asks for more than there is."""
    history = DemandHistory()
    tick(history, 0, {E1: 1000})
    return divided(history)


def test_an_edge_that_wakes_up_has_its_demand_within_two_ticks() -> None:
    """E2 starts with 20/s: its first request passes by its floor, and its first report brings the rest."""
    history = DemandHistory()
    for epoch in range(10):
        tick(history, epoch, {E1: 180})
    assert divided(history)[E2] >= 1
    tick(history, 10, {E1: 180, E2: 20})
    assert divided(history)[E2] >= 20


def test_alternating_demand_keeps_nearly_all_of_what_fits() -> None:
    """One second on, one off: peaks are remembered, so the slice of the off second is still there in the on second."""
    history = DemandHistory()
    slices = []
    for epoch in range(20):
        tick(history, epoch, {E1: 0 if epoch % 2 else 180})
        slices.append(divided(history)[E1])
    assert min(slices[4:]) >= 0.9 * 180
