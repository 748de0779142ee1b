"""C20: refused calls neither eat the allowance nor extend the wait, of no kind of quota."""

from pathlib import Path

import pytest

from apportion.core.limit import PeriodAnchor
from apportion.core.periods import Unit
from tests.contract.worlds import SECOND, World, admitted, one, quota

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)


@pytest.mark.parametrize("anchor", list(PeriodAnchor))
async def test_after_a_raise_what_was_refused_counts_nothing(world: World, anchor: PeriodAnchor) -> None:
    """(a) 10/hour, 50 calls in the first minute: 10 pass; of 20 more under 20/hour the first 10 pass."""
    answers = []
    async with world.store() as store:
        for call in range(70):
            answers += await admitted(store, one(b"k", quota(10 if call < 50 else 20, anchor, Unit.HOUR)))
            world.clock.advance(SECOND)
    assert answers == [1] * 10 + [0] * 40 + [1] * 10 + [0] * 10


async def test_who_keeps_asking_is_let_in_when_the_window_has_passed(world: World) -> None:
    """(b) 1/5s rolling, a call each 1.1 s from 0 to 11 s: those at 0, 5.5 and 11 s pass, and no other."""
    limit, passed = quota(1, PeriodAnchor.ROLLING, Unit.SECOND, 5), []
    async with world.store() as store:
        for call in range(11):
            if await admitted(store, one(b"k", limit)) == [1]:
                passed.append(call * 11 / 10)
            world.clock.advance(11 * SECOND // 10)
    assert passed == [0, 5.5, 11]
