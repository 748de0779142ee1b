"""A daily quota leased to 40 edges of which three are killed: never over, and nearly all of it can be used."""

from collections.abc import Iterator
from random import Random

import pytest

from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import PeriodLimit
from apportion.core.match import apply_rules
from apportion.core.request import Application, Descriptor
from tests.cases.quota_world import QuotaWorld
from tests.faults.world import SECOND
from tests.in_process import rule_text, rules_text

ALLOWANCE = 30_000
LEASED = rules_text(rule_text("daily", f"quota: {ALLOWANCE}/day, anchor: calendar").replace("region", "lease"))
SMALL = LEASED.replace(str(ALLOWANCE), "3000")
EDGES = 40
A_SECOND = 600
"""Requests of all edges together; the allowance lasts for fifty seconds of them."""


def arrivals(world: QuotaWorld, seed: int, seconds: float) -> Iterator[tuple[int, int, tuple[Application, ...]]]:
    """Random arrivals at edges of which each next one has a twelfth less to do."""
    random = Random(seed)
    asked = apply_rules(world.world.edges[0].agent.matchers["api"], [Descriptor({"tenant": "t"})], whole=False)
    weights = [(11 / 12) ** edge for edge in range(EDGES)]
    at_ns, end_ns = world.world.now_ns, world.world.now_ns + round(seconds * SECOND)
    while (at_ns := at_ns + round(random.expovariate(A_SECOND) * SECOND)) < end_ns:
        yield at_ns, random.choices(range(EDGES), weights)[0], asked


def used(world: QuotaWorld) -> int:
    """What the store has charged of the day."""
    (rule,), periods = world.region.authority.ruleset.rules, world.region.store._buckets.periods
    assert isinstance(rule.limit, PeriodLimit)
    store_key = encode_quota("api", "daily", encode_key(("t",)))
    record = periods.get(periods.key(store_key, rule.limit, world.region.now_ns))
    return record.counter.used if record is not None else 0


def admitted(world: QuotaWorld) -> int:
    """Requests that were let pass."""
    return sum(decision.allowed for decision in world.answered)


def kill(world: QuotaWorld, edge: int) -> int:
    """An edge dies for good. What it may take down: its chunk, as the region knows it a moment later, and what waited
    for an answer.
    """
    node = world.world.edges[edge]
    incarnation, waiting = node.incarnation, len(node.waiting)
    node.crash()
    world.world.run(0.1)
    (known,) = world.region.authority.table
    return world.region.authority.desk.chunks.open(known.id, world.region.now_ns).get(incarnation, 0) + waiting


@pytest.mark.parametrize("seed", [1, 2])
def test_forty_edges_three_killed(seed: int) -> None:
    """By the end 99 in a hundred were admitted, none too many, and what strands was open at an edge that was killed."""
    world = QuotaWorld(LEASED, edges=EDGES)
    world.world.offer(arrivals(world, seed, 80))
    stranded = 0
    for t, edge in ((15, 0), (25, 7), (40, 3)):
        world.until(t)
        stranded += kill(world, edge)
        assert admitted(world) <= used(world) <= ALLOWANCE
    world.until(85)
    lost = used(world) - admitted(world)
    assert 0 <= lost <= stranded
    assert 0.99 * ALLOWANCE <= admitted(world) <= ALLOWANCE
    assert world.crossings < 0.2 * len(world.answered), "most requests do not cross"


def test_no_chunk_is_spent_in_the_next_period() -> None:
    """Five edges with chunks of a minute in hand as it ends, and a rush as the next one begins: it admits its own
    allowance, to the last unit but one in a hundred.
    """
    rules = rules_text(rule_text("calls", "quota: 1000/min, anchor: calendar").replace("region", "lease"))
    world = QuotaWorld(rules, edges=5, t=50)
    asked = apply_rules(world.world.edges[0].agent.matchers["api"], [Descriptor({"tenant": "t"})], whole=False)
    start_ns = world.world.now_ns
    calm = [(start_ns + round(at * SECOND / 20), at % 5, asked) for at in range(round(9.98 * 20))]
    rush = [(start_ns + 10 * SECOND + round(at * SECOND / 1000), at % 5, asked) for at in range(5000)]
    later = [(start_ns + 15 * SECOND + round(at * SECOND / 50), at % 5, asked) for at in range(1000)]
    world.world.offer(iter([*calm, *rush, *later]))
    world.until(59.995)
    before, (known,) = admitted(world), world.region.authority.table
    assert before == len(calm)
    in_hand = sum(world.region.authority.desk.chunks.open(known.id, world.region.now_ns).values())
    assert in_hand > 50, "or nothing is tried"
    world.until(85)
    assert 990 <= admitted(world) - before <= 1000


@pytest.mark.parametrize("seed", range(1, 7))
def test_whatever_fails_what_was_admitted_is_charged(seed: int) -> None:
    """Edges and the region are killed and come back, edges are cut off and stop for a while, messages come twice and
    answers get lost: at no moment was more admitted than the store has charged, nor more charged than there is.
    """
    world = QuotaWorld(SMALL, edges=6, repeat=0.4, lost_answers=0.02)
    random = Random(seed)
    asked = apply_rules(world.world.edges[0].agent.matchers["api"], [Descriptor({"tenant": "t"})], whole=False)
    start_ns = world.world.now_ns
    # Each edge is busy for three seconds in eighteen, so that something is left of its chunks.
    world.world.offer(iter([(start_ns + at * SECOND // 80, at // 240 % 6, asked) for at in range(80 * 60)]))
    given_back = 0
    for second in range(2, 80):
        world.until(second)
        edge = random.choice(world.world.edges)
        match random.randrange(8):
            case 0:
                world.world.restart(edge, random.random())
            case 1:
                world.world.partition(edge, 4 * random.random())
            case 2:
                edge.pause(round(3 * random.random() * SECOND))
            case 3 if second % 3 == 0:
                given_back += totals(world)
                world.world.restart(world.region, random.random())
        if world.region.up:
            assert admitted(world) <= used(world) <= 3000
    assert given_back + totals(world) > 100, "or nothing is tried"
    assert admitted(world) > 1500


def totals(world: QuotaWorld) -> int:
    """Units that were given back to the present life of the region."""
    return world.region.authority.desk.totals["api", "daily"].given_back
