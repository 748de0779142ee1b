"""C38(b) at each mode and door: a lone caller that waits exactly as the door told it is admitted.

Real doors over a real agent; region, allocator, network and all waiting are the fault world's, in virtual time.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

import pytest

from apportion import Limiter
from apportion.core.decision import Decision
from apportion.core.limit import RateLimit
from apportion.core.match import Matcher
from apportion.core.messages import Rules
from apportion.core.request import Application
from apportion.core.rule import RuleSet
from apportion.edge.ticket import Ticket
from apportion.proto.v1 import limiter_pb2
from apportion.region.authority import Authority
from apportion.simulations.network import MS
from tests.doors import headers, opened
from tests.faults.rules import load
from tests.faults.world import SECOND, Options, World
from tests.http_door import opened_http
from tests.in_process import ManualClock

RULES = """
version: 1
domain: api
edges_max: 4
rules:
  - {name: at-each-edge, match: {tenant: at-each-edge}, key: [tenant], limit: {rate: 30/s}, enforce: edge,
     at_each_edge: 7/s, wrong_costs: noise}
  - {name: slack, match: {tenant: slack}, key: [tenant], limit: {rate: 80/s}, enforce: edge, slack: 10%,
     wrong_costs: noise}
  - {name: edge-region, match: {tenant: edge-region}, key: [tenant], limit: {rate: 11/s, burst: 3},
     enforce: edge+region, when_unavailable: [deny]}
  - {name: lease, match: {tenant: lease}, key: [tenant], limit: {rate: 60/s}, enforce: lease, when_unavailable: [deny]}
  - {name: small-lease, match: {tenant: small-lease}, key: [tenant], limit: {rate: 13/s, burst: 2}, enforce: lease,
     when_unavailable: [deny]}
  - {name: region, match: {tenant: region}, key: [tenant], limit: {rate: 7/min, burst: 2}, enforce: region,
     when_unavailable: [deny]}
"""

Ask = Callable[[], Awaitable[tuple[bool, float | None]]]
"""One request: whether it was admitted, and the seconds that the door told it to wait."""

Wait = Callable[[float], None]


def authority(_: Rules, __: RuleSet, *rest: object) -> Authority:
    """A region with these rules."""
    rules = Rules(1, (("rules.yaml", RULES),))
    return Authority(rules, load(rules), *rest)  # type: ignore[arg-type]


class Virtual:
    """A decider whose edge is one of the fault world: what has to cross lets the world's time pass."""

    ready = True
    domains = ("api",)

    def __init__(self) -> None:
        self.world = World(38, Options(edges=1, allocators=1, delay_ns=5 * MS, make_authority=authority))
        self.world.start()
        self.world.run(3)
        self._edge = self.world.edges[0]

    def matcher(self, domain: str) -> Matcher:
        """The rules that the region sent."""
        return self._edge.agent.matchers["api"]

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Decision:
        """Ask the edge, and wait for a ticket's decision."""
        answer = self._edge.agent.ask(applications, self._edge.now_ns, peek)
        given: list[Decision] = [answer] if isinstance(answer, Decision) else []
        if isinstance(answer, Ticket):
            self._edge.waiting[answer.number] = (self.world.now_ns, 100 * MS)
            self.world.journal.decided = lambda now_ns, process, decision: given.append(decision)  # type: ignore[method-assign]
            self.world.at(self.world.now_ns, partial(self._edge._flush, self._edge.life))
        while not given:
            self.world.run(0.001)
        return given[0]

    def wait(self, seconds: float) -> None:
        """What a caller on the edge's host does: it waits by that host's clock."""
        until_ns = self._edge.clock.when(self._edge.now_ns + math.ceil(seconds * SECOND))
        self.world.run((until_ns - self.world.now_ns + 1) / SECOND)


@asynccontextmanager
async def check(mode: str, _: Path) -> AsyncIterator[tuple[Ask, Wait]]:
    """`GET /check`: whole seconds."""
    virtual = Virtual()
    async with opened_http(virtual) as http:

        async def ask() -> tuple[bool, float | None]:
            told = await http.get("/check", x_tenant=mode)
            after = told.headers.get("Retry-After")
            return told.status == 200, None if after is None else int(after)

        yield ask, virtual.wait


