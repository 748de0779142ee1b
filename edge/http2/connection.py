"""One connection of a server: bytes that came, as streams that have something new; answers, as bytes to be written.

Pure: whoever reads the socket calls `receive`, looks at the streams that it gives back, answers them by `respond`,
`begin`, `send`, `finish` and `reset`, and writes what `take` gives. All that a peer may make it hold is bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from apportion.edge.http2.allowance import PER_REQUEST, Allowance
from apportion.edge.http2.frame_reader import FrameReader
from apportion.edge.http2.frames import (
    ACK,
    DATA,
    ENABLE_PUSH,
    END_STREAM,
    FRAME_BYTES,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_CONCURRENT_STREAMS,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
    NUMBER_MAX,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW,
    WINDOW_UPDATE,
    Code,
    ConnectionFault,
    StreamFault,
    frame,
    goaway,
    settings,
    unpadded,
    window_update,
)
from apportion.edge.http2.headers import LIST_BYTES_MAX, HeaderReader
from apportion.edge.http2.sender import Sender
from apportion.edge.http2.stream import Stream

STREAMS_MAX = 1_000
"""Requests under way on a connection; a further one is refused, which tells the peer to try it again."""

HELD_MAX = 16 * 2**20
"""Bytes of unfinished requests on a connection; the one that passes it is reset."""

UNSENT_MAX = 16 * 2**20
"""Bytes of answers that the peer's windows hold back, above which further requests are refused."""

CONNECTION_WINDOW = 2**20
"""Bytes that may be under way to us on all streams together. What arrives is taken at once, or refused."""

TABLE_BYTES = 4_096
"""Bytes of a peer's table for our headers, unless it says otherwise."""

LEAVING = b"leaving."
"""The ping whose answer says that the peer has heard that we leave."""


