"""C49 of cases.md, pure cores: an allocator that starts anew neither divides on top of what is out nor freezes.

Four edges have 25 of 100/s each. The allocator dies at 10 s, another one comes at 11 s and a fifth edge at 11.2 s.
There is nothing to learn: slices last one epoch, and what was divided is in the register (with processes:
`tests/system/test_kills.py`).
"""

from __future__ import annotations

from functools import cache, partial

from apportion.simulations.network import MS
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import SECOND, Options, World

KILLED_S, ANEW_S, JOINS_S, END_S = 10.0, 11.0, 11.2, 26


def offered(allocators: int) -> World:
    """Five edges of which the last comes later; all but that are offered 25/s from the start."""
    world = World(49, Options(edges=5, allocators=allocators, delay_ns=5 * MS))
    world.start()
    world.edges[4].crash()
    world.at(int(JOINS_S * SECOND), world.edges[4].start)
    for edge in range(5):
        every(world, edge, 25, "hundred", 3 + edge * 7, until_s=END_S)
    return world


class Run:
    """A world, and what each edge had admitted by the end of each second."""

    def __init__(self, world: World, until_s: int) -> None:
        self.world = world
        self._given: list[list[int]] = [[0] * 5]
        for _ in range(until_s):
            world.run(1)
            self._given.append([world.sums.given(edge.incarnation) for edge in world.edges])

    def admitted(self, edge: int, second: int) -> int:
        """Units that an edge admitted in one true second."""
        return self._given[second + 1][edge] - self._given[second][edge]


@cache
def restarted() -> Run:
    """The allocator is killed and starts anew with nothing in memory."""
    world = offered(1)
    world.at(int(KILLED_S * SECOND), partial(world.restart, world.allocators[0], ANEW_S - KILLED_S))
    return Run(world, END_S)


def test_no_label_is_given_away_twice() -> None:
    """At most 100 of any label, before, between and after."""
    world = restarted().world
    assert broken(world) == {}
    assert max(world.sums.spent["hundred", ("k",)].values()) == 100


def test_those_that_were_there_keep_what_they_had() -> None:
    """Each of the four admits at least 90 % of its 25/s in every second, but for the one that was claimed for nobody.

    Together: 100 of a second before, and the fifth edge's part less of it afterwards.
    """
    run = restarted()
    seconds = range(int(KILLED_S) - 2, int(JOINS_S))
    short = [second for second in seconds if sum(run.admitted(edge, second) for edge in range(4)) < 90]
    assert len(short) <= 1


def test_the_newcomer_is_served_by_the_region_at_once() -> None:
    """While nobody divides: at least 90 % of an even part in its first whole second."""
    run = restarted()
    assert run.admitted(4, int(JOINS_S) + 1) >= 0.9 * 20


def test_afterwards_everybody_has_an_even_part() -> None:
    """25 wanted by each of five, 100 there: 20 each but for what the pool adds, once eight reports of the fifth are in.

    Base demand is the least of eight ticks, so until then a newcomer to a quota that is wanted whole has the pool.
    """
    run = restarted()
    for second in range(int(JOINS_S) + 10, END_S - 1):
        each = [run.admitted(edge, second) for edge in range(5)]
        assert min(each) >= 19 and max(each) <= 23, each
        assert sum(each) >= 98


def test_an_allocator_that_wakes_up_is_not_heard() -> None:
    """The leader stands still from 10 to 13 s while a standby takes over: its plans bear a lower generation."""
    world = offered(2)
    world.run(KILLED_S)
    old = world.leading
    assert old is not None
    generation = old.leader.generation
    old.pause(3 * SECOND)
    run = Run(world, 8)
    assert old.leader.generation is None
    new = world.leading
    assert new is not None and new is not old
    assert (new.leader.generation or 0) > (generation or 0)
    assert broken(world) == {}
    assert max(world.sums.spent["hundred", ("k",)].values()) <= 100
    assert sum(run.admitted(edge, 6) for edge in range(5)) >= 95
