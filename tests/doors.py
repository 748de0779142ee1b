"""Doors over an edge without a region, for tests: a real server on a loopback port, a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
import pytest
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.wrappers_pb2 import UInt64Value

from apportion.core.decision import Decision
from apportion.core.match import Matcher
from apportion.core.request import Application
from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone
from apportion.edge.decider import Decider
from apportion.edge.doors import Doors, open_doors
from apportion.proto.v1 import limiter_pb2_grpc
from tests.in_process import ManualClock, rule_set, rule_text

OK = rls_pb2.RateLimitResponse.OK
OVER_LIMIT = rls_pb2.RateLimitResponse.OVER_LIMIT


@dataclass(frozen=True, slots=True)
class Opened:
    """Open doors, with a client of each service."""

    doors: Doors
    channel: grpc.aio.Channel
    rls: Any
    limiter: limiter_pb2_grpc.LimiterAsyncStub
    clock: ManualClock

    def stub(self, kind: Any) -> Any:
        """A client of another service; the stubs' stubs do not know asynchronous channels."""
        return kind(self.channel)

    async def raw(self, method: str, request: bytes) -> Any:
        """The bytes that a method answers to these bytes."""
        call: Any = self.channel.unary_unary(method)
        return await call(request)

    async def limit(self, *descriptors: Mapping[str, str], domain: str = "api", hits: int = 0) -> Any:
        """Ask over RLS; `hits` is the request's hits_addend."""
        return await self.rls.ShouldRateLimit(rls_request(*descriptors, domain=domain, hits=hits))


@asynccontextmanager
async def opened(decider: Decider | str, address: str = "127.0.0.1:0") -> AsyncIterator[Opened]:
    """Doors of a decider, or of an edge alone with these rules."""
    clock = ManualClock()
    if isinstance(decider, str):
        decider = Alone(parse_rules([("rules.yaml", decider)]), clock)
    doors = await open_doors(address, decider)
    try:
        async with grpc.aio.insecure_channel(doors.address) as channel:
            rls = rls_pb2_grpc.RateLimitServiceStub(channel)
            yield Opened(doors, channel, rls, limiter_pb2_grpc.LimiterStub(channel), clock)
    finally:
        await doors.close(1.0)


def rls_request(*descriptors: Mapping[str, str], domain: str = "api", hits: int = 0) -> Any:
    """A RateLimitRequest."""
    request = rls_pb2.RateLimitRequest(domain=domain, hits_addend=hits)
    for dimensions in descriptors:
        added = request.descriptors.add()
        for key, value in dimensions.items():
            added.entries.add(key=key, value=value)
    return request


def with_hits(dimensions: Mapping[str, str], hits: int) -> Any:
    """A RateLimitRequest of one descriptor that names its own cost."""
    request = rls_request(dimensions)
    request.descriptors[0].hits_addend.CopyFrom(UInt64Value(value=hits))
    return request


def metadata(response: Any) -> dict[str, Any]:
    """The dynamic metadata of a RateLimitResponse."""
    return MessageToDict(response.dynamic_metadata)


def headers(response: Any) -> dict[str, str]:
    """The headers that a RateLimitResponse adds to the proxy's response."""
    return {header.key: header.value for header in response.response_headers_to_add}


async def refusal(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    """Status and text of a call that fails."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value.code(), failed.value.details() or ""


class Waiting:
    """A decider of one rule over `tenant` that answers when a test says so; `asked` holds what waits, in order."""

    ready = True
    domains = ("api",)

    def __init__(self) -> None:
        self._matcher = Matcher(rule_set(rule_text("tenant-requests", "rate: 10/s")).domains["api"])
        self.asked: asyncio.Queue[tuple[tuple[Application, ...], asyncio.Future[Decision]]] = asyncio.Queue()

    def matcher(self, domain: str) -> Matcher:
        return self._matcher

    def decide(self, applications: tuple[Application, ...], peek: bool) -> Awaitable[Decision]:
        future: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait((applications, future))
        return future
