"""The HTTP door of an edge: `/check` for proxies, `POST /v1/decide` for programs, health and metrics.

What is asked is read in `check_request` and `decide_request`, what is said is in `http_answer`, and what a caller may
not make this process hold is bounded in `http_server`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from apportion.edge.asking import ask, decision_ids, find_matcher, start, unknown_measure
from apportion.edge.check_request import CheckMapping
from apportion.edge.decide_request import FieldError, read_question
from apportion.edge.decider import Decider
from apportion.edge.http_answer import INTERNAL_ERROR, SERVER, check_answer, error_answer, json_answer, refusal
from apportion.edge.http_server import BODY_BYTES_MAX, BoundedServer
from apportion.edge.limiter_answer import as_object
from apportion.edge.metrics import Metrics
from apportion.listening import bind, unbind

log = structlog.get_logger("apportion.edge")

READ_S = 10.0
"""What a request's body may take to arrive."""

Answer = Callable[[web.BaseRequest], Awaitable[web.Response]]


class _HungUpError(Exception):
    """The caller went away before its request was whole: no fault of ours, and common."""


class HttpDoor:
    """An open door. `address` is the one really bound, with the port that was taken for port 0."""

    def __init__(self, decider: Decider, mapping: CheckMapping, metrics: Metrics | None) -> None:
        self.address = ""
        self._decider = decider
        self._mapping = mapping
        self._metrics = metrics
        self._next_id = decision_ids()
        self._leaving = False
        self._server: BoundedServer | None = None
        self._listening: list[asyncio.Server] = []
        self._routes: dict[str, tuple[tuple[str, ...], Answer]] = {
            "/check": (("GET", "HEAD", "POST"), self._check),
            "/v1/decide": (("POST",), self._decide),
            "/healthz": (("GET", "HEAD"), self._healthz),
            "/readyz": (("GET", "HEAD"), self._readyz),
            "/metrics": (("GET", "HEAD"), self._scrape),
        }

    async def open(self, address: str) -> None:
        """Listen on `address`, HOST:PORT or unix:PATH. InputError when it cannot be had."""
        sockets, self.address = bind(address)
        self._server = BoundedServer(self._answer)
        loop = asyncio.get_running_loop()
        self._listening = [await loop.create_server(self._server, sock=each) for each in sockets]

    async def close(self, grace_s: float) -> None:
        """Say "not ready", take no new connections, and give requests under way up to `grace_s` seconds."""
        self._leaving = True
        for each in self._listening:
            each.close()
        if self._server is not None:
            await asyncio.sleep(0)  # what was just accepted begins, and is answered
            self._server.pre_shutdown()
            await self._server.shutdown(grace_s)
        if self._listening:
            unbind(self.address)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        answer = await self._find(request)
        answer.headers["Server"] = SERVER
        return answer

    async def _find(self, request: web.BaseRequest) -> web.Response:
        """Answer whatever comes; our own fault is 500, without a word of it, and logged."""
        methods, answer = self._routes.get(request.path, ((), None))
        if answer is None:
            return refusal(404, f"there is no {request.path[:100]!r} here; there are {', '.join(self._routes)}")
        if request.method not in methods:
            return refusal(405, f"{request.path} takes {' and '.join(methods)}", headers={"Allow": ", ".join(methods)})
        try:
            return await answer(request)
        except web.HTTPRequestEntityTooLarge:
            return refusal(413, f"the body has more than {BODY_BYTES_MAX} bytes")
        except _HungUpError:
            return refusal(400, "the body ends before its announced end")  # which nobody hears
        except TimeoutError:
            return refusal(408, f"the body did not arrive within {READ_S:g} s")
        except Exception as error:  # every error gets an answer; the table is in http_answer
            told = error_answer(error)
            if told is not None:
                return told
            log.exception("request_failed", path=request.path)
            return refusal(500, INTERNAL_ERROR)

    async def _check(self, request: web.BaseRequest) -> web.Response:
        domain, descriptor = self._mapping.read(lambda header: request.headers.getall(header, ()))
        matcher = find_matcher(self._decider, domain)
        answer = await ask(self._decider, matcher, (descriptor,), whole=False)
        return check_answer(answer.decision, self._next_id())

    async def _decide(self, request: web.BaseRequest) -> web.Response:
        question = read_question(await _body(request))
        matcher = find_matcher(self._decider, question.domain)
        wrong = unknown_measure(matcher, question.descriptors)
        if wrong is not None:
            raise FieldError("cost", wrong)
        answer = start(self._decider, matcher, question.descriptors, whole=False, peek=question.peek)
        if isinstance(answer, Awaitable):
            answer = await answer
        return json_answer(as_object(answer.decision, self._next_id()))

    async def _healthz(self, request: web.BaseRequest) -> web.Response:
        return web.Response(text="alive\n")

    async def _readyz(self, request: web.BaseRequest) -> web.Response:
        if self._decider.ready and not self._leaving:
            return web.Response(text="ready\n")
        return web.Response(text="leaving\n" if self._leaving else "not ready\n", status=503)

    async def _scrape(self, request: web.BaseRequest) -> web.Response:
        if self._metrics is None:
            return refusal(404, "this edge counts nothing")
        raw, content_type = self._metrics.text(request.headers.get("Accept", ""))
        return web.Response(body=raw, headers={"Content-Type": content_type})


async def _body(request: web.BaseRequest) -> bytes:
    """All of a request's body. TimeoutError: it did not come; _HungUpError: it never will."""
    try:
        async with asyncio.timeout(READ_S):
            return await request.read()
    except ConnectionError:
        raise _HungUpError from None
