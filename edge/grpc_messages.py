"""Messages as gRPC frames them on a stream, compressed or not; statuses as headers. Pure functions."""

from __future__ import annotations

import zlib
from urllib.parse import quote

import grpc

from apportion.edge.asking import MESSAGE_BYTES_MAX
from apportion.edge.http2.headers import header_block

PREFIX = 5
"""Bytes before a message: whether it is compressed, and its length."""

ENCODINGS = ("identity", "deflate", "gzip")
"""How a message may come. Answers are not compressed: they are small."""

HEAD = header_block([(":status", "200"), ("content-type", "application/grpc")])
"""Headers of every answer."""

NOT_GRPC = header_block([(":status", "415")])
"""The answer to what is no call."""

DONE = header_block([("grpc-status", "0")])
"""Trailers of an answer that is complete."""

_PRINTABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


class CallFault(Exception):
    """A call ends with this status."""

    def __init__(self, status: grpc.StatusCode, text: str = "") -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def trailers(status: grpc.StatusCode, text: str) -> bytes:
    """Trailers that say a status. Whatever is not printable ASCII in the text is percent-encoded, as gRPC asks."""
    number: int = status.value[0]
    return header_block([("grpc-status", str(number)), ("grpc-message", quote(text, safe=_PRINTABLE))])


def only_trailers(status: grpc.StatusCode, text: str) -> bytes:
    """The one block of headers of an answer that is nothing but a status."""
    also = [("grpc-accept-encoding", ",".join(ENCODINGS))] if status is grpc.StatusCode.UNIMPLEMENTED else []
    return HEAD + header_block(also) + trailers(status, text)


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return b"\0" + len(message).to_bytes(4) + message


def check_size(body: bytearray) -> int:
    """Bytes of the first message of `body`, 0 while that is not known. CallFault where they are too many."""
    size = int.from_bytes(body[1:PREFIX]) if len(body) >= PREFIX else 0
    if size > MESSAGE_BYTES_MAX:
        raise _too_long(size)
    return size


def only_message(body: bytearray, encoding: str) -> bytes:
    """The message of a body that is complete and has one. CallFault otherwise."""
    message = take_message(body, encoding)
    if message is None:
        raise cut_short()
    if body:
        raise CallFault(grpc.StatusCode.INVALID_ARGUMENT, "the method takes one message, and more came")
    return message


def cut_short() -> CallFault:
    """The answer where a call ended before its message did."""
    return CallFault(grpc.StatusCode.INVALID_ARGUMENT, "the request ends within its message, or before it")


def take_message(body: bytearray, encoding: str) -> bytes | None:
    """Remove the first message of `body`; None while it is not complete. CallFault where it cannot be one."""
    size = check_size(body)
    if len(body) < PREFIX + size:
        return None
    message = bytes(body[PREFIX : PREFIX + size])
    compressed = body[0]
    del body[: PREFIX + size]
    return _expanded(message, encoding) if compressed else message


def _expanded(message: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        raise CallFault(grpc.StatusCode.INTERNAL, "a message is compressed, and grpc-encoding does not say how")
    # 31: with gzip's header and checksum; 15: with those of zlib, which gRPC's deflate means.
    expander = zlib.decompressobj(31 if encoding == "gzip" else 15)
    try:
        expanded = expander.decompress(message, MESSAGE_BYTES_MAX + 1)
    except zlib.error:
        expanded = b""
    if len(expanded) > MESSAGE_BYTES_MAX:
        raise _too_long(len(expanded))
    if not expander.eof:
        raise CallFault(grpc.StatusCode.INTERNAL, f"a message cannot be expanded: it is no {encoding}")
    return expanded


def _too_long(size: int) -> CallFault:
    return CallFault(
        grpc.StatusCode.RESOURCE_EXHAUSTED, f"a message has {size} bytes or more, the most is {MESSAGE_BYTES_MAX}"
    )
