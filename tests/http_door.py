"""An HTTP door over an edge without a region, for tests: a real server on a loopback port, a clock of the test."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone
from apportion.edge.check_request import CheckMapping
from apportion.edge.counted import Counted
from apportion.edge.decider import Decider, Gauges
from apportion.edge.http_door import HttpDoor
from apportion.edge.metrics import Metrics
from tests.in_process import ManualClock

MAPPING = CheckMapping((("tenant", "X-Tenant"), ("api", "X-Api")))
"""What `--check-headers tenant=X-Tenant,api=X-Api` gives."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: status, headers with names in any case, body."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class OpenedHttp:
    """An open door with a client."""

    door: HttpDoor
    counted: Counted
    clock: ManualClock
    session: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> Told:
        """GET with headers, whose names are written with underscores: x_tenant."""
        return await self.ask("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})

    async def decide(self, body: object) -> Told:
        """POST /v1/decide; a body that is not bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.ask("POST", "/v1/decide", data=io.BytesIO(raw))

    async def ask(self, method: str, path: str, **rest: Any) -> Told:
        """Any request."""
        async with self.session.request(method, f"http://{self.door.address}{path}", **rest) as response:
            return Told(response.status, response.headers, await response.read())

    async def raw(self, sent: bytes) -> bytes:
        """All that is answered to these bytes on a connection of their own, which the server must end."""
        host, _, port = self.door.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(sent)
            return await asyncio.wait_for(reader.read(), 10.0)
        finally:
            writer.close()


class Nothing:
    """Gauges of a decider that has none."""

    def gauges(self) -> Gauges:
        return Gauges(0)


@asynccontextmanager
async def opened_http(
    decider: Decider | str, mapping: CheckMapping = MAPPING, address: str = "127.0.0.1:0"
) -> AsyncIterator[OpenedHttp]:
    """The door of a decider, or of an edge alone with these rules."""
    clock = ManualClock()
    gauged: Any = Nothing()
    if isinstance(decider, str):
        decider = gauged = Alone(parse_rules([("rules.yaml", decider)]), clock)
    counted = Counted(decider)
    door = HttpDoor(counted, mapping, Metrics(counted, counted.counts, gauged))
    await door.open(address)
    try:
        async with aiohttp.ClientSession() as session:
            yield OpenedHttp(door, counted, clock, session)
    finally:
        await door.close(1.0)
