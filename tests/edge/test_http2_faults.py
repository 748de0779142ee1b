"""HTTP/2 at the gRPC doors, over a real connection: what a peer may not do, and what it is told for it."""

import pytest

from tests.doors import Waiting, opened
from tests.http2_peer import (
    ACK,
    ASK,
    COMPRESSION_ERROR,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FIELDS,
    FLOW_CONTROL_ERROR,
    FRAME_SIZE_ERROR,
    GOAWAY,
    HEADERS,
    HELLO,
    PADDED,
    PING,
    PREFACE,
    PRIORITIZED,
    PRIORITY,
    PROTOCOL_ERROR,
    PUSH_PROMISE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    block,
    connected,
    raw,
    request,
    reset,
    setting,
    u32,
)
from tests.in_process import rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))
HEAD = raw(HEADERS, END_HEADERS, 1, block(FIELDS))
BAD_STARTS = {
    "HTTP/1": (b"GET /check HTTP/1.1\r\nHost: edge\r\n\r\n", PROTOCOL_ERROR),
    "a preface with a wrong end": (PREFACE[:-2] + b"\n\n", PROTOCOL_ERROR),
    "no settings": (PREFACE + raw(PING, 0, 0, bytes(8)), PROTOCOL_ERROR),
    "an acknowledgement for settings": (PREFACE + raw(SETTINGS, ACK, 0), PROTOCOL_ERROR),
}
CONNECTION_FAULTS = {
    "a frame of 16,385 bytes": (raw(DATA, 0, 1, bytes(16_385)), FRAME_SIZE_ERROR),
    "data of no stream": (raw(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
    "data of a stream that was not begun": (raw(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
    "a stream of ours": (raw(HEADERS, END_HEADERS, 2, block(FIELDS)), PROTOCOL_ERROR),
    "headers of no stream": (raw(HEADERS, END_HEADERS, 0, block(FIELDS)), PROTOCOL_ERROR),
    "a stream before the last": (request(5) + request(3), PROTOCOL_ERROR),
    "a continuation of nothing": (raw(CONTINUATION, END_HEADERS, 1, b""), PROTOCOL_ERROR),
    "a ping within headers": (raw(HEADERS, 0, 1, block(FIELDS)) + raw(PING, 0, 0, bytes(8)), PROTOCOL_ERROR),
    "another's continuation": (raw(HEADERS, 0, 1, b"") + raw(CONTINUATION, END_HEADERS, 3, b""), PROTOCOL_ERROR),
    "data all padding and more": (HEAD + raw(DATA, PADDED, 1, b"\x05abcd"), PROTOCOL_ERROR),
    "padded data without a length": (HEAD + raw(DATA, PADDED, 1), PROTOCOL_ERROR),
    "headers all padding and more": (raw(HEADERS, END_HEADERS | PADDED, 1, b"\x03ab"), PROTOCOL_ERROR),
    "headers within their priority": (raw(HEADERS, END_HEADERS | PRIORITIZED, 1, bytes(4)), FRAME_SIZE_ERROR),
    "a priority of no stream": (raw(PRIORITY, 0, 0, bytes(5)), PROTOCOL_ERROR),
    "a reset of what was not begun": (reset(1), PROTOCOL_ERROR),
    "a reset of no stream": (raw(RST_STREAM, 0, 0, u32(8)), PROTOCOL_ERROR),
    "a reset of 3 bytes": (HEAD + raw(RST_STREAM, 0, 1, bytes(3)), FRAME_SIZE_ERROR),
    "settings of a stream": (raw(SETTINGS, 0, 1), PROTOCOL_ERROR),
    "settings of 5 bytes": (raw(SETTINGS, 0, 0, bytes(5)), FRAME_SIZE_ERROR),
    "an acknowledgement that sets": (raw(SETTINGS, ACK, 0, bytes(6)), FRAME_SIZE_ERROR),
    "push neither on nor off": (setting(2, 2), PROTOCOL_ERROR),
    "a window of 2^31": (setting(4, 2**31), FLOW_CONTROL_ERROR),
    "frames of 16,383 bytes": (setting(5, 16_383), PROTOCOL_ERROR),
    "frames of 2^24 bytes": (setting(5, 2**24), PROTOCOL_ERROR),
    "a promise": (raw(PUSH_PROMISE, END_HEADERS, 1, u32(2)), PROTOCOL_ERROR),
    "a ping of 7 bytes": (raw(PING, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "a ping of a stream": (raw(PING, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a goaway of a stream": (raw(GOAWAY, 0, 1, bytes(8)), PROTOCOL_ERROR),
    "a goaway of 7 bytes": (raw(GOAWAY, 0, 0, bytes(7)), FRAME_SIZE_ERROR),
    "a window that grows by nothing": (raw(WINDOW_UPDATE, 0, 0, u32(0)), PROTOCOL_ERROR),
    "a window update of 3 bytes": (raw(WINDOW_UPDATE, 0, 0, bytes(3)), FRAME_SIZE_ERROR),
    "a window above 2^31-1": (raw(WINDOW_UPDATE, 0, 0, u32(2**31 - 1)), FLOW_CONTROL_ERROR),
    "a window of what was not begun": (raw(WINDOW_UPDATE, 0, 1, u32(1)), PROTOCOL_ERROR),
    "a header of index 0": (raw(HEADERS, END_HEADERS, 1, b"\x80"), COMPRESSION_ERROR),
    "a header of no index": (raw(HEADERS, END_HEADERS, 1, b"\xbf\xff"), COMPRESSION_ERROR),
    "a header cut short": (raw(HEADERS, END_HEADERS, 1, b"\x00\x05ab"), COMPRESSION_ERROR),
    "a header that ends with its name": (raw(HEADERS, END_HEADERS, 1, b"\x00\x01a"), COMPRESSION_ERROR),
    "a table of 8 KiB": (raw(HEADERS, END_HEADERS, 1, b"\x3f\xe1\x3f" + block(FIELDS)), COMPRESSION_ERROR),
    "a table changed three times": (raw(HEADERS, END_HEADERS, 1, b"\x20\x3f\xe1\x1f\x20"), COMPRESSION_ERROR),
    "headers of 40 KiB out of 8": (
        raw(HEADERS, END_HEADERS, 1, b"\x40\x01a\x7f\x80\x1e" + b"x" * 3_967 + b"\xbe" * 10),
        ENHANCE_YOUR_CALM,
    ),
    "a header block of 48 KiB": (
        raw(HEADERS, 0, 1, bytes(16_384)) + 2 * raw(CONTINUATION, 0, 1, bytes(16_384)),
        ENHANCE_YOUR_CALM,
    ),
    "a header block in 18 frames": (raw(HEADERS, 0, 1) + 17 * raw(CONTINUATION, 0, 1), ENHANCE_YOUR_CALM),
    "pings without end": (2_100 * raw(PING, 0, 0, bytes(8)), ENHANCE_YOUR_CALM),
    "pings answered without end": (2_100 * raw(PING, ACK, 0, bytes(8)), ENHANCE_YOUR_CALM),
    "settings without end": (2_100 * raw(SETTINGS, 0, 0), ENHANCE_YOUR_CALM),
    "a frame of settings without end": (raw(SETTINGS, 0, 0, 2_100 * bytes((0, 4, 0, 0, 0, 0))), ENHANCE_YOUR_CALM),
    "priorities without end": (2_100 * raw(PRIORITY, 0, 1, bytes(5)), ENHANCE_YOUR_CALM),
    "windows without end": (2_100 * raw(WINDOW_UPDATE, 0, 0, u32(1)), ENHANCE_YOUR_CALM),
    "empty data without end": (HEAD + 2_100 * raw(DATA, 0, 1), ENHANCE_YOUR_CALM),
    "unknown frames without end": (2_100 * raw(99, 0, 0), ENHANCE_YOUR_CALM),
    "requests begun and reset": (
        b"".join(
            raw(HEADERS, END_HEADERS, n, block(FIELDS)) + raw(RST_STREAM, 0, n, u32(8)) for n in range(1, 4_201, 2)
        ),
        ENHANCE_YOUR_CALM,
    ),
    "requests made and reset": (
        b"".join(request(n) + reset(n) for n in range(1, 12_001, 2)),
        ENHANCE_YOUR_CALM,
    ),
    "resets of what is over": (request(1) + 2_100 * reset(1), ENHANCE_YOUR_CALM),
    "malformed requests without end": (
        b"".join(raw(HEADERS, END_HEADERS, n, block(FIELDS[1:])) for n in range(1, 4_201, 2)),
        ENHANCE_YOUR_CALM,
    ),
}


@pytest.mark.parametrize("sent, code", BAD_STARTS.values(), ids=BAD_STARTS)
async def test_what_is_no_client_of_http2_is_told_so(sent: bytes, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    """GOAWAY, and the end of the connection; the log stays empty and others are answered."""
    async with opened(TENANT) as doors:
        async with connected(doors.doors.address, sent) as peer:
            assert (await peer.goaway()).number == code
        assert await doors.limit({"tenant": "contoso"})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent, code", CONNECTION_FAULTS.values(), ids=CONNECTION_FAULTS)
async def test_what_breaks_a_connection(sent: bytes, code: int, capfd: pytest.CaptureFixture[str]) -> None:
    """GOAWAY with the code that fits, and the end of this connection and of no other."""
    async with opened(TENANT) as doors:
        async with connected(doors.doors.address) as peer:
            await peer.send(sent)
            assert (await peer.goaway()).number == code
        assert await doors.limit({"tenant": "contoso"})
    assert capfd.readouterr() == ("", "")


def without(name: str) -> list[tuple[str, str]]:
    """The usual headers but for one."""
    return [field for field in FIELDS if field[0] != name]


MALFORMED = {
    "no method": without(":method"),
    "no scheme": without(":scheme"),
    "no path": without(":path"),
    "an empty path": [*without(":path")[:2], (":path", ""), *FIELDS[3:]],
    "a method twice": [(":method", "POST"), *FIELDS],
    "an unknown pseudo-header": [(":status", "200"), *FIELDS],
    "a pseudo-header at the end": [*FIELDS[:3], *FIELDS[4:], FIELDS[3]],
    "upper case": [*FIELDS, ("X-Envoy", "1")],
    "no name": [*FIELDS, ("", "1")],
    "a header of the connection": [*FIELDS, ("connection", "close")],
    "chunks": [*FIELDS, ("transfer-encoding", "chunked")],
    "other encodings than trailers": [*FIELDS, ("te", "gzip")],
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_request_is_reset(fields: list[tuple[str, str]]) -> None:
    """PROTOCOL_ERROR for its stream; the next request on the connection is answered."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(request(1, fields), request(3))
        answers = await peer.answers(1, 3)
    assert answers[1].reset == PROTOCOL_ERROR
    assert answers[3].status == "0"


STREAM_FAULTS = {
    "a window that grows by nothing": (raw(WINDOW_UPDATE, 0, 1, u32(0)), PROTOCOL_ERROR),
    "a window above 2^31-1": (raw(WINDOW_UPDATE, 0, 1, u32(2**31 - 1)), FLOW_CONTROL_ERROR),
    "a priority of 4 bytes": (raw(PRIORITY, 0, 1, bytes(4)), FRAME_SIZE_ERROR),
    "data after its end": (raw(DATA, END_STREAM, 1, ASK) + raw(DATA, 0, 1, b"x"), STREAM_CLOSED),
    "trailers after its end": (raw(DATA, END_STREAM, 1, ASK) + raw(HEADERS, 5, 1, block([("a", "b")])), STREAM_CLOSED),
    "trailers that do not end it": (raw(HEADERS, END_HEADERS, 1, block([("a", "b")])), PROTOCOL_ERROR),
}


@pytest.mark.parametrize("sent, code", STREAM_FAULTS.values(), ids=STREAM_FAULTS)
async def test_what_breaks_one_stream(sent: bytes, code: int) -> None:
    """The stream is reset and never answered; the connection goes on."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(HEAD + sent, request(3))
        answers = await peer.answers(1, 3)
    assert (answers[1].reset, answers[1].fields) == (code, {})
    assert answers[3].status == "0"


async def test_a_request_too_many_is_refused_for_another_try() -> None:
    """1,000 wait; the next is REFUSED_STREAM, and has its turn when one of them was answered or given up."""
    async with opened(Waiting()) as doors, connected(doors.doors.address) as peer:
        settings = await peer.until(SETTINGS)
        assert settings.payload[:6] == bytes([0, 3]) + u32(1_000)
        await peer.send(*(request(n) for n in range(1, 2_001, 2)), request(2_001))
        assert (await peer.until(RST_STREAM, 2_001)).number == REFUSED_STREAM
        await peer.send(reset(1), request(2_003), request(2_005))
        assert (await peer.until(RST_STREAM, 2_005)).number == REFUSED_STREAM


async def test_frames_that_come_with_requests_are_no_flood() -> None:
    """A ping and a grown window beside each of 3,000 requests."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        extra = raw(PING, 0, 0, bytes(8)) + raw(WINDOW_UPDATE, 0, 0, u32(400))
        for begin in range(1, 6_001, 200):
            streams = range(begin, begin + 200, 2)
            await peer.send(*(request(n) + extra for n in streams))
            answers = await peer.answers(*streams)
            assert {answer.status for answer in answers.values()} == {"0"}


async def test_waiting_calls_given_up_are_no_flood() -> None:
    """In an outage a proxy may give up each of its requests: 3,000 of them, each once it was seen."""
    decider = Waiting()
    async with opened(decider) as doors, connected(doors.doors.address) as peer:
        for begin in range(1, 6_001, 1_000):
            streams = range(begin, begin + 1_000, 2)
            await peer.send(*(request(n) for n in streams))
            for _ in streams:
                await decider.asked.get()
            await peer.send(*(reset(n) for n in streams), raw(PING, 0, 0, bytes(8)))
            await peer.until(PING, flags=ACK)


async def test_a_peer_that_says_hello_in_pieces_is_served() -> None:
    """Also when its first request comes with its hello."""
    async with opened(TENANT) as doors, connected(doors.doors.address, HELLO[:7]) as peer:
        await peer.send(HELLO[7:30])
        await peer.send(HELLO[30:], request(1))
        assert (await peer.answer(1)).status == "0"


async def test_a_server_that_stops_says_no_more_to_a_peer_it_parted_from(caplog: pytest.LogCaptureFixture) -> None:
    """That peer was told its fault, and its connection takes nothing more."""
    async with opened(TENANT) as doors, connected(doors.doors.address) as peer:
        await peer.send(raw(SETTINGS, 0, 1))
        assert (await peer.goaway()).number == PROTOCOL_ERROR
        await doors.doors.close(0.0)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
