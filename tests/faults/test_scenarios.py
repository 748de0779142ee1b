"""One fault at a known instant, with the guard and without it: the oracles see what each guard is for (S1, S2, S4)."""

from dataclasses import replace
from functools import partial

from apportion.core.allocator_messages import Plan
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from apportion.simulations.node import Trap
from tests.faults.faults import fits
from tests.faults.runs import broken
from tests.faults.test_liveness import every
from tests.faults.world import Options, World

CALM = Options(edges=2, allocators=2, delay_ns=2 * MS)


class ForgetfulAuthority(Authority):
    """Lends directly under labels of a former life, whose counters were in memory."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.lending.kept_through = 0


def hot(options: Options, seconds: float, rule: str = "fifty", from_s: float = 0.0) -> World:
    """Eight times the limit of one quota at both edges, for some seconds; run until the instant of the fault."""
    world = World(3, options)
    world.start()
    for edge in range(2):
        every(world, edge, 200, rule, int(from_s * 1000) + edge, until_s=9 - from_s)
    world.run(seconds)
    return world


def test_a_restarted_edge_has_no_right_to_the_old_slice() -> None:
    """Killed in the middle of an epoch, back after 5 ms: it spends nothing of its slice until the next epoch (S4)."""
    world = hot(CALM, 4.35)
    world.restart(world.edges[0], 0.005)
    world.run(3)
    assert broken(world) == {}
    assert len(world.edges[0].agent.matchers) == 1


def test_with_its_old_incarnation_it_would_spend_the_slice_again() -> None:
    """S1 and S4 see it."""
    world = hot(replace(CALM, same_incarnation=True), 4.35)
    world.restart(world.edges[0], 0.005)
    world.run(3)
    assert set(broken(world)) >= {"S1", "S4"}


def test_a_region_restarted_in_a_direct_epoch_lends_nothing_more_under_it() -> None:
    """Its label counters were in memory: all that is left of the epoch is lost, nothing is lent twice (design 5.6)."""
    world = hot(CALM, 1.3, from_s=1.2)
    world.restart(world.region, 0.005)
    world.run(3)
    assert broken(world) == {}


def test_lending_under_labels_of_a_former_life_exceeds_them() -> None:
    """S1 sees it: more than Q_k under the label of the restart."""
    world = hot(replace(CALM, make_authority=ForgetfulAuthority), 1.3, from_s=1.2)
    world.restart(world.region, 0.005)
    world.run(3)
    assert "S1" in broken(world)


def test_a_restarted_region_has_no_part_of_the_pool() -> None:
    """The leader sends the plan again, but its part was bound to the former incarnation (design 5.5)."""
    world = hot(CALM, 5.4, from_s=3.2)  # demand too young for slices: all is pool
    world.restart(world.region, 0.005)
    world.run(3)
    assert broken(world) == {}


def test_with_its_old_incarnation_a_region_would_lend_the_pool_again() -> None:
    """S1 sees it."""
    world = hot(replace(CALM, same_incarnation=True), 5.4, from_s=3.2)
    world.restart(world.region, 0.005)
    world.run(3)
    assert "S1" in broken(world)


def test_a_plan_that_a_zombie_sends_late_is_the_only_one_of_its_epoch() -> None:
    """The leader stops between its claim and its plan; the epoch begins without it. Nobody divides it again, and when
    the zombie wakes its plan is worth what is left of the epoch (S2).
    """
    world = hot(CALM, 3.2)
    leader = world.leading
    assert leader is not None
    leader.trap = Trap(fits(Plan), after=False, strike=partial(leader.pause, 900 * MS))
    world.run(4)
    assert broken(world) == {}


def test_a_leader_asleep_for_long_finds_that_another_leads() -> None:
    """The standby takes the lead after 1.5 s; the sleeper's claim is refused and it steps back."""
    world = hot(CALM, 3.2)
    leader = world.leading
    assert leader is not None
    leader.pause(2_500 * MS)
    world.run(2.4)
    other = world.leading
    world.run(1.5)
    assert broken(world) == {}
    assert leader.leader.generation is None
    assert {allocator.leader.generation for allocator in world.allocators} == {None, 2}
    assert other is not None
