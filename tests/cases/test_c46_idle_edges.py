"""C46: many idle edges must not starve the busy one (as far as the division shows it)."""

import numpy as np

from apportion.allocator.demand import DemandHistory
from apportion.allocator.division import Division, divide

EDGES = tuple(range(1, 11))
E1, E2 = EDGES[0], EDGES[1]
QUOTA = np.array([0])
LIMIT = np.array([100])


def tick(history: DemandHistory, epoch: int, demand: dict[int, int]) -> None:
    """All ten edges report; those not in `demand` were asked for nothing."""
    for edge in EDGES:
        history.record(edge, epoch, QUOTA, np.array([demand.get(edge, 0)], np.uint64), ran_before=True)


def divided(history: DemandHistory) -> tuple[dict[int, int], Division]:
    """Slices by edge, and the division."""
    cells = history.select(EDGES)
    division = divide(LIMIT, cells.starts, cells.base, cells.want)
    return {edge: int(division.slices[place].sum()) for edge, place in zip(cells.edges, cells.places, strict=True)}, (
        division
    )


def test_from_the_first_report_the_busy_edge_has_its_demand() -> None:
    """90/s of 100/s at E1, nine idle: a slice of 90, nothing reserved for the idle ones, the rest in the pool."""
    history = DemandHistory()
    tick(history, 0, {E1: 90})
    slices, division = divided(history)
    assert slices == {E1: 90}
    assert division.pool.tolist() == [10]


def test_an_edge_that_wakes_up_finds_the_pool() -> None:
    """E2 starts with 10/s at t = 30: the pool holds its 10 units at once, and E1 loses nothing."""
    history = DemandHistory()
    for epoch in range(30):
        tick(history, epoch, {E1: 90})
    tick(history, 30, {E1: 90, E2: 10})
    slices, division = divided(history)
    assert slices[E1] == 90
    assert slices[E2] + int(division.pool[0]) == 10


def test_alternating_demand_is_left_to_the_pool() -> None:
    """One second on, one second off: nothing surely recurs, so nothing is stranded in slices, all can be borrowed."""
    history = DemandHistory()
    for epoch in range(20):
        tick(history, epoch, {E1: 90} if epoch % 2 else {E2: 90})
    slices, division = divided(history)
    assert sum(slices.values()) == 0
    assert division.pool.tolist() == [100]
