"""C23: rules that meet in one request count each for itself, each in its own period; at the region's stores."""

from pathlib import Path

import pytest

from apportion.core.key import encode_key, encode_quota
from apportion.core.limit import Finite, PeriodAnchor, RateLimit
from apportion.core.periods import Unit
from apportion.region.store import Charge
from tests.contract.worlds import MINUTE, SECOND, World, ask, group, period, quota

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world of each kind of store."""
    return World(request.param, tmp_path)


def of(rule: str, limit: Finite, cost: int = 1, *values: str) -> Charge:
    """A member of that rule's quota of tenant t."""
    return Charge(encode_quota("api", rule, encode_key(("t", *values))), limit, cost)


@pytest.mark.parametrize("anchor", list(PeriodAnchor))
async def test_a_three_rules_of_one_tenant(world: World, anchor: PeriodAnchor) -> None:
    """Any method 1000/min, this method 10/min and 250/day: of 12 calls exactly 10 pass, 990 and 240 remain."""
    limits = quota(1000, anchor), quota(10, anchor), quota(250, anchor, Unit.DAY)
    names = ("any-method", "method-minute", "method-day")
    members = [
        of(name, limit, 1, *("m",) * (at > 0)) for at, (name, limit) in enumerate(zip(names, limits, strict=True))
    ]
    async with world.store() as store:
        answers = [(await ask(store, group(*members))).admitted for _ in range(12)]
        assert answers == [1] * 10 + [0] * 2
        left = await ask(store, group(*members, peek=True))
        used = [period(left, at).used for at in range(3)]
        assert [limit.units - each for limit, each in zip(limits, used, strict=True)] == [990, 0, 240]


@pytest.mark.parametrize("anchor", list(PeriodAnchor))
async def test_a_beside_a_rate_of_the_same_tenant(world: World, anchor: PeriodAnchor) -> None:
    """The rate's bucket and the quota's counter are filed under their own rules."""
    rate, limit = RateLimit(10, MINUTE, 10), quota(250, anchor, Unit.DAY)
    async with world.store() as store:
        for _ in range(12):
            await ask(store, group(of("rate", rate), of("quota", limit)))
        assert period(await ask(store, group(of("quota", limit), peek=True))).used == 10


@pytest.mark.parametrize("anchor", list(PeriodAnchor))
async def test_b_requests_and_tokens_have_windows_of_their_own(world: World, anchor: PeriodAnchor) -> None:
    """500 requests and 200,000 tokens a minute: 100 requests with 150,000 tokens in minute 0; at t = 61 one request of
    150,000 tokens passes, for both.
    """
    requests, tokens = quota(500, anchor), quota(200_000, anchor)
    async with world.store() as store:
        for _ in range(100):
            answer = await ask(store, group(of("requests", requests), of("tokens", tokens, 1_500)))
            assert answer.admitted == 1
        world.clock.advance(61 * SECOND)
        answer = await ask(store, group(of("requests", requests), of("tokens", tokens, 150_000)))
        assert (answer.admitted, period(answer, 0).used, period(answer, 1).used) == (1, 1, 150_000)
