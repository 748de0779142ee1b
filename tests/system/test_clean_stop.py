"""SIGTERM under load: not serving first, what is under way is answered, what is unspent goes back, exit code 0."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio
import pytest
from envoy.service.ratelimit.v3 import rls_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from apportion.commands.demonstration.processes import Child
from apportion.proto.v1 import region_pb2
from tests.doors import OVER_LIMIT, metadata, rls_request
from tests.system.test_kills import (
    WARM_LABELS,
    Ride,
    assert_all_answered,
    assert_held,
    assert_sums_agree,
)
from tests.system.whole import DEADLINE_MS, EDGES, EVENT_S, RATE, Whole, happens, logged, signalled, whole_system

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]  # 30 s each, three times as much on a machine that is busy

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def told_to_stop(child: Child, address: str) -> Sequence[int]:
    """Send SIGTERM; it must end with code 0. Gives what a watcher of its health was told."""
    told: list[int] = []
    async with grpc.aio.insecure_channel(address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest())
        told.append((await watch.read()).status)
        signalled(child, signal.SIGTERM)
        async with asyncio.timeout(EVENT_S):
            while (news := await watch.read()) is not grpc.aio.EOF:
                told.append(news.status)
                assert not child.ended, "it said so while it still lived"
            assert await watch.code() is grpc.StatusCode.OK
            assert await child.process.wait() == 0, child.last_lines()
    return told


def quota(explained: region_pb2.ExplainResponse, rule: str) -> region_pb2.QuotaState:
    """What the region says of the rule's one quota."""
    return next(state for state in explained.quotas if state.rule == rule)


async def slices_of(whole: Whole, edge: str) -> int:
    """Units of `search` that the edge holds in the present epoch."""
    state = quota(await whole.explain(), "search")
    return sum(holder.slice for holder in state.holders if holder.edge == edge)


async def test_an_edge_gives_back_what_it_has_not_spent() -> None:
    """It tells its watchers, leaves the region, and nothing that was issued to it stays out.

    Of a killed edge the region goes on to count what was issued in its last epochs as spent: here nothing is left so.
    """
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        edge = whole.traffic.hot()

        async def holds() -> bool:
            return await slices_of(whole, edge) > 0

        await happens(holds, f"{edge} holds a slice")
        at = await whole.epoch()
        assert await told_to_stop(whole.edges[edge], whole.doors[edge]) == [SERVING, NOT_SERVING]
        await logged(whole.region, "edge_detached")
        explained = await whole.explain(epochs=8)
        assert edge not in [each.edge for each in explained.edges]
        await whole.traffic.through(at + 3)
        states = {each.epoch: each for each in quota(await whole.explain(epochs=8), "search").epochs}
        assert [states[label].unreported for label in (at - 1, at, at + 1)] == [0, 0, 0]
        ride = Ride(await whole.traffic.end(), ())
        assert_held(whole, ride)
        assert_all_answered(ride, *(name for name in EDGES if name != edge))
        await assert_sums_agree(whole, ride)


async def test_a_request_under_way_is_answered_by_an_edge_that_stops() -> None:
    """The region stands still, so that the request waits until its deadline; the edge waits for it, and then ends."""
    async with whole_system() as whole:
        edge, door = whole.edges["dublin"], whole.doors["dublin"]
        async with grpc.aio.insecure_channel(door) as channel:
            stub: Any = rls_pb2_grpc.RateLimitServiceStub(channel)
            request = rls_request({"api": "payments"}, domain="demo")
            await stub.ShouldRateLimit(request)
            signalled(whole.region, signal.SIGSTOP)
            asked = asyncio.get_running_loop().time()
            call = stub.ShouldRateLimit(request)
            await call.wait_for_connection()
            await asyncio.sleep(DEADLINE_MS / 1000 / 5)  # it must have been read before the edge is told to stop
            signalled(edge, signal.SIGTERM)
            answer = await call
            assert asyncio.get_running_loop().time() - asked >= DEADLINE_MS / 1000 * 0.9
            assert answer.overall_code == OVER_LIMIT
            assert metadata(answer)["degraded"] is True
            async with asyncio.timeout(EVENT_S):
                assert await edge.process.wait() == 0
        signalled(whole.region, signal.SIGCONT)


async def test_allocator_and_region_stop_well() -> None:
    """A leader that is told to stop leaves a standby to take over; a region has written all that it decided.

    Its own sums, read after it was started again, lack nothing, also of buckets that live in its memory.
    """
    async with whole_system() as whole:
        await whole.traffic.begin(whole)
        await whole.traffic.labels(WARM_LABELS)
        leader, generation = await whole.leader()
        signalled(leader, signal.SIGTERM)
        async with asyncio.timeout(EVENT_S):
            assert await leader.process.wait() == 0, leader.last_lines()
        assert (await whole.leader(above=generation))[1] == generation + 1
        assert await told_to_stop(whole.region, whole.address) == [SERVING, NOT_SERVING]
        await whole.start_region()
        await whole.region_serves()
        await whole.traffic.labels(3)
        ride = Ride(await whole.traffic.end(), ())
        assert_held(whole, ride)
        assert_all_answered(ride, *EDGES)
        assert max(ride.rule(whole, "search").labels.values()) <= RATE
        await assert_sums_agree(whole, ride)
