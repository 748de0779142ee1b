"""C45: a dead edge keeps its slice for its epoch only (at the level of the cores; with processes in tests/system)."""

from functools import cache, partial

from apportion.simulations.network import MS
from tests.faults.rules import application, quota_key
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import Options, World

KILLED_S, BACK_S, END_S = 9, 13, 16


@cache
def run() -> World:
    """100/s; four edges, each offered the full limit. The fourth is killed at 9.3 s; a new one starts 4 s later."""
    world = World(45, Options(edges=4, allocators=2, delay_ns=5 * MS))
    world.start()
    for edge in range(4):
        every(world, edge, 100, "hundred", edge, until_s=END_S)
    world.run(KILLED_S + 0.3)
    world.restart(world.edges[3], BACK_S - KILLED_S)
    world.run(END_S - KILLED_S - 0.3 + 0.2)
    return world


def admitted(world: World, from_s: float, until_s: float) -> float:
    """Units a second that decisions gave out between two instants."""
    return world.admitted(from_s, until_s) / (until_s - from_s)


def test_c45_its_part_is_redistributed_within_a_tick_of_its_epochs_end() -> None:
    """Slices last an epoch: 2 s after the kill the living three have all 100 again, also after it comes back."""
    world = run()
    assert admitted(world, 6, KILLED_S) >= 95
    assert admitted(world, KILLED_S + 2, BACK_S) >= 95
    assert admitted(world, BACK_S + 1.5, END_S) >= 95


def test_c45_outstanding_and_consumed_never_exceed_the_limit() -> None:
    """No label above 100: not with the kill, and not when the host comes back with a new identity."""
    world = run()
    assert broken(world) == {}
    assert max(world.sums.spent["hundred", ("k",)].values()) <= 100


def test_c45_the_old_identity_has_no_right_to_what_it_left() -> None:
    """Killed and back at once: nothing of the slice of its former life is spent in that epoch."""
    world = World(46, Options(edges=4, allocators=2, delay_ns=5 * MS))
    world.start()
    for edge in range(4):
        every(world, edge, 100, "hundred", edge, until_s=12)
    world.run(10.3)
    former, epoch = world.edges[3].incarnation, world.region.authority.epoch
    world.restart(world.edges[3], 0.01)
    world.at(world.now_ns + 300 * MS, partial(world.edges[3].ask, (application("hundred"),)))
    world.run(3)
    now = world.edges[3].incarnation
    assert now != former
    mine = {at[2]: units for at, units in world.sums.spent_here.items() if at[0] == now}
    assert world.sums.issued[former, at_hundred(), epoch] > 0
    assert mine.get(epoch, 0) <= world.sums.issued[now, at_hundred(), epoch]
    assert broken(world) == {}


def at_hundred() -> bytes:
    """What the region's store files the quota under."""
    return quota_key("hundred", ("k",))
