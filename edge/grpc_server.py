"""A gRPC server for small calls in Python: HTTP/2 of our own (`edge.http2`), several times as fast as grpc.aio.

A unary method that answers at once costs no task: every request of one read is decided in turn, and all answers are
written together. Serves without TLS, as the rest of Apportion does.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable

from apportion.edge.grpc_calls import Context, Replies, StreamingCall, waiting_call
from apportion.edge.grpc_messages import check_size, only_message
from apportion.edge.grpc_methods import Asked, Methods, read_head
from apportion.edge.http2.connection import Connection
from apportion.edge.http2.frames import Code, goaway
from apportion.edge.http2.stream import Stream
from apportion.listening import bind, unbind

CONNECTIONS_MAX = 1_000
"""Connections at a time; a further one is closed. A process can often open no more than 1,024 files."""

READ_BYTES = 16_384
"""Bytes of one read: small requests of about 10 ms, which are answered before anything else has its turn."""

GREETING_S = 10.0
"""What a new connection may take to say that it speaks HTTP/2."""

HEARING_S = 1.0
"""What a peer may take to say that it heard that we leave, before no more requests are taken."""

PARTING_S = 1.0
"""What a peer may take to close its side: closed at once, a connection may lose what was written last."""

_CONTEXT = Context()


class GrpcServer:
    """A server of `methods`. `address` is the one really bound, with the port that was taken for port 0."""

    def __init__(self, methods: Methods) -> None:
        self.address = ""
        self.methods = methods
        self.connections: set[ServerConnection] = set()
        self.leaving = False
        self.buffer = memoryview(bytearray(READ_BYTES))
        """Where every connection's next bytes come; each takes them before another's can."""
        self._listening: list[asyncio.Server] = []

    async def open(self, address: str) -> None:
        """Listen on `address`, HOST:PORT or unix:PATH. InputError when it cannot be had."""
        sockets, self.address = bind(address)
        loop = asyncio.get_running_loop()
        self._listening = [await loop.create_server(lambda: ServerConnection(self), sock=each) for each in sockets]

    async def close(self, grace_s: float) -> None:
        """Take no new connections and requests, and give those under way up to `grace_s` seconds."""
        self.leaving = True
        for each in self._listening:
            each.close()
        unbind(self.address)
        for connection in list(self.connections):
            connection.leave()
        await self._gone(grace_s)
        for connection in list(self.connections):
            await connection.end()
        await self._gone(PARTING_S)
        for connection in list(self.connections):
            connection.abort()

    async def _gone(self, seconds: float) -> None:
        """Wait for connections to close."""
        if self.connections:
            await asyncio.wait([each.closed for each in self.connections], timeout=seconds)


class ServerConnection(asyncio.BufferedProtocol):
    """One peer's connection: its socket, and the calls under way."""

    def __init__(self, server: GrpcServer) -> None:
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._server = server
        self._connection = Connection()
        self._replies = Replies(self._connection, self._flush_soon)
        self._flushing = False
        self._greeting: asyncio.TimerHandle | None = None
        self._hearing: asyncio.TimerHandle | None = None
        self._parting: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # ------------------------------------------------------------------------------------------------------ asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if len(self._server.connections) >= CONNECTIONS_MAX:
            transport.write(self._connection.take() + goaway(0, Code.ENHANCE_YOUR_CALM, "too many connections"))
            transport.close()
            return
        self._server.connections.add(self)
        self._greeting = self._loop.call_later(GREETING_S, self._check_greeting)
        if self._server.leaving:
            self.leave()
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put what comes."""
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Answer what came."""
        for stream in self._connection.receive(bytes(self._server.buffer[:nbytes]), self._loop.time()):
            if stream.call is not None:
                stream.call.advance()
            elif not stream.gone:
                self._begin(stream)
        self._flush()

    def pause_writing(self) -> None:
        """The peer does not read: read nothing more from it."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is no more."""
        self._server.connections.discard(self)
        self._give_up()
        for timer in (self._greeting, self._hearing, self._parting):
            if timer is not None:
                timer.cancel()
        self.closed.set_result(None)

    # ------------------------------------------------------------------------------------------------------ leaving

    def leave(self) -> None:
        """Have what is under way answered, and close."""
        self._connection.leave()
        self._hearing = self._loop.call_later(HEARING_S, self._refuse_new)
        self._flush_soon()

    async def end(self) -> None:
        """Close; what is still under way is told so."""
        tasks = [stream.call.task for stream in self._connection.streams.values() if stream.call is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close without regard for what was not written."""
        self._transport.abort()

    def _refuse_new(self) -> None:
        self._connection.refuse_new()
        self._flush()

    def _check_greeting(self) -> None:
        if not self._connection.greeted:
            self._transport.abort()

    # ---------------------------------------------------------------------------------------------------- answering

    def _begin(self, stream: Stream) -> None:
        """Answer a request, or begin to; one of which more must come is left for later."""
        asked = stream.head.memo
        if asked is None:
            asked = stream.head.memo = read_head(stream.head, self._server.methods)
        if isinstance(asked, bytes):
            self._connection.finish(stream, asked)
        elif asked.method.gives_stream:
            stream.call = StreamingCall(self._replies, stream, asked)
        else:
            try:
                self._answer(stream, asked)
            except Exception as error:  # noqa: BLE001 (every error gets an answer; the table is in `guarding`)
                self._replies.fail(stream, asked.method.name, error)

    def _answer(self, stream: Stream, asked: Asked) -> None:
        """Answer a unary call, once all of it is here."""
        if not stream.ended:
            check_size(stream.body)
            return
        method = asked.method
        answer = method.answer(method.read(only_message(stream.body, asked.encoding)), _CONTEXT)
        if answer.__class__ is not bytes and isinstance(answer, Awaitable):
            stream.call = waiting_call(self._replies, stream, asked, answer)
        else:
            self._replies.whole(stream, method.write(answer))

    # ------------------------------------------------------------------------------------------------------ writing

    def _flush_soon(self) -> None:
        """Write once all that is ready now has its answer."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        written = self._connection.take()
        if written and self._parting is None and not self._transport.is_closing():
            self._transport.write(written)
        if self._connection.fault is not None:
            self._part()
        elif self._server.leaving and self._connection.left:
            self._transport.close()

    def _part(self) -> None:
        """Close after the peer's fault, which it is told."""
        if self._parting is None:
            self._give_up()
            self._transport.write_eof()
            self._parting = self._loop.call_later(PARTING_S, self._transport.abort)

    def _give_up(self) -> None:
        """Nobody waits for answers any more."""
        for stream in self._connection.streams.values():
            stream.gone = True
            if stream.call is not None:
                stream.call.advance()