@asynccontextmanager
async def decide(mode: str, _: Path) -> AsyncIterator[tuple[Ask, Wait]]:
    """`POST /v1/decide`: seconds as a number."""
    virtual = Virtual()
    async with opened_http(virtual) as http:

        async def ask() -> tuple[bool, float | None]:
            told = (await http.decide({"dimensions": {"tenant": mode}})).json
            return told["allowed"], told["rules"][0].get("retry_after")

        yield ask, virtual.wait


@asynccontextmanager
async def rls(mode: str, _: Path) -> AsyncIterator[tuple[Ask, Wait]]:
    """Envoy's rate limit service: a header with whole seconds."""
    virtual = Virtual()
    async with opened(virtual) as doors:

        async def ask() -> tuple[bool, float | None]:
            told = await doors.limit({"tenant": mode})
            after = headers(told).get("retry-after")
            return after is None, None if after is None else int(after)

        yield ask, virtual.wait


@asynccontextmanager
async def grpc(mode: str, _: Path) -> AsyncIterator[tuple[Ask, Wait]]:
    """`apportion.v1.Limiter`: a duration."""
    virtual = Virtual()
    async with opened(virtual) as doors:

        async def ask() -> tuple[bool, float | None]:
            descriptor = limiter_pb2.Descriptor(dimensions={"tenant": mode})
            told = await doors.limiter.Decide(limiter_pb2.DecideRequest(descriptors=[descriptor]))
            (verdict,) = told.verdicts
            after = verdict.retry_after.ToNanoseconds() / 1e9 if verdict.HasField("retry_after") else None
            return told.allowed, after

        yield ask, virtual.wait


@asynccontextmanager
async def in_process(mode: str, folder: Path) -> AsyncIterator[tuple[Ask, Wait]]:
    """`Limiter.from_rules`: seconds as a number."""
    path, clock = folder / "rules.yaml", ManualClock()
    path.write_text(RULES)
    limiter = Limiter.from_rules(path, clock)

    async def ask() -> tuple[bool, float | None]:
        told = limiter.decide({"tenant": mode})
        return told.allowed, told.retry_after

    def wait(seconds: float) -> None:
        clock.now_ns += math.ceil(seconds * SECOND)

    yield ask, wait


async def refused(ask: Ask) -> float | None:
    """Ask until a request is refused; what it was told."""
    for _ in range(500):
        allowed, told_s = await ask()
        if not allowed:
            return told_s
    raise AssertionError("the limit was not met")


@pytest.mark.asyncio
@pytest.mark.parametrize("mode", ["at-each-edge", "slack", "edge-region", "lease", "small-lease", "region"])
@pytest.mark.parametrize("door", [check, decide, rls, grpc, in_process])
async def test_a_lone_caller_that_waits_as_told_is_admitted(
    door: Callable[[str, Path], object], mode: str, tmp_path: Path
) -> None:
    """Spend what there is, wait exactly as told, and be admitted; from several instants of an epoch."""
    async with door(mode, tmp_path) as (ask, wait):  # type: ignore[attr-defined]
        for pause_s in (0.0, 0.137, 0.5, 0.871):
            wait(pause_s)
            told_s = await refused(ask)
            assert told_s is not None and told_s > 0
            wait(told_s)
            assert (await ask())[0], f"told {told_s} s"


@pytest.mark.parametrize("mode", ["at-each-edge", "slack", "edge-region", "lease", "small-lease", "region"])
@pytest.mark.parametrize("seed", range(1, 4))
def test_so_is_one_with_requests_of_any_cost(mode: str, seed: int) -> None:
    """Costs up to the burst, the limit met in many ways, at any instant of an epoch."""
    virtual, random = Virtual(), Random(seed)
    (rule,) = virtual.matcher("api").match({"tenant": mode}, whole=True)
    assert isinstance(rule.limit, RateLimit)
    largest = min(rule.cost_max or rule.limit.burst, rule.limit.burst)

    def ask(cost: int) -> Decision:
        return virtual.decide((Application(rule, (mode,), cost),), False)

    for _ in range(30):
        virtual.wait(random.choice([0, random.random() * 0.05, random.random() * 1.5]))
        cost = random.randint(1, largest)
        while (told := ask(cost)).allowed:
            if random.random() < 0.1:
                cost = random.randint(1, largest)
        assert told.reason == "over_limit" and told.retry_after is not None
        virtual.wait(told.retry_after)
        assert ask(cost).allowed, f"cost {cost} told {told.retry_after} s"
