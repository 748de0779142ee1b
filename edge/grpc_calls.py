"""Calls that are not answered at once: those that wait for a decision, and those of several messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import grpc

from apportion.edge.grpc_messages import DONE, HEAD, CallFault, cut_short, framed, only_trailers, take_message, trailers
from apportion.edge.grpc_methods import Asked
from apportion.edge.http2.connection import Connection
from apportion.edge.http2.stream import Stream
from apportion.guarding import refusal_of

BEHIND_MAX = 65_536
"""Bytes of an answer of several messages that may wait for the peer's window."""


class Context:
    """What a servicer's method can say beside its answer. Unary methods share one."""

    def set_code(self, code: grpc.StatusCode) -> None:
        """Of methods that generated code has for want of ours; what they raise next says the same."""

    def set_details(self, details: str) -> None:
        """As `set_code`."""

    async def abort(self, code: grpc.StatusCode, details: str = "") -> None:
        """End the call."""
        raise CallFault(code, details)


class Replies:
    """Answers in gRPC's form on one connection; `flush` has them written soon."""

    def __init__(self, connection: Connection, flush: Callable[[], object]) -> None:
        self.connection = connection
        self.flush = flush

    def whole(self, stream: Stream, message: bytes) -> None:
        """The one message of an answer."""
        self.connection.respond(stream, HEAD, framed(message), DONE)

    def refuse(self, stream: Stream, status: grpc.StatusCode, text: str) -> None:
        """End a call by a status."""
        self.connection.finish(stream, trailers(status, text) if stream.started else only_trailers(status, text))

    def fail(self, stream: Stream, method: str, error: Exception) -> None:
        """End a call by the status of an exception."""
        if isinstance(error, CallFault):
            self.refuse(stream, error.status, error.text)
        elif isinstance(error, NotImplementedError):  # a method of the service that we have not
            self.refuse(stream, grpc.StatusCode.UNIMPLEMENTED, "this method is not offered here")
        else:
            self.refuse(stream, *refusal_of(method, error))


class Call:
    """A call with a task of its own, which ends with it, with its deadline, or when the peer gives it up."""

    def __init__(self, replies: Replies, stream: Stream, asked: Asked, answering: Coroutine[Any, Any, None]) -> None:
        self._replies = replies
        self._stream = stream
        self._asked = asked
        self.task = asyncio.create_task(self._run(answering))

    def advance(self) -> None:
        """Something came of its stream, or went."""
        if self._stream.gone:
            self.task.cancel()

    async def _run(self, answering: Coroutine[Any, Any, None]) -> None:
        limit = asyncio.timeout(self._asked.timeout_s)
        try:
            async with limit:
                await answering
        except asyncio.CancelledError:
            self._replies.refuse(self._stream, grpc.StatusCode.UNAVAILABLE, "the server stops")
            raise
        except Exception as error:  # noqa: BLE001 (every error gets an answer; the table is in `guarding`)
            if limit.expired():
                self._replies.refuse(self._stream, grpc.StatusCode.DEADLINE_EXCEEDED, "the call's grpc-timeout is over")
            else:
                self._replies.fail(self._stream, self._asked.method.name, error)
        finally:
            self._replies.flush()


def waiting_call(replies: Replies, stream: Stream, asked: Asked, answer: Awaitable[Any]) -> Call:
    """A unary call whose answer must be awaited."""

    async def answering() -> None:
        replies.whole(stream, asked.method.write(await answer))

    return Call(replies, stream, asked, answering())


class StreamingCall(Call, Context):
    """A call of several messages, one way or both. It is its servicer's context."""

    def __init__(self, replies: Replies, stream: Stream, asked: Asked) -> None:
        self._news = asyncio.Event()
        super().__init__(replies, stream, asked, self._answer())

    def advance(self) -> None:
        self._news.set()
        super().advance()

    async def write(self, message: Any) -> None:
        """Send one message. Waits only for a peer that is far behind: a health service waits with it."""
        connection, stream = self._replies.connection, self._stream
        raw = self._asked.method.write(message)
        if not stream.started:
            connection.begin(stream, HEAD)
        connection.send(stream, framed(raw))
        self._replies.flush()
        while len(stream.unsent) > BEHIND_MAX:
            await self._until_news()

    async def _answer(self) -> None:
        method = self._asked.method
        requests = self._requests()
        async with aclosing(requests):
            replies = method.answer(requests if method.takes_stream else await self._only(requests), self)
            if isinstance(replies, AsyncIterator):
                async for reply in replies:
                    await self.write(reply)
            else:
                await replies
        if not self._stream.started:
            self._replies.connection.begin(self._stream, HEAD)
        self._replies.connection.finish(self._stream, DONE)

    async def _requests(self) -> AsyncGenerator[Any, None]:
        stream = self._stream
        while True:
            message = take_message(stream.body, self._asked.encoding)
            if message is not None:
                self._replies.connection.count(stream)
                yield self._asked.method.read(message)
            elif not stream.ended:
                await self._until_news()
            elif stream.body:
                raise cut_short()
            else:
                return

    async def _only(self, requests: AsyncIterator[Any]) -> Any:
        async for request in requests:
            return request
        raise cut_short()

    async def _until_news(self) -> None:
        self._news.clear()
        await self._news.wait()
