"""HTTP/2 frames (RFC 9113): numbers, how one is written, and the two ways in which a peer can be wrong."""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

HEAD = struct.Struct(">IBI")
"""A frame's first nine bytes: length and kind in one number, flags, stream."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20

HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)

FRAME_BYTES = 16_384
"""Bytes of a frame's payload that both sides take unless they say otherwise. We never do."""

WINDOW = 65_535
"""Bytes that may be under way on a stream, and on the connection, unless said otherwise."""

NUMBER_MAX = 2**31 - 1
"""Of windows and of streams."""


class Code(IntEnum):
    """Why a stream or a connection ended."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """The peer broke the connection's rules: it is told why, and the connection ends."""

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class StreamFault(Exception):
    """The peer broke one stream's rules: that stream is reset, all others go on."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


def frame(kind: int, flags: int, stream_id: int, payload: bytes) -> bytes:
    """One frame."""
    return HEAD.pack(len(payload) << 8 | kind, flags, stream_id) + payload


def settings(values: dict[int, int]) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in values.items()))


def window_update(stream_id: int, increment: int) -> bytes:
    """A WINDOW_UPDATE frame; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4))


def goaway(last_id: int, code: Code, reason: str = "") -> bytes:
    """A GOAWAY frame: streams above `last_id` were not looked at."""
    return frame(GOAWAY, 0, 0, struct.pack(">II", last_id, code) + reason.encode())


def unpadded(payload: bytes) -> bytes:
    """What is between the padding's length and the padding."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(Code.PROTOCOL_ERROR, "the padding is longer than its frame")
    return payload[1 : len(payload) - payload[0]]