class Connection:
    """State of one connection. `now` is in seconds, of a clock that never goes back."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.fault: ConnectionFault | None = None
        """Why the connection is over: write what `take` gives, and close it."""
        self._refusing = False
        self._said_goodbye = False
        self._last = 0
        self._window_in = WINDOW
        self._held = 0
        self._now = 0.0
        self._allowance = Allowance()
        self._frames = FrameReader()
        self._reader = HeaderReader()
        self._sender = Sender()
        self._touched: list[Stream] = []
        self._kinds: dict[int, Callable[[int, int, bytes], None]] = {
            DATA: self._on_data,
            HEADERS: self._on_headers,
            PRIORITY: self._on_priority,
            RST_STREAM: self._on_reset,
            SETTINGS: self._on_settings,
            PUSH_PROMISE: self._on_push_promise,
            PING: self._on_ping,
            GOAWAY: self._on_goaway,
            WINDOW_UPDATE: self._on_window_update,
        }
        ours = {MAX_CONCURRENT_STREAMS: STREAMS_MAX, MAX_HEADER_LIST_SIZE: LIST_BYTES_MAX}
        self._sender.out.append(settings(ours))
        self._grow_window()

    def receive(self, data: bytes, now: float) -> list[Stream]:
        """Take what came. Returns the streams that are new, got bytes, ended, were reset, or can send again."""
        if self.fault is not None:
            return []
        self._now = now
        self._touched = []
        try:
            self._read(data)
        except ConnectionFault as fault:
            self.fault = fault
        if self._window_in < CONNECTION_WINDOW // 2:
            self._grow_window()
        for stream in self._touched:
            stream.touched = False
        return self._touched

    def take(self) -> bytes:
        """What is to be written."""
        if self.fault is not None and not self._said_goodbye:
            self._said_goodbye = True
            self._sender.out.append(goaway(self._last, self.fault.code, self.fault.reason))
        taken = b"".join(self._sender.out)
        self._sender.out.clear()
        return taken

    # ---------------------------------------------------------------------------------------------------- answering

    def respond(self, stream: Stream, head: bytes, body: bytes, trailers: bytes) -> None:
        """Answer with all there is to say; blocks of headers are written already."""
        if not stream.gone:
            stream.finished = True
            self._sender.whole(stream, head, body, trailers)
            self._settle(stream)

    def begin(self, stream: Stream, head: bytes) -> None:
        """Begin an answer of several pieces."""
        if not stream.gone:
            self._sender.head(stream, head)

    def send(self, stream: Stream, body: bytes) -> None:
        """More of an answer. What waits for the peer is in `stream.unsent`, whose bound is the caller's business."""
        if not stream.gone:
            self._sender.data(stream, body)

    def finish(self, stream: Stream, trailers: bytes) -> None:
        """End an answer; one that was not begun consists of these headers."""
        if not stream.gone:
            stream.finished = True
            self._sender.last(stream, trailers)
            self._settle(stream)

    def count(self, stream: Stream) -> None:
        """Count again what a stream holds: bytes of its body were taken."""
        held = 0 if stream.ended or stream.gone else len(stream.body)
        self._held += held - stream.held
        stream.held = held

    def leave(self) -> None:
        """Ask the peer to send no more requests here. What is under way is answered; see `left`."""
        self._sender.out.append(goaway(NUMBER_MAX, Code.NO_ERROR, "leaving") + frame(PING, 0, 0, LEAVING))

    def refuse_new(self) -> None:
        """After `leave`: the peer has heard of it, or had the time to. It is told which request was the last."""
        if not self._refusing:
            self._refusing = True
            self._sender.out.append(goaway(self._last, Code.NO_ERROR, "leaving"))

    @property
    def greeted(self) -> bool:
        """The peer said that it speaks HTTP/2."""
        return self._frames.greeted

    @property
    def left(self) -> bool:
        """After `leave`: nothing is under way, and the peer has heard that nothing more is taken."""
        return not self.greeted or (self._refusing and not self.streams)

    def _settle(self, stream: Stream) -> None:
        """Forget a stream whose answer went."""
        if stream.unsent or not stream.finished:
            return
        del self.streams[stream.id]
        if not stream.ended:
            self._sender.reset(stream.id, Code.NO_ERROR)  # whatever else the peer has to say of it
        stream.gone = True
        if stream.held:
            self.count(stream)

    def _grow_window(self) -> None:
        self._sender.out.append(window_update(0, CONNECTION_WINDOW - self._window_in))
        self._window_in = CONNECTION_WINDOW

    # ------------------------------------------------------------------------------------------------------ reading

    def _read(self, data: bytes) -> None:
        kinds = self._kinds
        for kind, flags, stream_id, payload in self._frames.read(data):
            take = kinds.get(kind)
            if take is None:
                self._allowance.spend(self._now)  # of an extension that we do not know
                continue
            try:
                take(flags, stream_id, payload)
            except StreamFault as fault:
                self._break(stream_id, fault.code)

    def _break(self, stream_id: int, code: Code) -> None:
        """Reset a stream by the peer's fault."""
        self._allowance.spend(self._now)
        self._sender.reset(stream_id, code)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._lose(stream)

    def _lose(self, stream: Stream) -> None:
        del self.streams[stream.id]
        stream.gone = True
        self.count(stream)
        self._sender.forget(stream)
        self._touch(stream)

    def _touch(self, stream: Stream) -> None:
        if not stream.touched:
            stream.touched = True
            self._touched.append(stream)

    def _find(self, stream_id: int) -> Stream | None:
        """An open stream. None: it is no longer open, which costs the peer a bit. ConnectionFault: it never was."""
        stream = self.streams.get(stream_id)
        if stream is None:
            if not 0 < stream_id <= self._last or not stream_id & 1:
                raise ConnectionFault(Code.PROTOCOL_ERROR, f"a frame is of stream {stream_id}, which was not begun")
            self._allowance.spend(self._now)
        return stream

    def _on_data(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._window_in -= size
        if self._window_in < 0:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "more came than the connection's window")
        if flags & PADDED:
            payload = unpadded(payload)
        stream = self._find(stream_id)
        if stream is None:
            return
        if stream.ended:
            raise StreamFault(Code.STREAM_CLOSED)
        stream.window_in -= size
        if stream.window_in < 0:
            raise StreamFault(Code.FLOW_CONTROL_ERROR)
        stream.body += payload
        self._touch(stream)
        if flags & END_STREAM:
            self._end(stream)
        else:
            self._hold(stream, size)

    def _hold(self, stream: Stream, size: int) -> None:
        """Keep what came of an unfinished request, and let more come."""
        if not size:
            self._allowance.spend(self._now)
        self.count(stream)
        if self._held > HELD_MAX:
            raise StreamFault(Code.ENHANCE_YOUR_CALM)
        if stream.window_in < WINDOW // 2:
            self._sender.out.append(window_update(stream.id, WINDOW - stream.window_in))
            stream.window_in = WINDOW

    def _on_headers(self, flags: int, stream_id: int, block: bytes) -> None:
        """A request's headers, or its trailers."""
        if stream_id in self.streams:
            self._trailers(self.streams[stream_id], flags, block)
            return
        if stream_id <= self._last or not stream_id & 1:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"stream {stream_id} cannot be begun")
        self._last = stream_id
        head = self._reader.read(block)
        if self._refusing or len(self.streams) >= STREAMS_MAX or self._sender.unsent > UNSENT_MAX:
            raise StreamFault(Code.REFUSED_STREAM)
        stream = self.streams[stream_id] = Stream(stream_id, head, self._sender.stream_window())
        self._touch(stream)
        if flags & END_STREAM:
            self._end(stream)

    def _trailers(self, stream: Stream, flags: int, block: bytes) -> None:
        self._reader.decode(block)  # which keeps the tables of both sides the same
        if stream.ended:
            raise StreamFault(Code.STREAM_CLOSED)
        if not flags & END_STREAM:
            raise StreamFault(Code.PROTOCOL_ERROR)
        self._touch(stream)
        self._end(stream)

    def _end(self, stream: Stream) -> None:
        """All of a request is here."""
        stream.ended = True
        self._allowance.earn()
        if stream.held:
            self.count(stream)

    def _on_push_promise(self, flags: int, stream_id: int, payload: bytes) -> None:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "a client pushes nothing")

    def _on_priority(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now)
        if not stream_id:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "PRIORITY is of no stream")
        if len(payload) != 5:
            raise StreamFault(Code.FRAME_SIZE_ERROR)

    def _on_reset(self, flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "RST_STREAM has not 4 bytes")
        stream = self._find(stream_id)
        if stream is not None:
            if stream.touched:  # nobody has seen it yet; one that waits for its answer may be given up for nothing
                self._allowance.spend(self._now, 1 + PER_REQUEST)
            self._lose(stream)

    def _on_ping(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "PING is of a stream")
        if len(payload) != 8:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "PING has not 8 bytes")
        self._allowance.spend(self._now)
        if not flags & ACK:
            self._sender.out.append(frame(PING, ACK, 0, payload))
        elif payload == LEAVING:
            self.refuse_new()

    def _on_goaway(self, flags: int, stream_id: int, payload: bytes) -> None:
        """The peer begins no more requests; those under way are still answered."""
        self._allowance.spend(self._now)
        if stream_id:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "GOAWAY is of a stream")
        if len(payload) < 8:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "GOAWAY has not 8 bytes")

    def _on_window_update(self, flags: int, stream_id: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "WINDOW_UPDATE has not 4 bytes")
        self._allowance.spend(self._now)
        increment = int.from_bytes(payload) & NUMBER_MAX
        if not stream_id:
            if not increment:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "WINDOW_UPDATE of nothing")
            self._pumped(self._sender.widen(increment))
            return
        stream = self._find(stream_id)
        if not increment:
            raise StreamFault(Code.PROTOCOL_ERROR)
        if stream is not None:
            self._sender.widen_stream(stream, increment)
            self._pumped([stream])

    def _pumped(self, streams: list[Stream]) -> None:
        """Streams sent what they could."""
        for stream in streams:
            if stream.unsent:
                continue
            self._settle(stream)
            if not stream.gone:
                self._touch(stream)

    def _on_settings(self, flags: int, stream_id: int, payload: bytes) -> None:
        self._allowance.spend(self._now, 1 + len(payload) // 6)  # each may concern every stream
        if stream_id:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "SETTINGS are of a stream")
        if len(payload) % 6 or (flags & ACK and payload):
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, "SETTINGS are cut short")
        if flags & ACK:
            return
        for at in range(0, len(payload), 6):
            self._set(int.from_bytes(payload[at : at + 2]), int.from_bytes(payload[at + 2 : at + 6]))
        self._sender.out.append(frame(SETTINGS, ACK, 0, b""))

    def _set(self, name: int, value: int) -> None:
        """One setting of the peer's; those that we do not know, or need not, are as good as absent."""
        if name == INITIAL_WINDOW_SIZE:
            if value > NUMBER_MAX:
                raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "SETTINGS_INITIAL_WINDOW_SIZE passes 2^31-1")
            self._pumped(self._sender.set_stream_window(value, list(self.streams.values())))
        elif name == HEADER_TABLE_SIZE:
            if value < TABLE_BYTES:
                self._sender.empty_table()
        elif name == ENABLE_PUSH and value > 1:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is neither 0 nor 1")
        elif name == MAX_FRAME_SIZE and not FRAME_BYTES <= value < 2**24:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is not of 2^14 to 2^24-1")
