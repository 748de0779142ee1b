"""What goes out: answers, as far as the peer's windows let them. Blocks of headers come written (`header_block`).

Frames are never longer than what every peer takes, so that SETTINGS_MAX_FRAME_SIZE needs no heed.
"""

from __future__ import annotations

from apportion.edge.http2.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES,
    HEAD,
    HEADERS,
    NUMBER_MAX,
    RST_STREAM,
    WINDOW,
    Code,
    ConnectionFault,
    StreamFault,
    frame,
)
from apportion.edge.http2.stream import Stream

_EMPTY_TABLE = b"\x20"
"""Tells a peer that wants a smaller table that ours is empty (RFC 7541, 4.2)."""


class Sender:
    """Frames to be written, and the windows of one peer."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.unsent = 0
        """Bytes of all answers that windows hold back."""
        self._window = WINDOW
        self._stream_window = WINDOW
        self._table_change = b""
        self._blocked: dict[int, Stream] = {}

    def stream_window(self) -> int:
        """What a new stream may send."""
        return self._stream_window

    def whole(self, stream: Stream, head: bytes, body: bytes, trailers: bytes) -> None:
        """An answer that is complete: the usual case, in one piece."""
        size = len(body)
        if size > self._window or size > stream.window_out or size > FRAME_BYTES or self._table_change:
            self.head(stream, head)
            self.data(stream, body)
            self.last(stream, trailers)
            return
        self._window -= size
        pack, number = HEAD.pack, stream.id
        self.out += (
            pack(len(head) << 8 | HEADERS, END_HEADERS, number),
            head,
            pack(size << 8 | DATA, 0, number),
            body,
            pack(len(trailers) << 8 | HEADERS, END_HEADERS | END_STREAM, number),
            trailers,
        )

    def head(self, stream: Stream, head: bytes) -> None:
        """Begin an answer."""
        stream.started = True
        self._headers(stream.id, END_HEADERS, head)

    def data(self, stream: Stream, body: bytes) -> None:
        """More of an answer. What windows hold back stays in `stream.unsent`."""
        stream.unsent += body
        self.unsent += len(body)
        self.pump(stream)

    def last(self, stream: Stream, trailers: bytes) -> None:
        """End an answer, once the rest of it went."""
        stream.trailers = trailers
        self.pump(stream)

    def pump(self, stream: Stream) -> None:
        """Send what the windows allow now."""
        while stream.unsent:
            size = min(len(stream.unsent), self._window, stream.window_out, FRAME_BYTES)
            if size <= 0:
                self._blocked[stream.id] = stream
                return
            self.out.append(frame(DATA, 0, stream.id, bytes(stream.unsent[:size])))
            del stream.unsent[:size]
            self.unsent -= size
            self._window -= size
            stream.window_out -= size
        self._blocked.pop(stream.id, None)
        if stream.trailers is not None:
            self._headers(stream.id, END_HEADERS | END_STREAM, stream.trailers)
            stream.trailers = None

    def reset(self, stream_id: int, code: Code) -> None:
        """End a stream without an answer, or without the rest of a request."""
        self.out.append(frame(RST_STREAM, 0, stream_id, code.to_bytes(4)))

    def forget(self, stream: Stream) -> None:
        """Nothing more of this stream goes out."""
        self.unsent -= len(stream.unsent)
        stream.unsent.clear()
        stream.trailers = None
        self._blocked.pop(stream.id, None)

    def widen(self, increment: int) -> list[Stream]:
        """The connection's window grew; the streams that were held back, now less or no more."""
        self._window += increment
        if self._window > NUMBER_MAX:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "the connection's window passes 2^31-1")
        return self._pump_all()

    def widen_stream(self, stream: Stream, increment: int) -> None:
        """One stream's window grew."""
        stream.window_out += increment
        if stream.window_out > NUMBER_MAX:
            raise StreamFault(Code.FLOW_CONTROL_ERROR)
        self.pump(stream)

    def set_stream_window(self, size: int, streams: list[Stream]) -> list[Stream]:
        """SETTINGS_INITIAL_WINDOW_SIZE: of new streams, and by the difference of open ones. It may make them negative.

        Returns the streams that were held back, as `widen` does.
        """
        change, self._stream_window = size - self._stream_window, size
        for stream in streams:
            stream.window_out += change
            if stream.window_out > NUMBER_MAX:
                raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "a stream's window passes 2^31-1")
        return self._pump_all()

    def empty_table(self) -> None:
        """The peer lowered SETTINGS_HEADER_TABLE_SIZE, and may want to hear that this was seen."""
        self._table_change = _EMPTY_TABLE

    def _headers(self, stream_id: int, flags: int, block: bytes) -> None:
        self.out.append(frame(HEADERS, flags, stream_id, self._table_change + block))
        self._table_change = b""

    def _pump_all(self) -> list[Stream]:
        blocked = list(self._blocked.values())
        for stream in blocked:
            self.pump(stream)
        return blocked
