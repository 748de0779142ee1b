"""Bytes into frames, wherever they are cut. A header block that comes in several frames is given as one."""

from __future__ import annotations

from collections.abc import Iterator

from apportion.edge.http2.frames import (
    ACK,
    CONTINUATION,
    END_HEADERS,
    FRAME_BYTES,
    HEAD,
    HEADERS,
    NUMBER_MAX,
    PADDED,
    PREFACE,
    PRIORITIZED,
    SETTINGS,
    Code,
    ConnectionFault,
    unpadded,
)
from apportion.edge.http2.headers import BLOCK_BYTES_MAX

CONTINUATIONS_MAX = 16
"""Frames that may continue a header block: each has room for as much as a block may have."""

Frame = tuple[int, int, int, bytes]
"""Kind, flags, stream, payload. Of HEADERS the payload is the whole block, without padding and priority."""


class FrameReader:
    """Reads what one client sends."""

    def __init__(self) -> None:
        self.greeted = False
        """The client said that it speaks HTTP/2."""
        self._settled = False
        self._rest = b""
        self._block: tuple[int, int, bytearray] | None = None
        self._continued = 0

    def read(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with `data`; take them all. ConnectionFault ends them."""
        data = self._rest + data if self._rest else data
        at, end = 0, len(data)
        if not self.greeted:
            at = self._greet(data)
        unpack, head_bytes = HEAD.unpack_from, HEAD.size
        while self.greeted and end - at >= head_bytes:
            word, flags, stream_id = unpack(data, at)
            size, kind = word >> 8, word & 255
            if size > FRAME_BYTES:
                raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"a frame has over {FRAME_BYTES} bytes")
            begin = at + head_bytes
            if end - begin < size:
                break
            at = begin + size
            if not self._settled:
                self._settle(kind, flags)
            payload = data[begin:at]
            if self._block is not None or kind in (HEADERS, CONTINUATION):
                whole = self._assemble(kind, flags, stream_id & NUMBER_MAX, payload)
                if whole is not None:
                    yield whole
            else:
                yield kind, flags, stream_id & NUMBER_MAX, payload
        self._rest = data[at:]

    def _greet(self, data: bytes) -> int:
        """Bytes of the greeting, once it is complete."""
        if not PREFACE.startswith(data[: len(PREFACE)]):
            raise ConnectionFault(Code.PROTOCOL_ERROR, "this port speaks HTTP/2 without TLS")
        self.greeted = len(data) >= len(PREFACE)
        return len(PREFACE) if self.greeted else 0

    def _settle(self, kind: int, flags: int) -> None:
        if kind != SETTINGS or flags & ACK:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        self._settled = True

    def _assemble(self, kind: int, flags: int, stream_id: int, payload: bytes) -> Frame | None:
        """HEADERS with all that continues them; None until the last of it."""
        if self._block is None:
            if kind == CONTINUATION:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "CONTINUATION continues nothing")
            block = _block(flags, payload)
            if flags & END_HEADERS:
                return HEADERS, flags, stream_id, block
            self._block, self._continued = (flags, stream_id, bytearray(block)), 0
            return None
        first_flags, first_id, whole = self._block
        if kind != CONTINUATION or stream_id != first_id:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a header block is not finished")
        whole += payload
        self._continued += 1
        if len(whole) > BLOCK_BYTES_MAX or self._continued > CONTINUATIONS_MAX:
            raise ConnectionFault(
                Code.ENHANCE_YOUR_CALM,
                f"a header block has over {BLOCK_BYTES_MAX} bytes, or {CONTINUATIONS_MAX} frames more than one",
            )
        if not flags & END_HEADERS:
            return None
        self._block = None
        return HEADERS, first_flags, first_id, bytes(whole)


def _block(flags: int, payload: bytes) -> bytes:
    """The part of a header block that a HEADERS frame has."""
    if flags & PADDED:
        payload = unpadded(payload)
    if not flags & PRIORITIZED:
        return payload
    if len(payload) < 5:
        raise ConnectionFault(Code.FRAME_SIZE_ERROR, "HEADERS end within their priority")
    return payload[5:]
