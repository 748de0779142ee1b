"""What a caller is promised, with a real region behind a jittery network: retry-after, and nothing counted twice."""

import math
from functools import partial

import pytest

from apportion.core.decision import Decision
from apportion.core.request import Application
from apportion.edge.ticket import Ticket
from apportion.simulations.network import MS
from apportion.simulations.world import Label
from tests.faults.load import Load
from tests.faults.rules import application, quota_key, rule
from tests.faults.runs import broken, unreported
from tests.faults.world import SECOND, Options, World

JITTERY = Options(edges=1, allocators=1, spikes=0.05, delay_ns=20 * MS)


def decide(world: World, *applications: Application) -> Decision:
    """Ask at the only edge and let time pass until the decision."""
    edge = world.edges[0]
    answer = edge.agent.ask(applications, edge.now_ns)
    while isinstance(answer, Ticket):
        edge.waiting[answer.number] = (world.now_ns, 100 * MS)
        given: list[Decision] = []
        world.recording.decided = lambda now_ns, process, decision, given=given: given.append(decision)  # type: ignore[method-assign, misc]
        world.at(world.now_ns, partial(edge._flush, edge.life))
        while not given:
            world.run(0.0005)
        answer = given[0]
    if answer.reason == "unavailable":
        world.run(1)  # it may have been charged all the same: until the answer comes the edge cannot know
    return answer


def wait(world: World, seconds: float) -> None:
    """What a caller on the edge's host does: it waits by that host's clock."""
    edge = world.edges[0]
    until_ns = edge.clock.when(edge.now_ns + math.ceil(seconds * SECOND))
    world.run((until_ns - world.now_ns + 1) / SECOND)


@pytest.mark.parametrize("name", ["both", "each", "exact", "hundred", "pair", "slow", "spread"])
@pytest.mark.parametrize("seed", range(5))
def test_a_lone_caller_that_waits_as_told_is_admitted(name: str, seed: int) -> None:
    """The burst is used up; whatever cost is asked next, told by the region or by the edge, fits after the wait told.

    The only other answer is a deadline missed on the way.
    """
    world = World(seed, JITTERY)
    world.start()
    world.run(1)
    while decide(world, application(name, 2)).allowed:
        pass
    for cost in (1, 3, 1, 5, 2):
        told = decide(world, application(name, cost))
        if told.allowed:
            continue
        if world.chance(0.7):
            world.run(world.random.random() * 0.02)
            told = decide(world, application(name, cost))  # the edge's own refusal, or it fits by now
        if told.allowed or told.reason == "unavailable":
            continue
        assert told.retry_after is not None
        wait(world, told.retry_after)
        again = decide(world, application(name, cost))
        assert again.allowed or again.reason == "unavailable", f"seed {seed}, cost {cost}, told {told.retry_after}"


def loaded(options: Options, seed: int) -> World:
    """A world without faults."""
    world = World(seed, options)
    world.start()
    Load(world, 5 * SECOND)
    world.run(7.5)
    return world


def given(world: World) -> int:
    """Units that callers were given, by the rules that are enforced."""
    spent = world.sums.spent.items()
    return sum(sum(labels.values()) for (name, _), labels in spent if not rule(name).shadow)


def enforced(world: World, rollup: dict[Label, int]) -> int:
    """Units of a rollup, without shadow rules': nobody waits for their answers, so some are heard by nobody."""
    keys = {quota_key(name, key) for name, key in world.sums.spent if rule(name).shadow}
    return sum(units for (key, _), units in rollup.items() if key not in keys)


def test_without_faults_the_rollup_is_what_was_given() -> None:
    """To the unit, for every quota and label: what the store decided and what edges reported."""
    for seed in range(6):
        world = loaded(Options(edges=4, delay_ns=2 * MS), seed)
        rollup = world.rollup()
        assert broken(world) == {}, f"seed {seed}"
        assert unreported(world) == {}, f"seed {seed}"
        assert enforced(world, rollup) == given(world), f"seed {seed}"


def test_what_is_said_again_changes_nothing() -> None:
    """S3: half of all plans, slices, reports, answers and acknowledgements arrive a second time, late: the rollup is
    what was given, to the unit.
    """
    for seed in range(6):
        world = loaded(Options(edges=4, delay_ns=2 * MS, repeat=0.5), seed)
        assert broken(world) == {}, f"seed {seed}"
        assert unreported(world) == {}, f"seed {seed}"
        assert enforced(world, world.rollup()) == given(world), f"seed {seed}"
