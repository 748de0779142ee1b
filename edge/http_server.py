"""The HTTP server under the door: aiohttp's, with a bound on everything that a caller chooses, and errors as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from apportion.edge.http_answer import INTERNAL_ERROR, SERVER, refusal

log = structlog.get_logger("apportion.edge")

BODY_BYTES_MAX = 2**20
"""Bytes of a body; more is 413. `apportion.v1.Limiter` takes larger ones."""

LINE_BYTES_MAX = 8_190
"""Bytes of the request line, and of one header; more is 400."""

HEADERS_MAX = 128
"""Headers of a request; more is 400."""

CONNECTIONS_MAX = 1_000
"""Connections at a time; a further one is told 503 and closed. A process can often open no more than 1,024 files."""

LINGER_S = 10.0
"""What is read and dropped of a body that nobody wants, so that its sender hears the answer first."""

IDLE_S = 75.0
"""A connection without a request for so long is closed: longer than proxies keep theirs (nginx: 60 s)."""


class BoundedServer(web.Server):
    """Makes a protocol for each connection, of at most CONNECTIONS_MAX."""

    def __init__(self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(answer, request_factory=_request)

    def __call__(self) -> RequestHandler:
        """A protocol for a connection that was accepted."""
        if len(self.connections) >= CONNECTIONS_MAX:
            return _Full()  # type: ignore[return-value]
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=IDLE_S,
            lingering_time=LINGER_S,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            auto_decompress=False,  # else a small body could become a large one
        )


class _Connection(RequestHandler):
    """A connection whose malformed requests get JSON, and no line in the log: anybody can send them."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer where there is no request, or its answer could not be made."""
        if status >= 500:
            log.error("request_failed", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was begun already, so none can be sent")
        text = INTERNAL_ERROR if status >= 500 else f"this is no request that can be read: {_first_line(message)}"
        answer = refusal(status, text)
        answer.headers["Server"] = SERVER
        answer.force_close()
        return answer


class _Full(asyncio.Protocol):
    """Sends a connection too many away."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say so, and close."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        transport.close()


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_BYTES_MAX)


def _first_line(text: str | None) -> str:
    """Of a parser's message: the rest repeats what was sent."""
    return (text or "malformed").strip().splitlines()[0].rstrip(":")
