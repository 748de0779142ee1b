"""`--http` of processes that decide nothing over HTTP: `/healthz`, `/readyz` and `/metrics` of region and allocator.

An edge has a door of its own, with the same three paths.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from apportion.core.errors import InputError
from apportion.listening import check_address

log = structlog.get_logger("apportion.http")

PATHS = ("/healthz", "/readyz", "/metrics")

STOP_S = 1.0
"""What a scrape under way gets to end by itself."""

_NOWHERE = logging.Logger("apportion.http.malformed")  # noqa: LOG001 (it is nobody's, so that nothing inherits)
_NOWHERE.addHandler(logging.NullHandler())
"""Where the library logs requests that it cannot read, with a traceback each: anybody can send them."""

Collect = Callable[[], Iterable[Metric]]


class StatusDoor:
    """An open door. `ready` says whether the process can do its work, `collect` what it has to tell."""

    def __init__(self, ready: Callable[[], bool], collect: Collect) -> None:
        self.address = ""
        self._ready = ready
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Told(collect))
        ProcessCollector(registry=self._registry)
        self._server = web.Server(self._answer, access_log=None, logger=_NOWHERE)
        self._listening: asyncio.Server | None = None

    async def open(self, address: str) -> None:
        """Listen on `address`, HOST:PORT or unix:PATH. InputError when it cannot be had."""
        check_address(address)
        loop = asyncio.get_running_loop()
        try:
            if address.startswith("unix:"):
                path = address.removeprefix("unix:")
                self._listening = await loop.create_unix_server(self._server, path)
                self.address = address
                return
            host, _, port = address.rpartition(":")
            self._listening = await loop.create_server(self._server, host.strip("[]"), int(port))
            self.address = f"{host}:{self._listening.sockets[0].getsockname()[1]}"
        except OSError as error:
            raise InputError(
                f"cannot listen on {address}: {error.strerror or error}; choose another --http address, or stop the "
                "process that has this one"
            ) from error

    async def close(self) -> None:
        """Take no new connections, and end those there are."""
        if self._listening is None:
            return
        self._listening.close()
        await self._server.shutdown(STOP_S)
        if self.address.startswith("unix:"):
            _remove(Path(self.address.removeprefix("unix:")))

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if request.path not in PATHS:
            return web.Response(text=f"there are {', '.join(PATHS)}\n", status=404)
        if request.method not in ("GET", "HEAD"):
            return web.Response(text=f"{request.path} takes GET\n", status=405, headers={"Allow": "GET, HEAD"})
        if request.path == "/healthz":
            return web.Response(text="alive\n")
        if request.path == "/readyz":
            ready = self._ready()
            return web.Response(text="ready\n" if ready else "not ready\n", status=200 if ready else 503)
        try:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
            return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})
        except Exception:  # every request gets an answer
            log.exception("request_failed", path=request.path)
            return web.Response(text="internal error; the log has it\n", status=500)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


class _Told(Collector):
    """Asks only when somebody scrapes."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def collect(self) -> Iterator[Metric]:
        """Every metric, as it is now."""
        yield from self._collect()


@asynccontextmanager
async def status_door(
    address: str | None, ready: Callable[[], bool], collect: Collect
) -> AsyncIterator[StatusDoor | None]:
    """An open door for the length of the block; None: none was asked for."""
    if address is None:
        yield None
        return
    door = StatusDoor(ready, collect)
    await door.open(address)
    try:
        yield door
    finally:
        await door.close()
