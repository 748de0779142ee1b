"""The methods that a server offers, as generated code registers them, and what of a request's headers concerns them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from apportion.edge.grpc_messages import ENCODINGS, NOT_GRPC, only_trailers
from apportion.edge.http2.headers import Head
from apportion.guarding import Handler, unreadable

_TIMEOUT = re.compile(r"(\d{1,8})([HMSmun])\Z", re.ASCII)
_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


@dataclass(frozen=True, slots=True)
class Method:
    """A method; `name` is for people.

    `answer` takes a request and a context. Of a unary method it returns the answer, or what must be awaited for it;
    an answer of `bytes` is serialised already. Of others it is an asynchronous generator, or a coroutine that writes by
    its context.
    """

    name: str
    answer: Callable[[Any, Any], Any]
    parse: Callable[[bytes], Any]
    serialise: Callable[[Any], bytes]
    takes_stream: bool
    gives_stream: bool

    def read(self, raw: bytes) -> Any:
        """A request. InputError where the bytes are none."""
        try:
            return self.parse(raw)
        except Exception:  # noqa: BLE001 (whatever the library raises, the caller's bytes are at fault)
            raise unreadable(self.name) from None

    def write(self, answer: Any) -> bytes:
        """An answer's bytes."""
        return answer if answer.__class__ is bytes else self.serialise(answer)


class Methods(dict[str, Method]):
    """Methods by path. Takes services like a gRPC server, as generated `add_..._to_server` functions expect."""

    def add_generic_rpc_handlers(self, handlers: Iterable[object]) -> None:
        """The same methods come by `add_registered_method_handlers`."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add a service."""
        for name, handler in handlers.items():
            answer = handler.unary_unary or handler.unary_stream or handler.stream_stream
            assert answer is not None, "no service of ours takes a stream for one answer"
            assert handler.request_deserializer is not None and handler.response_serializer is not None
            self[f"/{service}/{name}"] = Method(
                f"{service}/{name}",
                answer,
                handler.request_deserializer,
                handler.response_serializer,
                handler.request_streaming,
                handler.response_streaming,
            )


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request's headers ask for."""

    method: Method
    timeout_s: float | None
    encoding: str


def read_head(head: Head, methods: Methods) -> Asked | bytes:
    """What is asked for, or the headers that answer it."""
    fields = head.fields
    if head.method != "POST" or not fields.get("content-type", "").startswith("application/grpc"):
        return NOT_GRPC
    method = methods.get(head.path)
    if method is None:
        return only_trailers(grpc.StatusCode.UNIMPLEMENTED, "this method is not offered here")
    encoding = fields.get("grpc-encoding", "identity")
    if encoding not in ENCODINGS:
        text = f"grpc-encoding {encoding[:100]!r} is not known; {', '.join(ENCODINGS)} are"
        return only_trailers(grpc.StatusCode.UNIMPLEMENTED, text)
    timeout = fields.get("grpc-timeout")
    if timeout is None:
        return Asked(method, None, encoding)
    found = _TIMEOUT.match(timeout)
    if found is None:
        return only_trailers(grpc.StatusCode.INVALID_ARGUMENT, f"grpc-timeout {timeout[:100]!r} is no time, as 20m is")
    return Asked(method, int(found[1]) * _SECONDS[found[2]], encoding)
