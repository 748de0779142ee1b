"""Links to a region replica, as edges and allocators open them: how long, how often again, what to say of a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio

from apportion.core.errors import ProtocolError
from apportion.proto.wire import CHANNEL_OPTIONS

CONNECT_S = 1.0
"""A replica that takes longer to accept a connection is left alone for a pause."""

PAUSE_S = (0.1, 0.5)
"""Pause before connecting again, drawn evenly: gRPC's own backoff would grow to two minutes (design 5.10)."""

LINK_ERRORS = (grpc.RpcError, TimeoutError, ProtocolError)
"""How a link ends by the network or by the peer; anything else is a fault of our own."""


@asynccontextmanager
async def linked(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to `address` on which a connection stands. TimeoutError when there is none within CONNECT_S."""
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        try:
            await asyncio.wait_for(channel.channel_ready(), CONNECT_S)
        except TimeoutError:
            raise TimeoutError(f"no connection within {CONNECT_S:g} s") from None
        yield channel


def reason_of(error: Exception) -> str:
    """Why a link ended, for the log."""
    return str(error.details() if isinstance(error, grpc.aio.AioRpcError) else error)
