"""Each store's buckets equal fractions to the bit: over any limits, costs, counts, times and changes of the limit."""

import asyncio
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.core.limit import RateLimit
from apportion.region.buckets import Buckets
from apportion.region.store import Anchor, Charge, Charges
from tests.contract.exact import ExactBucket, costs, durations, limits
from tests.contract.worlds import WALL, World, ask, bucket, one

Step = tuple[int, RateLimit, int, int, bool]
"""How long to wait, then the limit, cost and count to ask, and whether the store is closed and opened before."""


@st.composite
def walks(draw: st.DrawFn) -> list[Step]:
    """A walk of one key, whose limit changes now and then."""
    known = [draw(limits())]
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, 10))):
        if draw(st.integers(0, 3)) == 0:
            known.append(draw(st.one_of(limits(), st.sampled_from(known), same_period(known[-1]))))
        limit = known[-1]
        count = draw(st.one_of(st.integers(1, 3), st.just(2**40)))
        steps.append((draw(durations(limit)), limit, draw(costs(limit)), count, draw(st.integers(0, 3)) == 0))
    return steps


def same_period(limit: RateLimit) -> st.SearchStrategy[RateLimit]:
    """Another rate and burst over the same period."""
    return st.builds(RateLimit, st.integers(1, 2**30), st.just(limit.period_ns), st.integers(1, limit.burst))


async def walk(world: World, steps: list[Step]) -> None:
    """Take the steps in store and model side by side."""
    store = world.make()
    await store.open()
    # Buckets in memory start without tokens after a restart, which is another test's matter.
    can_restart = world.kind == "sqlite" and all(limit.drain_ns > 2_000_000_000 for _, limit, _, _, _ in steps)
    exact = ExactBucket(steps[0][1], world.clock.wall)
    for wait, limit, cost, count, restart in steps:
        if restart and can_restart:
            await store.close()
            store = world.make()
            await store.open()
        world.clock.advance(wait)
        now = world.clock.wall
        if limit != exact.limit:
            exact.change(limit, now)
        answer = await ask(store, one(b"k", limit, cost=cost, count=count))
        assert answer.admitted == exact.take(cost, count, now)
        assert Fraction(bucket(answer).backlog, limit.period_ticks) == exact.used
    await store.close()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_store_equals_fractions_to_the_bit(kind: str) -> None:
    """Whatever is asked whenever, under whatever limits, with restarts between where the bucket is durable."""

    @settings(max_examples=200 if kind == "memory" else 30)
    @given(walks())
    def check(steps: list[Step]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(walk(World(kind, Path(directory)), steps))

    check()


@given(walks())
def test_the_short_way_for_one_member_answers_as_the_long_one(steps: list[Step]) -> None:
    """A second member of cost 0 changes nothing for the first."""
    short, long, now = Buckets(), Buckets(), WALL
    anchor = Anchor(1, WALL)
    idle = Charge(b"idle", steps[0][1], 0)
    for wait, limit, cost, count, peek in steps:
        now += wait
        member = Charge(b"k", limit, cost)
        (got,) = short.decide((Charges(count, (member,), peek),), anchor, now)
        (expected,) = long.decide((Charges(count, (member, idle), peek),), anchor, now)
        assert (got.admitted, got.members[0]) == (expected.admitted, expected.members[0])
    assert short.decided.rows(0) == long.decided.rows(0)
    assert len(short) == len(long)
