"""A small HTTP/1.1 client for tests: GET over a kept connection, and an open-loop load of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

ANSWER_S = 10.0
"""No answer takes longer; a test that waits so long has found a fault."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, headers with names in small letters, body; and when the answer was there, by time.monotonic."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    at: float


class HttpConnection:
    """One kept connection to HOST:PORT; one request at a time."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Send a GET and read its answer."""
        lines = [f"GET {path} HTTP/1.1", "host: test", *(f"{name}: {value}" for name, value in (headers or {}).items())]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        return await asyncio.wait_for(self._read(), ANSWER_S)

    async def _read(self) -> HttpAnswer:
        status_line, *rows = (await self._reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (row.partition(":") for row in rows)}
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join([chunk async for chunk in self._chunks()])
        else:
            body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return HttpAnswer(int(status_line.split()[1]), headers, body, time.monotonic())

    async def _chunks(self) -> AsyncIterator[bytes]:
        size = -1
        while size:
            size = int(await self._reader.readline(), 16)
            yield (await self._reader.readexactly(size + 2))[:-2]


async def offer(
    address: str, headers: Mapping[str, str], rate: float, seconds: float, connections: int
) -> list[HttpAnswer]:
    """Offer `rate` requests a second for `seconds`, evenly, whatever is answered; the answers in no order."""
    start = time.monotonic()
    total = round(rate * seconds)

    async def client(first: int) -> list[HttpAnswer]:
        answers = []
        async with HttpConnection(address) as connection:
            for number in range(first, total, connections):
                await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
                answers.append(await connection.get("/", headers))
        return answers

    by_client = await asyncio.gather(*(client(first) for first in range(connections)))
    return [answer for answers in by_client for answer in answers]
