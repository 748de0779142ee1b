"""A client of HTTP/2 made of raw frames, over a real connection: what no well-behaved library would send, too."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from hpack import Decoder, Encoder

from tests.doors import rls_request

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32
NO_ERROR, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM = 0, 1, 3, 5, 6, 7
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 9, 11

RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
FIELDS = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", RLS),
    (":authority", "edge"),
    ("te", "trailers"),
    ("content-type", "application/grpc"),
]


def raw(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame, whatever is in it."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def u32(number: int) -> bytes:
    """Four bytes."""
    return struct.pack(">I", number)


def setting(name: int, value: int) -> bytes:
    """A SETTINGS frame."""
    return raw(SETTINGS, 0, 0, struct.pack(">HI", name, value))


def block(fields: Iterable[tuple[str, str]]) -> bytes:
    """Headers written without regard to any other block."""
    return Encoder().encode([(name, value, True) for name, value in fields])  # sensitive: kept in no table


def grpc_message(message: bytes, compressed: bool = False) -> bytes:
    """A message as gRPC frames it."""
    return bytes([compressed]) + u32(len(message)) + message


ASK = grpc_message(rls_request({"tenant": "contoso"}).SerializeToString())


def request(
    stream: int, fields: Iterable[tuple[str, str]] = FIELDS, body: bytes = ASK, flags: int = END_STREAM
) -> bytes:
    """A request, its body in one frame."""
    return raw(HEADERS, END_HEADERS, stream, block(fields)) + raw(DATA, flags, stream, body)


def reset(stream: int) -> bytes:
    """The peer gives a stream up."""
    return raw(RST_STREAM, 0, stream, u32(8))


HELLO = PREFACE + raw(SETTINGS, 0, 0)


@dataclass(slots=True)
class Frame:
    """A frame that came."""

    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def number(self) -> int:
        """The code of RST_STREAM and of GOAWAY, the increment of WINDOW_UPDATE."""
        return int.from_bytes(self.payload[4:8] if self.kind == GOAWAY else self.payload)


@dataclass(slots=True)
class Answer:
    """What came on a stream: headers and trailers together, the body, and the code it was reset with."""

    fields: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    reset: int | None = None

    @property
    def status(self) -> str | None:
        """`grpc-status`."""
        return self.fields.get("grpc-status")


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self._reader = reader
        self._decoder = Decoder()

    async def send(self, *pieces: bytes) -> None:
        """Write."""
        self.writer.write(b"".join(pieces))
        await self.writer.drain()

    async def frame(self) -> Frame | None:
        """The next frame; None at the end of the connection."""
        try:
            word, flags, stream = struct.unpack(">IBI", await self._reader.readexactly(9))
            return Frame(word & 255, flags, stream, await self._reader.readexactly(word >> 8))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    async def until(self, kind: int, stream: int = 0, flags: int = 0) -> Frame:
        """The next frame of this kind, stream, and with these flags; others are passed over."""
        async with asyncio.timeout(20):
            while (found := await self.frame()) is not None:
                if (found.kind, found.stream) == (kind, stream) and found.flags & flags == flags:
                    return found
        raise AssertionError("the connection ended")

    async def answers(self, *streams: int) -> dict[int, Answer]:
        """Whole answers on these streams, in whatever order they come."""
        found = {stream: Answer() for stream in streams}
        missing = set(streams)
        async with asyncio.timeout(20):
            while missing:
                came = await self.frame()
                assert came is not None, "the connection ended"
                answer = found.get(came.stream, Answer())
                if came.kind == HEADERS:
                    answer.fields |= {str(name): str(value) for name, value in self._decoder.decode(came.payload)}
                elif came.kind == DATA:
                    answer.body += came.payload
                elif came.kind == RST_STREAM and came.stream in missing:
                    answer.reset = came.number
                if came.kind == RST_STREAM or (came.kind in (DATA, HEADERS) and came.flags & END_STREAM):
                    missing.discard(came.stream)
        return found

    async def answer(self, stream: int) -> Answer:
        """The whole answer on a stream."""
        return (await self.answers(stream))[stream]

    async def goaway(self) -> Frame:
        """What the server says last, after which the connection ends."""
        said = await self.until(GOAWAY)
        async with asyncio.timeout(20):
            while await self.frame() is not None:
                pass
        return said


@asynccontextmanager
async def connected(address: str, hello: bytes = HELLO) -> AsyncIterator[Peer]:
    """A connection that has said hello."""
    if address.startswith("unix:"):
        reader, writer = await asyncio.open_unix_connection(address.removeprefix("unix:"))
    else:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
    peer = Peer(reader, writer)
    try:
        await peer.send(hello)
        yield peer
    finally:
        writer.close()
