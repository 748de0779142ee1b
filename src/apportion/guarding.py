"""What stands between gRPC and every servicer: errors become statuses, and bytes that are no message become an error.

The one table of exception to status is here. Methods are wrapped once, when they are registered; an interceptor would
cost a coroutine more for each call. Nothing internal is sent to a client. What a servicer does is no business of this
module.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
import grpc.aio
import structlog

from apportion.core.errors import ApportionError, InputError, ProtocolError, StoreError, UnavailableError

log = structlog.get_logger("apportion.grpc")

DETAILS_MAX = 500
"""Characters of an error's text: a header may hold 8 KiB, and one character takes up to 12 bytes there."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class NotFoundError(InputError):
    """The caller named something that does not exist here; the text names it and what does exist."""


STATUSES: tuple[tuple[type[ApportionError], grpc.StatusCode], ...] = (
    (NotFoundError, grpc.StatusCode.NOT_FOUND),
    (InputError, grpc.StatusCode.INVALID_ARGUMENT),
    (ProtocolError, grpc.StatusCode.INVALID_ARGUMENT),
    (UnavailableError, grpc.StatusCode.UNAVAILABLE),
    (StoreError, grpc.StatusCode.UNAVAILABLE),
)
"""The first that fits; anything else is our own fault: INTERNAL, without its text."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a request whose bytes are no message of its type."""

    method: str


def unreadable(method: str) -> InputError:
    """The error of a request whose bytes are no message of its type."""
    return InputError(
        f"the request of {method} cannot be read: it is cut short, damaged, of another type, or has text that is not "
        f"UTF-8"
    )


def refusal_of(method: str, error: Exception) -> tuple[grpc.StatusCode, str]:
    """The status that answers an exception, and its text. Our own fault is logged."""
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status, _cut(str(error))
    log.error("call_failed", method=method, exc_info=error)
    return grpc.StatusCode.INTERNAL, "internal error; the server's log has it"


class Guarded:
    """Takes services like a gRPC server, as generated `add_..._to_server` functions expect, and guards each method.

    A servicer's methods are coroutines or asynchronous generators. One that takes a stream must iterate over it.
    """

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Iterable[object]) -> None:
        """The same methods come by `add_registered_method_handlers`, which is the way that is guarded."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add a service's methods, guarded."""
        guarded = {name: guard(f"{service}/{name}", handler) for name, handler in handlers.items()}
        # aio looks methods up among the generic handlers only.
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, guarded),))


def guard(method: str, handler: Handler) -> Handler:
    """`handler` with its requests read safely and its errors turned into statuses; `method` is its name for people."""
    reader = _reader(method, handler.request_deserializer)
    writer = handler.response_serializer
    if handler.unary_unary is not None:
        return grpc.unary_unary_rpc_method_handler(_unary(method, handler.unary_unary), reader, writer)
    if handler.stream_unary is not None:
        return grpc.stream_unary_rpc_method_handler(_unary(method, handler.stream_unary, _readable), reader, writer)
    if handler.unary_stream is not None:
        return grpc.unary_stream_rpc_method_handler(_streaming(method, handler.unary_stream), reader, writer)
    assert handler.stream_stream is not None
    return grpc.stream_stream_rpc_method_handler(_streaming(method, handler.stream_stream, _readable), reader, writer)


def _reader(method: str, read: Callable[[bytes], Any] | None) -> Callable[[bytes], Any]:
    """A deserialiser that never raises: gRPC would log a traceback, and tell the caller UNKNOWN."""
    assert read is not None, "a method of protobuf messages"
    unreadable = Unreadable(method)

    def read_safely(raw: bytes) -> Any:
        try:
            return read(raw)
        except Exception:  # noqa: BLE001 (whatever the library raises, the caller's bytes are at fault)
            return unreadable

    return read_safely


def _whole(request: Any) -> Any:
    """A request that is one message."""
    if request.__class__ is Unreadable:
        raise unreadable(request.method)
    return request


async def _readable(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """A request that is a stream of messages."""
    async for request in requests:
        yield _whole(request)


def _unary(
    method: str, answer: Callable[..., Any], check: Callable[[Any], Any] = _whole
) -> Callable[[Any, Any], Awaitable[Any]]:
    if not inspect.iscoroutinefunction(answer):
        return _unimplemented  # what generated base classes have is no coroutine, ours all are

    async def guarded(request: Any, context: Any) -> Any:
        try:
            return await answer(check(request), context)
        except Exception as error:  # noqa: BLE001 (every error gets an answer; the table is `STATUSES`)
            await _abort(method, error, context)

    return guarded


def _streaming(
    method: str, answer: Callable[..., Any], check: Callable[[Any], Any] = _whole
) -> Callable[[Any, Any], Any]:
    if not inspect.isasyncgenfunction(answer):
        return _unary(method, answer, check)  # it writes by its context

    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for reply in answer(check(request), context):
                yield reply
        except Exception as error:  # noqa: BLE001 (as above)
            await _abort(method, error, context)

    return guarded


async def _unimplemented(request: Any, context: Any) -> None:
    await context.abort(grpc.StatusCode.UNIMPLEMENTED, "this method is not offered here")


async def _abort(method: str, error: Exception, context: Any) -> None:
    """End the call with the status of `error`. What ended already, by the servicer or by the peer, stays ended."""
    if isinstance(error, grpc.aio.AbortError | grpc.RpcError):
        raise error
    await context.abort(*refusal_of(method, error))


def _cut(text: str) -> str:
    return text if len(text) <= DETAILS_MAX else text[: DETAILS_MAX - 3] + "..."
