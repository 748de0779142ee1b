"""The region's gRPC service: streams to events and back. It only translates; whatever is decided is decided
elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import structlog

from apportion.core.allocator_messages import ToAllocator
from apportion.core.errors import ProtocolError
from apportion.core.messages import Refused, ToEdge
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.proto.wire import allocator_from_wire, allocator_reply_to_wire, edge_from_wire, reply_to_wire
from apportion.region.events import AllocatorSpoke, EdgeSpoke, Event
from apportion.region.explain import explain
from apportion.region.override_messages import override
from apportion.region.region import Outbox, Region

log = structlog.get_logger("apportion.region")


class RegionService(region_pb2_grpc.RegionServicer):
    """Attach for edges, Govern for allocators, Explain and Override for people and tools."""

    def __init__(self, region: Region) -> None:
        self._region = region

    async def Attach(
        self, request_iterator: AsyncIterator[region_pb2.FromEdge], context: Any
    ) -> AsyncIterator[region_pb2.ToEdge]:
        """An edge's link."""

        def read(session: int, message: region_pb2.FromEdge) -> Event:
            return EdgeSpoke(session, edge_from_wire(message))

        async for reply in self._serve(request_iterator, read):
            yield reply_to_wire(reply)  # type: ignore[arg-type]

    async def Govern(
        self, request_iterator: AsyncIterator[region_pb2.FromAllocator], context: Any
    ) -> AsyncIterator[region_pb2.ToAllocator]:
        """An allocator's link."""

        def read(session: int, message: region_pb2.FromAllocator) -> Event:
            return AllocatorSpoke(session, allocator_from_wire(message))

        async for reply in self._serve(request_iterator, read):
            yield allocator_reply_to_wire(reply)  # type: ignore[arg-type]

    async def Explain(self, request: region_pb2.ExplainRequest, context: Any) -> region_pb2.ExplainResponse:
        """What this replica knows of its quotas."""
        return await explain(self._region, request)

    async def Override(self, request: region_pb2.OverrideRequest, context: Any) -> region_pb2.OverrideResponse:
        """What an operator lays over the rules."""
        return await override(self._region, request)

    async def _serve(
        self, requests: AsyncIterator[Any], read: Callable[[int, Any], Event]
    ) -> AsyncIterator[ToEdge | ToAllocator]:
        session, outbox = self._region.open_session()
        reader = asyncio.create_task(self._read(requests, session, outbox, read))
        try:
            while (message := await outbox.get()) is not None:
                yield message
        finally:
            reader.cancel()
            self._region.close_session(session)

    async def _read(
        self, requests: AsyncIterator[Any], session: int, outbox: Outbox, read: Callable[[int, Any], Event]
    ) -> None:
        try:
            async for request in requests:
                self._region.feed(read(session, request))
        except ProtocolError as error:
            log.warning("protocol_broken", session=session, reason=str(error))
            outbox.put(Refused(f"protocol: {error}", retry=False))
        except grpc.RpcError:
            pass  # the peer is gone; the stream ends like any other
        finally:
            outbox.end()
