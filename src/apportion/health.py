"""gRPC health as every process serves it: "not serving" until told otherwise, and no watcher holds up a stop."""

from __future__ import annotations

import asyncio
from typing import Any

from grpc_health.v1 import health, health_pb2


class Checks(health.aio.HealthServicer):
    """gRPC health whose watchers can be sent away: they would hold up a stopping server for the whole of its grace."""

    def __init__(self) -> None:
        super().__init__()
        self._watches: set[asyncio.Task[None]] = set()
        self._over = False

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Any) -> None:
        """As in the protocol, until the peer or this server has enough of it."""
        watch = asyncio.current_task()
        assert watch is not None
        self._watches.add(watch)
        try:
            await super().Watch(request, context)
        except asyncio.CancelledError:
            if not self._over:
                raise
            watch.uncancel()  # it was told "not serving", and its call ends well
        finally:
            self._watches.discard(watch)

    async def end(self) -> None:
        """Say "not serving" of everything for ever, and end what watches."""
        await self.enter_graceful_shutdown()
        await asyncio.sleep(0)  # lets each watch send it
        self._over = True
        for watch in self._watches:
            watch.cancel()
